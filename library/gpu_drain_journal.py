#!/usr/bin/python
"""Read and write the journal of what gpu-ready drained on a host."""

DOCUMENTATION = r"""
module: gpu_drain_journal
short_description: Read and write the drain journal of a host
description:
  - The journal is C(/var/lib/gpu-ready/drain.json). Only what it lists is undrained.
options:
  record:
    description: Entries to add or replace, before what they describe is done.
    type: dict
    default: {}
  remove:
    description: Names of entries that were undrained. The file is removed with the last one.
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Writes nothing.}
  diff_mode: {support: none, description: Has no diff.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Read the journal
  gpu_ready.nodes.gpu_drain_journal:
  register: drained

- name: Record that gpu-ready drains this Slurm node
  gpu_ready.nodes.gpu_drain_journal:
    record:
      slurm: {node: gpu1, controller: gpu1, reason: "gpu-ready: driver upgrade"}

- name: Remove the entry of an undrained node
  gpu_ready.nodes.gpu_drain_journal:
    remove: [slurm]
"""

RETURN = r"""
journal:
  description: The journal as it is now, or would be.
  returned: always
  type: dict
description:
  description: The same as phrases.
  returned: always
  type: list
  elements: str
  sample: [slurm's node gpu1 is drained]
"""

from ..module_utils.gpu_ready.answers.drain import DrainJournalAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.records import RecordError
from ..module_utils.gpu_ready.drain import journal

ANSWER = DrainJournalAnswer
ARGUMENT_SPEC = {
    "record": {"type": "dict", "default": {}},
    "remove": {"type": "list", "elements": "str", "default": []},
}


def run(host, params, check):
    try:
        entries = journal.from_json(params["record"])
    except RecordError as error:
        raise journal.DrainError("option record: %s. Correct the task." % error) from None
    before = journal.read(host)
    after = journal.merge(journal.without(before, params["remove"]), entries)
    if not check:
        journal.remove_entries(host, params["remove"])
        journal.record_entries(host, entries)
    return DrainJournalAnswer(journal.to_json(after), journal.describe(after), after != before)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
