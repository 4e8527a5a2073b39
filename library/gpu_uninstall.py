#!/usr/bin/python
"""Take back what gpu-ready brought to a node, and nothing else."""

DOCUMENTATION = r"""
module: gpu_uninstall
short_description: Take back what gpu-ready brought to this node
description:
  - Reads the manifest on the node and takes back what it lists. Purges exactly the packages that came, restores or
    deletes the files that were written, takes our keys out of docker's configuration, removes the cuDNN files, releases
    holds, and unloads the driver when nothing uses it. A source list that was edited since loses the components that
    came, and keeps the edit.
  - Does nothing when a package of somebody else needs one of ours, or when docker would have to restart and that would
    end running GPU containers. A second call changes nothing.
options:
  docker_engine_restart_ok:
    description: Whether docker may restart although that ends running GPU containers.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Lists what would be taken back; changes nothing.}
  diff_mode: {support: full, description: Shows the list.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Take everything back
  gpu_uninstall:
  register: taken

- name: Show what would be taken back
  gpu_uninstall:
  check_mode: true

- name: Take everything back, even if that ends running GPU containers
  gpu_uninstall:
    docker_engine_restart_ok: true

- name: Say what it was
  ansible.builtin.debug:
    var: taken.actions
"""

RETURN = r"""
actions:
  description: What was taken back, or would be, in order.
  returned: always
  type: list
  sample: [delete /etc/profile.d/cuda.sh]
reboot_required:
  description: Whether the driver stays loaded until a reboot, because something uses it.
  returned: always
  type: bool
held_by:
  description: What uses the driver.
  returned: always
  type: str
"""

from ansible.module_utils.gpu_ready.base import files
from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.lifecycle import uninstall

ARGUMENT_SPEC = {"docker_engine_restart_ok": {"type": "bool", "default": False}}


def run(host, params, check):
    done = []
    try:
        work = uninstall.Uninstall(host, restart_ok=params["docker_engine_restart_ok"])
        actions = work.actions()
        for action in actions:
            if not check:
                action.act()
            done.append(action.words)
    except GpuReadyError as error:
        error.result["actions"] = done
        raise
    except OSError as error:
        raise GpuReadyError(files.describe_os_error(error), actions=done) from None
    return {
        "changed": bool(actions),
        "actions": done,
        "held_by": work.held_by,
        "reboot_required": bool(work.held_by),
        "diff": {"before": "".join(words + "\n" for words in done), "after": ""},
    }


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
