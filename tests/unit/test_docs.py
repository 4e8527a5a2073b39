"""Files, links, variables, playbooks and make targets that the documents name exist; their examples are accepted."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import fleet

from plugins.plugin_utils.gpu_ready.catalog.settings import Settings
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit import test_import_direction
from tools.variables import all_variables, load_tasks

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/*/README.md")])
README = (ROOT / "README.md").read_text(encoding="utf-8")
NAME = re.compile(r"(?<![\w/.])(?:gpu|nvidia|cuda|cudnn|docker)_[a-z0-9_]+\b")
NO_VARIABLES = {"gpu_hosts", "gpu_ready_lab", "gpu_in_container"}
"""The inventory's file, the lab's package, a check of the verification."""


def name_of(page: Path) -> str:
    return str(page.relative_to(ROOT))


def slug(heading: str) -> str:
    """Return the anchor that a heading gets on the pages of git servers."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Return file and anchor of each link to a page of the repository."""
    for address in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in address:
            path, _, anchor = address.partition("#")
            yield ((page.parent / path).resolve() if path else page), anchor


def spans(page: Path) -> list[str]:
    """Return the words of all code spans."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [word.strip(".,;:()'\"") for span in re.findall(r"`([^`\n]+)`", text) for word in span.split()]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_have_a_target(page: Path) -> None:
    for path, anchor in links(page):
        assert path.exists(), path
        if anchor:
            text = path.read_text(encoding="utf-8")
            anchors = {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, re.MULTILINE)}
            assert anchor in anchors | set(re.findall(r'<a id="(\w+)">', text))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_paths_of_the_repository_exist(page: Path) -> None:
    directories = {
        path.name for path in ROOT.iterdir() if path.is_dir() and path.name not in ("build", "reports", ".lab")
    }
    for word in spans(page):
        if "/" in word and word.split("/")[0] in directories:
            pattern = re.sub(r"<\w+>|\b[A-Z]{2,}\b", "*", word).rstrip("/")  # roles/<role>, catalog/distros/KEY.yml
            # group_vars are added by sites.
            assert "group_vars" in word or any(ROOT.glob(pattern)), word


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_tests_that_are_named_exist(page: Path) -> None:
    known = {path.stem for path in ROOT.glob("tests/**/test_*.py")}
    assert set(re.findall(r"\btest_[a-z0-9_]+\b(?!\*)", page.read_text(encoding="utf-8"))) <= known


def test_every_page_is_reached_from_the_readme() -> None:
    reached, due = set(), [ROOT / "README.md"]
    while due:
        page = due.pop()
        if page not in reached:
            reached.add(page)
            due += [path for path, _ in links(page) if path.suffix == ".md"]
    assert set(PAGES) <= reached


def known_names() -> set[str]:
    """Return variables with a default, modules, roles, Python modules, and the words of tasks and programs."""
    names = {variable.name for variable in all_variables(load_tasks())}
    names |= {
        path.stem
        for path in [
            *ROOT.glob("library/*.py"),
            *ROOT.glob("roles/*"),
            *ROOT.glob("module_utils/**/*.py"),
            *ROOT.glob("plugins/plugin_utils/**/*.py"),
        ]
    }
    places = (
        "roles/*/tasks/*.yml",
        "playbooks/*.yml",
        "deploy/**/*.yml",
        "module_utils/gpu_ready/**/*.py",
        "plugins/plugin_utils/**/*.py",
    )
    return names | {
        word for place in places for path in ROOT.glob(place) for word in NAME.findall(path.read_text(encoding="utf-8"))
    }


EXAMPLES = [*ROOT.glob("inventory/**/*.yml"), *ROOT.glob("deploy/**/*.example")]


def test_names_that_look_like_variables_exist() -> None:
    foreign = json.loads((ROOT / "plugins/plugin_utils/variables/names.json").read_text(encoding="utf-8"))["foreign"]
    known = known_names() | NO_VARIABLES | set(foreign) | {"nvidia_driver_brnach"}
    named = {page: set(NAME.findall(page.read_text(encoding="utf-8"))) for page in [*PAGES, *EXAMPLES]}
    assert {name_of(page): sorted(names - known) for page, names in named.items() if names - known} == {}


def test_the_readme_has_every_playbook() -> None:
    for path in [
        ROOT / "site.yml",
        *(path for path in ROOT.glob("playbooks/*.yml") if path.stem not in ("provision", "site")),
    ]:
        assert f"| `{name_of(path)}` |" in README


CHINESE = (ROOT / "README.zh-CN.md").read_text(encoding="utf-8")
COMMENT = re.compile(r"\s+# .*$", re.MULTILINE)


def fences(text: str) -> list[str]:
    """Return the code blocks without comments at the end of a line."""
    return [COMMENT.sub("", block) for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL)]


def table_rows(text: str) -> list[tuple[int, list[str]]]:
    """Return the number of cells and the code spans of each table row."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [(row.count("|"), sorted(re.findall(r"`[^`]+`", row))) for row in rows]


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 120


def test_the_chinese_readme_has_the_same_commands_tables_links_and_sections() -> None:
    assert fences(CHINESE) == fences(README)
    assert table_rows(CHINESE) == table_rows(README)
    assert len(re.findall("^## ", CHINESE, re.MULTILINE)) == len(re.findall("^## ", README, re.MULTILINE))
    targets = [
        {link for link in re.findall(r"\]\(([^)#]+)\)", text)} - {"README.md", "README.zh-CN.md"}
        for text in (CHINESE, README)
    ]
    assert targets[0] == targets[1]


def test_targets_of_make_exist() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        assert set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text(encoding="utf-8"), re.MULTILINE)) <= targets


def test_the_readme_has_every_kind_that_is_explained() -> None:
    part = README.split("\n## gpu-explain", 1)[1].split("\n## ", 1)[0]
    assert [kind for kind in explain.KINDS if kind not in part] == []


def test_the_architecture_has_every_package() -> None:
    table = (
        (ROOT / "docs/dev/architecture.md").read_text(encoding="utf-8").split("## Packages", 1)[1].split("\n## ", 1)[0]
    )
    assert re.findall(r"^\| `(\w+)/` ", table, re.MULTILINE) == [
        package for order in test_import_direction.ORDER.values() for package in order
    ]


def mappings() -> Iterator[tuple[str, dict[str, Any]]]:
    """Return variables as the documents and examples set them: blocks of YAML, the inventories, lines to uncomment."""
    for page in PAGES:
        for block in re.findall(r"```yaml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
            given = yaml_load(block)
            if isinstance(given, dict) and set(given) <= known_names():
                yield name_of(page), given
    inventory = yaml_load((ROOT / "inventory/gpu_hosts.example.yml").read_text())["all"]
    yield "gpu_hosts", inventory["vars"]
    for values in inventory["hosts"].values():
        yield "gpu_hosts", values or {}
    lines = re.findall(r"^# (\w+: .*)$", (ROOT / "inventory/group_vars/all.example.yml").read_text(), re.MULTILINE)
    yield "all.example.yml", yaml_load("\n".join(lines))
    pull = (ROOT / "deploy/pull/gpu_hosts.example").read_text()
    yield "pull", dict(re.findall(r"(?:^|(?<= ))([a-z_]+)=(\S+)", pull, re.MULTILINE))


def test_examples_are_accepted() -> None:
    seen = 0
    for place, given in mappings():
        settings = {name: value for name, value in given.items() if name in Settings._fields}
        seen += len(settings)
        assert (place, variables.parse_settings(settings).errors) == (place, [])
    assert seen > 10


def test_the_fleet_file_in_the_page_about_the_lab_is_valid() -> None:
    text = (ROOT / "docs/dev/lab.md").read_text(encoding="utf-8").split("## Fleet files", 1)[1]
    block = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert block and len(fleet.parse(block.group(1)).hosts) == 5
