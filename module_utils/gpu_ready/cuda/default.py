"""Point the link of the default CUDA toolkit to one folder, through update-alternatives where that keeps it."""

import os
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base import manifest
from ..base.errors import GpuReadyError
from ..base.host import Host
from . import toolkit as cuda


class DefaultError(GpuReadyError):
    """The link cannot be set; the text is one sentence with thing, cause and remedy."""


class Where(NamedTuple):
    """The link, the state files of update-alternatives, further arguments for it, and the manifest."""

    link: str = cuda.LINK
    states: Tuple[str, ...] = cuda.ALTERNATIVES
    arguments: Tuple[str, ...] = ()
    manifest: str = manifest.PATH


class Change(NamedTuple):
    """The link before and after; ``group`` is the one that keeps it, None for a plain link."""

    path: str
    before: cuda.Default
    after: cuda.Default
    group: Optional[cuda.Group]

    @property
    def changed(self) -> bool:
        """Return whether there is anything to do."""
        return self.before != self.after


def plan(host: Host, path: str, where: Where, ahead: bool = False) -> Change:
    """Return the change that leads the link to ``path``; ``ahead`` of its installation the folder may be missing."""
    before = cuda.read_default(host, where.link, where.states)
    if before.kind == "folder":
        raise DefaultError(
            "%s is a folder or file of its own, so it cannot point to %s: move it away, then run again"
            % (where.link, path)
        )
    if not host.isdir(path) and not ahead:
        raise DefaultError(
            "%s cannot point to %s, which is not there: install that toolkit, or choose another cuda_toolkit_default"
            % (where.link, path)
        )
    group = cuda.read_group(host, where.link, where.states)
    after = cuda.Default(path, "alternatives", "manual") if group is not None else cuda.Default(path, "link", None)
    if before.target == path and before.kind == "link":
        after = before  # somebody's plain link that leads there already
    return Change(path, before, after, group)


def act(host: Host, change: Change, version: str, where: Where) -> None:
    """Make the change, and look whether it took hold."""
    mode = change.before.mode or change.before.kind
    entry = {"before": change.before.target, "mode": mode, "link": where.link}
    manifest.note("alternatives", {cuda.GROUP: entry}, where.manifest)
    if change.group is None:
        point(change.path, where.link)
    else:
        if change.path not in change.group.candidates:
            # The priority that NVIDIA's own packages give: 129 for 12.9.
            priority = version.replace(".", "")
            _alternatives(host, where, ["--install", where.link, cuda.GROUP, change.path, priority])
        _alternatives(host, where, ["--set", cuda.GROUP, change.path])
    after = cuda.read_default(host, where.link, where.states)
    if after != change.after:
        raise DefaultError(
            "%s leads to %s after it was set to %s: see `update-alternatives --display %s`, repair it, then run again"
            % (where.link, after.target, change.path, cuda.GROUP)
        )


def text(default: cuda.Default, where: Where) -> str:
    """Return the link as a diff shows it."""
    if default.target is None:
        return ""
    return "%s -> %s (%s)\n" % (where.link, default.target, default.mode or default.kind)


def point(path: str, link: str) -> None:
    """Exchange a plain link in one step."""
    temporary = link + ".gpu-ready"
    if os.path.lexists(temporary):
        os.unlink(temporary)
    os.symlink(path, temporary)
    os.rename(temporary, link)


def _alternatives(host: Host, where: Where, arguments: List[str]) -> None:
    result = host.run(["update-alternatives"] + list(where.arguments) + arguments)
    if result.rc != 0:
        words = " ".join((result.err or result.out).split())
        raise DefaultError(
            "update-alternatives %s failed (%s): repair the group with `update-alternatives --config %s`, "
            "then run again" % (" ".join(arguments), words, cuda.GROUP)
        )


def forget(host: Host, path: str, where: Where) -> None:
    """Take a toolkit that is gone out of the group."""
    _alternatives(host, where, ["--remove", cuda.GROUP, path])


def restore(host: Host, entry: Dict[str, Any], where: Where) -> bool:
    """Lead the link back as the manifest's ``entry`` says it was; return whether anything changed.

    Run it after the packages that we brought are gone: they take their own candidates, and an emptied group, away.
    """
    now = cuda.read_default(host, where.link, where.states)
    group = cuda.read_group(host, where.link, where.states)
    before, mode = entry.get("before"), entry.get("mode")
    if group is not None and mode in ("auto", "manual"):
        if mode == "manual" and before in group.candidates:
            arguments = ["--set", cuda.GROUP, str(before)]
        else:
            arguments = ["--auto", cuda.GROUP]
        _alternatives(host, where, arguments)
    elif group is not None and mode == "absent":
        _alternatives(host, where, ["--remove-all", cuda.GROUP])
    elif mode == "link" and before is not None and host.isdir(str(before)):
        point(str(before), where.link)
    elif now.kind == "link":
        os.unlink(where.link)
    return cuda.read_default(host, where.link, where.states) != now
