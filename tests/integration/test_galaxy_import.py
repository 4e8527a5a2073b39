"""galaxy-importer, the program with which Galaxy reads an uploaded collection, accepts the archive of `make collection`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.cores import installed
from tests.integration.fleet import environment
from tools import build_collection

pytestmark = pytest.mark.long

IMPORTER = ("galaxy-importer==0.4.44",)
OPTIONS = {"GALAXY_IMPORTER_RUN_ANSIBLE_LINT": "false"}
"""`make lint` runs it. Outside of a collection it finds no module without a prefix (docs/collection.md, Names)."""


def test_galaxy_accepts_the_archive(tmp_path: Path) -> None:
    programs = installed("galaxy-importer", sys.executable, IMPORTER)
    archive = build_collection.build(tmp_path)
    done = subprocess.run(
        [str(programs / "python"), "-m", "galaxy_importer.main", archive.name],
        cwd=tmp_path, env=environment() | OPTIONS | {"PATH": f"{programs}:/usr/bin:/bin"}, capture_output=True, text=True,
        timeout=600, check=False,
    )  # fmt: skip
    screen = done.stdout + done.stderr
    assert "Importer processing completed successfully" in screen, screen
    assert not re.findall("^(?:WARNING|ERROR).*", screen, re.MULTILINE), screen
