"""Read the manifests of NVIDIA's server for cuDNN archives."""

import re
from typing import Any, NamedTuple

from ...base.json_file import parse_json
from .model import CudnnError


class RedistArchive(NamedTuple):
    """One archive of a redist manifest, ``path`` relative to it; ``size`` 0 and ``version`` "" if unknown."""

    path: str
    sha256: str
    size: int
    version: str


def parse_manifest(text: str, variant: str, url: str, platform: str = "linux-x86_64") -> RedistArchive:
    """Return the archive for a variant; ``url`` names the manifest in the error. Raises CudnnError."""
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as error:
        raise CudnnError(
            "%s is not a cuDNN manifest: not JSON (%s). Check whether a proxy or a sign-in page answers instead"
            % (url, error)
        ) from error
    entry: Any = value
    for step in ("cudnn", platform, variant):
        entry = entry.get(step) if isinstance(entry, dict) else None
    if not isinstance(entry, dict):
        offered = value.get("cudnn") if isinstance(value, dict) else None
        offered = offered.get(platform) if isinstance(offered, dict) else None
        names = sorted(offered) if isinstance(offered, dict) else []
        raise CudnnError(
            "%s has no cuDNN for %s on %s (it has: %s). Choose another cudnn_version, or set cudnn_source to none"
            % (url, variant, platform, ", ".join(names) or "nothing")
        )
    path, sha256, size = entry.get("relative_path"), entry.get("sha256"), entry.get("size")
    if not isinstance(path, str) or not isinstance(sha256, str) or not re.match(r"^[0-9a-fA-F]{64}$", sha256):
        raise CudnnError(
            "%s has no path and sha256 for %s, so the archive cannot be verified. Choose another cudnn_version"
            % (url, variant)
        )
    if "://" in path or path.startswith("/") or ".." in path.split("/"):
        raise CudnnError(
            "%s names the archive %r, which is not below it. Nothing was fetched. Find out who changed the manifest "
            "(a mirror?) before you trust it" % (url, path)
        )
    version = value["cudnn"].get("version")
    return RedistArchive(
        path,
        sha256.lower(),
        int(str(size)) if re.fullmatch(r"[0-9]{1,20}", str(size)) else 0,
        version if isinstance(version, str) else "",
    )
