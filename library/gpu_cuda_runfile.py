#!/usr/bin/python
"""Install CUDA toolkits with NVIDIA's .run installer."""

DOCUMENTATION = r"""
---
module: gpu_cuda_runfile
short_description: Install CUDA toolkits with NVIDIA's .run installer
description:
  - Fetches each installer beside everything else and proves its checksum, then changes something.
  - Runs it silently for the toolkit alone; no driver, no samples, no man pages. The link of the default toolkit stays.
  - Another release in the same folder is taken away by its own uninstaller first. A run that was killed is repaired.
options:
  installers:
    description: What is wanted, one entry for each toolkit.
    type: list
    elements: dict
    required: true
    suboptions:
      version:
        description: The two numbers that name the toolkit's folder, for example V(12.9).
        type: str
        required: true
      release:
        description: The very release, for example V(12.9.1). Empty where only the installer knows it.
        type: str
        default: ""
      path:
        description: Folder of the toolkit.
        type: path
        required: true
      source:
        description: URL of the installer. Anything else stands for O(installers[].file).
        type: str
        default: ""
      file:
        description:
          - Path of the installer on the host.
          - One in C(/var/lib/gpu-ready) is a copy of a role's and is deleted once it is used.
        type: str
        default: ""
      sha256:
        description: The file's checksum.
        type: str
        default: ""
      md5_url:
        description: URL of NVIDIA's list of md5 sums. Not asked where O(installers[].sha256) is given.
        type: str
        default: ""
  timeout:
    description: Seconds without a byte after which a download is given up.
    type: int
    default: 60
  download_timeout:
    description: Seconds after which a whole download is given up.
    type: int
    default: 7200
  install_timeout:
    description: Seconds after which an installer is stopped.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Can run in check mode and says what would change, without any download.
    support: full
  diff_mode:
    description: Shows the releases.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Install CUDA 12.9.2 from NVIDIA's server
  gpu_cuda_runfile:
    installers:
      - version: "12.9"
        release: 12.9.2
        path: /usr/local/cuda-12.9
        source: https://developer.download.nvidia.com/compute/cuda/12.9.2/local_installers/cuda_12.9.2_575.57.08_linux.run
        md5_url: https://developer.download.nvidia.com/compute/cuda/12.9.2/docs/sidebar/md5sum.txt

- name: Install from a file on the host
  gpu_cuda_runfile:
    installers: [{version: "13.4", path: /usr/local/cuda-13.4, file: /root/cuda_13.4.1_linux.run}]

- name: Say which installers have to run
  gpu_cuda_runfile:
    installers: "{{ gpu_plan_result.todo['cuda_toolkit.runfile'].installers }}"
  check_mode: true
"""

RETURN = r"""
lacking:
  description: What was not as wanted before the run, in words.
  returned: always
  type: list
  elements: str
  sample: ["CUDA 12.9.1 in place of 12.9.0"]
needs:
  description: Toolkits whose installer has to run.
  returned: always
  type: list
  elements: str
  sample: ["12.9"]
releases:
  description: Release by toolkit after the run; in check mode as it is now.
  returned: always
  type: dict
  sample: {"12.9": "12.9.1"}
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.cuda import runfile as cuda_runfile
from ansible.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch

ARGUMENT_SPEC = {
    "installers": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "version": {"type": "str", "required": True},
            "release": {"type": "str", "default": ""},
            "path": {"type": "path", "required": True},
            "source": {"type": "str", "default": ""},
            "file": {"type": "str", "default": ""},
            "sha256": {"type": "str", "default": ""},
            "md5_url": {"type": "str", "default": ""},
        },
    },
    "timeout": {"type": "int", "default": 60},
    "download_timeout": {"type": "int", "default": 7200},
    "install_timeout": {"type": "int", "default": 3600},
}


def wishes(entries):
    return [
        cuda_runfile.Installer(
            entry["version"],
            entry["release"],
            entry["path"],
            runfile_fetch.InstallerSource(entry["file"] or entry["source"], entry["sha256"], md5_url=entry["md5_url"]),
        )
        for entry in entries
    ]


def run(host, params, check):
    where = cuda_runfile.Where()
    wanted = wishes(params["installers"])
    lacking = {one.version: cuda_runfile.lacking(host, one, where) for one in wanted}
    before = {one.version: cuda_runfile.stated(host, one.path) for one in wanted}
    after = {one.version: one.release or before[one.version] or one.version for one in wanted}
    limits = runfile_fetch.RunfileLimits(params["timeout"], params["download_timeout"], params["install_timeout"])
    todo = [one for one in wanted if lacking[one.version]]
    if not check:
        for one in todo:
            after[one.version] = cuda_runfile.install(host, one, limits, where)
    return {
        "changed": bool(todo),
        "lacking": [lacking[one.version] for one in todo],
        "needs": [one.version for one in todo],
        "releases": before if check else after,
        "diff": {"before": text(before, todo), "after": text(after, todo)},
    }


def text(releases, todo):
    return "".join("CUDA %s\n" % releases[one.version] for one in todo if releases[one.version])


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
