"""The record of the last verification; plan/verification.py decides whether it still holds."""

from typing import Dict, Optional

from ..base import manifest, records
from ..base.host import Host
from ..base.json_file import parse_json
from .model import VerifiedFacts

PATH = manifest.DIRECTORY + "/verified.json"
SCHEMA = 1


def collect(host: Host) -> Optional[VerifiedFacts]:
    try:
        value = records.without_schema(parse_json(host.read(PATH) or "null"), SCHEMA, PATH)
        return records.from_json(VerifiedFacts, value)
    except (ValueError, records.RecordError):
        return None


def to_json(record: VerifiedFacts) -> Dict[str, object]:
    return dict(records.to_json(record), schema=SCHEMA)
