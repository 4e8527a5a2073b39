"""requirements/: what `make setup` and `make dev` install is named completely, with the hashes of its files."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
REQUIREMENTS = ROOT / "requirements"
NAMES = ("runtime", "runtime-2.16", "dev")
HASH = re.compile(r" --hash=sha256:[0-9a-f]{64}")


def locked(name: str) -> dict[str, str]:
    """Each requirement of a lock file as one line without its hashes, and the hashes."""
    lines = [line for line in (REQUIREMENTS / f"{name}.txt").read_text().splitlines() if not line.startswith("#")]
    found = {}
    for block in re.sub(r" *\\\n +", " ", "\n".join(lines)).splitlines():
        hashes = "".join(sorted(HASH.findall(block)))
        found[HASH.sub("", block).strip()] = hashes
    return found


def requested(name: str) -> list[str]:
    """The requirements in an .in file and in those that it includes."""
    lines = [line.strip() for line in (REQUIREMENTS / f"{name}.in").read_text().splitlines()]
    found = [line for line in lines if line and not line.startswith(("#", "-"))]
    for included in re.findall(r"(?m)^-r (\S+)\.in$", "\n".join(lines)):
        found += requested(included)
    return found


def test_every_file_of_requirements_has_a_lock_file() -> None:
    assert {path.name for path in REQUIREMENTS.iterdir()} == {
        f"{name}.{end}" for name in NAMES for end in ("in", "txt")
    }


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_file_has_one_version_and_hashes_of_everything_and_no_address(name: str) -> None:
    found = locked(name)
    assert found
    for requirement, hashes in found.items():
        assert re.fullmatch(r"[a-z0-9-]+==[\w.]+(?: ; .+)?", requirement), requirement
        assert hashes, f"{requirement} has no hash: make lock"
    text = (REQUIREMENTS / f"{name}.txt").read_text() + (REQUIREMENTS / f"{name}.in").read_text()
    assert not re.search(r"://|--(?:extra-)?index|--find-links|--trusted-host", text)


@pytest.mark.parametrize("name", NAMES)
def test_a_lock_file_has_what_is_requested(name: str) -> None:
    versions = [line.partition(" ;")[0] for line in locked(name)]
    for line in requested(name):
        asked = line.partition(" ;")[0].lower()
        if "==" in asked:
            assert asked in versions, f"{line}: make lock"
        else:
            assert any(one.startswith(re.match(r"[\w-]+", asked).group() + "==") for one in versions)  # type: ignore[union-attr]


def test_tests_run_with_the_versions_that_a_control_node_gets() -> None:
    """Markers may differ: where only a control node's requirement has one, another requirement needs it everywhere."""
    runtime, dev = (
        {line.partition(" ;")[0]: hashes for line, hashes in locked(name).items()} for name in ("runtime", "dev")
    )
    assert runtime.items() <= dev.items()


def test_only_ansible_core_and_what_it_bounds_differ_on_a_control_node_for_old_hosts() -> None:
    names = {line.partition("==")[0] for line in set(locked("runtime")) ^ set(locked("runtime-2.16"))}
    assert names == {"ansible-core", "resolvelib"}
    direct = [
        [one for one in requested(name) if not one.startswith("ansible-core")] for name in ("runtime", "runtime-2.16")
    ]
    assert direct[0] == direct[1]


def test_nothing_is_built_to_install_this_project() -> None:
    assert "build-system" not in tomllib.loads((ROOT / "pyproject.toml").read_text())
    setup = (ROOT / "tools/setup").read_text()
    installs = re.findall(r"pip install .*", setup)
    assert len(installs) == 1
    assert "--require-hashes --only-binary :all: -r" in installs[0]


@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md", "deploy/pull/README.md"])
def test_pages_install_requirements_with_their_hashes(page: str) -> None:
    commands = re.findall(r"pip install [^`\n]*", (ROOT / page).read_text())
    assert commands
    for command in commands:
        assert "--require-hashes" in command
        assert (ROOT / command.split()[-1]).is_file()
