"""A Python of this machine, copied to a lab host: modules then run with the version that the real distribution has."""

import io
import os
import shutil
import tarfile
from functools import cache
from pathlib import Path

from .fleet import PLATFORM_PYTHON
from .say import LabError, run

TARGET = "usr/lib/gpu-ready-lab/python"
LEFT_OUT = ("test", "site-packages", "__pycache__", "idlelib", "tkinter", "ensurepip", "lib2to3", "turtledemo")


def find(version: str) -> Path:
    """Return the directory (sys.base_prefix) of a Python of this version: one of pyenv's, or one on PATH."""
    directory = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    program = f"python{version}"
    candidates = sorted(directory.glob(f"{version}.*/bin/{program}"), reverse=True)
    on_path = shutil.which(program)
    if on_path is not None:
        candidates.append(Path(on_path))
    for candidate in candidates:
        try:
            answer = run(
                [str(candidate), "-c", "import sys; print(*sys.version_info[:2], sep='.'); print(sys.base_prefix)"],
                limit=20,
                what=f"ask {candidate} for its version",
            ).split("\n")
        except LabError:
            continue  # a shim of pyenv for a version that is not enabled
        if answer[0] == version:
            return Path(answer[1])
    raise LabError(
        f"python: {version}: this machine has no {program}: run `pyenv install {version}`, or remove the key"
    )


@cache
def archive(version: str) -> bytes:
    """A tar with a Python of this version, which becomes /usr/libexec/platform-python of a host."""
    prefix = find(version)
    out = io.BytesIO()

    def archived(item: tarfile.TarInfo) -> tarfile.TarInfo | None:
        parts = Path(item.name).parts
        if any(part in LEFT_OUT or part.startswith("config-") for part in parts):
            return None
        item.uid = item.gid = 0
        item.uname = item.gname = ""
        return item

    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.add((prefix / f"bin/python{version}").resolve(), f"{TARGET}/bin/python{version}", filter=archived)
        tar.add(prefix / f"lib/python{version}", f"{TARGET}/lib/python{version}", filter=archived)
        for library in sorted((prefix / "lib").glob(f"libpython{version}*.so.*")):
            tar.add(library, f"usr/lib/{library.name}", filter=archived)  # in the default path of the dynamic linker
        link = tarfile.TarInfo(PLATFORM_PYTHON.lstrip("/"))
        link.type, link.linkname, link.mode = tarfile.SYMTYPE, f"/{TARGET}/bin/python{version}", 0o777
        tar.addfile(link)
    return out.getvalue()
