"""Modules that Ansible packed in an earlier run are used again only while nothing of them has changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import packed_modules

MODULE = """#!/usr/bin/python
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.shown import TEXT
AnsibleModule({}).exit_json(msg="%s " + TEXT)
"""
PLAY = "- {hosts: localhost, gather_facts: false, tasks: [{shown: {}, register: it}, {debug: {var: it.msg}}]}\n"


@pytest.mark.host_io
def test_a_changed_module_or_import_is_packed_again(tmp_path: Path) -> None:
    for name in ("library", "module_utils"):
        (tmp_path / name).mkdir()
    (tmp_path / "play.yml").write_text(PLAY)
    environment = os.environ | packed_modules.environment(tmp_path)
    environment |= {"GPU_READY_PACKED_MODULES": str(tmp_path / "packed"), "ANSIBLE_STDOUT_CALLBACK": "default"}
    program = [str(Path(sys.executable).with_name("ansible-playbook")), "play.yml"]
    packed = []
    for module, imported in (("a", "1"), ("a", "1"), ("b", "1"), ("b", "2")):
        (tmp_path / "library/shown.py").write_text(MODULE % module)
        (tmp_path / "module_utils/shown.py").write_text(f'TEXT = "{imported}"\n')
        done = subprocess.run(program, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        assert f"{module} {imported}" in done.stdout
        packed.append({path.name for path in (tmp_path / "packed").iterdir()})
    assert [len(names) for names in packed] == [1, 1, 2, 3]
