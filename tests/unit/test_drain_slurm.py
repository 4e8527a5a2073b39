"""Draining a node of Slurm: its state, who owns a drain, and Slurm's answers."""

from functools import partial

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.check import slurm as check_slurm
from plugins.module_utils.gpu_ready.drain import hook
from plugins.module_utils.gpu_ready.drain import slurm as drain_slurm
from plugins.module_utils.gpu_ready.drain.journal import DrainError
from tests.unit.clock import Clock
from tests.unit.recorded import RecordedHost

REASON = "gpu-ready: driver upgrade"


NEW = """NodeName=dr-node Arch=x86_64 CoresPerSocket=1
   NodeAddr=dr-node NodeHostName=dr-node Version=24.11.5
   OS=Linux 6.12.117+deb13-cloud-amd64 #1 SMP PREEMPT_DYNAMIC Debian
   State=IDLE+DRAIN ThreadsPerCore=1 TmpDisk=0 Weight=1 Owner=N/A MCS_label=N/A
   CurrentWatts=0 AveWatts=0

   Reason=gpu-ready: driver upgrade [root@2026-11-21T12:55:10]

"""
OLD = (
    "NodeName=n1 Arch=x86_64 CoresPerSocket=16 CPUAlloc=32 CPUErr=0 CPUTot=64 CPULoad=31.92 Features=(null) "
    "Gres=gpu:4 NodeAddr=n1 NodeHostName=n1 Version=17.11 OS=Linux 3.10.0 RealMemory=1 State=MIXED*+DRAIN "
    "ThreadsPerCore=2 LowestJoules=n/a ConsumedJoules=n/a Reason=bad fan [see ticket] [root@2019-03-01T10:00:00] "
    "Comment=x\n"
)


@pytest.mark.parametrize(
    ("text", "states", "reason"),
    [
        (NEW, {"IDLE", "DRAIN"}, REASON),  # slurm 24.11 of Debian 13
        (OLD, {"MIXED", "DRAIN"}, "bad fan [see ticket]"),  # the form of -o, with a field after the reason
        ("NodeName=n1\n   State=DOWN* X=1\n   Reason=Not responding [slurm@2026-01-01T00:00:00]\n", {"DOWN"}, "Not responding"),
        ("NodeName=n1 State=IDLE@+RESERVED+PLANNED X=1\n", {"IDLE", "RESERVED", "PLANNED"}, ""),
        ("NodeName=n1 State=IDLE~+CLOUD+POWERED_DOWN X=1\n   Reason=old form\n", {"IDLE", "CLOUD", "POWERED_DOWN"}, "old form"),
    ],
)  # fmt: skip
def test_parse_slurm_node(text: str, states: set[str], reason: str) -> None:
    node = check_slurm.parse_node(text)
    assert node and (set(node.states), node.reason) == (states, reason)
    assert node.answers == ("*" not in text)


@pytest.mark.parametrize("text", ["", "Node n1 not found\n", "NodeName=n1 ", "State=IDLE"])
def test_other_text_is_no_slurm_node(text: str) -> None:
    assert check_slurm.parse_node(text) is None


def node(states: str, reason: str = "") -> check_slurm.SlurmNode:
    return check_slurm.SlurmNode("n1", frozenset(states.split("+")), reason)


@pytest.mark.parametrize(
    ("states", "reason", "recorded", "drained", "own"),
    [
        ("IDLE", "", False, True, True),
        ("MIXED+RESERVED", "", False, True, True),
        ("IDLE+MAINT+RESERVED", "", False, True, True),
        ("IDLE+DRAIN", "bad fan", False, False, False),
        ("IDLE+DRAIN", "bad fan", True, False, False),  # somebody set another reason since
        ("IDLE+DRAIN", REASON, True, False, True),
        ("IDLE+DRAIN", REASON, False, False, False),  # the same reason without a record
        ("DOWN+DRAIN", "Node unexpectedly rebooted", True, False, True),  # drained by gpu-ready
        ("DOWN", "Not responding", False, False, False),
        ("DOWN", "broken", False, False, False),
        ("IDLE", "", True, True, True),  # killed between the record and the drain
        ("ALLOCATED+FAIL", "flaky", False, False, False),
    ],
)
def test_owner_of_a_slurm_drain(states: str, reason: str, recorded: bool, drained: bool, own: bool) -> None:
    decided = drain_slurm.decide_drain(node(states, reason), REASON, recorded)
    assert (decided.act, decided.owned, bool(decided.kept)) == (drained, own, not own)
    assert own or (reason in decided.kept and "stays so" in decided.kept)


@pytest.mark.parametrize(
    ("states", "reason", "resumed", "left"),
    [
        ("IDLE+DRAIN", REASON, True, False),
        ("DOWN+DRAIN", "Node unexpectedly rebooted", True, False),
        ("IDLE+DRAIN", "bad fan", False, True),
        ("DOWN", "broken", False, True),
        ("IDLE", "", False, False),  # somebody resumed it
    ],
)
def test_only_own_drains_are_resumed(states: str, reason: str, resumed: bool, left: bool) -> None:
    decided = drain_slurm.decide_resume(node(states, reason), REASON)
    assert (decided.act, bool(decided.kept)) == (resumed, left)


class Controller(RecordedHost):
    """slurmctld, whose node answers from the third query on."""

    def __init__(self) -> None:
        super().__init__()
        self.verbs: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.verbs.append(argv[1])
        mark = "*" if self.verbs.count("show") < 3 else ""
        return Result(0, f"NodeName=n1 State=IDLE{mark}+DRAIN X=1\n   Reason={REASON} [root@now]\n", "")


def test_a_node_is_resumed_once_its_slurmd_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resumed before, it would be set down after the reboot, and nobody would know that gpu-ready had drained it."""
    clock = Clock()
    monkeypatch.setattr(drain_slurm, "wait", partial(hook.wait, now=clock.now, sleep=clock.sleep))
    host = Controller()
    slurm = drain_slurm.SlurmHook(host, "n1", "/x")
    assert slurm.undrain(REASON, check=True) == {"changed": True, "kept": "", "done": True}
    answer = slurm.undrain(REASON, check=False)
    assert answer["done"] and answer["changed"] and host.verbs == ["show", "show", "show", "update"]


def test_a_slurmd_that_never_answers_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(drain_slurm, "wait", partial(hook.wait, now=clock.now, sleep=clock.sleep))
    text = f"NodeName=n1 State=IDLE+DRAIN+NOT_RESPONDING X=1\n   Reason={REASON} [root@now]\n"
    slurm = drain_slurm.SlurmHook(
        RecordedHost(programs={("/x/scontrol", "show", "node", "n1"): Result(0, text, "")}), "n1", "/x"
    )
    first = slurm.undrain(REASON, check=False)
    assert not first["done"] and not first["changed"] and "does not answer slurmctld yet" in str(first["waiting"])
    assert isinstance(first["deadline"], float)
    clock.time = first["deadline"]
    with pytest.raises(
        DrainError,
        match=r"after 300 s it still waits for slurmd on slurm's node n1.*systemctl status slurmd.*then run again",
    ):
        slurm.undrain(REASON, check=False, deadline=first["deadline"])


def test_jobs_are_named_until_they_are_many() -> None:
    jobs = drain_slurm.parse_jobs("17|alice|RUNNING\n18_2|bob|SUSPENDED\n")
    assert drain_slurm.describe_work(node("MIXED+DRAIN"), jobs) == (
        "2 jobs on slurm's node n1: 17 of alice (running), 18_2 of bob (suspended)"
    )
    many = drain_slurm.parse_jobs("".join(f"{n}|a|RUNNING\n" for n in range(9)))
    assert drain_slurm.describe_work(node("MIXED+DRAIN"), many).endswith("4 of a (running) and 4 more")
    assert drain_slurm.describe_work(node("IDLE+COMPLETING+DRAIN"), []) == "slurm's node n1, which is COMPLETING"
    assert drain_slurm.describe_work(node("IDLE+DRAIN"), []) == ""


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Result(1, "Node n1 not found\n", ""), "slurm: it has no node n1. Set gpu_drain_slurm_node"),
        (Result(1, "", "slurm_load_node error: Unable to contact slurm controller"), "Check slurmctld, munge"),
        (Result(124, "", ""), "did not answer scontrol"),
    ],
)
def test_message_if_slurm_does_not_answer(answer: Result, message: str) -> None:
    host = RecordedHost(
        programs={("scontrol", "show", "node", "n1"): answer, ("/x/scontrol", "show", "node", "n1"): answer}
    )
    with pytest.raises(DrainError, match=message):
        drain_slurm.SlurmHook(host, "n1", "/x").show()


def test_message_if_slurm_is_not_installed() -> None:
    with pytest.raises(DrainError, match="scontrol: it is not on this host. Set gpu_drain_slurm_controller"):
        drain_slurm.SlurmHook(RecordedHost(), "n1").show()


@pytest.mark.parametrize("reason", ["", "two\nlines", 'a "quote"', "with [brackets]"])
def test_a_reason_that_slurm_would_not_return_is_refused(reason: str) -> None:
    with pytest.raises(DrainError, match="gpu_drain_reason"):
        drain_slurm.check_reason(reason)


@pytest.mark.parametrize("name", ["n1,n2", "n[1-9]", "ALL", "all", "-n1", "", "n" * 256])
def test_a_name_that_may_be_several_nodes_is_refused(name: str) -> None:
    with pytest.raises(DrainError, match=r"gpu_drain_slurm_node: '.*' is not the name of one node\. Set it"):
        drain_slurm.SlurmHook(RecordedHost(), name)


NOTHING = Result(0, "", "")


def slurm(state: str, jobs: Result = NOTHING, updated: Result = NOTHING) -> drain_slurm.SlurmHook:
    """The hook of a node in a state, whose jobs and changes have these answers."""
    shown = Result(0, f"NodeName=n1 State={state} X=1\n   Reason={REASON} [root@now]\n", "")
    scontrol = ("/x/scontrol", "update", "nodename=n1")
    answers = {
        ("/x/scontrol", "show", "node", "n1"): shown,
        ("/x/squeue", "--noheader", "--nodelist=n1", "--format=%i|%u|%T"): jobs,
        (*scontrol, "state=drain", "reason=" + REASON): updated,
        (*scontrol, "state=resume"): updated,
    }
    return drain_slurm.SlurmHook(RecordedHost(programs=answers), "n1", "/x")


def changes(node: drain_slurm.SlurmHook) -> list[str]:
    assert isinstance(node.host, RecordedHost)
    return [argv[3] for argv in node.host.asked if argv[1] == "update"]


def act(node: drain_slurm.SlurmHook, action: str, check: bool = False, **more: object) -> hook.Values:
    given = {"reason": REASON, "recorded": False, "timeout": 1800, "deadline": 0.0}
    return hook.run_action(node, action, {**given, **more}, check)


def test_a_node_is_drained_once() -> None:
    node = slurm("IDLE")
    assert act(node, hook.DRAIN, check=True)["changed"] and changes(node) == []
    assert act(node, hook.DRAIN)["owned"] and changes(node) == ["state=drain"]
    drained = slurm("IDLE+DRAIN")
    values = act(drained, hook.DRAIN, recorded=True)
    assert (values["changed"], values["owned"], values["kept"], changes(drained)) == (False, True, "", [])
    assert "already drained" in str(act(drained, hook.DRAIN)["kept"])


@pytest.mark.parametrize(("action", "state"), [(hook.DRAIN, "IDLE"), (hook.UNDRAIN, "IDLE+DRAIN")])
def test_a_change_that_slurm_refuses_is_an_error(action: str, state: str) -> None:
    refused = Result(1, "", "slurm_update error: Invalid user id\n")
    with pytest.raises(
        DrainError, match=r"slurm: it refused `scontrol update nodename=n1 state=.*Invalid user id\)\. Run it as"
    ):
        act(slurm(state, updated=refused), action)


def test_the_end_of_jobs_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = slurm("MIXED+DRAIN", Result(0, "17|alice|RUNNING\n", ""))
    waiting = {"changed": False, "done": False, "waiting": "1 job on slurm's node n1: 17 of alice (running)"}
    clock = Clock()
    monkeypatch.setattr(hook, "wait", partial(hook.wait, now=clock.now, sleep=clock.sleep))
    assert act(busy, hook.WAIT).items() >= waiting.items()
    assert act(busy, hook.WAIT, check=True) == {
        "changed": False,
        "done": True,
        "waiting": "",
        "deadline": 0.0,
        "remaining_s": 1800,
    }
    assert act(slurm("IDLE+DRAIN"), hook.WAIT).items() >= {"changed": False, "done": True, "waiting": ""}.items()
    with pytest.raises(
        DrainError, match=r"slurm: squeue failed for the node n1 \(slurm_load_jobs error\)\. Check slurmctld"
    ):
        act(slurm("IDLE+DRAIN", Result(1, "", "slurm_load_jobs error")), hook.WAIT)
