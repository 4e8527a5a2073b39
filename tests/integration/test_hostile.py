"""A sample of every wrong answer of a host for every module (tests/hostile), which the seed of the run draws.

It needs no lab: the hosts are directories. GPU_READY_HOSTILE="site undrain" runs all answers in these scenes.
"""

import os
from pathlib import Path

import pytest

from tests.grid import drawn
from tests.hostile.campaign import Campaign, Cell, cells
from tests.hostile.scenes import OPERATOR_FILES, scenes

pytestmark = pytest.mark.long
REQUESTED = os.environ.get("GPU_READY_HOSTILE", "").split()
SAMPLE = 200


def chosen(files: Path) -> list[Cell]:
    """Return the cells to run: the same for every test of a run."""
    every = cells(scenes(files))
    return [cell for cell in every if cell.scene.name in REQUESTED] if REQUESTED else drawn(every, SAMPLE)


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """Return the campaign, which keeps how the honest hosts of each scene fare alone."""
    return Campaign(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("name", dict.fromkeys(cell.scene.name for cell in chosen(Path("/nowhere"))))
def test_hostile_hosts_get_nothing_and_stop_nobody(campaign: Campaign, tmp_path: Path, name: str) -> None:
    files = tmp_path / "files"
    files.mkdir()
    for file in OPERATOR_FILES:
        (files / file).write_text("installer")
    cells_of_scene = [cell for cell in chosen(files) if cell.scene.name == name]
    found = campaign.test(cells_of_scene[0].scene, cells_of_scene)
    assert {host: error for host, error in found.items() if error} == {}
