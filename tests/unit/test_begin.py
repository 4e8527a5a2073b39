"""What comes between the plan of a host and its first step: the lease, a new plan, the refusal."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.turn import begin as begins
from plugins.plugin_utils.gpu_ready.turn.phases import REPAIR
from tests.unit.test_turn import REFUSED, modules, planned
from tests.unit.turn_host import Disk, MemoryHost


@pytest.mark.parametrize(
    ("plan", "answers", "asked", "leased", "message"),
    [
        (planned(), {}, 0, True, ""),
        (planned({}), {}, 0, False, ""),
        (REFUSED, {}, 0, False, "docker is not offered"),
        ({"unreachable": True, "msg": "Task failed: no route"}, {}, 0, False, "no route"),
        # Another run had the host since the plan, or the last step of a killed one did.
        (planned(lease="a"), {"before": "a"}, 0, True, ""),
        (planned(lease="a"), {"before": "b"}, 1, True, ""),
        (planned(lease="a"), {"before": ""}, 1, True, ""),
        (planned(lease="a"), {"before": "a", "waits": 1}, 1, True, ""),
        (planned(), {"held_by": "bob works on it", "check": True}, 0, True, ""),
        (planned(lease="a"), {"before": "b", "then": REFUSED}, 1, True, "docker is not offered"),
        # What an interrupted package operation left is repaired once.
        (planned({REPAIR: {}}), {"repaired": ["x"]}, 1, True, ""),
        (planned({REPAIR: {}}), {"repaired": []}, 0, True, ""),
        (planned({REPAIR: {}}), {"repaired": ["x"], "then": REFUSED}, 1, True, "docker is not offered"),
        (planned({REPAIR: {}}), {"repaired": ["x"], "check": True}, 0, True, ""),
    ],
)
def test_what_comes_between_a_plan_and_its_first_step(
    plan: dict[str, Any], answers: dict[str, Any], asked: int, leased: bool, message: str
) -> None:
    class Host(MemoryHost):
        check = answers.get("check", False)

        def answer_gpu_lease(self, given: Any) -> dict[str, Any]:
            given_back: dict[str, Any] = {name: answers[name] for name in ("before", "held_by") if name in answers}
            return {**super().answer_gpu_lease(given), **given_back}

        def answer_gpu_packages(self, given: Any) -> dict[str, Any]:
            return {"repaired": answers["repaired"]}

    running = {"msg": "its last step still runs", "another_run": True, "last_step_running": True}
    host = Host(Disk(), fails={"gpu_lease taken": [running] * answers.get("waits", 0)})
    kept: list[dict[str, Any]] = []

    def ask() -> dict[str, Any]:
        found: dict[str, Any] = answers.get("then", planned())
        return found

    if message:
        with pytest.raises(Exception, match=message):
            begins.begin(host, plan, ask, kept.append)
    else:
        begins.begin(host, plan, ask, kept.append)
    assert (len(kept), host.disk.leased) == (asked, leased)
    held = answers.get("held_by")
    assert [text for kind, phase, text in host.events if (kind, phase) == ("note", "plan")] == ([held] if held else [])
    assert ("gpu_packages" in modules(host)) == ("repaired" in answers and not host.check)
