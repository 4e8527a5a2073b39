"""The report: the result of each host, as a table and as plain values."""

from typing import Any

import pytest

from plugins.plugin_utils.fleet_report import commands, model
from plugins.plugin_utils.fleet_report import run as report
from plugins.plugin_utils.gpu_ready.report.layout import WIDTH
from tests.unit.fleet_reports import hosts_of, report_of

ROW = {
    "distribution": "Debian 12",
    "gpus": "2x Tesla P40",
    "driver_desired": "580",
    "driver_installed": "580.178.04",
    "driver_loaded": "580.178.04",
    "driver_userspace": "580.178.04",
    "cuda": "12.9",
    "cudnn": "9.10.2.21",
    "docker_runtime": "toolkit",
    "verified": "2026-11-21T02:12:00Z",
    "why": "nothing to do",
}
BARE = dict.fromkeys(ROW) | {"distribution": "Debian 13", "why": "no NVIDIA GPU: left alone"}
LONG = "V100 (Volta) needs branch 580 or older, B200 (Blackwell) needs 570 or newer and the open module: no driver serves both"
HOSTS: dict[str, dict[str, Any]] = {
    "node1": {"row": ROW, "steps": [], "gpu_host": True},
    "node2": {
        "row": dict.fromkeys(ROW) | {"distribution": "Debian 12", "gpus": "1x Tesla T4", "driver_desired": "580"},
        "steps": [{"id": "nvidia_driver.install"}],
        "verify": {"verify": {"ok": True}, "row": {"driver_loaded": "580.178.04", "verified": "2026-11-21T02:12:00Z"}},
    },
    "plain": {"row": BARE, "steps": [], "gpu_host": False},
    "mixed": {
        "row": dict.fromkeys(ROW) | {"distribution": "Debian 12", "gpus": "1x V100, 1x B200"},
        "steps": [],
        "refusals": [{"code": "no_driver_for_mixed_gpus", "message": LONG, "remedy": "Move one card."}],
        "failure": {"step": "gpu_plan : Refuse what cannot work", "message": LONG + ". Move one card to another host."},
    },
    "asleep": {"row": {}, "failure": {"step": "unreachable", "message": "no route"}},
    "late": {},
}

GOLDEN = """\
host    distribution  GPUs              desired  installed   loaded      userspace   CUDA  cuDNN      docker   verified  why
------  ------------  ----------------  -------  ----------  ----------  ----------  ----  ---------  -------  --------  -------------------------
asleep  -             -                 -        -           -           -           -     -          -        -         unreachable, see below
late    -             -                 -        -           -           -           -     -          -        -         not reached, see below
mixed   Debian 12     1x V100, 1x B200  -        -           -           -           -     -          -        -         refused, see below
node1   Debian 12     2x Tesla P40      580      580.178.04  580.178.04  580.178.04  12.9  9.10.2.21  toolkit  yes       nothing to do
node2   Debian 12     1x Tesla T4       580      -           580.178.04  -           -     -          -        yes       1 step done
plain   Debian 13     -                 -        -           -           -           -     -          -        -         no NVIDIA GPU: left alone

asleep: unreachable
  no route

late: not reached
  the run did not reach this host

mixed: refused
  V100 (Volta) needs branch 580 or older, B200 (Blackwell) needs 570 or newer and the open module: no driver serves both. Move one card to another
  host.

6 hosts: 2 ready, 1 no gpu, 1 not reached, 1 refused, 1 unreachable"""


def made(hosts: dict[str, dict[str, Any]], check_mode: bool = False) -> Any:
    return report_of("site", hosts, check_mode)


def test_the_table() -> None:
    assert report.table(made(HOSTS)) == GOLDEN


@pytest.mark.parametrize(
    ("entry", "check_mode", "result"),
    [
        (HOSTS["node1"], False, "ready"),
        (HOSTS["node2"], False, "ready"),
        (HOSTS["plain"], False, "no_gpu"),
        (HOSTS["mixed"], False, "refused"),
        (HOSTS["asleep"], False, "unreachable"),
        (HOSTS["late"], False, "not_reached"),
        ({"row": ROW, "steps": [{"id": "a.b"}]}, True, "planned"),
        ({"row": ROW, "steps": [{"id": "a.b"}]}, False, "unfinished"),
        ({"row": ROW, "steps": [{"id": "gpu_monitoring.remove", "verify_after": False}]}, False, "ready"),
        ({"row": ROW, "steps": [{"id": "gpu_monitoring.textfile", "verify_after": False}]}, True, "planned"),
        (
            {
                "row": ROW,
                "steps": [{"id": "a.b", "verify_after": False}, {"id": "gpu_verify.verify", "verify_after": True}],
            },
            False,
            "unfinished",
        ),
        ({"row": ROW, "steps": [{"id": "a.b"}], "failure": {"step": "x", "message": "y"}}, False, "failed"),
        ({"row": ROW, "steps": [{"id": "a.b"}], "verify": {"verify": {"ok": False}}}, False, "unfinished"),
    ],
)
def test_result_of_a_host(entry: dict[str, Any], check_mode: bool, result: str) -> None:
    assert made({"node": entry}, check_mode).hosts[0].state == result


def test_lines_fit_and_nothing_of_a_long_name_is_lost() -> None:
    wide = dict(
        ROW, gpus="4x NVIDIA H100 80GB HBM3, 4x NVIDIA RTX PRO 6000 Blackwell Server Edition", cuda="11.8, 12.9, 13.0"
    )
    name = "gpu-node-with-a-very-long-name-0001.rack17.example.org"
    text = report.table(made({name: {"row": wide, "steps": []}}))
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    column = "".join(line.split("  ")[0].strip() for line in text.splitlines()[2:])
    assert name in column


def test_equal_messages_are_shown_once_with_all_hosts() -> None:
    """Thirty hosts that cannot be reached, each with its own name and address in the message."""
    step = "unreachable"
    hosts: dict[str, Any] = {
        f"gpu{number}": {
            "row": {},
            "failure": {"step": step, "message": f"no route to 10.1.0.{number}: try ansible gpu{number} -m ping"},
        }
        for number in range(1, 31)
    }
    hosts["gpu7"]["failure"]["message"] = "Permission denied (publickey)."
    text = report.table(made(hosts))
    assert text.count("no route to") == 1 and text.count("Permission denied") == 1
    lines = text.splitlines()
    assert [line.split()[0] for line in lines[2:32]] == [f"gpu{number}" for number in range(1, 31)], "gpu2 before gpu10"
    names = ", ".join(f"gpu{number}" for number in range(1, 31) if number != 7)
    message = " ".join(lines[lines.index("") :])
    assert f"{names}: unreachable (the text of gpu1)   no route to 10.1.0.1: try ansible gpu1 -m ping" in message
    assert "gpu7: unreachable\n  Permission denied (publickey)." in text
    assert commands.bad_hosts(made(hosts))["gpu9"] == "no route to 10.1.0.9: try ansible gpu9 -m ping"


@pytest.mark.parametrize("other", [0, 3, 500])
def test_a_fleet_of_2000_hosts_fits_one_screen(other: int) -> None:
    """Most hosts alike, some failed alike, ``other`` hosts that all differ."""
    hosts: dict[str, Any] = {f"node{number:04}": {"row": ROW, "steps": []} for number in range(2000)}
    for number in range(0, 2000, 50):
        hosts[f"node{number:04}"] = {"row": ROW, "failure": {"step": "Install", "message": "No space left on /var."}}
    for number in range(1, other + 1):
        failure = {"step": "Install", "message": "x" * number}
        hosts[f"other{number}"] = {"row": ROW | {"cuda": str(number)}, "failure": failure, "warnings": ["y" * number]}
    text = report.table(made(hosts), file="a.json")
    lines = text.splitlines()
    assert len(lines) < (30 if other < 25 else 200)
    assert any(line.startswith("node0001 and 1959 ") for line in lines)
    assert text.index("node0000 and 39 more") < text.index("node0001 and 1959 "), "what failed comes first"
    assert text.count("No space left on /var.") == 1 and "node1950" in text
    assert ("a.json has all of them" in text) == (other > 25)
    everything = report.table(made(hosts))
    assert "has all of them" not in everything and all(
        f"other{number}:" in everything for number in range(1, other + 1)
    )
    assert lines[-1].startswith(f"{2000 + other} hosts: 1960 ready, ")


@pytest.mark.parametrize("length", [20, 60, 100_000])
def test_cells_of_one_host_do_not_cut_those_of_others(length: int) -> None:
    names = {f"gpu-node-{number:02}" for number in range(3)}
    wide = {key: "x" * length for key in ROW}
    hosts: dict[str, Any] = {name: {"row": ROW, "steps": []} for name in names}
    text = report.table(made(hosts | {"wide": {"row": wide, "steps": [], "gpu_host": False}}))
    assert max(len(line) for line in text.splitlines()) <= WIDTH
    shown = [line.split() for line in text.splitlines() if line.split()[:1] and line.split()[0] in names]
    versions = ["580", "580.178.04", "580.178.04", "580.178.04", "12.9", "9.10.2.21", "toolkit", "yes"]
    assert len(shown) == 3 and all(words[-len(versions) - 3 : -3] == versions for words in shown)
    assert len(text.splitlines()) < 50


def test_the_json_keeps_verifications_and_counts() -> None:
    value: Any = model.to_json(made(HOSTS))
    assert value["schema"] == model.SCHEMA
    assert value["counts"] == {"ready": 2, "no_gpu": 1, "refused": 1, "unreachable": 1, "not_reached": 1}
    assert value["hosts"]["node2"]["verified"] is True
    assert value["hosts"]["node2"]["cells"]["driver_loaded"] == "580.178.04"
    assert value["hosts"]["mixed"]["refusals"][0]["code"] == "no_driver_for_mixed_gpus"
    assert value["hosts"]["mixed"]["why"]["message"].startswith("V100")


@pytest.mark.parametrize(
    "entry",
    [
        {"row": ["x"]},
        {"row": ROW, "steps": "many"},
        {"row": ROW, "steps": [1], "verify": {"verify": {"ok": True, "checks": [7]}}},
        {"row": ROW, "steps": [1], "verify": {"verify": {"ok": True, "checks": [{"name": "x"}]}}},
        {"row": ROW, "failure": "no"},
    ],
)
def test_an_answer_of_another_form_fails_that_host_only(entry: Any) -> None:
    built = made(HOSTS | {"odd": entry})
    hosts = hosts_of(built)
    assert hosts["odd"].state == "failed" and "another form" in hosts["odd"].why.message
    assert hosts["node1"].state == "ready" and "odd: failed" in report.table(built)


def test_warnings_are_below_the_table() -> None:
    entry = {
        "row": ROW,
        "steps": [],
        "warnings": [{"code": "x", "message": "The GPU is newer than the catalog", "remedy": "Update."}],
    }
    assert "node: The GPU is newer than the catalog; Update." in report.table(made({"node": entry}))


def test_a_skipped_check_is_listed_once_with_its_hosts() -> None:
    checks = [
        {"name": "compute", "ok": None, "found": "skipped: libcuda is a stub"},
        {"name": "xid", "ok": None, "found": "not run"},
        {"name": "docker", "ok": True, "found": "docker 26"},
    ]
    entry = {"row": {"why": "x"}, "steps": [1], "verify": {"verify": {"ok": True, "checks": checks}}}
    text = report.table(made({f"n{number}": entry for number in range(7)}))
    assert "not verified:\n  n0, n1, n2, n3, n4 and 2 more: compute skipped: libcuda is a stub\n" in text
    assert text.count("skipped") == 1 and "not run" not in text


def test_no_host_at_all() -> None:
    assert report.table(made({})).endswith("0 hosts: none")


def test_a_warning_of_many_hosts_is_shown_once() -> None:
    warning = {"code": "x", "message": "branch 535 has ended", "remedy": "plan a move"}
    hosts = {f"node{number}": {"row": ROW, "steps": [], "warnings": [warning]} for number in range(7)}
    hosts["other"] = {"row": ROW, "steps": [], "warnings": [dict(warning, message="branch 550 has ended")]}
    shown = report.table(made(hosts))
    assert "  node0, node1, node2, node3, node4 and 2 more: branch 535 has ended; plan a move\n" in shown
    assert "  other: branch 550 has ended; plan a move\n" in shown and shown.count("has ended") == 2
