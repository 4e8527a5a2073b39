"""Which hosts upgrade_drivers.yml excludes: by the playbook's own task, run by Ansible."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = "[rack1]\ngpu1\n[rack2]\ngpu10\ngpu11\n"


@pytest.mark.parametrize(
    ("extra_variables", "left"),
    [
        ("{}", {"gpu1", "gpu10", "gpu11"}),
        ("gpu_upgrade_exclude=gpu10", {"gpu1", "gpu11"}),  # the text also contains gpu1
        ("gpu_upgrade_exclude=rack2", {"gpu1"}),
        ("gpu_upgrade_exclude='gpu1, gpu11'", {"gpu10"}),
        ('{"gpu_upgrade_exclude": ["rack1", "gpu11"]}', {"gpu10"}),
    ],
)
def test_excluded_hosts(extra_variables: str, left: set[str], tmp_path: Path) -> None:
    play = yaml_load((ROOT / "playbooks/upgrade_drivers.yml").read_text())[0]
    show = {"name": "Show", "ansible.builtin.debug": {"msg": "left in: {{ inventory_hostname }}"}}
    play |= {"become": False, "connection": "local", "tasks": [play["tasks"][0], show]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    (tmp_path / "hosts").write_text(INVENTORY)
    program = str(Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [program, "-i", "hosts", "play.yml", "-e", extra_variables],
        cwd=tmp_path, env=os.environ | {"ANSIBLE_COLLECTIONS_PATH": str(ROOT / "collections")},
        capture_output=True, text=True, check=True, timeout=600,
    )  # fmt: skip
    assert {host for host in ("gpu1", "gpu10", "gpu11") if f'left in: {host}"' in done.stdout} == left
