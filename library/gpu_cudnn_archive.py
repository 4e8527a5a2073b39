#!/usr/bin/python
"""Place cuDNN archives into CUDA toolkits."""

DOCUMENTATION = r"""
---
module: gpu_cudnn_archive
short_description: Place cuDNN archives into CUDA toolkits
description:
  - Fetches the cuDNN archive that NVIDIA's redist manifest names, or takes one of the operator's, checks size and
    sha256, unpacks it beside the toolkit and renames each file to its place. Nothing is changed before all of that
    went well.
  - Keeps a record of every file on the host (C(/var/lib/gpu-ready/cudnn/<toolkit>.json)), so another version replaces
    exactly these files, a run that was killed is repaired by the next one, and removal leaves nothing behind.
  - Runs C(ldconfig) only after a change. Where nothing shows the dynamic linker the libraries of the default toolkit,
    C(/etc/ld.so.conf.d/gpu-ready-cudnn.conf) does from then on.
options:
  installs:
    description: What is wanted, one entry for each CUDA toolkit.
    type: list
    elements: dict
    required: true
    suboptions:
      cuda:
        description: Version of the CUDA toolkit, for example V(12.9).
        type: str
        required: true
      version:
        description: Version of cuDNN. Three numbers stand for any build of that release.
        type: str
        default: ""
      cuda_path:
        description: Folder of the toolkit.
        type: path
        default: ""
      manifest_url:
        description: URL of the redist manifest. Empty for an archive of the operator's.
        type: str
        default: ""
      archive_url:
        description:
          - URL of the archive. Empty means the path in the manifest, relative to the manifest.
          - Without a manifest, an URL (which needs O(installs[].sha256)) or the path of a file on the host.
        type: str
        default: ""
      sha256:
        description:
          - The checksum that the manifest must name. Empty means whatever it names.
          - Without a manifest, the checksum that the archive must have.
        type: str
        default: ""
      origin:
        description: What tells the operator's archive from another one; kept with the record.
        type: str
        default: ""
      key:
        description: Variant in the manifest, for example V(cuda12).
        type: str
        default: ""
  file:
    description:
      - Archive on the host for those O(installs) that have neither manifest nor URL.
      - One in C(/var/lib/gpu-ready) is a copy of a role's and is deleted once it is used.
    type: path
    default: ""
  state:
    description: V(absent) takes away what this module placed in these toolkits.
    type: str
    choices: [present, absent]
    default: present
  timeout:
    description: Seconds without a byte after which a download is given up.
    type: int
    default: 60
  download_timeout:
    description: Seconds after which a whole download is given up.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Can run in check mode and says what would change, without any download.
    support: full
  diff_mode:
    description: Shows the version for each toolkit.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Place cuDNN in CUDA 12.9
  gpu_cudnn_archive:
    installs:
      - cuda: "12.9"
        version: 9.10.2.21
        cuda_path: /usr/local/cuda-12.9
        manifest_url: https://developer.download.nvidia.com/compute/cudnn/redist/redistrib_9.10.2.json
        key: cuda12

- name: Place whatever the plan asks for
  gpu_cudnn_archive:
    installs: "{{ gpu_plan_result.todo['cudnn.install'].installs }}"

- name: Place an archive of one's own
  gpu_cudnn_archive:
    file: /root/cudnn-8.0-linux-x64-v6.0.tgz
    installs:
      - cuda: "8.0"
        cuda_path: /usr/local/cuda-8.0

- name: Take cuDNN away from CUDA 12.9
  gpu_cudnn_archive:
    installs:
      - cuda: "12.9"
    state: absent
"""

RETURN = r"""
versions:
  description: Full cuDNN version for each CUDA toolkit after the run; null where it was removed.
  returned: always
  type: dict
  sample: {"12.9": "9.10.2.21"}
removed:
  description: Paths that were taken away with O(state=absent).
  returned: always
  type: list
  elements: str
  sample: []
"""

from ansible.module_utils.gpu_ready.base import manifest
from ansible.module_utils.gpu_ready.base.download import DownloadLimits
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.cuda import runfile as cuda_runfile
from ansible.module_utils.gpu_ready.cuda.cudnn import fetch as cudnn_fetch
from ansible.module_utils.gpu_ready.cuda.cudnn import install as cudnn_install
from ansible.module_utils.gpu_ready.cuda.cudnn import model as cudnn

ARGUMENT_SPEC = {
    "installs": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "cuda": {"type": "str", "required": True},
            "version": {"type": "str", "default": ""},
            "cuda_path": {"type": "path", "default": ""},
            "manifest_url": {"type": "str", "default": ""},
            "archive_url": {"type": "str", "default": ""},
            "sha256": {"type": "str", "default": ""},
            "key": {"type": "str", "default": ""},
            "origin": {"type": "str", "default": ""},
        },
    },
    "file": {"type": "path", "default": ""},
    "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
    "timeout": {"type": "int", "default": 60},
    "download_timeout": {"type": "int", "default": 3600},
}


def converge(params, check_mode, paths, refresh):
    """Return the result of the module; ``paths`` says where the records lie, ``refresh`` tells the dynamic linker."""
    before, after, removed, todo = {}, {}, [], []
    for entry in params["installs"]:
        install = wanted(entry, params["file"])
        record = cudnn_install.recorded(install.cuda, paths)
        # An unfinished version counts as there when it has to go, and as absent when it has to come.
        there = record is not None and (record.complete or params["state"] == "absent")
        before[install.cuda] = after[install.cuda] = record.version if there else None
        if params["state"] == "absent":
            after[install.cuda] = None
            if record is not None and not check_mode:
                removed += cudnn_install.remove(install.cuda, paths, refresh)
        elif not cudnn_install.is_placed(install, paths):
            # What is recorded is another version or archive, or not whole.
            todo.append(install)
            after[install.cuda] = install.version or install.origin or None
            if before[install.cuda] == after[install.cuda]:
                before[install.cuda] = None
    if todo and not check_mode:
        limits = DownloadLimits(params["timeout"], params["download_timeout"])
        with cudnn_install.shelf(paths) as folder:
            for install in todo:
                after[install.cuda] = cudnn_install.place(install, paths, limits, refresh, folder)
        manifest.delete_copied_file(params["file"])
    changed = bool(todo) or before != after
    return {"changed": changed, "before": before, "after": after, "removed": removed}


def wanted(entry, file):
    """Return what is wanted in one toolkit; ``file`` is the archive where nothing else is named."""
    install = cudnn_fetch.Install(**entry)
    own = not install.manifest_url and not install.archive_url
    return install._replace(archive_url=file) if own else install


def lacks(entry, file):
    """Return the names that an entry lacks."""
    own = not entry["manifest_url"] and (entry["archive_url"] or file)
    names = ("cuda_path",) if own else ("version", "cuda_path", "manifest_url", "key")
    return [name for name in names if not entry[name]]


def run(host, params, check):
    for entry in params["installs"]:
        lacking = lacks(entry, params["file"])
        if params["state"] == "present" and lacking:
            raise cudnn.CudnnError("installs: the entry for CUDA %s lacks %s" % (entry["cuda"], ", ".join(lacking)))
    result = converge(params, check, cudnn_install.Paths(), lambda: cuda_runfile.linker(host))
    text = {
        name: "".join("CUDA %s: cuDNN %s\n" % item for item in sorted(result[name].items()) if item[1])
        for name in ("before", "after")
    }
    return {
        "changed": result["changed"],
        "versions": result["after"],
        "removed": result["removed"],
        "diff": {"before": text["before"], "after": text["after"]},
    }


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
