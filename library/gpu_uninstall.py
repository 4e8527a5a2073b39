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

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready.base import files, manifest
from ansible.module_utils.gpu_ready.base.host import Host
from ansible.module_utils.gpu_ready.cuda import default as cuda_default
from ansible.module_utils.gpu_ready.lifecycle import uninstall
from ansible.module_utils.gpu_ready.packaging import manager

ARGUMENT_SPEC = {"docker_engine_restart_ok": {"type": "bool", "default": False}}


def main():
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    done = []
    try:
        work = uninstall.Uninstall(Host(), restart_ok=module.params["docker_engine_restart_ok"])
        actions = work.actions()
        for action in actions:
            if not module.check_mode:
                action.act()
            done.append(action.words)
    except (
        cuda_default.DefaultError,
        manifest.ManifestError,
        manager.PackageError,
        uninstall.UninstallError,
    ) as error:
        module.fail_json(msg=str(error), actions=done)
    except OSError as error:
        module.fail_json(msg=files.unwritten(error), actions=done)
    module.exit_json(
        changed=bool(actions),
        actions=done,
        held_by=work.held_by,
        reboot_required=bool(work.held_by),
        diff={"before": "".join(words + "\n" for words in done), "after": ""},
    )


if __name__ == "__main__":
    main()
