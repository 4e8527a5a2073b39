#!/usr/bin/python
"""Remove what gpu-ready added to a node, and nothing else."""

DOCUMENTATION = r"""
module: gpu_uninstall
short_description: Remove what gpu-ready added to this node
description:
  - Reverts the changes in the manifest of the node. Purges exactly the added packages, restores or deletes the files
    that were written, removes the keys set in docker's configuration and the cuDNN files, releases holds, and unloads
    the driver when nothing uses it. From a source list that was edited since, only the added components are removed.
  - Keeps, and lists with the reason, files that somebody changed since, and packages that somebody marked as installed
    by hand or that other packages need.
  - Does nothing when that would stop running work without permission. A second call changes nothing.
options:
  gpu_ready_uninstall:
    description: Confirm the removal. Without it the module fails with what it would remove, and removes nothing.
    type: bool
    default: false
  gpu_ready_disrupt:
    description: Disruptions that may stop running work, as for M(gpu_node_plan).
    type: list
    elements: str
    default: []
  living:
    description: Processes of this user on the control node, as for M(gpu_lease).
    type: list
    elements: str
  driver_packages:
    description:
      - Regular expression that the names of packages of a driver match. The action plugin sets it, from the catalog on
        the control node.
    type: str
  take_over:
    description: Uninstall although another run works on the node, as for M(gpu_lease).
    type: bool
    default: false
attributes:
  check_mode: {support: full, description: Lists what would be reverted; changes nothing.}
  diff_mode: {support: full, description: Shows the list.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Uninstall
  gpu_ready.nodes.gpu_uninstall:
    gpu_ready_uninstall: true
  register: uninstalled

- name: Show what would be reverted
  gpu_ready.nodes.gpu_uninstall:
  check_mode: true

- name: Uninstall, even if that stops containers
  gpu_ready.nodes.gpu_uninstall:
    gpu_ready_uninstall: true
    gpu_ready_disrupt: [docker_restart]

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
stops:
  description: Running work that this stops, as gpu_ready_disrupt permits.
  returned: always
  type: list
  sample: ["docker would be removed, which stops container web"]
kept:
  description:
    - What gpu-ready added and does not remove, each with the reason. That is what somebody changed since, or marked as
      their own, or what other packages need now.
  returned: always
  type: list
  sample: ["/etc/profile.d/cuda.sh: somebody changed it after gpu-ready wrote it"]
reboot_required:
  description: Whether the driver stays loaded until a reboot, because something uses it.
  returned: always
  type: bool
held_by:
  description: What uses the driver.
  returned: always
  type: str
"""

from ..module_utils.gpu_ready.answers.packages import UninstallAnswer
from ..module_utils.gpu_ready.base import errors, lease, manifest
from ..module_utils.gpu_ready.base.action_plugins import missing_plugin
from ..module_utils.gpu_ready.base.disruptions import DISRUPTIONS
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.lifecycle import uninstall
from ..module_utils.gpu_ready.lifecycle.removal.context import Removal

ANSWER = UninstallAnswer
ARGUMENT_SPEC = {
    "gpu_ready_uninstall": {"type": "bool", "default": False},
    "gpu_ready_disrupt": {"type": "list", "elements": "str", "default": []},
    "living": {"type": "list", "elements": "str"},
    "driver_packages": {"type": "str"},
    "take_over": {"type": "bool", "default": False},
}


def run(host, params, check):
    if params["driver_packages"] is None:
        raise missing_plugin("gpu_uninstall")
    only_list = not (params["gpu_ready_uninstall"] or check)
    work = lease.current_run()
    # Without that directory gpu-ready recorded nothing here, and the lease would create it.
    if work is None or check or only_list or not host.isdir(manifest.DIRECTORY):
        return uninstall_node(host, params, check, only_list)
    with lease.hold_alone(host, lease.Claim(work, params["living"], params["take_over"])):
        return uninstall_node(host, params, check, only_list)


def uninstall_node(host, params, check, only_list):
    done = []
    try:
        work = Removal(
            host,
            permitted=DISRUPTIONS if only_list else params["gpu_ready_disrupt"],
            driver_packages=params["driver_packages"],
        )
        actions = uninstall.find_actions(work)
        if actions and only_list:
            raise GpuReadyError(uninstall.describe_unconfirmed(actions, work))
        for action in actions:
            if not check:
                action.act()
            done.append(action.words)
    except GpuReadyError as error:
        error.result["actions"] = done
        raise
    except OSError as error:
        raise GpuReadyError(errors.describe_os_error(error), actions=done) from None
    return UninstallAnswer(
        changed=bool(actions),
        actions=done,
        stops=work.stops,
        kept=work.kept,
        held_by=work.held_by,
        reboot_required=bool(work.held_by),
        diff={
            "before": "".join(words + "\n" for words in work.stops + done),
            "after": "".join("keep %s\n" % one for one in work.kept),
        },
    )


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
