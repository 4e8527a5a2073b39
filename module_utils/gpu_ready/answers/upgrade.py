"""What the modules of an upgrade answer."""

from typing import Dict, List, NamedTuple

from ..upgrade.model import UpgradeJournal


class UpgradeJournalAnswer(NamedTuple):
    journal: UpgradeJournal
    changed: bool = False


class UpgradeStageAnswer(NamedTuple):
    coming: List[str]
    kept: List[str]
    installers: List[str]
    files: Dict[str, str]
    changed: bool = False
