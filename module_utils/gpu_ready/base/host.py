"""Interface to the managed node: files, directories, programs and a local HTTP socket.

Code that collects facts takes a :class:`Host`, so that tests can pass a recorded one.
"""

import fcntl
import os
import re
import select
import selectors
import signal
import socket
import stat
import struct
import subprocess
import time
from typing import Dict, List, NamedTuple, Optional, Tuple

from .errors import GpuReadyError

MISSING = 127
"""Exit status of :meth:`Host.run` when the program does not exist (as in a shell)."""
TIMED_OUT = 124
"""Exit status of :meth:`Host.run` when the program was stopped at its time limit (as with timeout(1))."""

GRACE = 10.0
"""Seconds within which a killed program must end."""

MOST_STUCK = 4
FOREIGN_LIMIT = 4 << 20
OUTPUT_LIMIT = 128 << 20
"""Bytes that a program may print. The most by far is `kubectl get nodes`: 25 kB for each of at most 5000 nodes
(kubernetes.io/docs/setup/best-practices/cluster-large)."""

PATH_DIRECTORIES = ("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin",
                    "/usr/local/nvidia/bin")  # fmt: skip
"""Root's usual PATH. A login's may have no sbin, or begin with a directory of its user (`become_method: su`).

The last one has nvidia-smi where a driver is mounted from outside (OUTSIDE_DIRECTORY of driver/libraries.py)."""


class Result(NamedTuple):
    """Exit status, standard output and standard error of a program."""

    rc: int
    out: str
    err: str


class OutputTooLong(GpuReadyError):
    """A program printed more than OUTPUT_LIMIT and was ended."""


class Host:
    """The host this code runs on. What is absent is a value, not an error."""

    def __init__(self) -> None:
        # Sites give root an umask of 027 or 077: directories that gpu-ready or installers create must be readable.
        os.umask(0o022)

    def read_bytes(self, path: str) -> Optional[bytes]:
        """Return None where the file is absent or not readable."""
        try:
            with open(path, "rb") as handle:
                return handle.read()
        except OSError:
            return None

    def read(self, path: str) -> Optional[str]:
        """Return UTF-8 with undecodable bytes replaced, None where the file is absent."""
        data = self.read_bytes(path)
        return None if data is None else data.decode("utf-8", "replace")

    def read_foreign(self, path: str) -> Optional[str]:
        """Return the text of a regular file of at most 4 MiB, else None. Safe for paths that a user of the host chose.

        A pipe would block, a link could lead to /dev/zero.
        """
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
        except OSError:
            return None
        try:
            answer = os.fstat(handle)
            if not stat.S_ISREG(answer.st_mode) or answer.st_size > FOREIGN_LIMIT:
                return None
            with os.fdopen(handle, "rb", closefd=False) as stream:
                return stream.read(FOREIGN_LIMIT).decode("utf-8", "replace")
        except OSError:
            return None
        finally:
            os.close(handle)

    def open_device(self, path: str) -> Optional[int]:
        """Return the handle of a device whose reads never wait; None where it cannot be opened."""
        try:
            return os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            return None

    def close_device(self, handle: Optional[int]) -> None:
        if handle is not None:
            os.close(handle)

    def command_lines(self, pids: List[int], limit: float = 1.0) -> Dict[int, List[str]]:
        """Return arguments of processes, except those that ended or are not readable within ``limit`` seconds.

        /proc/PID/cmdline is read under the process's mmap_sem (fs/proc/base.c, uninterruptible before Linux 5.3): the
        read does not return where a thread waits in a driver or for a dead file server. After some, no more are tried.
        """
        found = {}  # type: Dict[int, List[str]]
        stuck = 0
        for pid in pids:
            try:
                data = read_in_child("/proc/%d/cmdline" % pid, limit) if stuck < MOST_STUCK else None
            except TimeoutError:
                stuck += 1
                continue
            if data is not None:
                found[pid] = data.decode("utf-8", "replace").split("\0")
        return found

    def listdir(self, path: str) -> List[str]:
        """Return sorted names, [] where there is no such directory."""
        try:
            return sorted(os.listdir(path))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """A dangling link does not exist."""
        return os.path.exists(path)

    def isdir(self, path: str) -> bool:
        return os.path.isdir(path)

    def readlink(self, path: str) -> Optional[str]:
        """Return the target of a symbolic link as written, None where it is no link."""
        try:
            return os.readlink(path)
        except OSError:
            return None

    def realpath(self, path: str) -> str:
        return os.path.realpath(path)

    def mode(self, path: str) -> Optional[int]:
        """Return permission bits of a path, None where it is absent."""
        try:
            return os.stat(path).st_mode & 0o7777
        except OSError:
            return None

    def owner(self, path: str) -> Optional[int]:
        """Return the number of the user that owns a path, None where it is absent."""
        try:
            return os.stat(path).st_uid
        except OSError:
            return None

    def uname(self) -> Tuple[str, str]:
        """Return the release of the running kernel and the architecture of the machine."""
        answer = os.uname()
        return answer.release, answer.machine

    def free(self, path: str) -> Optional[int]:
        """Return bytes that root can still write below a path, None where it is absent."""
        try:
            answer = os.statvfs(path)
        except OSError:
            return None
        return answer.f_bavail * answer.f_frsize

    def changed_at(self, path: str) -> Optional[float]:
        """Return when a file got its present content or place (ctime: dpkg cannot set it back), None where absent."""
        try:
            return os.stat(path).st_ctime
        except OSError:
            return None

    def stamp(self, path: str) -> Optional[Tuple[int, int]]:
        """Return the size in bytes and modification time in seconds, None where a path is absent."""
        try:
            answer = os.stat(path)
        except OSError:
            return None
        return answer.st_size, int(answer.st_mtime)

    def lock_holder(self, path: str) -> Optional[int]:
        """Return the process holding the lock on a file (0 where it is not visible from here), None where it is free.

        Asks the kernel and takes no lock: F_GETLK of fcntl(2), for which the file need not be open for writing. On an
        overlay that would copy the file, which changes it.
        """
        try:
            handle = os.open(path, os.O_RDONLY)
        except OSError:
            return None
        try:
            query = struct.pack("hhqqi", fcntl.F_WRLCK, 0, 0, 0, 0)
            answer = fcntl.fcntl(handle, fcntl.F_GETLK, query)[: struct.calcsize("hhqqi")]
            kind, _, _, _, pid = struct.unpack("hhqqi", answer)
            return None if kind == fcntl.F_UNLCK else max(int(pid), 0)
        finally:
            os.close(handle)

    def which(self, program: str) -> Optional[str]:
        """Return the path of a program on root's usual PATH, None where it is absent."""
        for directory in PATH_DIRECTORIES:
            path = os.path.join(directory, program)
            if os.access(path, os.X_OK) and not os.path.isdir(path):
                return path
        return None

    def run(self, argv: List[str], timeout: float = 30.0, env: Optional[Dict[str, str]] = None) -> Result:
        """Run a program (never a shell) of root's usual PATH in the C locale; ``timeout`` in seconds.

        A missing program answers :data:`MISSING`, one that was ended at its limit :data:`TIMED_OUT`. OutputTooLong if
        it printed too much: a part could be taken for all.
        """
        full = dict(os.environ, LC_ALL="C", LANGUAGE="C", PATH=":".join(PATH_DIRECTORIES))
        full.update(env or {})
        try:
            process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=full,
                start_new_session=True,
            )
        except OSError as error:
            return Result(MISSING, "", "%s: %s" % (argv[0], error.strerror))
        output = [bytearray(), bytearray()]
        ended = read_until_end(process, output, timeout)
        if not ended:
            end_with_children(process)
        for stream in (process.stdout, process.stderr):
            if stream is not None:
                stream.close()
        if sum(map(len, output)) > OUTPUT_LIMIT:
            message = "%s: it printed more than %d MiB and was ended. Run it by hand to see why, then run again."
            raise OutputTooLong(message % (argv[0], OUTPUT_LIMIT >> 20))
        out, err = [part.decode("utf-8", "replace") for part in output]
        if not ended:
            return Result(TIMED_OUT, out, "%s: no answer in %g s" % (argv[0], timeout))
        return Result(process.returncode, out, err)

    def sync_disks(self, limit: float = 120.0) -> None:
        """Flush what programs wrote to the disk: few of them do, and a power cut would lose it.

        Takes ``limit`` seconds at most. The sync of old distributions has no option for file systems and waits for all,
        network ones too.
        """
        places = [path for path in ("/usr", "/var", "/boot") if os.path.isdir(path)]
        if self.run(["sync", "-f"] + places, limit).rc not in (0, TIMED_OUT):
            self.run(["sync"], limit)

    def http_unix(self, path: str, url: str, timeout: float = 5.0) -> Optional[str]:
        """Return the body of ``GET url`` on a UNIX socket, None unless it has status 200 and fits OUTPUT_LIMIT."""
        import http.client  # here, since it takes 20 ms with email and ssl, which most calls do not need

        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        try:
            sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            sock.settimeout(timeout)
            connection.sock = sock
            sock.connect(path)
            connection.request("GET", url)
            answer = connection.getresponse()
            body = answer.read(OUTPUT_LIMIT + 1)
            return body.decode("utf-8", "replace") if answer.status == 200 and len(body) <= OUTPUT_LIMIT else None
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def process_user(host: Host, pid: int) -> Optional[int]:
    """Return the number of the real user of a process, None where it has ended.

    Not the effective one, which owns /proc/PID: a link to a setuid program is a process of root with any name.
    """
    match = re.search(r"(?m)^Uid:\s+(\d+)\s", host.read("/proc/%d/status" % pid) or "")
    return int(match.group(1)) if match else None


def read_in_child(path: str, limit: float) -> Optional[bytes]:
    """Return the first 16 kB of a file, None if it is absent; TimeoutError after ``limit`` seconds.

    A thread would keep this process from ending. The child may outlive it, so it keeps no lock and no pipe to Ansible.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.closerange(0, writer)
            os.closerange(writer + 1, 1024)
            handle = os.open(path, os.O_RDONLY)
            os.write(writer, b"+" + os.read(handle, 1 << 14))
        finally:
            os._exit(0)
    os.close(writer)
    try:
        if not select.select([reader], [], [], limit)[0]:
            raise TimeoutError(path)
        data = os.read(reader, 1 << 15)
        return data[1:] if data else None
    finally:
        os.close(reader)
        os.kill(child, signal.SIGKILL)
        for _ in range(50):  # not for ever: a signal does not reach a child that waits in the kernel
            if os.waitpid(child, os.WNOHANG) != (0, 0):
                break
            time.sleep(0.01)


def read_until_end(process: "subprocess.Popen[bytes]", output: List[bytearray], limit: float) -> bool:
    """Add standard output and error to ``output`` until the program ends; False after ``limit`` s or OUTPUT_LIMIT."""
    end = time.monotonic() + limit
    with selectors.DefaultSelector() as selector:
        for number, stream in enumerate((process.stdout, process.stderr)):
            selector.register(stream, selectors.EVENT_READ, output[number])  # type: ignore[arg-type]  # both are pipes
        while selector.get_map():
            for ready, _ in selector.select(max(0.0, end - time.monotonic())):
                block = os.read(ready.fd, 1 << 16)
                ready.data.extend(block)
                if not block:
                    selector.unregister(ready.fileobj)
            if sum(map(len, output)) > OUTPUT_LIMIT or time.monotonic() >= end:
                return False
    try:
        process.wait(max(0.0, end - time.monotonic()))
    except subprocess.TimeoutExpired:
        return False
    return True


def end_with_children(process: "subprocess.Popen[bytes]") -> None:
    """Kill a program with its children and wait for it, but not forever.

    A signal does not reach a program that waits in the kernel (nvidia-smi, where a GPU fell off the bus).
    """
    os.killpg(process.pid, signal.SIGKILL)
    end = time.monotonic() + GRACE
    while process.poll() is None and time.monotonic() < end:
        time.sleep(0.01)
