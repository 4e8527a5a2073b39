"""The output of the callback plugin in real runs: on a terminal, in a pipe, beside plays of a site."""

import csv
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.progress import lines

from tests.grid import sampled
from tests.hostile.limits import project_tree
from tests.unit.lying_host import calls, make_liar, run_playbook
from tests.unit.terminal import on_screen
from tests.unit.test_own_playbook import REPOSITORY, planned, refused
from tests.unit.test_progress import hosts, staying

ECHO = """\
import time
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        given = dict(self._task.args)
        host, phase, seconds = task_vars["inventory_hostname"], given.pop("phase", ""), given.pop("seconds", 0)
        if phase:
            Display.display(self._display, f"gpu-ready | {host} | step | {phase} | begins")
        time.sleep(int(seconds))
        return {"changed": False, **given}
"""


def playbooks(directory: Path, **plays: str) -> Path:
    """Return the directory of a copy of the project with these playbooks.

    There plugins of gpu-ready, named without the collection, return their arguments.
    """
    tree = project_tree(directory / "tree")
    (tree / "playbooks/action_plugins").mkdir()
    for name in ("gpu_turn", "gpu_upgrade_fleet"):
        (tree / "playbooks/action_plugins" / f"{name}.py").write_text(ECHO)
    for name, text in plays.items():
        (tree / "playbooks" / f"{name}.yml").write_text(text)
    return tree / "playbooks"


CHECKED = """\
- name: Decide the order
  hosts: all
  gather_facts: false
  tasks:
    - name: Plan
      ansible.builtin.debug: {msg: a plan}
    - name: Decide
      gpu_upgrade_fleet:
        due: "{{ [] if ansible_check_mode else ['n002', 'n003'] }}"
        results: {n001: {state: current}, n004: {state: left_out, reason: no driver fits}}
      run_once: true
"""


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("option", "words"), [("--check", "3 of 4 hosts planned"), ("--limit=all", "1 of 4 hosts done")]
)
def test_the_check_of_an_upgrade_ends_with_the_hosts_that_it_planned(tmp_path: Path, option: str, words: str) -> None:
    site = playbooks(tmp_path, upgrade_drivers=CHECKED)
    shown = ended_with(0, site, "upgrade_drivers.yml", option)
    assert f"  {words}, failed: n004, in " in shown, shown
    assert re.search(r"(?m)^4 hosts in .*; failed: n004$", shown) and "none failed" not in shown, shown


@pytest.mark.host_io
@pytest.mark.parametrize("form", ["csv", "json", "table"])
def test_the_data_of_an_audit_are_alone_on_stdout(tmp_path: Path, form: str) -> None:
    hosts = {"n1": make_liar(tmp_path, "n1", {"gpu_audit": {}})}
    done = run_playbook(
        tmp_path, "playbooks/audit.yml", hosts, "-e", f"gpu_audit_format={form}", given_plans=True,
        ANSIBLE_STDOUT_CALLBACK="gpu_ready.nodes.gpu_ready_progress",
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    if form == "table":
        assert "1 host in " in done.stdout and "\n1 host: 1 ok\n" in done.stdout
    elif form == "json":
        assert list(json.loads(done.stdout)["hosts"]) == ["n1"] and "1 host in " in done.stderr
    else:
        (row,) = csv.DictReader(done.stdout.strip().splitlines())
        assert (row["host"], row["state"]) == ("n1", "ok")


AUDITED = """\
- name: Report
  hosts: all
  gather_facts: false
  tasks:
    - name: Show the table
      ansible.builtin.debug: {msg: "n002: drift"}
      run_once: true
- name: Fail hosts with drift
  hosts: all
  gather_facts: false
  tasks:
    - name: Leave when this host is in the desired state
      ansible.builtin.meta: end_host
      when: inventory_hostname != 'n002'
    - name: This host is not in the desired state
      ansible.builtin.fail: {msg: what the table says already}
"""


@pytest.mark.host_io
def test_an_audit_names_hosts_with_drift_only(tmp_path: Path) -> None:
    shown = in_pipe(playbooks(tmp_path, audit=AUDITED), "audit.yml")
    assert "Fail hosts with drift" not in shown, shown
    assert re.search(r"(?m)^\d hosts in \d+ (s|min); not in the desired state: n002$", shown), shown


# ------------------------------------------------------------------------------------- the plugin in ansible-playbook

PLAYBOOK = """\
- name: Roll
  hosts: all
  gather_facts: false
  connection: local
  serial: [1, 3]
  tasks:
    - name: verify | Collect facts again
      gpu_turn:
        phase: verify
        result: {state: "{{ 'failed' if inventory_hostname == 'n003' else 'upgraded' }}", reason: because}
    - name: Say what is wrong
      ansible.builtin.fail:
        msg: the full message of the failure
      when: inventory_hostname == 'n003'
    - name: Show the table
      ansible.builtin.debug:
        msg: "host  state\\n----  -----"
      run_once: true
"""

RAISING = """\
- name: Look
  hosts: all
  gather_facts: false
  connection: local
  tasks:
    - block:
        - name: Collect facts
          ansible.builtin.command: {argv: [/bin/sh, -c, "echo why >&2; exit 3"]}
          loop: [first]
      rescue:
        - name: Remember
          ansible.builtin.set_fact: {gpu_ready_failure: x}
- name: Report
  hosts: all
  gather_facts: false
  tasks:
    - name: Show the table
      ansible.builtin.debug: {msg: "n001: failed"}
      run_once: true
    - name: report | This host is not ready
      ansible.builtin.fail: {msg: what the table says already}
"""


LASTING = """\
- name: Roll
  hosts: n001
  gather_facts: false
  connection: local
  tasks:
    - name: prestage | Compile the module
      gpu_turn: {phase: switch, seconds: 8}
    - name: prestage | Ask the host
      ansible.builtin.command: {argv: ["true"]}
    - name: Raise
      ansible.builtin.fail: {msg: so}
"""


TURN = """\
- name: Count the failure
  ansible.builtin.group_by: {key: gpu_upgrade_failed}
- name: Carry out the turn
  gpu_turn:
    phase: lease
    result: {state: rolled_back, reason: red}
"""

STOPPED = """\
- name: Roll
  hosts: all
  gather_facts: false
  connection: local
  serial: [1, 3]
  strategy: host_pinned
  tasks:
    - name: Upgrade one host
      ansible.builtin.include_tasks: turn.yml
      when: groups.gpu_upgrade_failed | default([]) | length == 0
- name: A name that represents the control node
  hosts: n001
  gather_facts: false
  tasks:
    - name: Add it
      ansible.builtin.add_host: {name: gpu_upgrade_batch_1, groups: [gpu_upgrade_watch]}
- name: Line up nobody
  hosts: gpu_upgrade_due
  gather_facts: false
- name: Report
  hosts: all
  gather_facts: false
  connection: local
  tasks:
    - name: Show the table
      ansible.builtin.debug: {msg: "n001: rolled back"}
      run_once: true
    - name: Leave the name
      ansible.builtin.meta: end_host
      when: inventory_hostname in groups.gpu_upgrade_watch
    - name: report | This host is not in the desired state
      ansible.builtin.fail: {msg: what the table says already}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return playbooks(
        tmp_path_factory.mktemp("site"), upgrade_drivers=PLAYBOOK, other=PLAYBOOK, provision=RAISING, audit=LASTING
    )


def command(site: Path, *arguments: str) -> list[str]:
    program = str(Path(sys.executable).parent / "ansible-playbook")
    return [program, "-i", "n001,n002,n003,n004", *arguments]


def environment(**more: str) -> dict[str, str]:
    cleaned = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
    return cleaned | {"TERM": "xterm", "COLUMNS": "100"} | more


def in_pipe(site: Path, *arguments: str, **more: str) -> str:
    """Return what a run printed in which a host failed."""
    return ended_with(2, site, *arguments, **more)


def ended_with(status: int, site: Path, *arguments: str, **more: str) -> str:
    done = subprocess.run(
        command(site, *arguments),
        cwd=site,
        env=environment(ANSIBLE_CONFIG=str(site.parent / "ansible.cfg"), **more),
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def on_terminal(site: Path, playbook: str = "upgrade_drivers.yml", **more: str) -> str:
    """Return everything that the run wrote to a terminal."""
    leader, follower = pty.openpty()
    with subprocess.Popen(
        command(site, playbook), cwd=site, env=environment(ANSIBLE_CONFIG=str(site.parent / "ansible.cfg"), **more), stdin=subprocess.DEVNULL, stdout=follower, stderr=follower
    ) as process:  # fmt: skip
        os.close(follower)
        text = b"".join(chunks(leader))
        assert process.wait(600) == 2
    os.close(leader)
    return text.decode()


def chunks(leader: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(leader, 65536)
        except OSError:  # the other side is closed
            return
        if not data:
            return
        yield data


@pytest.mark.host_io
def test_plain_lines_in_a_pipe(site: Path) -> None:
    shown = in_pipe(site, "upgrade_drivers.yml")
    assert "\x1b" not in shown and "\r" not in shown
    lines = shown.splitlines()
    assert "Roll, batch 1: n001, 3 hosts after them" in lines
    assert "  n001: upgraded, because" in lines
    assert "Roll, batch 2: n002, n003, n004" in lines
    assert "  2 of 3 hosts done, failed: n003, in " in shown
    assert "  n003: failed at 'Say what is wrong': the full message of the failure" in lines
    assert shown.count("the full message of the failure") == 1, "200 hosts that fail alike are two lines"
    assert "fatal:" not in shown and "[ERROR]" not in shown and "TASK [" not in shown
    assert "\nhost  state\n----  -----\n" in shown
    assert re.search(r"^4 hosts in \d+ s; failed: n003$", lines[-1])
    assert "ok: [" not in shown


@pytest.mark.host_io
def test_a_rollout_that_stopped_begins_no_batch_and_counts_hosts(tmp_path: Path) -> None:
    shown = in_pipe(playbooks(tmp_path, upgrade_drivers=STOPPED, turn=TURN), "upgrade_drivers.yml")
    assert "Roll, batch 1: n001" in shown and "batch 2" not in shown and "skipping" not in shown
    assert re.search(r"(?m)^4 hosts in \d+ s; not in the desired state: n001, n002, n003, n004$", shown)


@pytest.mark.host_io
def test_messages_of_the_table_are_not_repeated(site: Path) -> None:
    shown = in_pipe(site, "provision.yml")
    assert "what the table says already" not in shown
    first, *_ = re.findall(
        r"(?m)^  (n00\d): failed at 'Collect facts' \(first\): non-zero return code \(3 of /bin/sh -c echo why >&2; exit 3\)\n  \1:   why$",
        shown,
    )
    others = ", ".join(host for host in hosts(4) if host != first)
    assert f"\n  {others}: failed at 'Collect facts' (first), for the same reason\n" in shown
    assert shown.count("non-zero return code") == 1, "each reason once"
    assert re.search(r"^4 hosts in \d+ s; failed: n001, n002, n003, n004$", shown.splitlines()[-1])


def test_hosts_that_fail_alike_are_one_line() -> None:
    """The first at once, the others when the next task begins; a name and an address in the reason make no difference."""
    failures = lines.Failures()
    reason = "connect to host 10.0.0.{0} port 22 (fe80::{0}): refused. ansible {1} -m ping"
    assert staying(failures.add("n001", "failed at 'Look'", reason.format(1, "n001"))) == [
        "  n001: failed at 'Look': connect to host 10.0.0.1 port 22 (fe80::1): refused. ansible n001 -m ping"
    ]
    for number in range(2, 6):
        assert failures.add(f"n00{number}", "failed at 'Look'", reason.format(number, f"n00{number}")) == []
    assert len(failures.add("n006", "failed at 'Look'", "no space left on device")) == 1
    assert len(failures.add("n007", "failed at 'Install'", reason.format(7, "n007"))) == 1
    assert staying(failures.flush()) == ["  n002, n003, n004, n005: failed at 'Look', for the same reason"]
    assert failures.flush() == []
    assert failures.add("n008", "failed at 'Look'", reason.format(8, "n008")) == []
    assert staying(failures.flush()) == ["  n008: failed at 'Look', for the same reason"]
    assert failures.add("n001", "failed at 'Rescue'", reason.format(1, "n001")) == [], "each reason of a host once"


@pytest.mark.host_io
def test_a_check_shows_equal_plans_and_changes_of_files_once(tmp_path: Path) -> None:
    def differences(path: str) -> list[dict[str, str]]:
        texts = {"steps": "docker_engine.repository: because [none]\n", path: "text\n"}
        return [
            {"before_header": name, "after_header": name, "before": "", "after": text} for name, text in texts.items()
        ]

    lines: dict[str, Any] = {
        "lines": ["1x Tesla T4: 1 step to do", "docker_engine.repository: because"],
        "changed": True,
    }
    alike, other = (planned(REPOSITORY, **lines, diff=differences(path)) for path in ("/etc/a", "/etc/b"))
    answers = {"n1": alike, "n2": alike, "n3": other, "n4": refused("docker is not offered")}
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": answer}) for name, answer in answers.items()}
    shown = run_playbook(tmp_path, "site.yml", hosts, "--check", "--diff", given_plans=True).stdout
    assert (
        shown.count("  n1, n2, n3: 1x Tesla T4: 1 step to do\n  n1, n2, n3:   docker_engine.repository: because\n") == 1
    ), shown
    assert shown.count("docker_engine.repository") == 1
    assert (
        shown.count(
            "  n1, n2: files that would change\n  n1, n2:   --- before: /etc/a\n  n1, n2:   +++ after: /etc/a\n"
        )
        == 1
    )
    assert shown.count("+text") == 2 and "TASK [" not in shown
    assert shown.count("  n4: refused: docker is not offered. Remedy: do it.") == 1
    assert "  3 of 4 hosts planned, failed: n4, in " in shown


@pytest.mark.host_io
def test_a_provisioned_host_costs_twelve_processes_beside_any_number_of_others(tmp_path: Path) -> None:
    """Ansible forks for each task of each host, also for one that includes a file; `meta` is no process and no result."""
    answers = {"gpu_node_plan": planned(REPOSITORY), "gpu_lease": [{"before": ""}, {}]}
    hosts = {name: make_liar(tmp_path, name, answers) for name in ("n1", "n2", "n3")}
    recap = run_playbook(tmp_path, "site.yml", hosts, given_plans=True, ANSIBLE_STDOUT_CALLBACK="default").stdout
    counted = re.findall(r"(?m)^(n\d) .* ok=(\d+) .* skipped=(\d+) +rescued=(\d+)", recap)
    # The report is made once, in the name of the first host.
    assert counted[1:] == [("n2", "12", "0", "0"), ("n3", "12", "0", "0")], recap
    assert counted[0] == ("n1", "14", "0", "0")


@pytest.mark.host_io
def test_a_module_that_waits_is_called_again_and_a_log_says_for_whom(tmp_path: Path) -> None:
    waits = {"changed": False, "waits_for": "process 7127 (apt-get)"}
    answers = {
        "gpu_node_plan": planned(REPOSITORY), "gpu_lease": [{"before": ""}, {}],
        "gpu_repository": [waits, waits, {"changed": True}],
    }  # fmt: skip
    hosts = {"n1": make_liar(tmp_path, "n1", answers)}
    log = tmp_path / "log"
    done = run_playbook(tmp_path, "site.yml", hosts, given_plans=True, ANSIBLE_LOG_PATH=str(log))
    assert calls(tmp_path, "n1").count("gpu_repository") == 3, done.stdout
    events = re.findall(r"gpu-ready [|] n1 [|] (\w+) [|] execute [|] (.*)", log.read_text())
    step = ("step", "docker_engine.repository")
    assert events == [step, ("wait", "process 7127 (apt-get)"), step]
    assert "wait |" not in done.stdout


@pytest.mark.host_io
def test_a_live_line_on_a_terminal(site: Path) -> None:
    shown = on_terminal(site)
    assert re.search(
        r"\r\x1b\[2KRoll, batch 2: 0 done, 3 running, 0 failed, \d+ s\r*\n  n00\d  verifying +\d+ s", shown
    )
    assert "Roll, batch 2: 2 done, 0 running, 1 failed" in shown
    kept = on_screen(shown)
    assert "  n001: upgraded, because" in kept
    assert not [line for line in kept if "running" in line or "verifying" in line]


@pytest.mark.host_io
def test_the_live_line_moves_while_a_module_compiles(site: Path) -> None:
    shown = on_terminal(site, "audit.yml")
    seen = re.findall(r"1 running, 0 failed, (\d+) s\r*\n  n001  replacing the driver", shown)
    assert len(set(seen)) >= 3, "only the clock causes output in these eight seconds"


@pytest.mark.host_io
def test_a_host_that_is_lost_on_the_way_has_its_remedy(site: Path) -> None:
    nowhere = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
    done = subprocess.run(
        command(site, "audit.yml", "-e", json.dumps(nowhere)),
        cwd=site, env=environment(ANSIBLE_CONFIG=str(site.parent / "ansible.cfg")), capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    failure = next(line for line in done.stdout.splitlines() if "does not answer at" in line)
    assert failure.startswith("  n001: does not answer at 'prestage | Ask the host': ") and "refused" in failure
    assert failure.endswith(". Check that it is up and accepts ssh, then run the same command again to resume.")


@pytest.mark.host_io
def test_a_dumb_terminal_gets_plain_lines(site: Path) -> None:
    assert "\x1b[2K" not in on_terminal(site, TERM="dumb")


@pytest.mark.host_io
def test_a_host_writes_no_line_of_another_one(tmp_path: Path) -> None:
    """Each text of an answer with a line in the form of the screen's own (security.md: N4)."""
    forged = "x\n  z-honest: ready\n[WARNING]: z-honest\nz-honest  ready"
    plan = planned(REPOSITORY, lines=[f"1x {forged}", forged], changed=True, warnings=[forged])
    plan["plan"]["warnings"] = [{"code": "a", "message": forged, "remedy": forged}]
    plan["row"] = {"gpus": forged, "why": forged}
    hosts = {
        "n1": make_liar(tmp_path, "n1", {"gpu_node_plan": plan}),
        "n2": make_liar(tmp_path, "n2", {"gpu_node_plan": refused(forged)}),
    }
    shown = run_playbook(tmp_path, "site.yml", hosts, "--check", given_plans=True).stdout
    assert "z-honest" in shown, "the texts are shown"
    starts = ("  z-honest", "[WARNING]: z-honest", "z-honest ")
    assert not [line for line in shown.splitlines() if line.startswith(starts)], shown


SITES_OWN = """\
- name: A play of the site
  hosts: all
  gather_facts: false
  tasks:
    - name: Its task
      ansible.builtin.debug: {msg: of the site}
- ansible.builtin.import_playbook: gpu_ready.nodes.audit
"""


@pytest.mark.host_io
def test_in_a_playbook_of_a_site_only_the_plays_of_gpu_ready_have_this_output(tmp_path: Path) -> None:
    (tmp_path / "gpu.yml").write_text(SITES_OWN)
    hosts = {"n1": make_liar(tmp_path, "n1", {"gpu_audit": {"audit": {"state": "drift", "why": ["red"]}}})}
    shown = run_playbook(tmp_path, tmp_path / "gpu.yml", hosts, given_plans=True).stdout
    assert re.findall(r"(?m)^TASK \[(.*?)\]", shown) == ["Its task"], shown
    assert "Audit GPU nodes: n1\n  n1: drift\n" in shown and "PLAY RECAP" in shown, shown
    assert re.search(r"(?m)^1 host in \d+ s; not in the desired state: n1$", shown), shown


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("arguments", "more"),
    sampled(
        [
            (["upgrade_drivers.yml", "-v"], {}),
            (["upgrade_drivers.yml"], {"ANSIBLE_STDOUT_CALLBACK": "default"}),
            (["other.yml"], {}),
            (["upgrade_drivers.yml", "--diff"], {}),
        ],
        2,
    ),
)
def test_the_normal_output_on_request(site: Path, arguments: list[str], more: dict[str, str]) -> None:
    shown = in_pipe(site, *arguments, **more)
    assert "ok: [n001]" in shown and "PLAY RECAP" in shown
