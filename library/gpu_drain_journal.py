#!/usr/bin/python
"""Read and write the journal of what we drained on a host."""

DOCUMENTATION = r"""
module: gpu_drain_journal
short_description: Read, note and forget what we drained on a host
description:
  - The journal is C(/var/lib/gpu-ready/drain.json). What stands there is ours to give back, and nothing else is.
options:
  note:
    description: Entries to add, noted before what they say is done; O(note) replaces entries of the same name.
    type: dict
    default: {}
  forget:
    description: Names of entries that were given back; the file goes with the last.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Says whether the journal would change; writes nothing.}
  diff_mode: {support: none, description: Shows none.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Read what we drained
  gpu_drain_journal:
  register: drained

- name: Note that this node of slurm is drained by us
  gpu_drain_journal:
    note:
      slurm: {node: gpu1, controller: gpu1, reason: "gpu-ready: driver upgrade"}

- name: Forget it once the node was given back
  gpu_drain_journal:
    forget: [slurm]
"""

RETURN = r"""
journal:
  description: The journal as it is now, or would be.
  returned: always
  type: dict
words:
  description: The same for people.
  returned: always
  type: list
  elements: str
  sample: [slurm's node gpu1 is drained]
"""

from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.drain import journal as drain

ARGUMENT_SPEC = {
    "note": {"type": "dict", "default": {}},
    "forget": {"type": "list", "elements": "str", "default": []},
}


def run(host, params, check):
    before = drain.read(host)
    after = {name: entry for name, entry in before.items() if name not in params["forget"]}
    after.update(params["note"])
    if not check:
        drain.forget(host, params["forget"])
        drain.note(host, params["note"])
    return {"changed": after != before, "journal": after, "words": drain.words(after)}


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
