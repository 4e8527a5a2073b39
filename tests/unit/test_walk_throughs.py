"""The walk-throughs of docs/dev/architecture.md, each done by its letter in a copy of the project."""

import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8")
WALKS = dict(
    re.findall(r"^### (.*)\n([^#]*(?:#(?!## )[^#]*)*)", PAGE.partition("\n## Walk-throughs\n")[2], re.MULTILINE)
)
"""Title and text of each walk-through."""
Edit = Callable[[str], str]
KEY, CODENAME = "ubuntu2704", "stalwart"
BRANCH = 625


def listed(walk: str, word: str) -> list[str]:
    """Return what is in backticks after a word in bold."""
    _, _, text = walk.partition(f"**{word}**: ")
    return re.findall(r"`([^`]+)`", text.partition("\n\n")[0])


def steps(walk: str) -> list[str]:
    """Return the numbered steps."""
    return re.findall(r"^\d+\. (.*(?:\n   .*)*)", walk, re.MULTILINE)


# --- names ---------------------------------------------------------------------------------------------------------


def texts(paths: list[str]) -> Iterator[str]:
    """Yield the texts of files, and of all files in directories."""
    for path in map(ROOT.joinpath, paths):
        for file in [path] if path.is_file() else sorted(path.rglob("*.*")):
            if file.suffix in (".py", ".yml", ".json", ".md", ".txt"):
                yield file.read_text(encoding="utf-8")


@pytest.mark.parametrize("title", WALKS)
def test_the_files_that_a_step_names_contain_the_names_that_it_mentions(title: str) -> None:
    walk = WALKS[title]
    assert steps(walk)
    for step in steps(walk):
        spans = re.findall(r"`([^`]+)`", step)
        paths = [span for span in spans if "/" in span and " " not in span and "KEY" not in span]
        found = list(texts(paths or listed(walk, "Edit") + listed(walk, "Written")))
        for name in (span for span in spans if re.fullmatch(r"[A-Za-z_]\w*", span)):
            assert any(re.search(rf"\b{name}\b", text) for text in found), f"{name}: in none of the files of: {step}"


# --- walks ---------------------------------------------------------------------------------------------------------


def replaced(old: str, new: str) -> Edit:
    """Replace a text that a file has once."""

    def edit(text: str) -> str:
        assert text.count(old) == 1, f"{text.count(old)} times: {old!r}"
        return text.replace(old, new)

    return edit


def appended(more: str) -> Edit:
    return lambda text: text + more


def of_ubuntu_2704(text: str) -> str:
    """Return data of Ubuntu 26.04 as data of a release that does not exist."""
    return text.replace("26.04", "27.04").replace("ubuntu2604", KEY).replace("resolute", CODENAME)


def with_repositories(text: str) -> str:
    rows = re.findall(r"^  \S+-ubuntu2604: .*\n", text, re.MULTILINE)
    assert len(rows) == 2, "NVIDIA's and Docker's"
    return text + "".join(map(of_ubuntu_2704, rows))


UBUNTU_ROW = next(
    line
    for line in (ROOT / "docs/distributions.md").read_text(encoding="utf-8").splitlines(keepends=True)
    if "`ubuntu2604`" in line
)
PLANNED_ROW = UBUNTU_ROW.replace("tested", "planned")
BRANCH_LINE = (
    f'  {BRANCH}: {{newest: "{BRANCH}.10.02", kind: new_feature, eol: null, cuda: "13.6", flavours: [open]}}\n'
)
VARIABLE = """
  {name}:
    role: {role}
    setting: state
    type: str
    default: ""
    description: Only a test has it.
    example: {example}
"""
MESSAGE = """  - code: fan_failed
    severity: error
    cause: a fan of the GPU has failed
    remedy: replace the fan
    patterns:
      - 'GPU fan \\d+ has failed'
"""
EDITS: Mapping[str, Mapping[str, Edit]] = {
    "Add a distribution": {
        "catalog/distros/KEY.yml": lambda _: of_ubuntu_2704((ROOT / "catalog/distros/ubuntu2604.yml").read_text()),
        "catalog/repositories.yml": with_repositories,
        "docs/distributions.md": lambda text: text.replace(UBUNTU_ROW, UBUNTU_ROW + of_ubuntu_2704(PLANNED_ROW)),
    },
    "Add a driver branch": {"catalog/branches.yml": replaced("# Who has which", f"{BRANCH_LINE}# Who has which")},
    "Change what happens on Secure Boot": {
        "plugins/plugin_utils/gpu_ready/plan/driver/install_refusals.py": replaced(
            '"secure_boot_unsigned",\n        "', '"secure_boot_unsigned",\n        "for certain '
        ),
    },
    "Add a variable": {
        "catalog/variables/driver.yml": appended(
            VARIABLE.format(name="nvidia_driver_nickname", role="nvidia_driver", example="green")
        ),
    },
    "Add an option of daemon.json": {
        "catalog/variables/docker.yml": appended(
            VARIABLE.format(name="docker_engine_data_root", role="docker_engine", example="/data/docker")
        ),
        "plugins/plugin_utils/gpu_ready/plan/containers/docker_options.py": replaced(
            'KEYS = {"', 'KEYS = {"docker_engine_data_root": "data-root", "'
        ),
        "tests/unit/test_daemon_options.py": replaced(
            "]] = {\n", ']] = {\n    "docker_engine_data_root": ("/data/docker", {"data-root": "/data/docker"}),\n'
        ),
    },
    "Add a message": {
        "catalog/messages.yml": replaced("\nnvidia_smi:\n", f"\nnvidia_smi:\n{MESSAGE}"),
        "tests/unit/test_messages.py": replaced(
            '        (6, "No devices were found"',
            '        (255, "GPU fan 2 has failed", "fan_failed"),\n        (6, "No devices were found"',
        ),
    },
}
"""What is done to the files after **Edit**. A walk-through without an entry names no files there."""


def column(page: str, key: str) -> dict[str, str]:
    """Return the cells of a distribution in docs/dev/driver_choices.md by the first cell of their row."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    return {row[0]: row[rows[0].index(key)] for row in rows}


def distribution_is_planned(copy: Path) -> None:
    choices = (copy / "docs/dev/driver_choices.md").read_text(encoding="utf-8")
    assert column(choices, KEY) == column(choices, "ubuntu2604") | {"GPUs": KEY, "branch": KEY}
    assert f"`{KEY}`" in (copy / "docs/distributions.md").read_text(encoding="utf-8")


def branch_is_for_unknown_gpus(copy: Path) -> None:
    before, after = ((root / "docs/dev/driver_choices.md").read_text(encoding="utf-8") for root in (ROOT, copy))
    for key in ("amzn2023", "debian13", "el8", "el9", "el10", "fedora44", "ubuntu2404"):
        assert column(after, key)["unknown"] == f"cuda_repo {BRANCH} open", key
    assert after.count("*branch_not_carried*") == before.count("*branch_not_carried*")


def refusal_has_another_message(copy: Path) -> None:
    assert "REFUSED secure_boot_unsigned: for certain " in (copy / "tests/unit/golden/plans.txt").read_text()


def variable_is_documented(copy: Path) -> None:
    assert "`nvidia_driver_nickname`" in (copy / "docs/variables.md").read_text(encoding="utf-8")


def option_is_documented(copy: Path) -> None:
    assert "`docker_engine_data_root`" in (copy / "docs/variables.md").read_text(encoding="utf-8")


def message_is_explained(copy: Path) -> None:
    code = "from plugins.plugin_utils.gpu_ready.diagnostics import messages; print(messages.explain_smi(255, 'GPU fan 2 has failed').remedy)"
    assert "replace the fan" in run(copy, "env", "PYTHONPATH=.", ".venv/bin/python", "-c", code)


RESULTS: Mapping[str, Callable[[Path], None]] = {
    "Add a distribution": distribution_is_planned,
    "Add a driver branch": branch_is_for_unknown_gpus,
    "Change what happens on Secure Boot": refusal_has_another_message,
    "Add a variable": variable_is_documented,
    "Add an option of daemon.json": option_is_documented,
    "Add a message": message_is_explained,
}


def test_each_walk_through_that_names_files_to_edit_is_done_here() -> None:
    assert {title: set(listed(walk, "Edit")) for title, walk in WALKS.items() if listed(walk, "Edit")} == {
        title: set(edits) for title, edits in EDITS.items()
    }
    assert set(RESULTS) == set(EDITS)


def run(copy: Path, *command: str) -> str:
    """Run a command in the copy and return what it printed."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "MAKE", "MFLAGS"))
    }
    done = subprocess.run(
        command, cwd=copy, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert done.returncode == 0, f"{shlex.join(command)}:\n{done.stdout[-6000:]}"
    return done.stdout


def project_files(root: Path) -> list[str]:
    """Return the files of the project that git tracks or would add."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        stdout=subprocess.PIPE,
        check=True,
    )
    return [name for name in listed.stdout.decode().split("\0") if name and (root / name).exists()]


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the project, with the virtual environment of the original."""
    for name in project_files(ROOT):
        target = tmp_path / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_symlink():
            target.symlink_to((ROOT / name).readlink())
        else:
            target.write_bytes((ROOT / name).read_bytes())
            target.chmod((ROOT / name).stat().st_mode)
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    return tmp_path


def contents(root: Path) -> dict[str, bytes]:
    """Return the files of the copy that may matter, with their content."""
    paths = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    names = {str(path.relative_to(root)): path for path in paths}
    return {
        name: path.read_bytes()
        for name, path in names.items()
        if not re.match(r"\.(venv|[a-z]+_cache|hypothesis)/", name) and "__pycache__" not in name
    }


@pytest.mark.host_io
@pytest.mark.parametrize("title", EDITS)
def test_a_walk_through_does_what_it_promises(title: str, copy: Path) -> None:
    walk = WALKS[title]
    for name, edit in EDITS[title].items():
        path = copy / name.replace("KEY", KEY)
        path.write_text(edit(path.read_text(encoding="utf-8") if path.exists() else ""), encoding="utf-8")
    edited = contents(copy)
    for command in listed(walk, "Run"):
        # The copy has the environment of the original: nothing is installed.
        run(copy, *shlex.split(command.replace("make ", "make --old-file=dev ")))
    after = contents(copy)
    written = {name for name, content in after.items() if edited.get(name) != content}
    promised = listed(walk, "Written")
    assert [name for name in written if not name.startswith(tuple(promised))] == []
    assert [name for name in promised if not any(one.startswith(name) for one in written)] == []
    RESULTS[title](copy)
    tests = listed(walk, "Tests")
    assert tests and " passed" in run(copy, ".venv/bin/pytest", "-q", "-x", "-m", "not host_io", *tests)
