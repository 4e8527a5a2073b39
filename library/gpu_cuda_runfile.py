#!/usr/bin/python
"""Install CUDA toolkits with NVIDIA's .run installer."""

DOCUMENTATION = r"""
---
module: gpu_cuda_runfile
short_description: Install CUDA toolkits with NVIDIA's .run installer
description:
  - Fetches each installer and verifies its checksum before anything is changed.
  - Runs it silently for the toolkit alone; no driver, no samples, no man pages. The link of the default toolkit stays.
  - Another release in the same directory is removed by its own uninstaller first. A killed run is repaired.
options:
  installers:
    description: Installers, one entry per toolkit.
    type: list
    elements: dict
    required: true
    suboptions:
      version:
        description: The two numbers in the name of the toolkit's directory, for example V(12.9).
        type: str
        required: true
      release:
        description: The exact release, for example V(12.9.1). Empty to take it from the installer.
        type: str
        default: ""
      path:
        description: Directory of the toolkit.
        type: path
        required: true
      source:
        description: URL of the installer, unless O(installers[].file) is given.
        type: str
        default: ""
      file:
        description:
          - Path of the installer on the host.
          - One in C(/var/lib/gpu-ready) was copied by a role and is deleted after use.
        type: str
        default: ""
      sha256:
        description: Checksum of the file.
        type: str
        default: ""
      md5_url:
        description: URL of NVIDIA's list of md5 sums. Not used if O(installers[].sha256) is given.
        type: str
        default: ""
attributes:
  check_mode:
    description: Reports what would change, without any download.
    support: full
  diff_mode:
    description: Shows the releases.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Install CUDA 12.9.2 from NVIDIA's server
  gpu_ready.nodes.gpu_cuda_runfile:
    installers:
      - version: "12.9"
        release: 12.9.2
        path: /usr/local/cuda-12.9
        source: https://developer.download.nvidia.com/compute/cuda/12.9.2/local_installers/cuda_12.9.2_575.57.08_linux.run
        md5_url: https://developer.download.nvidia.com/compute/cuda/12.9.2/docs/sidebar/md5sum.txt

- name: Install from a file on the host
  gpu_ready.nodes.gpu_cuda_runfile:
    installers: [{version: "13.4", path: /usr/local/cuda-13.4, file: /root/cuda_13.4.1_linux.run}]

- name: Report which installers have to run
  gpu_ready.nodes.gpu_cuda_runfile:
    installers: "{{ gpu_plan_result.todo['cuda_toolkit.runfile'].installers }}"
  check_mode: true
"""

RETURN = r"""
missing:
  description: What was missing before the run, for messages.
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
  description: Release by toolkit after the run; in check mode the current one.
  returned: always
  type: dict
  sample: {"12.9": "12.9.1"}
"""

from ..module_utils.gpu_ready.answers.cuda import CudaRunfileAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.cuda import runfile as cuda_runfile
from ..module_utils.gpu_ready.cuda.toolkit import installed_release
from ..module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch

ANSWER = CudaRunfileAnswer
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
}
DOWNLOAD_LIMIT = 7200.0
"""Seconds for an installer of 5 GB."""


def toolkit_installers(entries):
    return [
        cuda_runfile.ToolkitInstaller(
            entry["version"],
            entry["release"],
            entry["path"],
            runfile_fetch.InstallerSource(entry["file"] or entry["source"], entry["sha256"], md5_url=entry["md5_url"]),
        )
        for entry in entries
    ]


def run(host, params, check):
    paths = cuda_runfile.ToolkitPaths()
    installers = toolkit_installers(params["installers"])
    missing = {one.version: cuda_runfile.missing_toolkit(host, one, paths) for one in installers}
    before = {one.version: installed_release(host, one.path) for one in installers}
    after = {one.version: one.release or before[one.version] or one.version for one in installers}
    limits = runfile_fetch.RunfileLimits(download=DOWNLOAD_LIMIT)
    todo = [one for one in installers if missing[one.version]]
    if not check:
        for one in todo:
            after[one.version] = cuda_runfile.install(host, one, limits, paths)
    return CudaRunfileAnswer(
        changed=bool(todo),
        missing=[missing[one.version] for one in todo],
        needs=[one.version for one in todo],
        releases=before if check else after,
        diff={"before": format_releases(before, todo), "after": format_releases(after, todo)},
    )


def format_releases(releases, todo):
    return "".join("CUDA %s\n" % releases[one.version] for one in todo if releases[one.version])


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
