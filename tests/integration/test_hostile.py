"""The campaign over hostile hosts: every answer of tests/hostile for every module, recorded for docs/dev/hostile.md.

It needs no lab: the hosts are directories. GPU_READY_HOSTILE limits it to scenes, as in GPU_READY_HOSTILE="site undrain".
With GPU_READY_HOSTILE_RESUME=1 it runs the cells that the record does not have as held: each group is recorded when it
ends, so an interrupted campaign continues.
"""

import os
from pathlib import Path

import pytest

from tests.hostile import record
from tests.hostile.campaign import Campaign, cells, groups
from tests.hostile.scenes import OPERATOR_FILES, scenes

pytestmark = pytest.mark.long
FILES = Path("/tmp/gpu-ready-hostile")
REQUESTED = os.environ.get("GPU_READY_HOSTILE", "").split()
RESUME = bool(os.environ.get("GPU_READY_HOSTILE_RESUME"))


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Return the campaign, which keeps how the honest hosts of each scene fare alone."""
    return Campaign(tmp_path_factory.mktemp("hostile"))


NAMES = [scene.name for scene in scenes(FILES) if not REQUESTED or scene.name in REQUESTED]


@pytest.mark.parametrize("name", NAMES)
def test_hostile_hosts_get_nothing_and_stop_nobody(campaign: Campaign, tmp_path: Path, name: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for file in OPERATOR_FILES:
        (files / file).write_text("installer")
    (scene,) = [one for one in scenes(files) if one.name == name]
    failed: dict[str, str] = {}
    held = record.held() if RESUME else set()
    for group in groups([cell for cell in cells([scene]) if record.key(name, cell) not in held]):
        found = campaign.test(scene, group)
        record.record_cells(scene.name, group, found)
        failed |= {host: error for host, error in found.items() if error}
    assert failed == {}
