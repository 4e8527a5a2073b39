"""Logs of nvidia-installer, DKMS and package managers: each is explained by its real cause."""

import pytest

from plugins.module_utils.gpu_ready.driver.runfile import messages as runfile_messages
from plugins.plugin_utils.explanations import find
from plugins.plugin_utils.gpu_ready.diagnostics import message_table
from tests.corpus.samples import Sample, of_kind
from tests.unit.explained import explained


@pytest.mark.parametrize("sample", of_kind("installer_logs"), ids=lambda sample: sample.name)
def test_the_cause_is_the_real_one(sample: Sample) -> None:
    text = sample.path.read_text()
    if sample.expected["installer_failed"]:
        found = find([("installer-log", text)])
        names = {entry.code: entry.names for entry in message_table.table(message_table.INSTALLER)}
        assert found
        # The kernel's own words in a log name the reason of what the installer says.
        reasons = {entry.code for entry in message_table.table(message_table.KERNEL)}
        assert found.code in reasons or names[found.code] in sample.expected["causes"]
    assert ". Remedy: " in explained(runfile_messages.describe_failure(text, ""))
