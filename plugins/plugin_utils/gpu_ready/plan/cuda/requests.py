"""The settings cuda_toolkit_* as records: toolkits to install and to remove, installers, and contradictions."""

import re
from typing import Any, NamedTuple

from .....module_utils.gpu_ready.base import validation, versions
from .....module_utils.gpu_ready.cuda import toolkit as names
from ...catalog import model as catalog
from ...catalog.settings import Settings
from ..model import Refusal
from ..repository import mirrored
from .model import InstallerTarget

NONE, REPO, RUNFILE = "none", "repo", "runfile"
"""Values of cuda_toolkit_source."""
DEFAULT = "default"
"""The value of cuda_toolkit_profile that follows the link of the default toolkit."""
COPIES = "/var/lib/gpu-ready/cuda_%s.run"
"""Where an installer of the control node is copied to while it is needed."""


class ToolkitRequest(NamedTuple):
    """A toolkit to install; ``release`` where one release of it is requested: ToolkitRequest("12.9", "12.9.1")."""

    version: str
    release: str | None = None

    @property
    def text(self) -> str:
        return self.release or self.version


class OwnInstaller(NamedTuple):
    """An installer of cuda_toolkit_runfiles: a URL or a path on the control node, and its sha256 or ""."""

    file: str
    sha256: str


class Installer(NamedTuple):
    """An installer that fits a request; ``release`` is "" where only the installer itself says it."""

    release: str
    source: str
    sha256: str
    md5_url: str


def requested_toolkits(settings: Settings) -> list[ToolkitRequest]:
    found: list[ToolkitRequest] = []
    for text in settings.cuda_toolkit_versions:
        version = names.series(text)
        request = ToolkitRequest(version, text if text != version else None)
        if text not in ("auto", "") and request not in found:
            found.append(request)
    # A release also fulfils the request for its version.
    exact = {request.version for request in found if request.release}
    return [request for request in found if request.release or request.version not in exact]


def versions_to_remove(settings: Settings) -> list[str]:
    return sorted(set(settings.cuda_toolkit_remove), key=versions.key)


def requested_default(settings: Settings) -> str:
    value = settings.cuda_toolkit_default
    return "" if value == "auto" else value


def requested_profile(settings: Settings) -> str:
    """Return DEFAULT, NONE or a version; an empty text means DEFAULT."""
    return settings.cuda_toolkit_profile or DEFAULT


def own_installers(settings: Settings) -> tuple[dict[str, OwnInstaller], list[str]]:
    """Return the installers of cuda_toolkit_runfiles by version or release, and what is wrong with other entries."""
    found: dict[str, OwnInstaller] = {}
    faults: list[str] = []
    for key, value in sorted(settings.cuda_toolkit_runfiles.items(), key=lambda item: str(item[0])):
        version = str(key)
        entry = {"file": value} if isinstance(value, str) else value
        fault = _entry_fault(version, entry)
        if fault:
            faults.append("%s: %s" % (validation.format_value(version).strip("'"), fault))
        else:
            found[version] = OwnInstaller(str(entry["file"]), str(entry.get("sha256") or "").lower())
    return found, faults


def _entry_fault(version: str, entry: Any) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+(?:\.[0-9]+)?", version):
        return "its name must be a version such as 12.9 or 12.9.1"
    if not isinstance(entry, dict) or not entry.get("file") or set(entry) - {"file", "sha256"}:
        return "it must be a URL, a path, or a mapping of file and sha256"
    if entry.get("sha256") and not re.fullmatch(r"[0-9a-fA-F]{64}", str(entry["sha256"])):
        return "sha256 must be 64 hexadecimal digits"
    fault = validation.location_fault(str(entry["file"]))
    if fault:
        return "%s %s" % (validation.format_value(entry["file"]), fault)
    release = names.release_of_file(str(entry["file"]))
    if release and not names.is_release(release, version):
        return "%s is the installer of CUDA %s" % (entry["file"], release)
    return ""


def find_installer(request: ToolkitRequest, settings: Settings) -> Installer | None:
    """Return the installer for a request: the operator's before NVIDIA's, of several the newest; None without one."""
    files = own_installers(settings)[0]
    keys = [key for key in files if names.is_release(key, request.text)]
    own = files.get(request.version)
    if request.release and own is not None and names.release_of_file(own.file) == request.release:
        keys.append(request.version)
    if keys:
        # An entry for exactly this text has precedence over any release of it.
        key = request.text if request.text in keys else max(keys, key=versions.key)
        release = names.release_of_file(files[key].file) or (key if key != request.version else "")
        return Installer(release, files[key].file, files[key].sha256, "")
    known = [one for one in catalog.cuda_installers() if names.is_release(one.release, request.text)]
    later = catalog.later_cuda_installer(request.release) if request.release and not known else None
    known += [later] if later else []
    if not known:
        return None
    mirror = settings.gpu_ready_mirror
    one = known[-1]
    return Installer(
        one.release, mirrored(one.url, mirror), one.sha256, "" if one.sha256 else mirrored(one.md5_url, mirror)
    )


def installer_parameters(request: ToolkitRequest, found: Installer) -> InstallerTarget:
    return InstallerTarget(
        version=request.version,
        release=found.release,
        path=names.toolkit_path(request.version),
        source=found.source,
        file="" if "://" in found.source else COPIES % request.version,
        sha256=found.sha256,
        md5_url=found.md5_url,
    )


def contradictions(settings: Settings) -> list[Refusal]:
    found = []
    installs = settings.cuda_toolkit_source != NONE
    requests = requested_toolkits(settings) if installs else []
    for version in versions_to_remove(settings):
        clash = [
            variable
            for variable, named in (
                ("cuda_toolkit_versions", version in [request.version for request in requests]),
                ("cuda_toolkit_default", installs and version == requested_default(settings)),
                ("cuda_toolkit_profile", installs and version == requested_profile(settings)),
            )
            if named
        ]
        if clash:
            message = "CUDA %s is in cuda_toolkit_remove and in %s at once" % (version, " and ".join(clash))
            found.append(Refusal("cuda_contradiction", message, "take it out of one of them"))
    for version in sorted({request.version for request in requests}, key=versions.key):
        releases = [request.text for request in requests if request.version == version]
        if len(releases) > 1:
            message = "cuda_toolkit_versions asks for %s, which share the directory %s" % (
                " and ".join(releases),
                names.toolkit_path(version),
            )
            found.append(Refusal("cuda_contradiction", message, "ask for one of them"))
    faults = own_installers(settings)[1]
    if faults:
        message = "cuda_toolkit_runfiles cannot be read: %s" % "; ".join(faults)
        found.append(
            Refusal("cuda_runfiles_wrong", message, 'write it as {"12.9": /srv/cuda_12.9.1_575.57.08_linux.run}')
        )
    return found
