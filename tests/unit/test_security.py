"""Security properties of the code, read from its text: shells, modes, checksums, keys; and files under a strict umask."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.packaging import manager
from plugins.plugin_utils.fleet_report import model
from plugins.plugin_utils.gpu_ready.catalog.data import REPOSITORIES
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.containers.model import DaemonJsonEdit, DaemonJsonParams
from plugins.plugin_utils.gpu_ready.plan.model import FileDiff, Step
from tests.unit.fleet_reports import report_of

ROOT = Path(__file__).resolve().parents[2]
CODE = sorted(
    [
        *(ROOT / "library").glob("*.py"),
        *(ROOT / "module_utils").rglob("*.py"),
        *(ROOT / "plugins/plugin_utils").rglob("*.py"),
        *(ROOT / "plugins/action").glob("*.py"),
    ]
)
TASKS = sorted(
    [
        *(ROOT / "roles").rglob("tasks/*.yml"),
        *(ROOT / "roles").rglob("handlers/*.yml"),
        *(ROOT / "playbooks").glob("**/*.yml"),
    ]
)
PAPERS = sorted(
    {path.resolve() for path in [*TASKS, ROOT / "site.yml", ROOT / "ansible.cfg", *(ROOT / "deploy").rglob("*")]}
)
WRITERS = {"copy", "template", "file", "lineinfile", "blockinfile", "assemble", "unarchive", "get_url", "replace"}


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def tasks(value: Any) -> list[dict[str, Any]]:
    """Return the tasks in a file, those of blocks too."""
    found = []
    for entry in value if isinstance(value, list) else []:
        inside = [
            one
            for key in ("block", "rescue", "always", "tasks", "pre_tasks", "post_tasks")
            for one in tasks(entry.get(key))
        ]
        found += [entry, *inside]
    return found


ALL = [
    (path, task)
    for path in dict.fromkeys(path.resolve() for path in TASKS)
    for task in tasks(yaml_load(path.read_text()))
]
SHELLS = {"raw": ["gpu_ready_python.find", "gpu_ready_python.install", "gpu_ready_python.find"]}
"""What a shell is given: scripts of python_scripts.py, whose quoting test_injection.py verifies."""


def module_of(task: dict[str, Any]) -> str:
    return next((key.rpartition(".")[2] for key in task if key.startswith("ansible.builtin.")), "")


def test_no_task_gives_a_shell_anything_but_the_script_that_installs_python() -> None:
    found: dict[str, list[str]] = {}
    for _, task in ALL:
        for kind in ("shell", "raw", "script", "expect"):
            for key in (kind, "ansible.builtin." + kind):
                if key in task:
                    found.setdefault(kind, []).append(str(task[key]).strip("{} "))
    assert found == SHELLS


def test_no_task_runs_a_command() -> None:
    """Steps do, with a list of arguments (test_execute.py)."""
    assert not [task for _, task in ALL if module_of(task) == "command"]


@pytest.mark.parametrize(
    "task", [task for _, task in ALL if module_of(task) in WRITERS], ids=lambda task: str(task.get("name"))
)
def test_a_task_that_writes_sets_the_mode(task: dict[str, Any]) -> None:
    (what,) = [value for key, value in task.items() if key.rpartition(".")[2] in WRITERS]
    if what.get("state") != "absent":
        assert what.get("mode") in ("0755", "0644", "0600", "preserve")
        assert what.get("owner", "root") == "root"


def test_downloads_are_left_to_the_modules_that_verify_them() -> None:
    assert not [
        task for _, task in ALL if module_of(task) in {"get_url", "unarchive", "git", "yum_repository", "rpm_key"}
    ]
    ways = r"urlopen\(|urlretrieve|http\.client\.HTTPS|build_opener|open_url\("
    assert [name_of(path) for path in CODE if re.search(ways, path.read_text())] == [
        "module_utils/gpu_ready/base/download.py",
        "plugins/plugin_utils/gpu_ready/vendors/indexes.py",  # reads indexes for a comparison, and installs nothing
    ]
    callers = [name_of(path) for path in CODE if re.search(r"(?<!def )\bdownload\(", path.read_text())]
    # Each passes a checksum, or compares the fingerprint of a key before it uses it: see docs/security.md.
    assert callers == [
        "module_utils/gpu_ready/cuda/cudnn/fetch.py",
        "module_utils/gpu_ready/driver/runfile/fetch.py",
        "module_utils/gpu_ready/packaging/repositories.py",
    ]


FORBIDDEN = (
    r"validate_certs:\s*(?:false|no)|--no-gpg-check|--nogpgcheck|trusted[=:]\s*yes|allow[-_]unauthenticated|disable_gpg_check"
    r"|gpgcheck[=:]\s*(?:0|false|no)|_create_unverified_context|CERT_NONE|verify=False|--insecure|host_key_checking\s*[=:]\s*(?:false|no)"
    r"|StrictHostKeyChecking[= ]*(?:no|accept)|UserKnownHostsFile[= ]*/dev/null|curl [^\n]*-\w*k\w* |wget [^\n]*--no-check"
)


@pytest.mark.parametrize("path", [*CODE, *(one for one in PAPERS if one.is_file())], ids=name_of)
def test_nothing_disables_a_verification(path: Path) -> None:
    text = path.read_text()
    assert not re.search(FORBIDDEN, text, re.IGNORECASE)


def test_every_repository_of_rpm_is_verified_by_signatures_of_packages_or_lists() -> None:
    for name, one in REPOSITORIES.items():
        if one.get("kind") == "rpm":
            assert one["gpgcheck"] or one["repo_gpgcheck"], name
        assert one["url"].startswith("https://"), name
        assert one["key_url"].startswith("https://"), name
        assert (
            re.fullmatch("[0-9A-F]{40}", (one["fingerprint"] or "").replace(" ", "")) or one["fingerprint"] is None
        ), name


@functools.cache
def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """The calls of a file, each with what is called, as it is written."""
    nodes = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    return [(ast.unparse(node.func), node) for node in nodes]


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_no_program_is_started_through_a_shell(path: Path) -> None:
    for function, call in calls(path):
        assert function not in (
            "os.system",
            "os.popen",
            "eval",
            "exec",
            "subprocess.getoutput",
            "pickle.loads",
            "yaml.load",
        )
        assert not [
            word
            for word in call.keywords
            if word.arg in ("shell", "use_unsafe_shell") and ast.unparse(word.value) != "False"
        ]
        # Steps and turns run modules, by their names.
        runs_modules = re.search("execute|/turn/|gpu_begin|gpu_scheduler", name_of(path))
        if function.endswith((".run", "run_command", "Popen")) and call.args and not runs_modules:
            given = call.args[0]
            # A text in place of a list would be split into words.
            assert not isinstance(given, (ast.Constant, ast.JoinedStr))
            assert not (isinstance(given, ast.BinOp) and isinstance(given.op, ast.Mod))
            assert not re.search(r"'(?:ba|da|)sh', '-\w*c'", ast.unparse(given))


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_no_file_is_made_that_others_may_write(path: Path) -> None:
    for function, call in calls(path):
        if function in (
            "os.chmod",
            "os.fchmod",
            "os.makedirs",
            "os.mkdir",
            "files.write_atomic",
            "os.open",
        ):
            for word in [*call.args, *(keyword.value for keyword in call.keywords)]:
                if isinstance(word, ast.Constant) and isinstance(word.value, int) and not isinstance(word.value, bool):
                    device = path.name == "gpu_kernel_module.py" and word.value == 0o666  # as NVIDIA's own udev rule
                    assert device or word.value & 0o022 == 0, (path.name, oct(word.value))
        assert function != "tempfile.mktemp"


TEMPORARY = ("tempfile.mkdtemp", "tempfile.mkstemp", "tempfile.TemporaryDirectory", "tempfile.NamedTemporaryFile")


@pytest.mark.parametrize("path", CODE, ids=name_of)
def test_temporary_files_are_where_only_root_writes(path: Path) -> None:
    """In /tmp and /var/tmp every user can fill the disk; ``dir`` names a directory of root, or that of the target."""
    for function, call in calls(path):
        if function in TEMPORARY:
            assert "dir" in {word.arg for word in call.keywords}, ast.unparse(call)
    assert not re.search(r"""["'](?:/var)?/tmp(?:/[^"']*)?["']""", allowed_mentions(path))


def allowed_mentions(path: Path) -> str:
    """The code without the places that only read or clean up there."""
    lines = path.read_text().splitlines()
    return "\n".join(line for line in lines if not line.startswith("WRITTEN"))


@pytest.mark.host_io
def test_directories_and_programs_do_not_inherit_the_umask_of_the_login(tmp_path: Path) -> None:
    code = (
        "import os, sys; from plugins.module_utils.gpu_ready.base.host import Host; from plugins.module_utils.gpu_ready.base import files, manifest_notes\n"
        "directory = sys.argv[1]; host = Host()\n"
        "os.makedirs(directory + '/etc/apt/keyrings', mode=0o755)\n"
        "files.write_atomic(directory + '/etc/apt/keyrings/a.gpg', b'key')\n"
        "manifest_notes.note('files', {'a': {}}, directory + '/state/manifest.json')\n"
        "print(host.run(['sh', '-c', 'umask']).out)\n"
    )
    mask = os.umask(0o077)
    try:
        environment = dict(os.environ, PYTHONPATH=str(ROOT))
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )
    finally:
        os.umask(mask)
    assert done.stdout.strip() == "0022"
    for path, mode in (
        ("etc/apt", 0o755),
        ("etc/apt/keyrings", 0o755),
        ("etc/apt/keyrings/a.gpg", 0o644),
        ("state/manifest.json", 0o600),
    ):
        assert (tmp_path / path).stat().st_mode & 0o7777 == mode, path


def test_what_package_managers_print_of_passwords_is_hidden() -> None:
    message = str(manager.PackageError("Curl error (22): 401 for http://me:hunter2@mirror.site/repodata/repomd.xml"))
    assert message == "Curl error (22): 401 for http://***@mirror.site/repodata/repomd.xml"


def test_neither_a_diff_nor_a_report_shows_a_secret() -> None:
    text = '{"log-opts": {"splunk-token": "hunter2"}}\n'
    change = DaemonJsonEdit("/etc/docker/daemon.json", {"log-opts": {"splunk-token": "hunter2"}}, [])
    step = Step(
        "docker_engine.configure",
        "why",
        params=DaemonJsonParams(change, "restart"),
        diff=[FileDiff("/etc/docker/daemon.json", "", text)],
    )
    decided = compose.Plan(True, "", steps=[step])
    assert "hunter2" not in json.dumps(compose.diff_json(decided))
    assert "***" in json.dumps(compose.diff_json(decided))
    built = report_of("site", {"gpu1": {"row": {"gpus": "T4"}, "steps": [records.to_json(step)]}})
    assert "docker_engine.configure" in model.as_json(built) and "hunter2" not in model.as_json(built)


def test_the_page_about_security_names_every_key() -> None:
    text = (ROOT / "docs/security.md").read_text()
    for name, one in REPOSITORIES.items():
        fingerprint = one["fingerprint"] or one.get("key_sha256")
        assert (fingerprint or "not known: `gpu_ready_mirror_keys`") in text, name
    named = re.findall(r"`([0-9A-F]{40})`", text)
    assert set(named) == {one["fingerprint"] for one in REPOSITORIES.values() if one["fingerprint"]}
    assert "docs/security.md" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("path", sorted((ROOT / "library").glob("*.py")), ids=name_of)
def test_a_module_runs_through_run_module_which_sets_umask_and_path_and_reports_every_error(path: Path) -> None:
    text = path.read_text()
    assert not re.search(r"run_command|get_bin_path|subprocess|Popen|fail_json|exit_json", text)
    assert re.search(rf'run_(changing_)?module\(run, ARGUMENT_SPEC|run_without_plugin\("{path.stem}", ARGUMENT', text)
