"""The lab's compiler cache (lab/gpu_ready_lab/data/host/compiler): the results of NVIDIA's probes are kept, whatever their files are called."""

import os
import subprocess
from pathlib import Path

import pytest
from gpu_ready_lab import paths

pytestmark = pytest.mark.host_io

KEPT = "/var/cache/gpu-ready-lab/ccache"


class Cache:
    """The wrapper with a cache and a compiler of its own; the compiler writes a line for each of its calls."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.build = directory / "build"
        (self.build / "conftest").mkdir(parents=True)
        text = (paths.DATA / "host/compiler").read_text().replace(KEPT, str(directory / "cache"))
        assert "/usr/bin/${0##*/}" in text
        self.wrapper = directory / "gcc"
        self.wrapper.write_text(text.replace("/usr/bin/${0##*/}", str(directory / "real")))
        (directory / "real").write_text(f'#!/bin/sh\necho called >>{directory}/calls\nexec /usr/bin/gcc "$@"\n')
        for program in (self.wrapper, directory / "real"):
            program.chmod(0o755)

    def probe(self, number: int, text: str, *options: str) -> tuple[bool, str]:
        """Compile a probe as conftest.sh does: whether there is an object afterwards, and the messages."""
        source, built = self.build / f"conftest{number}.c", self.build / f"conftest{number}.o"
        source.write_text(text)
        name = f'-DKBUILD_BASENAME="#conftest{number}"'
        argv = [str(self.wrapper), *options, name, "-c", source.name]
        done = subprocess.run(argv, cwd=self.build, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == built.exists()
        found = built.exists()
        built.unlink(missing_ok=True)
        source.unlink()
        return found, done.stderr

    @property
    def calls(self) -> int:
        log = self.directory / "calls"
        return len(log.read_text().splitlines()) if log.exists() else 0


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def test_the_result_of_a_probe_is_kept_under_any_name(cache: Cache) -> None:
    assert cache.probe(100, "int one;\n") == (True, "")
    refused, first = cache.probe(101, "int x = missing;\n")
    assert not refused and "error" in first
    assert cache.calls == 2
    assert cache.probe(2000, "int one;\n") == (True, "")
    assert cache.probe(2001, "int x = missing;\n") == (False, first.replace("conftest101", "conftest2001"))
    assert cache.calls == 2


def test_another_text_option_or_earlier_answer_is_another_probe(cache: Cache) -> None:
    assert cache.probe(1, "int x = ONE;\n", "-DONE=1")[0]
    assert not cache.probe(2, "int x = ONE;\n", "-DTWO=1")[0]
    assert cache.probe(3, "int x = ONE;\n", "-DONE=2")[0]
    (cache.build / "conftest/macros.h").write_text("#define NV_PRESENT\n")
    assert cache.probe(4, "int x = ONE;\n", "-DONE=1")[0]
    assert cache.calls == 4


def test_a_compiler_that_is_killed_says_nothing_about_the_kernel(cache: Cache) -> None:
    real = cache.directory / "real"
    whole = real.read_text()
    real.write_text("#!/bin/sh\necho 'gcc: fatal error: Killed signal terminated program cc1' >&2\nexit 1\n")
    assert not cache.probe(1, "int one;\n")[0]
    real.write_text(whole)
    os.utime(real, (1, 1))
    assert cache.probe(2, "int one;\n")[0]
    assert not list((cache.directory / "cache/probes").glob("*.errors"))
