"""What a host answers in its turn selects nothing on the control node or on another host."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.turn import drain, table
from tests.unit.test_turn import HOOKS
from tests.unit.turn_host import Disk, MemoryHost, take_turn

# ---- what a host says ------------------------------------------------------------------------------------------------

FALSE_ANSWERS: list[Any] = [{}, {"node": "peer", "controller": "peer", "host": "peer"}, {"kubeconfig": "/etc/evil"}]
FALSE_ANSWERS += [{"hooks": [drain.mark_of("/etc/passwd.yml")]}, {"hooks": ["/etc/passwd.yml"]}, {"reason": "RMA"}]


class LyingHost(MemoryHost):
    """A host whose journal of drains lists what it likes, and whose other answers have more than they should."""

    def __init__(self, added: Any, *arguments: Any, **options: Any) -> None:
        super().__init__(Disk(), *arguments, **options)
        self.added = added

    def answer_gpu_drain_journal(self, given: Any) -> dict[str, Any]:
        honest = super().answer_gpu_drain_journal(given)["journal"]
        hooks = ("slurm", "kubernetes", "tasks")
        return {"journal": {name: {**honest.get(name, {}), **self.added} for name in hooks}}

    def answer_gpu_drain_docker(self, given: Any) -> dict[str, Any]:
        return {**self.added, "done": True, "tasks": "evil.yml", "path": "/etc/evil.yml"}


@pytest.mark.parametrize("kind", [table.UPGRADE, table.DRAIN_ONLY, table.UNDRAIN_ONLY])
def test_no_answer_of_a_host_selects_what_happens_elsewhere(kind: str, hook: str) -> None:
    """A module, a host, a kubeconfig, a task file: all from the variables of the run. The host only says whether."""
    hooks = (*HOOKS, hook)

    def elsewhere(host: MemoryHost) -> set[tuple[str, str]]:
        take_turn(host, kind)
        names = ("gpu_drain_slurm", "gpu_drain_kubernetes", hook)
        calls = [(module, dict(given)) for module, given, _ in host.calls if module in names]
        for _, given in calls:
            given.pop("recorded", None)  # whether gpu-ready drained this host: it concerns this host's own node only
        return {(module, str(sorted(given.items()))) for module, given in calls}

    drained = Disk()
    take_turn(MemoryHost(drained, hooks), table.DRAIN_ONLY)
    honest = elsewhere(MemoryHost(drained if kind == table.UNDRAIN_ONLY else Disk(), hooks))
    assert len(honest) == {table.UPGRADE: 8, table.DRAIN_ONLY: 5, table.UNDRAIN_ONLY: 3}[kind]
    for added in FALSE_ANSWERS:
        assert elsewhere(LyingHost(added, hooks)) <= honest, added
