# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The files of reports on the control node: written at once, by no link, and no more runs than configured.

Several operators may share the directory. A file belongs to who wrote it and has the mode of the umask; a new one takes
the place of an old one by a rename, which needs a permission for the directory only.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from ...module_utils.gpu_ready.base.errors import GpuReadyError

SUFFIXES = {"json": ".json", "html": ".html", "prometheus": ".prom"}
RUN = re.compile(
    r"(?:(audit|upgrade|rollback|undrain|uninstall)-)?(\d{4}-\d\d-\d\dT\d\d-\d\d-\d\dZ)(?:-(\d+))?\.(json|html)"
)
"""Names that :func:`write_run` gives. Files with other names are never removed."""
ONE_FILE = ("prometheus",)
"""Formats of which only the latest is written: a collector reads every file that it finds."""
MODE = 0o644
"""Of a new file, less the umask: others need no permission to write, because they replace it."""
LARGEST = 256 * 1024 * 1024
"""Bytes of a file that is read."""
LINK = "{}: it is a link, and reports are written through none. Remedy: remove it, or set {} to another path."
FAULT = "{}: {}. Remedy: set {} to a path that this user can write{}."


class Directory:
    """An open directory: whatever happens to its path meanwhile, its files are in it.

    ``variable``: the one that named it, for messages. Every method raises GpuReadyError.
    """

    def __init__(self, path: Path, variable: str, handle: int) -> None:
        self.path, self.variable, self.handle = path, variable, handle

    def write(self, name: str, data: bytes) -> Path:
        """Write a file at once. It replaces one of that name, but no link and no directory."""
        target = self.path / name
        part = f".{name[:100]}.{secrets.token_hex(8)}"
        with self.explains(target):
            with contextlib.suppress(FileNotFoundError):
                if stat.S_ISLNK(os.stat(name, dir_fd=self.handle, follow_symlinks=False).st_mode):
                    raise GpuReadyError(LINK.format(target, self.variable))
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            handle = os.open(part, flags, MODE, dir_fd=self.handle)
            try:
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                os.rename(part, name, src_dir_fd=self.handle, dst_dir_fd=self.handle)
            except BaseException:
                os.unlink(part, dir_fd=self.handle)
                raise
        return target

    def read(self, name: str) -> str | None:
        """Return the text of a regular file, None where there is none, or none that can be read."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            with os.fdopen(os.open(name, flags, dir_fd=self.handle), "rb") as file:
                known = os.fstat(file.fileno())
                if not stat.S_ISREG(known.st_mode) or known.st_size > LARGEST:
                    return None
                return file.read().decode("utf-8")
        except (OSError, UnicodeDecodeError):
            return None

    def names(self) -> list[str]:
        """Return the names of its regular files."""
        with self.explains(self.path), os.scandir(self.handle) as entries:
            return sorted(entry.name for entry in entries if entry.is_file(follow_symlinks=False))

    def remove(self, name: str) -> None:
        """Remove a file; one that another operator may not have removed yet, or that only its owner may remove."""
        with contextlib.suppress(FileNotFoundError, PermissionError):
            os.unlink(name, dir_fd=self.handle)

    @contextlib.contextmanager
    def explains(self, path: Path) -> Iterator[None]:
        """Turn an error of the system into one that names the path, the cause and the remedy."""
        try:
            yield
        except OSError as error:
            raise GpuReadyError(fault(path, error, self.variable)) from None


def fault(path: Path, error: OSError, variable: str) -> str:
    """Return what the screen shows where a file cannot be written."""
    none = ", or to an empty text for none" if variable != "gpu_audit_path" else ""
    cause = "it is no directory" if isinstance(error, FileExistsError) else error.strerror or error
    return FAULT.format(path, cause, variable, none)


@contextlib.contextmanager
def opened(path: Path, variable: str) -> Iterator[Directory]:
    """Open a directory, and make it where it is missing. Raises GpuReadyError.

    It may be a link of the operator. The kernel follows none that somebody else put into a directory like /tmp, unless
    fs.protected_symlinks is off (proc_sys_fs(5)).
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise GpuReadyError(fault(path, error, variable)) from None
    try:
        yield Directory(path, variable, handle)
    finally:
        os.close(handle)


def write_file(path: Path, text: str, variable: str) -> None:
    """Write one file of the operator. Raises GpuReadyError."""
    with opened(path.parent, variable) as directory:
        directory.write(path.name, text.encode("utf-8"))


def base(kind: str, name: str) -> str:
    """Return a name without suffix; reports of site.yml have no kind in front."""
    return name if kind == "site" else f"{kind}-{name}"


def latest(kind: str) -> str:
    return "latest" if kind == "site" else f"latest-{kind}"


def free_name(names: list[str], name: str) -> str:
    """Return the name, or one with a number if another run ended in the same second."""
    taken = {one.rpartition(".")[0] for one in names}
    return next(one for one in (name, *(f"{name}-{count}" for count in range(2, 10000))) if one not in taken)


def write_run(directory: Directory, kind: str, name: str, contents: Mapping[str, str]) -> list[Path]:
    """Write each format's content under the run's name and as the latest of its kind; return the first ones."""
    written = []
    for form, content in contents.items():
        targets = [f"{latest(kind)}{SUFFIXES[form]}"]
        if form not in ONE_FILE:
            targets.insert(0, f"{name}{SUFFIXES[form]}")
        written.append([directory.write(target, content.encode("utf-8")) for target in targets][0])
    return written


def is_report_of(kind: str, name: str) -> bool:
    """Return whether a file is the JSON of one run of this kind."""
    match = RUN.fullmatch(name)
    return bool(match and (match[1] or "site") == kind and match[4] == "json")


def prune(directory: Directory, kind: str, keep: int) -> list[str]:
    """Remove the files of all runs of this kind but the ``keep`` newest; 0 keeps all. Return what was removed."""
    runs: dict[tuple[str, int], list[str]] = {}
    for name in directory.names() if keep > 0 else []:
        match = RUN.fullmatch(name)
        if match and (match[1] or "site") == kind:
            runs.setdefault((match[2], int(match[3] or 1)), []).append(name)
    old = [name for run in sorted(runs, reverse=True)[keep:] for name in runs[run]]
    for name in old:
        directory.remove(name)
    return old
