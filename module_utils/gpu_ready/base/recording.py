"""The raw answers of a host: what a collector read, as evidence beside the facts that were made of it."""

import re
from typing import Dict, List, NamedTuple, Optional

from . import secret_values
from .host import Host, Result

LONGEST = 32 << 10
"""Characters of a text that are kept: package databases and lists of modules are longer, and the facts have their
contents."""
MOST = 1 << 20
"""Characters of all texts together."""
PROCESS = re.compile(r"/proc/\d+/")


class ProgramAnswer(NamedTuple):
    """A program that was run. ``argv``: with its first arguments only; ``rc``: exit status."""

    argv: List[str]
    rc: int
    out: str
    err: str


class RawAnswers(NamedTuple):
    """``files``: text by path. ``cut``: the length of texts that are not complete, by path or command."""

    files: Dict[str, str] = {}
    programs: List[ProgramAnswer] = []
    cut: Dict[str, int] = {}


class RecordingHost(Host):
    """The host this code runs on; keeps texts of files and outputs of programs, without secrets.

    Not kept are binary files, what processes and containers have of their own (their arguments and environment are
    their users' and may hold secrets of any form), and answers of docker's socket.
    """

    def __init__(self) -> None:
        super().__init__()
        self.raw = RawAnswers({}, [], {})
        self.size = 0

    def read_bytes(self, path: str) -> Optional[bytes]:
        data = super().read_bytes(path)
        if data is not None and path not in self.raw.files and not PROCESS.match(path) and b"\0" not in data:
            self.raw.files[path] = self.kept(path, data.decode("utf-8", "replace"))
        return data

    def run(self, argv: List[str], timeout: float = 30.0, env: Optional[Dict[str, str]] = None) -> Result:
        result = super().run(argv, timeout, env)
        name = " ".join(argv[:8])
        out, err = self.kept(name, result.out), self.kept(name, result.err)
        self.raw.programs.append(ProgramAnswer(argv[:8], result.rc, out, err))
        return result

    def kept(self, name: str, text: str) -> str:
        """Return what is kept of a text."""
        length = max(0, min(LONGEST, MOST - self.size))
        if len(text) > length:
            self.raw.cut[name] = len(text)
        self.size += min(len(text), length)
        return secret_values.mask_text(text[:length])
