"""The walk-throughs of docs/dev/architecture.md, each done by its letter in a copy of the project."""

import json
import os
import random
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8")
WALKS = dict(
    re.findall(r"^### (.*)\n([^#]*(?:#(?!## )[^#]*)*)", PAGE.partition("\n## Walk-throughs\n")[2], re.MULTILINE)
)
"""Title and text of each walk-through."""
Edit = Callable[[str], str]


class Drawn(NamedTuple):
    """What the walks add: a branch, and a release of a distribution that is like one of the catalog.

    ``words``: those of the known release, each with that of the new one. ``system``: ID, VERSION_ID and code name of the new one.
    """

    branch: int
    row: dict[str, Any]
    key: str
    like: str
    words: Mapping[str, str]
    system: str


RELEASES = [
    (
        "ubuntu2604",
        "ubuntu2804",
        {"ubuntu2604": "ubuntu2804", "26.04": "28.04", "resolute": "stalwart"},
        "ubuntu 28.04 stalwart",
    ),
    (
        "debian13",
        "debian15",
        {"debian13": "debian15", '"13"': '"15"', "Debian 13": "Debian 15", "trixie": "duke"},
        "debian 15 duke",
    ),
    ("fedora44", "fedora47", {"fedora44": "fedora47", '"44"': '"47"', "Fedora 44": "Fedora 47"}, "fedora 47 -"),
]


def draw(seed: object) -> Drawn:
    """Return what a seed gives. Some of the branches are supported longest and old enough: the new default."""
    rng = random.Random(str(seed))
    like, key, words, system = rng.choice(RELEASES)
    kind = rng.choice(["lts", "production", "new_feature"])
    end = None if kind == "new_feature" else f"{rng.randint(2029, 2033)}-{rng.randint(10, 12)}"
    since = rng.choice(["2026-05-11", "2026-11-20"])
    branch = rng.randrange(625, 700, 5)
    row = {"newest": f"{branch}.10.02", "kind": kind, "since": since, "eol": end, "cuda": "13.6", "flavours": ["open"]}
    row |= {"kernel_known": "7.0"}
    return Drawn(branch, row, key, like, words, system)


@pytest.fixture
def drawn(request: pytest.FixtureRequest) -> Drawn:
    """What the seed of the run draws (``--hypothesis-seed``, as in the campaign)."""
    return draw(request.config.getoption("--hypothesis-seed"))


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


def renamed(drawn: Drawn, text: str) -> str:
    """Return data of a known release as data of the drawn one."""
    for old, new in drawn.words.items():
        text = text.replace(old, new)
    return text


def with_repositories(drawn: Drawn) -> Edit:
    def edit(text: str) -> str:
        rows = re.findall(rf"^  \S+-{drawn.like}: .*\n", text, re.MULTILINE)
        assert len(rows) == 2, "NVIDIA's and Docker's"
        return text + "".join(renamed(drawn, row) for row in rows)

    return edit


def with_page_row(drawn: Drawn) -> Edit:
    def edit(text: str) -> str:
        row = next(line for line in text.splitlines(keepends=True) if f"`{drawn.like}`" in line)
        return text.replace(row, row + renamed(drawn, row.replace("tested", "planned")))

    return edit


def branch_line(drawn: Drawn) -> str:
    return f"  {drawn.branch}: {json.dumps(drawn.row)}\n"


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


def edits(drawn: Drawn) -> Mapping[str, Mapping[str, Edit]]:
    """Return what is done to the files after **Edit**. A walk-through without an entry names no files there."""
    known = (ROOT / f"catalog/distros/{drawn.like}.yml").read_text(encoding="utf-8")
    return {
        "Add a distribution": {
            "catalog/distros/KEY.yml": lambda _: renamed(drawn, known),
            "catalog/repositories.yml": with_repositories(drawn),
            "docs/distributions.md": with_page_row(drawn),
        },
        "Add a driver branch": {
            "catalog/branches.yml": replaced("# Who has which", f"{branch_line(drawn)}# Who has which")
        },
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


def column(page: str, key: str) -> dict[str, str]:
    """Return the cells of a distribution in docs/dev/driver_choices.md by the first cell of their row."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("|")]
    return {row[0]: row[rows[0].index(key)] for row in rows}


def distribution_is_planned(copy: Path, drawn: Drawn) -> None:
    choices, key = (copy / "docs/dev/driver_choices.md").read_text(encoding="utf-8"), drawn.key
    assert column(choices, key) == column(choices, drawn.like) | {"GPUs": key, "branch": key}
    assert f"`{key}`" in (copy / "docs/distributions.md").read_text(encoding="utf-8")
    grid_is_right(copy, f"grid.add_system({drawn.system!r}, like={drawn.like!r})")


def branch_is_chosen_by_the_rules(copy: Path, drawn: Drawn) -> None:
    after = (copy / "docs/dev/driver_choices.md").read_text(encoding="utf-8")
    assert column(after, "el9")["unknown"] == f"cuda_repo {drawn.branch} open"
    grid_is_right(copy, f"grid.add_branch({drawn.branch}, {drawn.row['eol']!r}, {drawn.row['since']!r})")


def grid_is_right(copy: Path, change: str) -> None:
    """Plan the whole grid in the copy, and compare it with the rules and what this change adds to its expectations."""
    code = f"from tests.unit import test_grid as grid; {change}; print(grid.wrong_cells(list(grid.grid())))"
    assert run(copy, "env", "PYTHONPATH=.", ".venv/bin/python", "-c", code).strip() == "[]"


def refusal_has_another_message(copy: Path, _: Drawn) -> None:
    assert "REFUSED secure_boot_unsigned: for certain " in (copy / "tests/unit/golden/plans.txt").read_text()


def variable_is_documented(copy: Path, _: Drawn) -> None:
    assert "`nvidia_driver_nickname`" in (copy / "docs/variables.md").read_text(encoding="utf-8")


def option_is_documented(copy: Path, _: Drawn) -> None:
    assert "`docker_engine_data_root`" in (copy / "docs/variables.md").read_text(encoding="utf-8")


def message_is_explained(copy: Path, _: Drawn) -> None:
    code = "from plugins.plugin_utils.gpu_ready.diagnostics import messages; print(messages.explain_smi(255, 'GPU fan 2 has failed').remedy)"
    assert "replace the fan" in run(copy, "env", "PYTHONPATH=.", ".venv/bin/python", "-c", code)


RESULTS: Mapping[str, Callable[[Path, Drawn], None]] = {
    "Add a distribution": distribution_is_planned,
    "Add a driver branch": branch_is_chosen_by_the_rules,
    "Change what happens on Secure Boot": refusal_has_another_message,
    "Add a variable": variable_is_documented,
    "Add an option of daemon.json": option_is_documented,
    "Add a message": message_is_explained,
}


def test_each_walk_through_that_names_files_to_edit_is_done_here() -> None:
    assert {title: set(listed(walk, "Edit")) for title, walk in WALKS.items() if listed(walk, "Edit")} == {
        title: set(files) for title, files in edits(draw(0)).items()
    }
    assert set(RESULTS) == set(edits(draw(0)))


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
@pytest.mark.parametrize("title", RESULTS)
def test_a_walk_through_does_what_it_promises(title: str, copy: Path, drawn: Drawn) -> None:
    walk = WALKS[title]
    for name, edit in edits(drawn)[title].items():
        path = copy / name.replace("KEY", drawn.key)
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
    RESULTS[title](copy, drawn)
    tests = listed(walk, "Tests")
    assert tests and " passed" in run(copy, ".venv/bin/pytest", "-q", "-x", "-m", "not host_io", *tests)
