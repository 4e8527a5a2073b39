"""Waiting for the disk after programs that do not wait for it themselves."""

import pytest

from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Result
from tests.unit.recorded import RecordedHost

USAGE = "sync: invalid option -- 'f'\n"


class Node(RecordedHost):
    """A host whose sync ends with this status."""

    def __init__(self, rc: int) -> None:
        super().__init__()
        self.rc = rc

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.asked.append((*argv, str(timeout)))
        return Result(self.rc if "-f" in argv else 0, "", USAGE if self.rc == 1 else "")


@pytest.mark.parametrize(("rc", "calls"), [(0, ["-f"]), (1, ["-f", "7"]), (TIMED_OUT, ["-f"])])
def test_the_disk_is_synced_once_with_a_limit(rc: int, calls: list[str]) -> None:
    """Enterprise Linux 7 has a sync without -f; a disk that hangs is not asked a second time."""
    host = Node(rc)
    host.sync_disks(7)
    assert [call[1] for call in host.asked] == calls
    assert {call[-1] for call in host.asked} == {"7"}
