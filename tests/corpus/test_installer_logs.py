"""Logs of nvidia-installer and dkms in the shared corpus: each is explained by its real cause."""

from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready.diagnostics import message_table
from gpu_ready.driver.runfile import messages as runfile_messages

from tests.corpus.test_corpus import CORPUS

INDEX = CORPUS / "index.yaml"
SAMPLES = yaml_load(INDEX.read_text()) if INDEX.exists() else []
ROWS = [row for row in SAMPLES if row["kind"] == "installer_logs"]


@pytest.mark.skipif(not ROWS, reason=f"{INDEX} is absent")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["file"])
def test_the_cause_is_the_real_one(row: dict[str, Any]) -> None:
    found = runfile_messages.explain_failure((CORPUS / row["file"]).read_text(), "")
    if row["expected"]["installer_failed"]:
        names = {entry.code: entry.names for entry in message_table.table(message_table.INSTALLER)}
        assert names[found.code] in row["expected"]["causes"]
    assert runfile_messages.format_explanation(found)
