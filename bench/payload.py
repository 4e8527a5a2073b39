"""What gpu_node_plan costs before it does anything: the size of its wrapper, and the import of its own modules.

usage: bench/payload.py [MODULE]      Print both.
"""

import base64
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parent.parent
MODULE = "gpu_node_plan"
RUNS = 7
IMPORT = """
import sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
import ansible.module_utils.basic
start = time.process_time()
__import__(sys.argv[2])
print(1000 * (time.process_time() - start))
"""


def wrapper(module: str) -> bytes:
    """Return the wrapper that ansible-core sends to a host; run in the checkout, whose ansible.cfg names its directories."""
    from ansible import __version__
    from ansible.executor.module_common import modify_module
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins.loader import init_plugin_loader, module_utils_loader
    from ansible.template import Templar

    init_plugin_loader()
    module_utils_loader.add_directory(str(ROOT / "module_utils"))
    path = str(ROOT / f"library/{module}.py")
    variables = {"ansible_python_interpreter": "/usr/bin/python3"}
    templar = Templar(DataLoader(), variables=variables)
    built = modify_module(
        module_name=module, module_path=path, module_args={"_ansible_version": __version__}, templar=templar,
        task_vars=variables, module_compression="ZIP_DEFLATED",
    )  # fmt: skip
    return bytes(built.b_module_data)


def archive(made: bytes) -> bytes:
    """Return the zip archive inside of a wrapper."""
    found = re.search(rb"UEsDB[A-Za-z0-9+/=]+", made)
    if found is None:
        raise SystemExit("the wrapper has no archive of the known form: ansible-core has changed it")
    return base64.b64decode(found[0])


def old_python() -> Path | None:
    """Return a Python 3.9 of this machine, None where it has none."""
    versions = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    return next(iter(sorted(versions.glob("3.9.*/bin/python3.9"), reverse=True)), None)


def import_time(made: bytes, python: Path, module: str) -> float:
    """Return the CPU milliseconds that a Python needs to import a module from its wrapper's archive."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "payload.zip")
        path.write_bytes(archive(made))
        (file,) = [name for name in zipfile.ZipFile(path).namelist() if name.endswith(f"/{module}.py")]
        command = [str(python), "-c", IMPORT, str(path), file.removesuffix(".py").replace("/", ".")]
        times = [
            float(subprocess.run(command, capture_output=True, text=True, check=True, cwd=directory).stdout)
            for _ in range(RUNS)
        ]
    return median(times)


def measure(module: str = MODULE) -> tuple[int, float | None]:
    """Return the bytes of the wrapper, and the milliseconds of the import on Python 3.9 (None without one)."""
    done = subprocess.run([sys.executable, __file__, "--wrapper", module], capture_output=True, check=True, cwd=ROOT)
    python = old_python()
    return len(done.stdout), None if python is None else import_time(done.stdout, python, module)


def main() -> None:
    """Print what was measured, or the wrapper itself (in a process of its own, since ansible-core keeps state)."""
    if sys.argv[1:2] == ["--wrapper"]:
        sys.stdout.buffer.write(wrapper(sys.argv[2]))
        return
    size, milliseconds = measure(*sys.argv[1:2])
    print(f"{size} bytes; import {milliseconds} ms of CPU on Python 3.9")


if __name__ == "__main__":
    main()
