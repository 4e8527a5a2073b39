"""Keep the modules that Ansible packs for hosts from one run of a test to the next."""

import hashlib
import os
from pathlib import Path
from typing import Any

import ansible
from ansible import constants
from ansible.plugins.callback import CallbackBase
from ansible.plugins.loader import module_loader, module_utils_loader
from ansible.release import __version__
from ansible.utils.collection_loader import AnsibleCollectionConfig

DOCUMENTATION = """
name: packed_modules
type: aggregate
short_description: keep packed modules from one run to the next
description:
  - ansible-playbook packs each module with all that it imports, keeps the result in its temporary directory, and deletes
    it when the run ends. That takes a third of its processor time, and more of a short run.
  - This puts a link into that directory, to one below GPU_READY_PACKED_MODULES that is named by a hash of all files that
    can be packed. Core before 2.19 has no lock between runs, so there it does nothing.
"""
FIRST = (2, 19)


class CallbackModule(CallbackBase):
    """Links the directory when a run begins; prints nothing."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "packed_modules"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: Any) -> None:
        if tuple(map(int, __version__.split(".")[:2])) < FIRST:
            return
        kept = Path(os.environ["GPU_READY_PACKED_MODULES"], content_hash())
        kept.mkdir(parents=True, exist_ok=True)
        Path(constants.DEFAULT_LOCAL_TMP, "ansiballz_cache").symlink_to(kept)


def content_hash() -> str:
    """Return the hash of Ansible's version and of all modules, and what they import, that are not Ansible's own.

    Those are in the configured directories, beside the playbooks that were loaded before, and in collections.
    """
    own = Path(ansible.__file__).parent
    searched = [
        Path(one) for loader in (module_loader, module_utils_loader) for one in loader._get_paths(subdirs=False)
    ]
    for collections in AnsibleCollectionConfig.collection_paths:
        searched += sorted(Path(collections).glob("ansible_collections/*/*/plugins/modul*"))
    digest = hashlib.sha256(__version__.encode())
    for directory in dict.fromkeys(one for one in searched if own not in one.parents and one.name != "__pycache__"):
        for path in sorted(directory.rglob("*.py")):
            digest.update(f"{path.relative_to(directory.parent)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]
