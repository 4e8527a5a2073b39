"""Which hosts upgrade_drivers.yml leaves out: by the playbook's own task, run by Ansible."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
INVENTORY = "[rack1]\ngpu1\n[rack2]\ngpu10\ngpu11\n"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("{}", {"gpu1", "gpu10", "gpu11"}),
        ("gpu_upgrade_exclude=gpu10", {"gpu1", "gpu11"}),  # a text holds gpu1, too
        ("gpu_upgrade_exclude=rack2", {"gpu1"}),
        ("gpu_upgrade_exclude='gpu1, gpu11'", {"gpu10"}),
        ('{"gpu_upgrade_exclude": ["rack1", "gpu11"]}', {"gpu10"}),
    ],
)
def test_who_is_excluded(said: str, left: set[str], tmp_path: Path) -> None:
    play = yaml.safe_load((ROOT / "playbooks/upgrade_drivers.yml").read_text())[0]
    told = {"name": "Tell", "ansible.builtin.debug": {"msg": "left in: {{ inventory_hostname }}"}}
    play |= {"become": False, "connection": "local", "tasks": [play["tasks"][0], told]}
    (tmp_path / "play.yml").write_text(yaml.safe_dump([play]))
    (tmp_path / "hosts").write_text(INVENTORY)
    program = str(Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [program, "-i", "hosts", "play.yml", "-e", said],
        cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert {host for host in ("gpu1", "gpu10", "gpu11") if f'left in: {host}"' in done.stdout} == left
