"""The system of a host as a record, without the catalog that os_release.py needs to read it."""

from typing import List, NamedTuple, Optional


class OsRelease(NamedTuple):
    """What os-release says: None for what is absent, "" for what is empty. ``base``: what a derivative is made from."""

    id: Optional[str]
    version_id: Optional[str]
    major: Optional[str]
    id_like: List[str]
    family: str
    version_codename: Optional[str]
    variant_id: Optional[str]
    base: Optional[str]
    pretty: Optional[str]
    platform_id: Optional[str]
