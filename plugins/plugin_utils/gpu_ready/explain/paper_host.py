"""A host that exists on paper only: everything that nobody wrote down is absent."""

from ....module_utils.gpu_ready.base.host import MISSING, Host, Result

KERNEL = "VERSION"
"""Placeholder for the kernel's release, which is unknown."""


class PaperHost(Host):
    """A host without files, programs and processes. Subclasses add what they know.

    It answers every question of :class:`Host` itself, so that none is answered by the machine that runs gpu-explain.
    """

    def __init__(self) -> None:
        """Leave the umask of this process alone."""

    def read_bytes(self, path: str) -> bytes | None:
        return None

    def read_foreign(self, path: str) -> str | None:
        return self.read(path)

    def command_lines(self, pids: list[int], limit: float = 1.0) -> dict[int, list[str]]:
        return {}

    def listdir(self, path: str) -> list[str]:
        return []

    def exists(self, path: str) -> bool:
        return self.read_bytes(path) is not None or self.isdir(path)

    def isdir(self, path: str) -> bool:
        return bool(self.listdir(path))

    def readlink(self, path: str) -> str | None:
        return None

    def realpath(self, path: str) -> str:
        return path

    def mode(self, path: str) -> int | None:
        return None

    def owner(self, path: str) -> int | None:
        return None

    def uname(self) -> tuple[str, str]:
        return KERNEL, "x86_64"

    def free(self, path: str) -> int | None:
        return None

    def changed_at(self, path: str) -> float | None:
        return None

    def stamp(self, path: str) -> tuple[int, int] | None:
        return None

    def lock_holder(self, path: str) -> int | None:
        return None

    def which(self, program: str) -> str | None:
        return None

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        return Result(MISSING, "", "%s: not installed" % argv[0])

    def sync_disks(self, limit: float = 120.0) -> None:
        pass

    def http_unix(self, path: str, url: str, timeout: float = 5.0) -> str | None:
        return None

    def open_device(self, path: str) -> int | None:
        return None

    def close_device(self, handle: int | None) -> None:
        pass
