"""Logs of nvidia-installer, DKMS and package managers: each is explained by its real cause."""

import pytest

from plugins.module_utils.gpu_ready.diagnostics import message_table
from plugins.module_utils.gpu_ready.driver.runfile import messages as runfile_messages
from tests.corpus.samples import Sample, of_kind


@pytest.mark.parametrize("sample", of_kind("installer_logs"), ids=lambda sample: sample.name)
def test_the_cause_is_the_real_one(sample: Sample) -> None:
    found = runfile_messages.explain_failure(sample.path.read_text(), "")
    if sample.expected["installer_failed"]:
        names = {entry.code: entry.names for entry in message_table.table(message_table.INSTALLER)}
        assert names[found.code] in sample.expected["causes"]
    assert runfile_messages.format_explanation(found)
