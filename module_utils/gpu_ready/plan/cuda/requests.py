"""What is asked of CUDA toolkits in one form: versions, those to take away, installers; and what contradicts itself."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ...base import validation, versions
from ...catalog import model as catalog
from ...cuda import toolkit as names
from ..model import Refusal
from ..repository import mirrored

NONE, REPO, RUNFILE = "none", "repo", "runfile"
"""Values of cuda_toolkit_source."""
DEFAULT = "default"
"""The value of cuda_toolkit_profile that follows the link of the default toolkit."""
COPIES = "/var/lib/gpu-ready/cuda_%s.run"
"""Where an installer of the control machine lies on the host while it is needed."""


class Wish(NamedTuple):
    """A toolkit that is wanted; ``release`` where a very release of it is: Wish("12.9", "12.9.1")."""

    version: str
    release: Optional[str] = None

    @property
    def text(self) -> str:
        """Return it as it was written."""
        return self.release or self.version


class Given(NamedTuple):
    """An installer of the operator's: a URL or a path on the control machine, and its sha256 or ""."""

    file: str
    sha256: str


class Installer(NamedTuple):
    """An installer that fits a wish; ``release`` is "" where nothing but the installer itself knows it."""

    release: str
    source: str
    sha256: str
    md5_url: str


def source(wanted: Dict[str, Any]) -> str:
    """Return where toolkits come from."""
    return str(wanted.get("cuda_toolkit_source") or REPO)


def asked(wanted: Dict[str, Any]) -> List[Wish]:
    """Return the toolkits asked for, each once, in their order; [] where the choice is ours."""
    value = wanted.get("cuda_toolkit_versions") or []
    value = value.replace(",", " ").split() if isinstance(value, str) else value
    found: List[Wish] = []
    for entry in value:
        text = str(entry)
        version = names.series(text)
        wish = Wish(version, text if text != version else None)
        if text not in ("auto", "") and wish not in found:
            found.append(wish)
    # A plain version is fulfilled by the release of it that is asked for beside it.
    exact = {wish.version for wish in found if wish.release}
    return [wish for wish in found if wish.release or wish.version not in exact]


def leaving(wanted: Dict[str, Any]) -> List[str]:
    """Return the toolkits to take away, ascending."""
    return sorted({str(version) for version in wanted.get("cuda_toolkit_remove") or []}, key=versions.key)


def default(wanted: Dict[str, Any]) -> str:
    """Return the default that is asked for, "" where the choice is ours."""
    value = str(wanted.get("cuda_toolkit_default") or "auto")
    return "" if value == "auto" else value


def profile(wanted: Dict[str, Any]) -> str:
    """Return what login shells are led to: DEFAULT, NONE or a version."""
    return str(wanted.get("cuda_toolkit_profile") or DEFAULT)


def given(wanted: Dict[str, Any]) -> Tuple[Dict[str, Given], List[str]]:
    """Return the operator's installers by version or release, and in words what of them cannot be read."""
    found: Dict[str, Given] = {}
    wrong: List[str] = []
    for key, value in sorted((wanted.get("cuda_toolkit_runfiles") or {}).items(), key=lambda item: str(item[0])):
        version = str(key)
        entry = {"file": value} if isinstance(value, str) else value
        fault = _fault(version, entry)
        if fault:
            wrong.append("%s: %s" % (validation.format_value(version).strip("'"), fault))
        else:
            found[version] = Given(str(entry["file"]), str(entry.get("sha256") or "").lower())
    return found, wrong


def _fault(version: str, entry: Any) -> str:
    if not re.fullmatch(r"[0-9]+\.[0-9]+(?:\.[0-9]+)?", version):
        return "its name must be a version such as 12.9 or 12.9.1"
    if not isinstance(entry, dict) or not entry.get("file") or set(entry) - {"file", "sha256"}:
        return "it must be a URL, a path, or a mapping of file and sha256"
    if entry.get("sha256") and not re.fullmatch(r"[0-9a-fA-F]{64}", str(entry["sha256"])):
        return "sha256 must be 64 hexadecimal digits"
    fault = validation.location_fault(str(entry["file"]))
    if fault:
        return "%s %s" % (validation.format_value(entry["file"]), fault)
    told = names.release_of_file(str(entry["file"]))
    if told and not names.is_release(told, version):
        return "%s is the installer of CUDA %s" % (entry["file"], told)
    return ""


def installer(wish: Wish, wanted: Dict[str, Any]) -> Optional[Installer]:
    """Return the installer for a wish, None for none: the operator's before NVIDIA's, of several the newest."""
    files = given(wanted)[0]
    keys = [key for key in files if names.is_release(key, wish.text)]
    if wish.release and wish.version in files and names.release_of_file(files[wish.version].file) == wish.release:
        keys.append(wish.version)
    if keys:
        # What is named by the version alone is meant for it, before any release.
        key = wish.text if wish.text in keys else max(keys, key=versions.key)
        release = names.release_of_file(files[key].file) or (key if key != wish.version else "")
        return Installer(release, files[key].file, files[key].sha256, "")
    known = [one for one in catalog.cuda_installers() if names.is_release(one.release, wish.text)]
    if not known:
        return None
    mirror = wanted.get("gpu_ready_mirror") or ""
    one = known[-1]
    return Installer(
        one.release, mirrored(one.url, mirror), one.sha256, "" if one.sha256 else mirrored(one.md5_url, mirror)
    )


def params(wish: Wish, found: Installer) -> Dict[str, str]:
    """Return what the role needs to run an installer; ``file`` is where one of the control machine is copied to."""
    return {
        "version": wish.version,
        "release": found.release,
        "path": names.toolkit_path(wish.version),
        "source": found.source,
        "file": "" if "://" in found.source else COPIES % wish.version,
        "sha256": found.sha256,
        "md5_url": found.md5_url,
    }


def contradictions(wanted: Dict[str, Any]) -> List[Refusal]:
    """Return what cannot be meant, whatever the host is like."""
    found = []
    going = leaving(wanted)
    installs = source(wanted) != NONE
    wishes = asked(wanted) if installs else []
    for version in going:
        clash = [
            words
            for words, there in (
                ("cuda_toolkit_versions", version in [wish.version for wish in wishes]),
                ("cuda_toolkit_default", installs and version == default(wanted)),
                ("cuda_toolkit_profile", installs and version == profile(wanted)),
            )
            if there
        ]
        if clash:
            message = "CUDA %s is in cuda_toolkit_remove and in %s at once" % (version, " and ".join(clash))
            found.append(Refusal("cuda_contradiction", message, "take it out of one of them"))
    for version in sorted({wish.version for wish in wishes}, key=versions.key):
        releases = [wish.text for wish in wishes if wish.version == version]
        if len(releases) > 1:
            message = "cuda_toolkit_versions asks for %s, which share the folder %s" % (
                " and ".join(releases),
                names.toolkit_path(version),
            )
            found.append(Refusal("cuda_contradiction", message, "ask for one of them"))
    wrong = given(wanted)[1]
    if wrong:
        message = "cuda_toolkit_runfiles cannot be read: %s" % "; ".join(wrong)
        found.append(
            Refusal("cuda_runfiles_wrong", message, 'write it as {"12.9": /srv/cuda_12.9.1_575.57.08_linux.run}')
        )
    return found
