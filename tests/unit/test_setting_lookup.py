"""Settings of a whole run are those that the operator set, whichever host runs the task."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
GROUP = {"hosts": {"gpu1": {}, "gpu2": {}}, "vars": {"directory": "{{ inventory_dir }}/of-the-group"}}
PLAY: dict[str, Any] = {
    "hosts": "all",
    "gather_facts": False,
    "connection": "local",
    "roles": ["run"],
}
ADDED = {
    "hosts": "gpu1",
    "gather_facts": False,
    "connection": "local",
    "tasks": [{"ansible.builtin.add_host": {"name": "added", "groups": ["another"]}}],
}


def written(directory: Path, inventory: dict[str, Any], *plays: dict[str, Any]) -> str:
    """What a task that runs once, in the last play, says of the variable."""
    role = directory / "roles/run"
    for part, content in (
        ("defaults", {"directory": "default"}),
        ("tasks", [{"ansible.builtin.debug": {"msg": "{{ lookup('gpu_ready.nodes.gpu_ready_setting', 'directory') }}"}, "run_once": True}]),
    ):  # fmt: skip
        (role / part).mkdir(parents=True)
        (role / part / "main.yml").write_text(json.dumps(content))
    (directory / "play.yml").write_text(json.dumps(plays))
    (directory / "hosts.json").write_text(json.dumps({"all": inventory}))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    environment |= {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections"), "ANSIBLE_STDOUT_CALLBACK": "default"}
    program = str(Path(sys.executable).with_name("ansible-playbook"))
    done = subprocess.run(
        [program, "-i", "hosts.json", "play.yml"],
        cwd=directory, env=environment, capture_output=True, text=True, check=False, timeout=200,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.rpartition('"msg": "')[2].partition('"')[0].replace(str(directory), ".")


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("inventory", "plays", "expected"),
    [
        ({"hosts": {"a": {}}, "children": {"gpu_hosts": GROUP}}, [PLAY], "./of-the-group"),
        ({"hosts": {"a": {"directory": "own"}}, "children": {"gpu_hosts": GROUP}}, [PLAY], "own"),
        ({"hosts": {"a": {}}, "children": {"gpu_hosts": {"hosts": {"gpu1": {}}}}}, [PLAY], "default"),
        ({"hosts": {"a": {}}}, [PLAY | {"vars": {"directory": "of the play"}}], "of the play"),
        ({"children": {"gpu_hosts": GROUP}}, [PLAY | {"vars": {"directory": "of the play"}}], "of the play"),
        # A name that the run added, in a group whose hosts Ansible lists before those of groups in groups.
        (
            {"children": {"gpu_hosts": {"children": {"rack1": GROUP}}}},
            [ADDED, PLAY | {"hosts": "added:all", "order": "inventory"}],
            "./of-the-group",
        ),
    ],
)  # fmt: skip
def test_a_setting_of_a_run_is_that_of_a_host_that_has_it(
    tmp_path: Path, inventory: dict[str, Any], plays: list[dict[str, Any]], expected: str
) -> None:
    assert written(tmp_path, inventory, *plays) == expected
