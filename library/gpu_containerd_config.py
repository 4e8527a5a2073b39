#!/usr/bin/python
"""Configure containerd's CRI plugin for GPUs."""

DOCUMENTATION = r"""
---
module: gpu_containerd_config
short_description: Configure containerd's CRI plugin for GPUs
description:
  - In O(mode=toolkit) the runtime C(nvidia) is registered, with the cgroup driver of C(runc); in the other modes CDI
    is enabled if this containerd has it disabled. O(mode=none) reverts all of that.
  - For containerd 2.0 and newer the keys are in C(/etc/containerd/conf.d/99-gpu-ready.toml), and C(imports) in the main
    file is extended if it does not include that file. Older versions replace a plugin's whole table by that of the
    last file, so the keys are set in the main file itself.
  - Everything else in the files is kept byte for byte, with owner and mode. A file that is not valid TOML is refused
    with line and column. The previous content is recorded in the manifest, and a copy is kept below
    C(/var/lib/gpu-ready/backup).
  - The new files are validated with C(containerd config dump). If it does not accept them, the old files are restored.
  - Does not touch the service.
options:
  mode:
    description: How containers get the GPUs.
    type: str
    choices: [toolkit, cdi, native, none]
    default: toolkit
  default:
    description: Whether C(nvidia) becomes the default runtime.
    type: bool
    default: false
attributes:
  check_mode:
    description: Reports whether a file would change; writes nothing.
    support: full
  diff_mode:
    description: Shows each file before and after.
    support: full
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Register the runtime nvidia
  gpu_ready.nodes.gpu_containerd_config:

- name: Enable CDI devices for pods
  gpu_ready.nodes.gpu_containerd_config:
    mode: cdi

- name: Show what would change with nvidia as the default runtime
  gpu_ready.nodes.gpu_containerd_config:
    default: true
  check_mode: true
  diff: true
"""

RETURN = r"""
files:
  description: Files that change.
  returned: always
  type: list
  elements: str
  sample: [/etc/containerd/conf.d/99-gpu-ready.toml]
keys:
  description: Keys that are set, below the table of the CRI plugin.
  returned: always
  type: list
  elements: str
  sample: [containerd.runtimes.nvidia.runtime_type, containerd.runtimes.nvidia.options.BinaryName]
"""

from ..module_utils.gpu_ready.answers.containers import ContainerdConfigAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.containers.containerd import config as containerd_config
from ..module_utils.gpu_ready.containers.containerd import edits as containerd_edits
from ..module_utils.gpu_ready.containers.containerd import files as containerd_files
from ..module_utils.gpu_ready.facts import engines

ANSWER = ContainerdConfigAnswer
ARGUMENT_SPEC = {
    "mode": {"type": "str", "choices": ["toolkit", "cdi", "native", "none"], "default": "toolkit"},
    "default": {"type": "bool", "default": False},
}


def run(host, params, check):
    engine = engines.collect_containerd(host, {})
    if not engine.installed:
        raise GpuReadyError("containerd is not installed. Install the package containerd or containerd.io.")
    found = engine.files
    if params["mode"] == containerd_config.NONE:
        change = containerd_edits.plan_removal(found, engine.before, engine.after, engine.record)
    else:
        change = containerd_edits.plan_edits(engine.version, found, params["mode"], params["default"], engine.record)
    if change.edits and not check:
        try:
            containerd_files.write(host, change, found[0].path)
        except containerd_files.ContainerdRejected as error:
            raise GpuReadyError(
                "containerd refuses the new value of %s: %s. Its files were not changed."
                % (", ".join(change.keys), error)
            ) from None
    return ContainerdConfigAnswer(
        changed=bool(change.edits),
        files=[edit.path for edit in change.edits],
        keys=change.keys if change.edits else [],
        diff=[
            {
                "before_header": edit.path,
                "after_header": edit.path,
                "before": edit.before or "",
                "after": edit.after or "",
            }
            for edit in change.edits
        ],
    )


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
