"""Point the link of the default CUDA toolkit to one directory, with update-alternatives if that manages the link."""

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base import manifest, manifest_notes
from ..base.errors import GpuReadyError
from ..base.host import Host
from . import toolkit as cuda


class DefaultError(GpuReadyError):
    """The link cannot be set."""


class DefaultPaths(NamedTuple):
    """The link, the state files of update-alternatives, further arguments for it, and the manifest."""

    link: str = cuda.LINK
    states: Tuple[str, ...] = cuda.ALTERNATIVES
    arguments: Tuple[str, ...] = ()
    manifest: str = manifest.PATH


class DefaultChange(NamedTuple):
    """The link before and after; ``group`` manages it, None for a plain link."""

    path: str
    before: cuda.DefaultLink
    after: cuda.DefaultLink
    group: Optional[cuda.AlternativesGroup]

    @property
    def changed(self) -> bool:
        return self.before != self.after


def plan_change(host: Host, path: str, paths: DefaultPaths, ahead: bool = False) -> DefaultChange:
    """Point the link to ``path``; with ``ahead`` the directory may be missing, because it will be installed later."""
    before = cuda.read_default(host, paths.link, paths.states)
    if before.kind == "directory":
        raise DefaultError(
            "%s is a directory or a file, so it cannot point to %s. Move it to another place, then run again"
            % (paths.link, path)
        )
    if not host.isdir(path) and not ahead:
        raise DefaultError(
            "%s cannot point to %s, which does not exist. Install that toolkit, or choose another cuda_toolkit_default"
            % (paths.link, path)
        )
    group = cuda.read_group(host, paths.link, paths.states)
    after = cuda.DefaultLink(path, "link", None)
    if group is not None:
        after = cuda.DefaultLink(path, "alternatives", "manual")
    if before.target == path and before.kind == "link":
        after = before  # a plain link to that directory, set by somebody else
    return DefaultChange(path, before, after, group)


def apply_change(host: Host, change: DefaultChange, version: str, paths: DefaultPaths) -> None:
    """Set the link and verify it. Raises DefaultError."""
    mode = change.before.mode or change.before.kind
    entry = {"before": change.before.target, "mode": mode, "link": paths.link}
    manifest_notes.note("alternatives", {cuda.GROUP: entry}, paths.manifest)
    if change.group is None:
        replace_link(change.path, paths.link)
    else:
        if change.path not in change.group.candidates:
            # The priority that NVIDIA's packages use: 129 for 12.9.
            priority = version.replace(".", "")
            _alternatives(host, paths, ["--install", paths.link, cuda.GROUP, change.path, priority])
        _alternatives(host, paths, ["--set", cuda.GROUP, change.path])
    after = cuda.read_default(host, paths.link, paths.states)
    if after != change.after:
        raise DefaultError(
            "%s points to %s after it was set to %s. See `update-alternatives --display %s`, repair it, then run again"
            % (paths.link, after.target, change.path, cuda.GROUP)
        )


def format_link(default: cuda.DefaultLink, paths: DefaultPaths) -> str:
    """Return the link as a diff shows it."""
    if default.target is None:
        return ""
    return "%s -> %s (%s)\n" % (paths.link, default.target, default.mode or default.kind)


def replace_link(path: str, link: str) -> None:
    """Replace a plain link atomically."""
    temporary = link + ".gpu-ready"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(path, temporary)
    os.rename(temporary, link)


def _alternatives(host: Host, paths: DefaultPaths, arguments: List[str]) -> None:
    result = host.run(["update-alternatives"] + list(paths.arguments) + arguments)
    if result.rc != 0:
        words = " ".join((result.err or result.out).split())
        raise DefaultError(
            "update-alternatives %s failed (%s). Repair the group with `update-alternatives --config %s`, "
            "then run again" % (" ".join(arguments), words, cuda.GROUP)
        )


def remove_candidate(host: Host, path: str, paths: DefaultPaths) -> None:
    """Remove an uninstalled toolkit from the group."""
    _alternatives(host, paths, ["--remove", cuda.GROUP, path])


def restore_default(host: Host, entry: Dict[str, Any], paths: DefaultPaths) -> bool:
    """Restore the link as recorded in the manifest's ``entry``; True if anything changed.

    Call it after our packages are removed: they remove their own candidates, and an empty group.
    """
    current = cuda.read_default(host, paths.link, paths.states)
    group = cuda.read_group(host, paths.link, paths.states)
    before, mode = entry.get("before"), entry.get("mode")
    if group is not None and mode in ("auto", "manual"):
        if mode == "manual" and before in group.candidates:
            arguments = ["--set", cuda.GROUP, str(before)]
        else:
            arguments = ["--auto", cuda.GROUP]
        _alternatives(host, paths, arguments)
    elif group is not None and mode == "absent":
        _alternatives(host, paths, ["--remove-all", cuda.GROUP])
    elif mode == "link" and before is not None and host.isdir(str(before)):
        replace_link(str(before), paths.link)
    elif current.kind == "link":
        os.unlink(paths.link)
    return cuda.read_default(host, paths.link, paths.states) != current
