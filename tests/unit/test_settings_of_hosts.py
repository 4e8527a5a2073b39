"""The settings of a host are its variables, read by the action plugin of the modules that plan (plugins/plugin_utils/variables/settings.py)."""

from __future__ import annotations

import copy
import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.variables.settings import VariableError, read_settings

from tests.unit.hosts import T4, bare
from tests.unit.lying_host import collected, make_liar, run_playbook

HONEST: dict[str, Any] = json.loads(json.dumps(collected(bare(T4))))
PLAY = """\
- hosts: all
  gather_facts: false
  vars: {site_branch: "590", none_defined: "{{ nowhere }}"}
  tasks:
    - name: Plan
      gpu_ready.nodes.gpu_node_plan:
        overrides: "{{ upgrade | default({}) }}"
      register: planned
    - name: Show
      ansible.builtin.debug:
        msg: "planned {{ inventory_hostname }} {{ planned.plan.summary }}"
"""


def rendered(value: Any) -> Any:
    """What ansible-core 2.16 makes of a list with templates."""
    if isinstance(value, list):
        return [rendered(one) for one in value]
    if isinstance(value, dict):
        return {key: rendered(one) for key, one in value.items()}
    if value == "{{ nowhere }}":
        raise ValueError("'nowhere' is undefined")
    return "PLACEHOLDER" if value == "{{ omit }}" else value


def test_the_placeholder_of_an_older_core_is_left_out_at_any_depth() -> None:
    variables = {
        "omit": "PLACEHOLDER",
        "nvidia_driver_branch": "{{ omit }}",
        "cudnn_toolkits": ["12.9", "{{ omit }}"],
        "docker_engine_daemon_options": {"data-root": "{{ omit }}", "debug": [{"a": "{{ omit }}"}]},
        "of_the_site": "{{ nowhere }}",
    }
    assert read_settings(variables, rendered, {}) == {
        "cudnn_toolkits": ["12.9"],
        "docker_engine_daemon_options": {"debug": [{}]},
    }


def test_an_upgrade_overrides_what_it_may_and_a_variable_under_it_is_not_rendered() -> None:
    variables = {"nvidia_driver_branch": "{{ nowhere }}", "gpu_ready_reboot_ok": False}
    overrides = {"nvidia_driver_branch": "580", "gpu_ready_reboot_ok": True, "x": 1}
    assert read_settings(variables, rendered, overrides) == {
        "gpu_ready_reboot_ok": False,
        "nvidia_driver_branch": "580",
    }


def test_a_variable_that_cannot_be_rendered_is_named() -> None:
    with pytest.raises(VariableError, match="nvidia_driver_branch cannot be rendered: 'nowhere' is undefined"):
        read_settings({"nvidia_driver_branch": "{{ nowhere }}"}, rendered, {})


@pytest.mark.host_io
def test_hosts_are_planned_with_their_variables(tmp_path: Path) -> None:
    """The real templates of Ansible: defaults, values of the inventory and of others, `omit`, and none."""
    own: dict[str, dict[str, Any]] = {
        "default": {},
        "plain": {"nvidia_driver_branch": "590"},
        "template": {"nvidia_driver_branch": "{{ site_branch }}"},
        "omitted": {"nvidia_driver_branch": "{{ nowhere | default(omit) }}"},
        "override": {"nvidia_driver_branch": "595", "upgrade": {"nvidia_driver_branch": "590"}},
        "undefined": {"nvidia_driver_branch": "{{ none_defined }}"},
    }
    hosts = {name: {**make_liar(tmp_path, name, {"gpu_node_plan": copy.deepcopy(HONEST)}), **own[name]} for name in own}
    (tmp_path / "play.yml").write_text(PLAY)
    done = run_playbook(tmp_path, tmp_path / "play.yml", hosts, ANSIBLE_STDOUT_CALLBACK="default")
    summaries = dict(re.findall(r"planned (\w+) 1x Tesla T4 with driver (\d+)", done.stdout))
    assert summaries.pop("default") == summaries.pop("omitted") != "590", done.stdout
    assert summaries == dict.fromkeys(("plain", "template", "override"), "590"), done.stdout
    (message,) = re.findall(r"fatal: \[undefined\].*?(?=PLAY RECAP|TASK)", done.stdout, re.S)
    assert "the variable nvidia_driver_branch cannot be rendered" in message and "is undefined" in message
    assert "Remedy: define what it uses, or remove the variable." in message
