"""Runs of playbooks that write reports: which files there are, and what the screen says of them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    command_line,
)

from tests.grid import sampled
from tests.unit.lying_host import make_liar, run_playbook
from tests.unit.test_fleet_report import HOSTILE

# ---- the command -----------------------------------------------------------------------------------------------------

PUBLIC = {"nvidia_driver_branch", "gpu_ready_mirror", "docker_engine_daemon_options"}


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("/x/bin/ansible-playbook site.yml -i gpu_hosts", "ansible-playbook site.yml -i gpu_hosts"),
        ("p x -e nvidia_driver_branch=595", "p x -e nvidia_driver_branch=595"),
        ("p x --extra-vars nvidia_driver_branch=595", "p x --extra-vars nvidia_driver_branch=595"),
        ("p x -e db_password=hunter2", "p x -e 'db_password=***'"),
        ("p x -e pin=hunter2", "p x -e 'pin=***'"),
        ("p x -epin=hunter2", "p x '-epin=***'"),
        ("p x --extra-vars=pin=hunter2", "p x '--extra-vars=pin=***'"),
        ("p x --extra pin=hunter2", "p x --extra 'pin=***'"),
        ("p x -CDe pin=hunter2", "p x -CDe 'pin=***'"),
        ("p x -e 'nvidia_driver_branch=595 pin=hunter2'", "p x -e 'nvidia_driver_branch=595 pin=***'"),
        ("p x -e gpu_ready_mirror=https://u:hunter2@m/x", "p x -e 'gpu_ready_mirror=https://***@m/x'"),
        ("p x -e @secrets.yml", "p x -e @secrets.yml"),
        ("""p x -e '{"pin": "hunter2", "nvidia_driver_branch": 595}'""", """p x -e '{"pin": "***", "nvidia_driver_branch": 595}'"""),
        ("p x -e '{pin: hunter2}'", "p x -e '***'"),
        ("p x -e hunter2", "p x -e '***'"),
        ("p x -e 'pin=\"hunter2'", "p x -e '***'"),
        ("""p x -e '{"docker_engine_daemon_options": {"log-opts": {"splunk-token": "hunter2"}}}'""",
         """p x -e '{"docker_engine_daemon_options": {"log-opts": {"splunk-token": "***"}}}'"""),
        ("p x --become-password-file /p --limit a,b", "p x --become-password-file '***' --limit a,b"),
    ],
)  # fmt: skip
def test_a_command_is_shown_without_its_secrets(words: str, expected: str) -> None:
    shown = command_line.command_text(
        shlex.split(words, posix=True) if "\"hunter2'" not in words else ["p", "x", "-e", 'pin="hunter2'], PUBLIC
    )
    assert "hunter2" not in shown and shown == expected


# Ansible itself does not decode half of a surrogate pair: that host has failed.
ANSWER = {"row": {"distribution": "Debian 12", "why": HOSTILE.replace("\ud800", "")}}


@pytest.mark.host_io
def test_site_writes_every_format(tmp_path: Path) -> None:
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_node_plan": ANSWER}), "wrong": make_liar(tmp_path, "wrong", {"gpu_node_plan": {"lines": [7]}})}  # fmt: skip
    formats = json.dumps({"gpu_report_formats": ["json", "html", "prometheus"], "gpu_report_directory": str(tmp_path / "out")})  # fmt: skip
    done = run_playbook(tmp_path, "site.yml", hosts, "-e", formats, given_plans=True)
    assert done.returncode == 2 and "/out/" in done.stdout, done.stdout + done.stderr
    out = tmp_path / "out"
    found = json.loads((out / "latest.json").read_text())
    assert found["counts"] == {"ready": 1, "refused": 1}, found
    made = (out / "latest.html").read_text()
    assert "gpu1" in made and "find out what changes the host" in made and "<script>alert" not in made
    assert 'gpu_ready_host_failed{host="wrong",playbook="site"} 1' in (out / "latest.prom").read_text()


@pytest.mark.host_io
def test_a_wrong_format_and_an_unwritable_directory_are_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "play.yml").write_text("- {hosts: all, gather_facts: false, roles: [gpu_ready.nodes.gpu_report]}\n")
    for variables, status, message in (
        (
            {"gpu_report_formats": ["pdf"]},
            0,
            "must be a list with any of json, html, prometheus. The default is used.",
        ),
        (
            {"gpu_report_directory": str(tmp_path / "file")},
            2,
            "file: it is no directory. Remedy: set gpu_report_directory to a path that",
        ),
    ):
        directory = tmp_path / next(iter(variables))
        directory.mkdir()
        hosts = {"gpu1": make_liar(directory, "gpu1", {})}
        done = run_playbook(directory, tmp_path / "play.yml", hosts, "-e", json.dumps(variables))
        shown = " ".join((done.stdout + done.stderr).split())
        assert done.returncode == status and message in shown, shown


@pytest.mark.host_io
def test_an_audit_is_written_where_the_directory_of_reports_cannot_be(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_audit": {"audit": {"state": "ok"}}})}
    given = json.dumps({"gpu_report_directory": str(tmp_path / "file"), "gpu_audit_path": str(tmp_path / "audit.txt")})
    done = run_playbook(tmp_path, "playbooks/audit.yml", hosts, "-e", given, given_plans=True)
    assert done.returncode == 2 and "it is no directory. Remedy: set gpu_report_directory" in done.stdout
    assert "1 host: 1 ok" in (tmp_path / "audit.txt").read_text()


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("arguments", "file"),
    [
        ([], ".json"),
        (["--check"], ""),
        (["-e", "gpu_report_formats=html"], ".html"),
        (["-e", "gpu_report_directory="], ""),
    ],
)
def test_a_table_refers_to_a_file_only_if_that_file_was_written(
    tmp_path: Path, arguments: list[str], file: str
) -> None:
    play = {"hosts": "all", "gather_facts": False, "roles": ["gpu_ready.nodes.gpu_report"]}
    (tmp_path / "play.yml").write_text(json.dumps([play]))
    hosts = {
        f"w{number}": {"gpu_ready_failure": {"step": "Install", "message": "x" * number}} for number in range(1, 61)
    }
    done = run_playbook(tmp_path, tmp_path / "play.yml", hosts, *arguments, ANSIBLE_STDOUT_CALLBACK="default")
    named = re.findall(r"(\S+) has all of them", " ".join(done.stdout.split()))
    assert done.returncode == 0, done.stdout + done.stderr
    assert bool(named) is bool(file) and all((tmp_path / "reports" / name).exists() for name in named), done.stdout
    assert all(name.endswith(file) for name in named)
    assert named or all(f"w{number}: " in done.stdout for number in range(1, 61))


@pytest.mark.host_io
def test_an_uninstallation_is_reported_for_hosts_that_failed_too(tmp_path: Path) -> None:
    answer = {"changed": True, "actions": ["delete /x"], "stops": [], "kept": ["/y: yours"], "reboot_required": False, "held_by": None}  # fmt: skip
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_uninstall": answer}), "gpu2": make_liar(tmp_path, "gpu2", {"gpu_uninstall": {"failed": True, "msg": "not permitted"}})}  # fmt: skip
    done = run_playbook(tmp_path, "playbooks/uninstall.yml", hosts, "-e", f"gpu_report_directory={tmp_path}")
    found = json.loads((tmp_path / "latest-uninstall.json").read_text())["hosts"]
    assert done.returncode == 2, done.stdout
    assert {name: one["state"] for name, one in found.items()} == {"gpu1": "removed", "gpu2": "failed"}
    assert "not permitted" in (tmp_path / "latest-uninstall.html").read_text()


@pytest.mark.host_io
def test_an_undrain_is_reported_for_hosts_that_failed_too(tmp_path: Path) -> None:
    answer = {"failed": True, "msg": "the disk is full. Remedy: free some space"}
    hosts = {"gpu1": make_liar(tmp_path, "gpu1", {"gpu_lease": answer, "gpu_upgrade_journal": answer})}
    done = run_playbook(tmp_path, "playbooks/undrain.yml", hosts, "-e", f"gpu_report_directory={tmp_path}/out")
    found = json.loads((tmp_path / "out/latest-undrain.json").read_text())["hosts"]["gpu1"]
    assert (done.returncode, found["state"]) == (2, "failed"), done.stdout
    assert "Report: " in done.stdout and found["why"]["message"], found


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("playbook", "files"),
    sampled(
        [
            ("playbooks/audit.yml", {"latest-audit.json", "audit.txt"}),
            ("site.yml", {"latest.json"}),
            ("playbooks/kubernetes.yml", {"nodes.yml"}),
            ("playbooks/uninstall.yml", {"latest-uninstall.json"}),
        ],
        2,
    ),
)
def test_variables_of_a_group_say_where_the_files_go_whichever_host_is_the_first(
    tmp_path: Path, playbook: str, files: set[str]
) -> None:
    """Tasks that run once do so for the first host of the play, which the operator's group may not have."""
    removed = {"changed": False, "actions": [], "stops": [], "kept": [], "reboot_required": False, "held_by": None}
    labels = {"labels": {"nvidia.com/gpu.present": "true"}, "gpus": []}
    answers = {
        "gpu_node_plan": ANSWER, "gpu_audit": {"audit": {"state": "ok"}}, "gpu_uninstall": removed, "gpu_kubernetes_labels": labels,
    }  # fmt: skip
    hosts = {name: make_liar(tmp_path, name, answers) for name in ("another", "gpu1")}
    settings = {
        "gpu_report_directory": "{{ inventory_dir }}/out", "gpu_audit_path": "{{ inventory_dir }}/out/audit.txt",
        "gpu_kubernetes_directory": "{{ inventory_dir }}/out",
    }  # fmt: skip
    (tmp_path / "out").mkdir()
    groups = {"gpu_hosts": {"hosts": {"gpu1": {}}, "vars": settings}}
    done = run_playbook(tmp_path, playbook, hosts, given_plans=True, groups=groups, PWD=str(tmp_path / "default"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert files <= {path.name for path in (tmp_path / "out").iterdir()}, done.stdout
    pages = re.findall(r"^Report: (\S+[.]html)$", done.stdout, re.MULTILINE)
    assert [Path(page).exists() for page in pages] == [True] * (playbook != "playbooks/kubernetes.yml"), done.stdout
