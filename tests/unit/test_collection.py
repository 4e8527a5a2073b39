"""The collection gpu_ready.nodes: built from this tree, installed from its archive and from git, and run."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible.module_utils.common.yaml import yaml_load

from tests.grid import CAMPAIGN, sampled
from tests.unit.lying_host import PROGRAMS, READY, ROOT, calls, make_liar
from tools import build_collection

NAME = "gpu_ready.nodes"
METADATA = yaml_load((ROOT / "galaxy.yml").read_text())
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PLAYBOOKS = sorted(path.stem for path in (ROOT / "playbooks").glob("*.yml"))
ROLES = sorted(path.name for path in (ROOT / "roles").iterdir() if (path / "meta").is_dir())
MODULES = sorted(path.stem for path in (ROOT / "library").glob("*.py"))
DOCUMENTED = {
    "callback": ["gpu_ready_progress"],
    "lookup": ["gpu_ready_hosts", "gpu_ready_run", "gpu_ready_setting"],
    "module": MODULES,
    "role": ROLES,
}
TRAVEL = ("catalog", "docs", "library", "meta", "module_utils", "playbooks", "plugins", "roles")
"""Directories of which everything belongs to the collection, except the link playbooks/collections."""

LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}

pytestmark = pytest.mark.host_io


def ansible(program: str, *arguments: str, cwd: Path, installed: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run a program of Ansible as on a machine that has the collection and nothing else of this tree."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "PYTHONPATH"))}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(installed), "ANSIBLE_LOCALHOST_WARNING": "false", "PWD": str(cwd)}
    return subprocess.run(
        [str(PROGRAMS / program), *arguments],
        cwd=cwd, env=environment | more, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip


def files_below(directory: Path) -> dict[str, bytes]:
    """Content, or destination of a link, by path."""
    return {
        str(path.relative_to(directory)): str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
        for path in directory.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_collection.build(tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="module")
def installed(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of collections in which only this one is."""
    directory = tmp_path_factory.mktemp("installed")
    done = ansible(
        "ansible-galaxy",
        "collection",
        "install",
        str(archive),
        "-p",
        str(directory),
        cwd=directory,
        installed=directory,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return directory


def tree_of(installed: Path) -> Path:
    return installed / "ansible_collections/gpu_ready/nodes"


def test_the_same_commit_gives_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    assert build_collection.build(tmp_path).read_bytes() == archive.read_bytes()


def test_everything_that_runs_travels_and_nothing_that_git_does_not_track(archive: Path, installed: Path) -> None:
    tracked = set(filter(None, build_collection.run("git", "ls-files", "-z").split("\0")))
    left = "playbooks/collections"
    expected = {name for name in tracked if name.startswith(TRAVEL) and name != left and (ROOT / name).exists()}
    found = set(files_below(tree_of(installed)))
    assert expected <= found
    assert found - {"FILES.json", "MANIFEST.json"} <= tracked
    assert not [name for name in found if name.startswith((".", "lab/", "tests/", "tools/", "bench/", "ansible.cfg"))]
    assert "plugins/plugin_utils/gpu_ready/catalog/data.py" in found
    with tarfile.open(archive) as tar:
        assert {member.uid for member in tar.getmembers()} == {0}
    for path in tree_of(installed).rglob("*"):
        if path.is_symlink():
            assert path.resolve().is_relative_to(tree_of(installed)) and path.exists(), path


def test_git_gives_the_same_collection_as_the_archive(installed: Path, tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    build_collection.export_tracked_files(repository)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com", "-C", str(repository)]
    for command in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    requirements = {"collections": [{"name": f"file://{repository}", "type": "git", "version": "main"}]}
    (tmp_path / "requirements.yml").write_text(yaml.safe_dump(requirements))
    done = ansible(
        "ansible-galaxy", "collection", "install", "-r", "requirements.yml", "-p", str(tmp_path / "from_git"),
        cwd=tmp_path, installed=tmp_path / "from_git",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lists = {"FILES.json", "MANIFEST.json"}
    from_git, from_archive = (files_below(tree_of(place)) for place in (tmp_path / "from_git", installed))
    assert {k: v for k, v in from_git.items() if k not in lists} == {
        k: v for k, v in from_archive.items() if k not in lists
    }


def test_the_metadata_agrees_with_the_project() -> None:
    assert METADATA["version"] == PYPROJECT["version"]
    assert f"{METADATA['namespace']}.{METADATA['name']}" == NAME
    oldest = re.search(r"ansible-core==(\d+\.\d+)\.", (ROOT / "requirements/runtime-2.16.in").read_text())
    requires = yaml_load((ROOT / "meta/runtime.yml").read_text())["requires_ansible"]
    assert oldest and requires == f">={oldest[1]}.0"


@pytest.mark.parametrize("path", sorted((ROOT / "library").glob("*.py")), ids=lambda path: path.stem)
def test_a_module_imports_its_own_module_utils(path: Path) -> None:
    imports = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in imports if (node.module or "").startswith("ansible.module_utils.gpu_ready")]
    own = [node.module or "" for node in imports if node.level]
    assert own and all(
        (ROOT / name.replace(".", "/")).with_suffix(".py").exists() or (ROOT / name.replace(".", "/")).is_dir()
        for name in own
    )


@pytest.mark.parametrize(("kind", "names"), DOCUMENTED.items(), ids=DOCUMENTED)
def test_ansible_doc_shows_every(kind: str, names: list[str], installed: Path, tmp_path: Path) -> None:
    full = [f"{NAME}.{name}" for name in names]
    done = ansible("ansible-doc", "-t", kind, "--json", *full, cwd=tmp_path, installed=installed)
    assert done.returncode == 0, done.stderr
    assert sorted(json.loads(done.stdout)) == full


def test_every_playbook_is_found_by_the_name_of_the_collection(installed: Path, tmp_path: Path) -> None:
    names = [f"{NAME}.{playbook}" for playbook in PLAYBOOKS]
    done = ansible("ansible-playbook", "--syntax-check", *names, cwd=tmp_path, installed=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.findall(r"^playbook: .*/(\w+)\.yml$", done.stdout, re.MULTILINE) == PLAYBOOKS


def test_every_role_is_found_by_the_name_of_the_collection(installed: Path, tmp_path: Path) -> None:
    """With each of its task files, of which Ansible looks up every module and every imported role."""
    files = [(role, path.stem) for role in ROLES for path in (ROOT / "roles" / role / "tasks").glob("*.yml")]
    tasks = [{"ansible.builtin.import_role": {"name": f"{NAME}.{role}", "tasks_from": file}} for role, file in files]
    (tmp_path / "own.yml").write_text(json.dumps([{"hosts": "all", "tasks": tasks}]))
    done = ansible("ansible-playbook", "own.yml", "-i", "one,", "--list-tasks", cwd=tmp_path, installed=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {f"{NAME}.{role}" for role in ROLES} == set(re.findall(rf"^ +({NAME}[.]\w+) : ", done.stdout, re.MULTILINE))


PARTS = yaml_load((ROOT / "roles/gpu_ready/meta/argument_specs.yml").read_text())["argument_specs"]["main"]["options"]["gpu_ready_part"]["choices"]  # fmt: skip


def test_roles_by_name_work_through_a_play_host_by_host(installed: Path, tmp_path: Path) -> None:
    parts = [part for part in PARTS if part != "gpu_verify"]  # what was verified for the whole host is verified again
    parts = (
        parts if CAMPAIGN else parts[:2]
    )  # that each role is found: test_every_role_is_found_by_the_name_of_the_collection
    play = {"hosts": "all", "gather_facts": False, "serial": 1, "roles": [f"{NAME}.{part}" for part in parts]}
    (tmp_path / "own.yml").write_text(json.dumps([play]))
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": READY}) for name in ("one", "two")}
    done = ansible("ansible-playbook", "own.yml", "-i", inventory(tmp_path, hosts), cwd=tmp_path, installed=installed)
    assert done.returncode == 0 and done.stdout.count("PLAY [all]") == 2, done.stdout + done.stderr
    for name in hosts:
        assert calls(tmp_path, name) == ["gpu_node_plan"] * len(parts)


def inventory(directory: Path, hosts: dict[str, dict[str, Any]]) -> str:
    (directory / "hosts.json").write_text(json.dumps({"all": {"hosts": hosts}}))
    return str(directory / "hosts.json")


def test_a_role_of_a_whole_run_works_in_a_playbook_of_the_site(installed: Path, tmp_path: Path) -> None:
    """Its lookup is not beside such a playbook."""
    play = {"hosts": "all", "gather_facts": False, "roles": [f"{NAME}.gpu_report"]}
    (tmp_path / "site.yml").write_text(yaml.safe_dump([play]))
    (tmp_path / "hosts.json").write_text(json.dumps({"all": {"hosts": {"node": LOCAL}}}))
    done = ansible("ansible-playbook", "-i", "hosts.json", "site.yml", cwd=tmp_path, installed=installed)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "reports").glob("*.html"))


@pytest.mark.parametrize("how", sampled(["imported", "by_name"], 2))
def test_site_checks_answers_and_ends_with_its_report_in_the_working_directory(
    how: str, installed: Path, tmp_path: Path
) -> None:
    wrong = READY | {"facts": 7}
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_node_plan": answer})
        for name, answer in {"gpu1": READY, "wrong": wrong}.items()
    }
    playbook = f"{NAME}.site"
    if how == "imported":
        playbook = str(tmp_path / "own.yml")
        Path(playbook).write_text(f"- import_playbook: {NAME}.site\n")
    done = ansible(
        "ansible-playbook", playbook, "-i", inventory(tmp_path, hosts), cwd=tmp_path, installed=installed,
        ANSIBLE_STDOUT_CALLBACK=f"{NAME}.gpu_ready_progress",
    )  # fmt: skip
    assert done.returncode == 2, done.stdout + done.stderr
    assert re.search(r"gpu1 +Debian 12 .*nothing to do", done.stdout), done.stdout
    assert "field facts: int in place of dict" in done.stdout, done.stdout + done.stderr
    assert calls(tmp_path, "gpu1") == ["gpu_node_plan"]
    assert json.loads((tmp_path / "reports/latest.json").read_text())


LARGE = ["gpu_node_plan", "gpu_uninstall", "gpu_upgrade_fleet", "gpu_verify"]


def test_the_collection_sends_what_the_checkout_sends(installed: Path, tmp_path: Path) -> None:
    sent = {}
    for where in (installed, ROOT / "collections"):
        archives = tmp_path / where.name
        archives.mkdir()
        program = [sys.executable, "-m", "tools.payload", *LARGE]
        program += ["--archives", str(archives), "--collections", str(where)]
        subprocess.run(program, cwd=ROOT, capture_output=True, check=True, timeout=300)
        sent[where] = {module: sorted(zipfile.ZipFile(archives / f"{module}.zip").namelist()) for module in LARGE}
    assert sent[installed] == sent[ROOT / "collections"]
    assert any(name.endswith("gpu_ready/facts/model.py") for name in sent[installed]["gpu_node_plan"])


def test_a_module_of_the_collection_really_runs(installed: Path, tmp_path: Path) -> None:
    hosts = inventory(tmp_path, {"here": LOCAL})
    done = ansible("ansible", "-i", hosts, "all", "-m", f"{NAME}.gpu_node_facts", cwd=tmp_path, installed=installed)
    assert done.returncode == 0 and '"gpu_node"' in done.stdout, done.stdout + done.stderr


def tasks_of(value: Any) -> Iterator[dict[str, Any]]:
    for entry in value if isinstance(value, list) else []:
        if isinstance(entry, dict):
            yield entry
            for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks"):
                yield from tasks_of(entry.get(key))


def test_own_modules_and_roles_are_named_with_the_collection() -> None:
    """A short name is looked up in configured directories and beside the playbook, where another project may have one."""
    files = [*(ROOT / "roles").rglob("tasks/*.yml"), *(ROOT / "playbooks").glob("*.yml")]
    tasks = [task for path in files for task in tasks_of(yaml_load(path.read_text()))]
    own = {key for task in tasks for key in task if key.rpartition(".")[2] in MODULES}
    roles = {task[key]["name"] for task in tasks for key in task if key.endswith((".include_role", ".import_role"))}
    assert own and roles and {name for name in own | roles if not name.startswith(f"{NAME}.")} == set()


@pytest.mark.parametrize("role", ROLES)
def test_a_role_has_a_page(role: str, installed: Path) -> None:
    """galaxy-importer (loaders/content.py) ends with "No role readme found." otherwise."""
    text = (tree_of(installed) / "roles" / role / "README.md").read_text()
    assert text.startswith(f"# {role}\n") and "C(" not in text


def test_a_build_outside_of_a_repository_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(ROOT / "galaxy.yml", tmp_path)
    monkeypatch.setattr(build_collection, "ROOT", tmp_path)
    with pytest.raises(build_collection.BuildError, match="not a git repository"):
        build_collection.build(tmp_path / "out")


def test_molecule_leaves_no_copy_of_the_collection_in_the_home_directory(tmp_path: Path) -> None:
    """By default it installs the tree there (prerun of ansible-compat), where a stale copy would be found later."""
    done = subprocess.run(
        [str(PROGRAMS / "molecule"), "syntax", "-s", "container"],
        cwd=ROOT, env=os.environ | {"HOME": str(tmp_path)}, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not list(tmp_path.glob(".ansible/collections/*"))
