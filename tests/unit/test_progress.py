"""The progress of a run on the screen: events in, lines out."""

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress import lines, results, words
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress.screen import Screen

from plugins.plugin_utils.gpu_ready.execute import steps
from plugins.plugin_utils.gpu_ready.turn import table
from tests.unit.terminal import on_screen

ROOT = Path(__file__).resolve().parents[2]
GOOD, BAD = lines.GOOD, lines.BAD


class Clock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def progress(clock: Clock) -> Any:
    return lines.Progress(clock)


def hosts(count: int, first: int = 1) -> list[str]:
    return [f"n{number:03}" for number in range(first, first + count)]


def staying(lines: list[Any]) -> list[str]:
    return [line.rendered() for line in lines if line.stays]


def live(lines: list[Any]) -> str:
    return str([line.text for line in lines if not line.stays][-1])


def test_a_rollout_of_200_hosts_counts_done_running_failed_and_left(progress: Any, clock: Clock) -> None:
    everyone = hosts(200)
    assert staying(progress.batch_starts("Roll", everyone[:1], everyone)) == [
        "Roll, batch 1: n001, 199 hosts after them"
    ]
    progress.task_starts("loading the driver")
    assert progress.host_starts("n001")[-1].stays is False
    clock.seconds = 60
    progress.host_ends("n001", GOOD, "done")
    progress.batches_planned = 11
    begun = staying(progress.batch_starts("Roll", everyone[1:21], everyone))
    assert begun == ["  1 of 1 host done, in 1 min", "Roll, batch 2 of 11: 20 hosts, 179 hosts after them"]
    for host in everyone[1:11]:
        progress.host_ends(host, GOOD)
    progress.host_ends(everyone[11], BAD)
    clock.seconds = 120
    progress.task_starts("verifying")
    shown = live(progress.host_starts(everyone[12]))
    # 12 hosts in 120 s: 10 s each for the 9 of this batch and the 179 after it
    assert shown == ("Roll, batch 2 of 11: 10 done, 9 running, 1 failed, 179 to go, about 31 min left | 1 verifying")


def test_hosts_at_different_tasks_are_counted_by_what_they_do(progress: Any, clock: Clock) -> None:
    everyone = hosts(12)
    progress.batch_starts("Roll", everyone[:1], everyone, pinned=True)
    assert progress.host_starts("n001") == [], "an event begins a turn"
    progress.step_starts("n001", "switch", "nvidia_driver.activate")
    clock.seconds = 60
    head = "Roll, batch 1: 0 done, 1 running, 0 failed, 11 to go, 1 min"
    assert live(progress.live()) == f"{head} | 1 loading the driver (1 min)"
    assert progress.live()[-1].block == (head, "  n001  loading the driver   1 min")
    progress.host_ends("n001", GOOD)
    progress.batch_starts("Roll", everyone[1:], everyone, pinned=True)
    for host, phase in (("n002", "drain"), ("n003", "drain"), ("n004", "rollback verify"), ("n005", "lease")):
        progress.step_starts(host, phase, "")
    progress.host_answers("n002")
    assert live(progress.live()) == (
        "Roll, batch 2: 0 done, 4 running, 0 failed, 7 to go, 0 s | 2 draining, 1 rolling back: verifying, 1 starting"
    )
    progress.host_ends("n002", BAD)
    assert "0 done, 3 running, 1 failed, 7 to go" in live(progress.step_starts("n002", "drain", ""))


def test_ten_running_hosts_have_a_line_each_and_more_are_counted(progress: Any, clock: Clock) -> None:
    everyone = [f"n{number}" for number in range(1, 12)]
    progress.batch_starts("Roll", everyone, everyone, pinned=True)
    for host in everyone[:10]:
        progress.step_starts(host, "verify", "gpu_verify.verify")
    clock.seconds = 5
    progress.step_starts("n10", "soak", "")
    block = progress.live()[-1].block
    assert block[1].split() == ["n1", "verifying", "5", "s"] and block[10].split()[0] == "n10"
    assert block[10].endswith("in service, waiting for the second verification     0 s")
    assert progress.step_starts("n11", "drain", "")[-1].block == ()


def test_a_host_says_for_which_process_its_package_manager_waits(progress: Any, clock: Clock) -> None:
    everyone = [f"n{number}" for number in range(1, 12)]
    progress.batch_starts("Provision", everyone, everyone)
    progress.step_starts("n1", "execute", "docker_engine.install")
    clock.seconds = 5
    progress.host_waits("n1", "process 7127 (apt-get)")
    clock.seconds = 40
    progress.host_waits("n1", "process 7130 (dpkg)")
    assert progress.live()[-1].block[1] == "  n1  waiting for the package manager: process 7130 (dpkg)    35 s"
    assert live(progress.live()).endswith("| 1 waiting for the package manager: process 7130 (dpkg) (35 s)")
    for host in everyone:
        progress.host_waits(host, f"process {host}")
    assert live(progress.live()).endswith("| 11 waiting for the package manager (35 s)")
    shown = live(progress.step_starts("n1", "execute", "docker_engine.install"))
    assert shown.endswith("| 1 installing docker, 10 waiting for the package manager")


def test_tasks_whose_hosts_do_nothing_worth_a_word_are_not_shown(progress: Any) -> None:
    """Ansible says that a task begins before its condition is known: "Refuse a host on which another run works"."""
    progress.batch_starts("Report", hosts(2), hosts(2))
    assert progress.task_starts("") == [] and progress.host_starts("n001") == []
    progress.batch_starts("Provision", hosts(2), hosts(2))
    progress.task_starts(words.ACTIONS["gpu_node_plan"])
    assert live(progress.host_starts("n001")).endswith("| 1 collecting facts")
    progress.host_answers("n001")
    progress.task_starts("")
    assert live(progress.step_starts("n001", "execute", "docker_engine.install")).endswith("| 1 installing docker")


@pytest.mark.parametrize("step", [*steps.STEPS, "reboot", "downloads", "gpu_plan.repair_packages"])
def test_every_step_has_words(step: str) -> None:
    assert words.doing_text("execute", step) and "_" not in words.doing_text("execute", step)


@pytest.mark.parametrize(
    ("action", "value", "text"),
    [
        ("gpu_ready.nodes.gpu_execute", {"step": "nvidia_driver.install"}, "failed while installing the driver"),
        ("gpu_ready.nodes.gpu_begin", {"step": "plan"}, "refused"),
        ("gpu_ready.nodes.gpu_begin", {"step": "gpu_plan.repair_packages"}, "failed while repairing interrupted package operations"),
        ("gpu_ready.nodes.gpu_node_plan", {}, "failed at 'Collect facts'"),
        ("ansible.builtin.command", {"step": "nvidia_driver.install"}, "failed at 'Collect facts'"),
    ],
)  # fmt: skip
def test_what_failed_is_shown_in_words(action: str, value: dict[str, Any], text: str) -> None:
    assert results.failure_text(action, value, "Collect facts") == text
    assert results.step_failure_text("rollback verify") == "failed while rolling back: verifying"
    assert results.step_failure_text("hook.yml") == "failed at 'hook.yml'"


@pytest.mark.parametrize("phase", table.PHASES)
def test_every_phase_has_words(phase: str) -> None:
    assert words.doing_text(phase)
    assert words.changes_host(phase) == (phase not in ("lease", "plan"))


def test_nobody_guesses_the_time_from_a_canary(progress: Any, clock: Clock) -> None:
    everyone = hosts(50)
    progress.batch_starts("Roll", everyone[:1], everyone)
    clock.seconds = 100
    assert "about" not in live(progress.host_ends("n001", GOOD))


def test_a_host_counts_as_failed_while_its_rescue_waits_for_the_others(progress: Any) -> None:
    """The strategy linear begins a rescue when the other hosts have left the block, which may be many minutes later."""
    progress.batch_starts("Provision", hosts(3), hosts(3))
    progress.task_starts("collecting facts")
    for host in hosts(3):
        progress.host_starts(host)
    assert live(progress.host_fails("n002")).startswith("Provision: 0 done, 2 running, 1 failed")
    progress.host_ends("n003", GOOD)
    assert "1 done, 2 running, 0 failed" in live(progress.host_starts("n002"))
    progress.host_fails("n002")
    progress.host_ends("n002", BAD)
    assert "1 done, 1 running, 1 failed" in live(progress.live())


def test_a_failed_host_stays_failed_in_later_plays(progress: Any) -> None:
    progress.batch_starts("Provision", hosts(3), hosts(3))
    progress.host_ends("n002", BAD)
    progress.host_ends("n002", GOOD)
    assert (
        staying(progress.batch_starts("Report", hosts(3), hosts(3)))[0] == "  0 of 3 hosts done, failed: n002, in 0 s"
    )
    assert progress.ended == {"n002": BAD}


def test_a_play_in_which_nothing_ends_has_no_summary(progress: Any) -> None:
    progress.batch_starts("Provision", hosts(3), hosts(3))
    progress.host_ends("n002", BAD)
    progress.batch_starts("Report", hosts(3), hosts(3))
    assert staying(progress.batch_starts("Raise what failed", hosts(3), hosts(3))) == [
        "Raise what failed: n001, n002, n003"
    ]


def test_a_host_ends_once(progress: Any) -> None:
    progress.batch_starts("Provision", hosts(2), hosts(2))
    assert staying(progress.host_ends("n001", GOOD, "ready")) == ["  n001: ready"]
    assert progress.host_ends("n001", GOOD, "ready") == []


def test_every_line_of_a_host_begins_with_its_name() -> None:
    """A host cannot write a line in the name of another one, however it breaks its text."""
    text = "drift\n  z-honest: no_gpu\n\n[WARNING]: x"
    assert lines.Line(text, host="h").rendered().split("\n") == [
        "  h: drift", "  h:     z-honest: no_gpu", "  h:", "  h:   [WARNING]: x"
    ]  # fmt: skip
    alike = lines.Alike()
    for host in (*hosts(9), "m"):
        alike.add(host, text)
    (line,) = alike.flush()
    assert line.rendered().split("\n")[:2] == [
        f"  m, {', '.join(hosts(9))}: drift",
        "  m and 9 more:     z-honest: no_gpu",
    ]


def test_an_event_is_read_as_it_was_written() -> None:
    event = lines.Event("n1", "problem", "switch", "a step: it | failed\nfor\n  a reason")
    text = lines.event_text(*event)
    assert lines.parse_event(text) == event
    assert all(line.startswith(("gpu-ready | n1 | problem", "    ")) for line in text.split("\n"))
    for other in ("n1 | step | switch | x", "gpu-ready | n1", " gpu-ready | a | b | c | d"):
        assert lines.parse_event(other) is None


def test_a_host_that_ended_well_and_fails_afterwards_is_failed(progress: Any) -> None:
    progress.batch_starts("Roll", hosts(2), hosts(2))
    progress.host_ends("n001", GOOD)
    assert "0 done, 1 running, 1 failed" in live(progress.host_ends("n001", BAD))


def test_an_empty_play_says_nothing(progress: Any) -> None:
    assert progress.batch_starts("Prepare", [], []) == []


@pytest.mark.parametrize(("seconds", "words"), [(0, "0 s"), (59.9, "59 s"), (60, "1 min"), (3660, "1 h 1 min")])
def test_spans(seconds: float, words: str) -> None:
    assert lines.span(seconds) == words


UPGRADED = {"host": "n1", "state": "upgraded", "from": "580.1", "to": "595.2", "seconds_unavailable": 12, "reason": ""}


@pytest.mark.parametrize(
    ("playbook", "action", "value", "end"),
    [
        ("upgrade_drivers.yml", "gpu_turn", {"result": UPGRADED}, (GOOD, "upgraded, 580.1 -> 595.2, 12 s out of service")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "failed", "to": "2", "from": "1", "reason": "red -- BOTH WAYS FAILED"}}, (BAD, "failed, 1 -> 2, BOTH WAYS FAILED")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "rolled_back", "to": "2", "from": "1", "reason": "red -- It is back"}}, (BAD, "rolled back to 1, It is back")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "left_out", "reason": "no disk"}}, (BAD, "left out, no disk")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "excluded", "reason": "as asked"}}, (GOOD, "")),
        ("rollback_drivers.yml", "gpu_turn", {"result": {"state": "rolled_back", "to": "1", "from": "2"}}, (GOOD, "rolled back, 2 -> 1")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "current", "to": "1"}}, (GOOD, "")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "paused", "to": "1"}}, (GOOD, "paused, None -> 1")),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {"state": "not_reached", "reason": "it stopped"}}, None),
        ("upgrade_drivers.yml", "gpu_turn", {"result": {}}, None),
        ("upgrade_drivers.yml", "gpu_node_plan", {"plan": {"refusals": []}, "todo": {}}, None),
        ("provision.yml", "gpu_node_plan", {"plan": {"refusals": []}, "todo": {}}, (GOOD, "")),
        ("provision.yml", "gpu_node_plan", {"plan": {"refusals": [{}]}, "todo": {}}, None),
        ("provision.yml", "gpu_node_plan", {"plan": {"refusals": []}, "todo": {"a.b": {}}}, None),
        ("provision.yml", "gpu_execute", {"verify": {"ok": True}}, (GOOD, "ready")),
        ("provision.yml", "ansible.builtin.set_fact", {"ansible_facts": {"gpu_ready_failure": {}}}, (BAD, "")),
        ("provision.yml", "ansible.builtin.command", {"ansible_facts": {"gpu_ready_failure": {}}}, None),
        ("provision.yml", "ansible.builtin.command", {"verify": {"ok": True}}, None),
        ("provision.yml", "ansible.builtin.command", {"plan": {"refusals": []}, "todo": {}}, None),
        ("upgrade_drivers.yml", "gpu_ready.nodes.gpu_verify", {"ansible_facts": {"gpu_upgrade_result": UPGRADED}, "result": UPGRADED}, None),
        ("upgrade_drivers.yml", "other.collection.gpu_turn", {"result": UPGRADED}, None),
        ("upgrade_drivers.yml", "gpu_ready.nodes.gpu_turn", {"result": UPGRADED}, (GOOD, "upgraded, 580.1 -> 595.2, 12 s out of service")),
        ("audit.yml", "ansible.builtin.command", {"audit": {"state": "drift"}}, None),
        ("audit.yml", "gpu_audit", {"audit": {"state": "drift"}}, (GOOD, "drift")),
        ("audit.yml", "debug", {"msg": "x"}, None),
    ],
)  # fmt: skip
def test_what_ends_a_host(playbook: str, action: str, value: dict[str, Any], end: Any) -> None:
    assert results.ending(playbook, action, value) == end


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"msg": "one message"}, "one message"),
        ({"msg": "two\nlines\n"}, "two\nlines"),
        ({"msg": "Task failed: Module failed: one message"}, "one message"),
        ({"msg": "Task failed: Data could not be sent"}, "Data could not be sent"),
        ({"msg": "non-zero return code", "rc": 2, "cmd": ["dkms", "x"], "stderr": "a\nb"}, "non-zero return code (2 of dkms x)\na\nb"),
        ({"msg": "MODULE FAILURE", "module_stderr": "/bin/sh: 1: python3: not found\n", "module_stdout": ""}, "MODULE FAILURE\n/bin/sh: 1: python3: not found"),
        ({"censored": "the output has been hidden"}, "the output has been hidden"),
        ({"results": [{"failed": True}], "msg": "One or more items failed"}, "One or more items failed"),
        ({}, "no reason was given; -v shows the full result"),
    ],
)  # fmt: skip
def test_the_reason_of_a_failure(value: dict[str, Any], expected: str) -> None:
    assert results.reason(value) == expected


def test_a_host_does_not_fill_the_screen() -> None:
    text = results.reason({"msg": "a" * 10**7, "stderr": "b" * 10**7})
    assert len(text) < 25_000 and "a (10000000 characters; -v shows all)\nb" in text


def test_of_a_long_log_the_end_is_shown() -> None:
    text = results.reason({"msg": "it failed", "stderr": "\n".join(f"line {number}" for number in range(99))})
    assert text.splitlines()[0] == "it failed" and text.endswith("line 98") and len(text.splitlines()) < 30


def test_lines_of_hosts_are_erased_and_a_low_terminal_has_one_line(
    clock: Clock, progress: Any, capfd: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    everyone = hosts(4)
    progress.batch_starts("Roll", everyone, everyone, pinned=True)
    for host in everyone:
        progress.step_starts(host, "drain", "")
    for rows, shown in (("24", 5), ("5", 1)):
        monkeypatch.setenv("LINES", rows)
        monkeypatch.setenv("COLUMNS", "60")
        screen = Screen(lambda text, **_: print(text, flush=True), True, clock)
        screen.show_lines(progress.live())
        drawn = capfd.readouterr().out
        assert len(on_screen(drawn)) == shown and all(len(line) < 60 for line in on_screen(drawn))
        screen.show_lines([lines.Line("stays")])
        assert on_screen(drawn + capfd.readouterr().out) == ["stays", ""]


def test_a_log_without_a_line_for_a_minute_gets_one(clock: Clock, progress: Any, capfd: Any) -> None:
    shown: list[str] = []
    screen = Screen(lambda text, **_: shown.append(text), False, clock)
    screen.show_lines(progress.batch_starts("Roll", hosts(2), hosts(2)))
    progress.task_starts("installing the driver")
    for host in hosts(2):
        progress.host_starts(host)
    for seconds in range(200):
        clock.seconds = seconds
        screen.tick(progress.live())
    lines = capfd.readouterr().out.splitlines()
    assert lines == [
        f"  Roll: 0 done, 2 running, 0 failed, {minutes} min | 2 installing the driver ({minutes} min)"
        for minutes in (1, 2, 3)
    ]
    assert shown == ["Roll: n001, n002"]


def test_a_long_task_shows_its_duration(progress: Any, clock: Clock) -> None:
    progress.batch_starts("Roll", hosts(2), hosts(2))
    progress.task_starts("installing the driver")
    assert live(progress.host_starts("n001")).endswith("| 1 installing the driver")
    clock.seconds = 130
    assert live(progress.live()).endswith("2 min | 1 installing the driver (2 min)")
