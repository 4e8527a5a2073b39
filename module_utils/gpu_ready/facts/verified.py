"""The record of the last verification; plan/proof.py tells whether it still proves the state of the host."""

import json
from typing import Any, Dict

from ..base import manifest
from ..base.host import Host

PATH = manifest.DIRECTORY + "/verified.json"
SCHEMA = 1


def look(host: Host) -> Dict[str, Any]:
    """Return the part "verified": the record, None where there is none that can be read (then it is made anew)."""
    try:
        record = json.loads(host.read(PATH) or "null")
    except ValueError:
        record = None
    if not isinstance(record, dict) or record.get("schema") != SCHEMA:
        record = None
    return {"verified": record}
