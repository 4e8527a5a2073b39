"""Keep the modules that Ansible packs for hosts from one run of a test to the next."""

import hashlib
import os
from pathlib import Path
from typing import Any

from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible.release import __version__

DOCUMENTATION = """
name: built_modules
type: aggregate
short_description: keep packed modules from one run to the next
description:
  - ansible-playbook packs each module with all that it imports, keeps the result in its temporary directory, and deletes
    it when the run ends. That takes half of the processor time of a short run.
  - This is a link in that directory to one of GPU_READY_TEST_MODULES, with a hash of all files that can be packed in its
    name. Core before 2.19 has no lock between runs, so there it does nothing.
"""
FIRST = (2, 19)


class CallbackModule(CallbackBase):
    """Links the directory when a run begins; prints nothing."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "built_modules"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        if tuple(map(int, __version__.split(".")[:2])) < FIRST:
            return
        kept = Path(os.environ["GPU_READY_TEST_MODULES"], content_hash())
        kept.mkdir(parents=True, exist_ok=True)
        Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache").symlink_to(kept)


def content_hash() -> str:
    """Return the hash of Ansible's version and of all modules, and what they import, on the configured paths."""
    digest = hashlib.sha256(__version__.encode())
    for directory in (*constants.DEFAULT_MODULE_PATH, *constants.DEFAULT_MODULE_UTILS_PATH):
        for path in sorted(Path(directory).rglob("*.py")):
            digest.update(f"{path.relative_to(directory)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
