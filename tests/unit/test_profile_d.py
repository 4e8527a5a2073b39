"""The profile.d files, sourced by the shells themselves."""

import shutil
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.cuda import profile
from tests.unit import real_programs
from tests.unit.real_programs import need_programs

PREFIX = "/usr/local/cuda"
BIN = PREFIX + "/bin"
LIBRARIES = f"{PREFIX}/lib64:{PREFIX}/extras/CUPTI/lib64"
SHELLS = {
    "dash": ["dash", "-eu"],
    "bash": ["bash", "--norc", "-eu"],
    "sh": ["sh", "-eu"],
    "zsh": ["zsh", "-f", "-eu"],
    "ksh": ["ksh", "-eu"],
    "tcsh": ["tcsh", "-f"],
    "csh": ["csh", "-f"],
}


def sourced(shell: str, directory: Path, times: int, environment: dict[str, str]) -> dict[str, str]:
    argv = SHELLS[shell]
    need_programs(real_programs.SHELLS)
    csh = "csh" in shell
    file = directory / ("cuda.csh" if csh else "cuda.sh")
    file.write_text(profile.csh(PREFIX) if csh else profile.sh(PREFIX))
    word = "source" if csh else "."
    script = "\n".join([f"{word} {file}"] * times + ["/usr/bin/env"]) + "\n"
    environment = {"PATH": "/usr/bin:/bin", **environment}
    done = subprocess.run(
        [shutil.which(argv[0]) or argv[0], *argv[1:]],
        input=script,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == ""
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return {name: found[name] for name in ("PATH", "LD_LIBRARY_PATH")}


@pytest.mark.host_io
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("environment", "libraries"),
    [
        ({}, LIBRARIES),
        ({"LD_LIBRARY_PATH": ""}, LIBRARIES),
        ({"LD_LIBRARY_PATH": "/opt/a b/lib"}, LIBRARIES + ":/opt/a b/lib"),
        ({"LD_LIBRARY_PATH": PREFIX + "/lib64"}, f"{PREFIX}/extras/CUPTI/lib64:{PREFIX}/lib64"),
        ({"LD_LIBRARY_PATH": PREFIX + "/lib64/stubs"}, LIBRARIES + f":{PREFIX}/lib64/stubs"),
    ],
    ids=["unset", "empty", "other", "half", "longer name"],
)
def test_the_toolkit_is_prepended_once(shell: str, environment: dict[str, str], libraries: str, tmp_path: Path) -> None:
    once = sourced(shell, tmp_path, 1, environment)
    assert once == {"PATH": BIN + ":/usr/bin:/bin", "LD_LIBRARY_PATH": libraries}
    assert sourced(shell, tmp_path, 2, environment) == once
    assert "" not in once["PATH"].split(":") + once["LD_LIBRARY_PATH"].split(":")


@pytest.mark.parametrize("text", profile.files("/usr/local/cuda-12.9").values())
def test_a_pinned_version_names_no_other_directory(text: str) -> None:
    assert "/usr/local/cuda-12.9/bin" in text
    assert "/usr/local/cuda/" not in text
    assert text.endswith("\n")
