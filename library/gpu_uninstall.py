#!/usr/bin/python
"""Remove what gpu-ready added to a node, and nothing else."""

DOCUMENTATION = r"""
module: gpu_uninstall
short_description: Remove what gpu-ready added to this node
description:
  - Reverts the changes in the manifest of the node. Purges exactly the added packages, restores or deletes the files
    that were written, removes the keys set in docker's configuration and the cuDNN files, releases holds, and unloads
    the driver when nothing uses it. From a source list that was edited since, only the added components are removed.
  - Does nothing when another package needs one of these packages, or when docker would have to restart and that would
    end running GPU containers. A second call changes nothing.
options:
  docker_engine_restart_ok:
    description: Permit a restart of docker that ends running GPU containers.
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Lists what would be reverted; changes nothing.}
  diff_mode: {support: full, description: Shows the list.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Uninstall
  gpu_uninstall:
  register: uninstalled

- name: Show what would be reverted
  gpu_uninstall:
  check_mode: true

- name: Uninstall, even if that ends running GPU containers
  gpu_uninstall:
    docker_engine_restart_ok: true

- name: Show what was reverted
  ansible.builtin.debug:
    var: uninstalled.actions
"""

RETURN = r"""
actions:
  description: What was reverted, or would be, in order.
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
