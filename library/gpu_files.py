#!/usr/bin/python
"""Write small files on a node, atomically, with a manifest of what was there before."""

DOCUMENTATION = r"""
module: gpu_files
short_description: Write files of our own and note what was there before
description:
  - Brings a list of files to their wanted content in one call. Each file is replaced atomically; its earlier content is
    noted in the manifest on the node before it is touched, so that uninstall.yml can restore it.
options:
  files:
    description: The files.
    type: list
    elements: dict
    required: true
    suboptions:
      path: {description: Absolute path., type: path, required: true}
      content: {description: Whole content., type: str, default: ""}
      mode: {description: Permissions in octal digits., type: str, default: "0644"}
      state: {description: Whether it is there., type: str, choices: [present, absent], default: present}
  rebuild:
    description:
      - Program and arguments to run when a file changed, such as the rebuild of the initial RAM disk. One that an
        earlier run left out, because it was killed or failed, is made up for.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Keep nouveau off
  gpu_files:
    files:
      - path: /etc/modprobe.d/gpu-ready-blacklist-nouveau.conf
        content: "blacklist nouveau\n"
    rebuild: [update-initramfs, -u, -k, all]

- name: Write both profile scripts
  gpu_files:
    files: "{{ gpu_plan_result.todo['cuda_toolkit.profile']['files'] }}"

- name: Take a file away
  gpu_files:
    files: [{path: /etc/profile.d/cuda.sh, state: absent}]
"""

RETURN = r"""
paths:
  description: Files that changed.
  returned: always
  type: list
rebuilt:
  description: Whether the rebuild ran.
  returned: always
  type: bool
"""

import base64
import os

from ansible.module_utils.gpu_ready.base import files, manifest
from ansible.module_utils.gpu_ready.base import pending as rebuilds
from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module

ARGUMENT_SPEC = {
    "files": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "path": {"type": "path", "required": True},
            "content": {"type": "str", "default": ""},
            "mode": {"type": "str", "default": "0644"},
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
        },
    },
    "rebuild": {"type": "list", "elements": "str", "default": []},
}
REBUILD_LIMIT = 1200.0


def text(data):
    """Return bytes as a diff shows them."""
    return "" if data is None else data.decode("utf-8", "replace")


def changes(host, wanted):
    """Return [(file, mode, before, after)] for the files that are not as wanted; None means absent."""
    found = []
    for entry in wanted:
        before, mode = host.read_bytes(entry["path"]), int(entry["mode"], 8)
        after = entry["content"].encode("utf-8") if entry["state"] == "present" else None
        if before != after or (after is not None and host.mode(entry["path"]) != mode):
            found.append((entry["path"], mode, before, after))
    return found


def write(host, change):
    """Write or delete one file, noted first."""
    path, mode, before, after = change
    known = None if before is None else base64.b64encode(before).decode("ascii")
    manifest.note("files", {path: {"before": known, "mode": host.mode(path)}})
    if after is None:
        os.unlink(path)
        return
    os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
    files.write_atomic(path, after, mode)


def run(host, params, check):
    todo = changes(host, params["files"])
    pending = rebuilds.pending(host)
    rebuild = (params["rebuild"] if todo else []) or pending
    if not check:
        if rebuild != pending:
            rebuilds.begin(rebuild)
        for change in todo:
            write(host, change)
        if rebuild:
            answer = host.run(rebuild, REBUILD_LIMIT)
            if answer.rc != 0:
                raise GpuReadyError(
                    "`%s` ended with %d (%s): repair on the host what it names, and run again"
                    % (" ".join(rebuild), answer.rc, (answer.err or answer.out).strip()[-500:])
                )
            host.settle()
            rebuilds.done()
    return {
        "changed": bool(todo or rebuild),
        "paths": [change[0] for change in todo],
        "rebuilt": bool(rebuild and not check),
        "diff": [
            {"before_header": path, "after_header": path, "before": text(before), "after": text(after)}
            for path, _, before, after in todo
        ],
    }


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
