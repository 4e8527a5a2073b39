"""Evidence of hosts, and the explanations that the control node puts in its place."""

import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import evidence
from plugins.module_utils.gpu_ready.base.evidence import MARK, FailureEvidence, Search, explained_later
from plugins.module_utils.gpu_ready.packaging.manager import PackageError
from plugins.plugin_utils import explanations
from plugins.plugin_utils.answer_bounds import WrongAnswer
from plugins.plugin_utils.explanations import explain_answer
from tests.unit.lying_host import make_liar, run_playbook

FULL_DISK, COMPILER = "cp: No space left on device\n", "a.c:1:2: error: implicit declaration of function 'f'\n"
DISK, BUILD = "a disk is full", "the module does not compile for this kernel"
NO_SPACE = "no_space"


def explain(text: str) -> str:
    return str(explain_answer({"msg": text})["msg"])


def explained(*searches: Search, **more: str) -> str:
    return explain("before " + explained_later(FailureEvidence(list(searches), **more)) + " after")


def log(text: str, *without: str) -> Search:
    return Search([("installer-log", text)], list(without))


def test_the_explanation_is_where_the_evidence_was() -> None:
    assert explained(log(FULL_DISK), log="/var/log/x").startswith(
        f"before {DISK} (No space left on device); the whole log is /var/log/x on the host. Remedy: "
    )
    assert explained(log(FULL_DISK)).endswith(" after")


@pytest.mark.parametrize(
    ("searches", "cause"),
    [
        ([log("quiet"), log(FULL_DISK)], DISK),
        ([log(COMPILER), log(FULL_DISK)], BUILD),
        ([log(FULL_DISK, NO_SPACE), log(COMPILER)], BUILD),
        ([Search([("installer-log", "quiet"), ("installer-log", FULL_DISK)])], DISK),
        ([log(FULL_DISK, NO_SPACE)], "its reason is not known to gpu-ready (cp: No space left on device"),
    ],
)
def test_the_first_search_with_a_cause_counts(searches: list[Search], cause: str) -> None:
    assert explained(*searches).startswith(f"before {cause}")


def test_the_message_where_no_cause_is_known() -> None:
    assert explained(log("x\nE: strange\ny\n"), log="L") == (
        "before its reason is not known to gpu-ready (E: strange); the whole log is L on the host. "
        "Remedy: read that log, then run again after"
    )
    assert explained(log("quiet"), unknown="nobody knows. Remedy: ask") == "before nobody knows. Remedy: ask after"
    assert "(no output)" in explained(log(""))


def test_words_and_outcome_are_in_the_message() -> None:
    shown = explained(log(FULL_DISK), quoted="modprobe: failed", outcome="; it was undone")
    assert f"{DISK} (modprobe: failed; No space left on device); it was undone. Remedy: free" in shown
    once = explained(log(FULL_DISK), quoted="cp: No space left on device")
    assert once.count("No space left") == 1
    assert explained(log("quiet"), unknown="nobody knows. Remedy: ask", outcome="; it was undone") == (
        "before nobody knows; it was undone. Remedy: ask after"
    )


def test_what_failed_while_a_failure_was_undone_is_explained_too() -> None:
    undone = explained_later(FailureEvidence([log(FULL_DISK)]))
    shown = explained(log(COMPILER), outcome=f". The package stays ({undone})")
    assert MARK not in shown and shown.startswith(f"before {BUILD}") and f". The package stays ({DISK}" in shown
    deep = explained_later(FailureEvidence([log(FULL_DISK)]))
    for _ in range(explanations.MOST):
        deep = explained_later(FailureEvidence([log(COMPILER)], outcome=deep))
    with pytest.raises(WrongAnswer, match="more than"):
        explain(deep)


def test_messages_and_exceptions_are_explained_and_nothing_else() -> None:
    text = explained_later(FailureEvidence([log(FULL_DISK)]))
    answer = explain_answer({"msg": text, "exception": {"event": [text]}, "held_by": text, "rc": 1})
    assert answer["msg"].startswith(DISK) and answer["exception"]["event"][0] == answer["msg"]
    assert answer["held_by"] == text and answer["rc"] == 1


@pytest.mark.parametrize(
    "text",
    [
        "{}", "[]", "1", "no JSON", '{"searches": 1}', '{"searches": [{"texts": [["no such kind", "x"]]}]}',
        '{"searches": [{"texts": [["dmesg"]]}]}', '{"searches": [], "more": 1}', '{"searches": [{"texts": [[1, 2]]}]}',
        "[" * 100_000,
    ],
)  # fmt: skip
def test_a_text_between_two_marks_that_is_no_evidence_stays(text: str) -> None:
    assert explain(MARK + text + MARK) == MARK + text + MARK


def test_an_answer_has_bounds_for_its_failures_and_their_depth() -> None:
    one = explained_later(FailureEvidence([log("quiet")]))
    assert explain(one * explanations.MOST).count("not known") == explanations.MOST
    with pytest.raises(WrongAnswer, match="more than"):
        explain_answer({"msg": one * explanations.MOST, "exception": one})
    deep: Any = one
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(WrongAnswer, match="lists"):
        explain_answer({"exception": deep})


def test_a_mark_alone_stays() -> None:
    assert explain(f"a{MARK}b") == f"a{MARK}b"


def test_secrets_are_masked_in_evidence_and_in_the_words_around_it() -> None:
    secret = 'token="abc def"\nadmin:pw@proxy:3128\n{"password": "geheim"}\nE: {"password": "geheim"} http://u:p@h/x\n'
    error = PackageError("reading http://user:pass@mirror/x: " + explained_later(FailureEvidence([log(secret)])))
    shown = explain(str(error))
    assert shown.startswith("reading http://***@mirror/x: its reason is not known")
    assert not [word for word in ("abc", "pw@", "geheim", ":pass", "u:p") if word in shown + str(error)]
    build = PackageError("x: " + explained_later(FailureEvidence([log('PASSWORD="a b" ./sign-file\n' + COMPILER)])))
    assert explain(str(build)).startswith(f"x: {BUILD}")


def test_a_host_says_itself_what_a_message_has_without_explanations() -> None:
    text = explained_later(FailureEvidence([log("nv.c:1404: 404 Not Found\n")], unknown="modprobe failed"))
    assert evidence.without_evidence(f"a {text} b") == "a modprobe failed b"
    assert "404" not in evidence.without_evidence(explained_later(FailureEvidence([log("404")])))
    assert evidence.outside_evidence(str.upper, f"a {text} b") == f"A {text} B"


def test_texts_are_sent_with_both_ends() -> None:
    text = "first\n" + "x" * 2 * evidence.LONGEST + "\nlast"
    [[kind, sent]] = json.loads(explained_later(FailureEvidence([log(text)])).strip(MARK))["searches"][0]["texts"]
    assert kind == "installer-log" and len(sent) < evidence.LONGEST + 10
    assert sent.startswith("first\n") and sent.endswith("\nlast")


def test_text_with_a_mark_is_no_second_evidence() -> None:
    assert explained(log(f"{MARK}{{}}{MARK}\nE: {MARK}strange\n")).count("Remedy") == 1


PLAY = """\
- hosts: all
  gather_facts: false
  tasks:
    - gpu_ready.nodes.gpu_dkms:
        kernel: 6.12.0-1-amd64
"""


@pytest.mark.host_io
def test_a_play_shows_the_explanation_and_cleans_what_is_no_evidence(tmp_path: Path) -> None:
    long = "".join(f"/build/part{number}.c: note: nothing of interest, {number * 7919}\n" for number in range(30000))
    texts = {
        "honest": explained_later(FailureEvidence([log(COMPILER)], "/var/lib/dkms/x/make.log")),
        "long": explained_later(FailureEvidence([log(long + COMPILER)])),
        "none": MARK + "{}" + MARK,
    }
    hosts = {
        name: make_liar(tmp_path, name, {"gpu_dkms": {"failed": True, "msg": f"DKMS: {text}"}})
        for name, text in texts.items()
    }
    play = tmp_path / "play.yml"
    play.write_text(PLAY)
    done = run_playbook(tmp_path, play, hosts, ANSIBLE_STDOUT_CALLBACK="default")
    shown = " ".join(done.stdout.split())
    assert done.returncode == 2
    failures = {name: shown.partition(f"fatal: [{name}]: FAILED!")[2].partition("fatal: ")[0] for name in hosts}
    assert f"DKMS: {BUILD}" in failures["honest"] and f"DKMS: {BUILD}" in failures["long"]
    assert "the whole log is /var/lib/dkms/x/make.log on the host. Remedy: choose" in failures["honest"]
    assert "DKMS: ?{}?" in failures["none"]
    assert MARK not in done.stdout and "nothing of interest" not in done.stdout
