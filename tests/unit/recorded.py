"""A recorded host: the files, links and program results that a test names, and nothing else."""

import posixpath
import socket
from collections.abc import Iterable, Mapping

from plugins.module_utils.gpu_ready.base.host import MISSING, PATH_DIRECTORIES, Host, Result

Content = str | bytes


class RecordedHost(Host):
    """A Host made of values: ``files`` {path: text}, ``links`` {path: target}, ``programs`` {argv: Result}.

    ``locks``: {path: process}, ``devices``: {path: records}. Directories exist if a file or a link is below them, or if ``directories`` names them. ``which`` knows the
    programs by the first word of their argv. ``asked`` lists the calls and ``opened`` the files read, in order.
    """

    def __init__(
        self,
        files: Mapping[str, Content] | None = None,
        links: Mapping[str, str] | None = None,
        programs: Mapping[tuple[str, ...], Result] | None = None,
        sockets: Mapping[tuple[str, str], str] | None = None,
        modes: Mapping[str, int] | None = None,
        directories: Iterable[str] = (),
        times: Mapping[str, float] | None = None,
        locks: Mapping[str, int] | None = None,
        devices: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.files = dict(files or {})
        self.links = dict(links or {})
        self.programs = dict(programs or {})
        self.sockets = dict(sockets or {})
        self.modes = dict(modes or {})
        self.directories = set(directories)
        self.times = dict(times or {})
        self.locks = dict(locks or {})
        self.devices = dict(devices or {})
        self.writers: list[socket.socket] = []
        self.asked: list[tuple[str, ...]] = []
        self.opened: list[str] = []

    def _paths(self) -> set[str]:
        return {*self.files, *self.links, *self.directories}

    def realpath(self, path: str) -> str:
        """Resolve recorded links, component by component."""
        path = posixpath.normpath(path)
        for _ in range(40):
            parts = path.split("/")
            for length in range(2, len(parts) + 1):
                head = "/".join(parts[:length])
                if head in self.links:
                    target = posixpath.join(posixpath.dirname(head), self.links[head])
                    path = posixpath.normpath(posixpath.join(target, *parts[length:]))
                    break
            else:
                return path
        return path

    def read_bytes(self, path: str) -> bytes | None:
        self.opened.append(path)
        content = self.files.get(path, self.files.get(self.realpath(path)))
        return content.encode() if isinstance(content, str) else content

    def open_device(self, path: str) -> int | None:
        """One record for each read, and then none yet, as /dev/kmsg has it."""
        if path not in self.devices:
            return None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for record in self.devices[path]:
            theirs.send(record.encode())
        ours.setblocking(False)
        self.writers.append(theirs)
        return ours.detach()

    def command_lines(self, pids: list[int], limit: float = 1.0) -> dict[int, list[str]]:
        lines = {pid: self.read(f"/proc/{pid}/cmdline") for pid in pids}
        return {pid: line.split("\0") for pid, line in lines.items() if line is not None}

    def read_foreign(self, path: str) -> str | None:
        return self.read(path)

    def listdir(self, path: str) -> list[str]:
        names = set()
        for directory in {path.rstrip("/"), self.realpath(path)}:
            prefix = directory + "/"
            names |= {entry[len(prefix) :].split("/")[0] for entry in self._paths() if entry.startswith(prefix)}
        return sorted(names - {""})

    def isdir(self, path: str) -> bool:
        real = self.realpath(path)
        return real in self.directories or any(entry.startswith(real + "/") for entry in self._paths())

    def exists(self, path: str) -> bool:
        real = self.realpath(path)
        return real in self.files or self.isdir(path)

    def readlink(self, path: str) -> str | None:
        return self.links.get(path)

    def mode(self, path: str) -> int | None:
        return self.modes.get(path, 0o644) if self.exists(path) else None

    def owner(self, path: str) -> int | None:
        return 0 if self.exists(path) else None

    def changed_at(self, path: str) -> float | None:
        return self.times.get(path, 0.0) if self.exists(path) else None

    def stamp(self, path: str) -> tuple[int, int] | None:
        content = self.read_bytes(path)
        return None if content is None else (len(content), int(self.times.get(path, 0.0)))

    def lock_holder(self, path: str) -> int | None:
        return self.locks.get(path)

    def which(self, program: str) -> str | None:
        known = any(argv[0] in (program, "/usr/bin/" + program) for argv in self.programs)
        for directory in PATH_DIRECTORIES:
            if self.exists(posixpath.join(directory, program)):
                return posixpath.join(directory, program)
        return "/usr/bin/" + program if known else None

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.asked.append(tuple(argv))
        for spelling in (tuple(argv), (posixpath.basename(argv[0]), *argv[1:])):
            if spelling in self.programs:
                return self.programs[spelling]
        return Result(MISSING, "", f"{argv[0]}: No such file or directory")

    def http_unix(self, path: str, url: str, timeout: float = 5.0) -> str | None:
        return self.sockets.get((path, url))

    def uname(self) -> tuple[str, str]:
        return (self.read("/proc/sys/kernel/osrelease") or "6.1.0-50-amd64").strip(), "x86_64"

    def free(self, path: str) -> int | None:
        """Report plenty of space; a test of a full disk overrides this."""
        return 100 * 2**30
