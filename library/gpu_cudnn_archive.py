#!/usr/bin/python
"""Install cuDNN archives in CUDA toolkits."""

DOCUMENTATION = r"""
---
module: gpu_cudnn_archive
short_description: Install cuDNN archives in CUDA toolkits
description:
  - Fetches the cuDNN archive in NVIDIA's redist manifest, or uses one of the operator, verifies size and sha256,
    unpacks it in the toolkit's directory and then renames each file to its target. Nothing is changed if one of the
    steps before fails.
  - Records every file on the host (C(/var/lib/gpu-ready/cudnn/<toolkit>.json)), so that another version replaces
    exactly these files, the next run repairs a killed one, and removal is complete.
  - Runs C(ldconfig) only after a change. If no other file lists the libraries of the default toolkit for the dynamic
    linker, C(/etc/ld.so.conf.d/gpu-ready-cudnn.conf) is written.
options:
  installs:
    description: cuDNN to install, one entry per CUDA toolkit.
    type: list
    elements: dict
    required: true
    suboptions:
      cuda:
        description: Version of the CUDA toolkit, for example V(12.9).
        type: str
        required: true
      version:
        description: Version of cuDNN. Three numbers match any build of that release.
        type: str
        default: ""
      cuda_path:
        description: Directory of the toolkit.
        type: path
        default: ""
      manifest_url:
        description: URL of the redist manifest. Empty for an archive of the operator.
        type: str
        default: ""
      archive_url:
        description:
          - URL of the archive. Empty means the path in the manifest, relative to the manifest.
          - Without a manifest, a URL (which needs O(installs[].sha256)) or the path of a file on the host.
        type: str
        default: ""
      sha256:
        description:
          - The checksum that the manifest must have. Empty accepts any.
          - Without a manifest, the checksum that the archive must have.
        type: str
        default: ""
      origin:
        description: Identifies an archive of the operator; saved in the record.
        type: str
        default: ""
      key:
        description: Variant in the manifest, for example V(cuda12).
        type: str
        default: ""
  file:
    description:
      - Archive on the host for O(installs) with neither manifest nor URL.
      - One in C(/var/lib/gpu-ready) was copied by a role and is deleted after use.
    type: path
    default: ""
  state:
    description: V(absent) removes what this module installed in these toolkits.
    type: str
    choices: [present, absent]
    default: present
attributes:
  check_mode:
    description: Reports what would change, without any download.
    support: full
  diff_mode:
    description: Shows the version for each toolkit.
    support: full
author:
  - gpu-ready
"""

EXAMPLES = r"""
- name: Install cuDNN in CUDA 12.9
  gpu_ready.nodes.gpu_cudnn_archive:
    installs:
      - cuda: "12.9"
        version: 9.10.2.21
        cuda_path: /usr/local/cuda-12.9
        manifest_url: https://developer.download.nvidia.com/compute/cudnn/redist/redistrib_9.10.2.json
        key: cuda12

- name: Install cuDNN as planned
  gpu_ready.nodes.gpu_cudnn_archive:
    installs: "{{ gpu_plan_result.todo['cudnn.install'].installs }}"

- name: Install a local archive
  gpu_ready.nodes.gpu_cudnn_archive:
    file: /root/cudnn-8.0-linux-x64-v6.0.tgz
    installs:
      - cuda: "8.0"
        cuda_path: /usr/local/cuda-8.0

- name: Remove cuDNN from CUDA 12.9
  gpu_ready.nodes.gpu_cudnn_archive:
    installs:
      - cuda: "12.9"
    state: absent
"""

RETURN = r"""
versions:
  description: Full cuDNN version for each CUDA toolkit after the run; null if it was removed.
  returned: always
  type: dict
  sample: {"12.9": "9.10.2.21"}
removed:
  description: Paths that O(state=absent) deleted.
  returned: always
  type: list
  elements: str
  sample: []
"""

from ..module_utils.gpu_ready.answers.cuda import CudnnArchiveAnswer
from ..module_utils.gpu_ready.base import manifest_notes
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.download import DownloadLimits
from ..module_utils.gpu_ready.cuda import runfile as cuda_runfile
from ..module_utils.gpu_ready.cuda.cudnn import fetch as cudnn_fetch
from ..module_utils.gpu_ready.cuda.cudnn import install as cudnn_install
from ..module_utils.gpu_ready.cuda.cudnn import model as cudnn

ANSWER = CudnnArchiveAnswer
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
}


def converge(params, check_mode, paths, refresh):
    """Install or remove; ``refresh`` updates the dynamic linker's cache."""
    before, after, removed, todo = {}, {}, [], []
    for entry in params["installs"]:
        install = make_install(entry, params["file"])
        record = cudnn_install.read_record(install.cuda, paths)
        # An incomplete version counts as installed if it is to be removed, and as absent if it is to be installed.
        counts = record is not None and (record.complete or params["state"] == "absent")
        before[install.cuda] = after[install.cuda] = record.version if counts else None
        if params["state"] == "absent":
            after[install.cuda] = None
            if record is not None and not check_mode:
                removed += cudnn_install.remove_archive(install.cuda, paths, refresh)
        elif not cudnn_install.is_installed(install, paths):
            # Another version or archive is recorded, or an incomplete one.
            todo.append(install)
            after[install.cuda] = install.version or install.origin or None
            if before[install.cuda] == after[install.cuda]:
                before[install.cuda] = None
    if todo and not check_mode:
        with cudnn_install.archive_directory(paths) as directory:
            for install in todo:
                after[install.cuda] = cudnn_install.install_archive(
                    install, paths, DownloadLimits(), refresh, directory
                )
        manifest_notes.delete_copied_file(params["file"])
    changed = bool(todo) or before != after
    return {"changed": changed, "before": before, "after": after, "removed": removed}


def make_install(entry, file):
    """``file`` is the archive if the entry has none."""
    install = cudnn_fetch.CudnnInstall(**entry)
    own = not install.manifest_url and not install.archive_url
    return install._replace(archive_url=file) if own else install


def missing_options(entry, file):
    own = not entry["manifest_url"] and (entry["archive_url"] or file)
    names = ("cuda_path",) if own else ("version", "cuda_path", "manifest_url", "key")
    return [name for name in names if not entry[name]]


def run(host, params, check):
    for entry in params["installs"]:
        missing = missing_options(entry, params["file"])
        if params["state"] == "present" and missing:
            raise cudnn.CudnnError("installs: the entry for CUDA %s has no %s" % (entry["cuda"], ", ".join(missing)))
    paths = cudnn_install.CudnnPaths()
    result = converge(params, check, paths, lambda: refresh_linker_cache(host))
    text = {
        name: "".join("CUDA %s: cuDNN %s\n" % item for item in sorted(result[name].items()) if item[1])
        for name in ("before", "after")
    }
    return CudnnArchiveAnswer(
        changed=result["changed"],
        versions=result["after"],
        removed=result["removed"],
        diff={"before": text["before"], "after": text["after"]},
    )


def refresh_linker_cache(host):
    """Update the dynamic linker's cache and flush it to the disk."""
    cuda_runfile.refresh_linker_cache(host)
    host.sync_disks()


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
