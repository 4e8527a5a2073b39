"""How wide tables are, which columns they have on a narrow terminal, and how they reach it with every callback plugin."""

from __future__ import annotations

import importlib
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible import constants as C

from plugins.plugin_utils.fleet_report import audit_table, run
from plugins.plugin_utils.gpu_ready.report import layout
from tests.unit.lying_host import make_liar, run_playbook

terminal: Any = importlib.import_module("ansible_collections.gpu_ready.nodes.plugins.plugin_utils.terminal")
COLUMNS: layout.Columns = (("host", "host", 5), ("old", "old", 8), ("new", "new", 8), ("x", "x", 6), ("why", "why", 10))
ROWS = [["n1", "580.1", "580.1", "-", "nothing to do"], ["n2", "595.2", "595.2", "-", "the disk is full"]]


def test_a_table_that_fits_has_all_its_columns() -> None:
    assert layout.rows_text(ROWS, COLUMNS, 60) == [
        "host  old    new    x  why",
        "----  -----  -----  -  ----------------",
        "n1    580.1  580.1  -  nothing to do",
        "n2    595.2  595.2  -  the disk is full",
    ]


def test_a_narrow_table_leaves_out_what_says_nothing() -> None:
    assert layout.rows_text(ROWS, COLUMNS, 30, ("old", "new")) == [
        "host  old    why",
        "----  -----  ----------------",
        "n1    580.1  nothing to do",
        "n2    595.2  the disk is full",
    ]
    other = [ROWS[0], ["n2", "580.1", "595.2", "-", "the disk is full"]]
    assert layout.rows_text(other, COLUMNS, 37, ("old", "new"))[0].split() == ["host", "old", "new", "why"]


def test_a_narrower_one_has_more_lines_for_each_host() -> None:
    rows = [[*row[:3], "abc", row[4]] for row in ROWS]
    assert layout.rows_text(rows, COLUMNS, 30) == [
        "host  old    why",
        "----  -----  ----------------",
        "n1    580.1  nothing to do",
        "  new 580.1, x abc",
        "n2    595.2  the disk is full",
        "  new 595.2, x abc",
    ]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 140, 150])
@pytest.mark.parametrize("columns", [run.COLUMNS, audit_table.COLUMNS], ids=["site", "audit"])
def test_the_tables_fit_every_terminal_and_keep_every_cell(width: int, columns: layout.Columns) -> None:
    cells = ["gpu-node-1", *(f"{key[:4]}-{number}" for number, (key, _, _) in enumerate(columns[1:]))]
    lines = layout.rows_text([cells], columns, width)
    assert max(map(len, lines)) <= width
    assert all(cell in "\n".join(lines) for cell in cells)


def test_rows_have_the_colour_of_their_state() -> None:
    text = "host  why\n----  ---\nn1    fine\nn2 and 3 more  bad\nn3    -\n\nn2: failed\n  why"
    groups = terminal.coloured(text, {"n1": "ready", "n2": "failed", "n3": "no gpu"})
    assert groups == [
        (None, "host  why\n----  ---"),
        (C.COLOR_OK, "n1    fine"),
        (C.COLOR_ERROR, "n2 and 3 more  bad"),
        (None, "n3    -\n\nn2: failed\n  why"),
    ]
    assert terminal.colour_of("drift") == C.COLOR_CHANGED


@pytest.mark.parametrize(("callback", "apart"), [("ansible.posix.json", True), ("default", False)])
def test_a_table_is_no_data_of_a_callback_for_programs(
    monkeypatch: pytest.MonkeyPatch, capfd: Any, callback: str, apart: bool
) -> None:
    monkeypatch.setattr(C.config, "get_config_value", lambda _: callback)
    terminal.show("a table")
    shown = capfd.readouterr()
    assert ("a table" in shown.err, "a table" in shown.out) == (apart, not apart)


def test_the_width_is_that_of_the_terminal_the_operators_or_that_of_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "measured", [])
    monkeypatch.setenv("COLUMNS", "97")
    assert (terminal.columns(), terminal.columns(200), terminal.columns(7)) == (97, 200, terminal.LEAST)
    monkeypatch.setenv("COLUMNS", "")
    assert terminal.columns() == 97, "known since the begin of the play"


@pytest.mark.host_io
@pytest.mark.parametrize("callback", ["default", "minimal", "oneline", "tree", "gpu_ready.nodes.gpu_ready_progress"])
def test_the_table_is_readable_with_every_callback(tmp_path: Path, callback: str) -> None:
    hosts = {name: make_liar(tmp_path, name, {"gpu_audit": {}}) for name in ("n1", "n2")}
    shown = run_playbook(
        tmp_path, "playbooks/audit.yml", hosts, given_plans=True, ANSIBLE_STDOUT_CALLBACK=callback,
        ANSIBLE_CALLBACK_TREE_DIR=str(tmp_path / "results"), COLUMNS="80",
    ).stdout  # fmt: skip
    lines = shown.splitlines()
    first = next(number for number, line in enumerate(lines) if line.split()[:2] == ["host", "state"])
    assert [line.split() for line in lines[first + 2 : first + 4]] == [["n1", "ok"], ["n2", "ok"]], shown
    assert "2 hosts: 2 ok" in lines


@pytest.mark.host_io
def test_a_worker_knows_the_width_of_a_terminal_from_which_it_is_detached(tmp_path: Path) -> None:
    """The table of a real terminal of 44 columns: ansible-core gives its workers none since 2.19."""
    leader, follower = pty.openpty()
    subprocess.run(["stty", "cols", "44", "rows", "30"], stdin=follower, check=True)
    hosts = {"n1": make_liar(tmp_path, "n1", {"gpu_audit": {"audit": {"state": "drift", "why": ["x " * 60]}}})}
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    run_playbook(tmp_path, "playbooks/audit.yml", hosts, "--list-hosts", given_plans=True)  # writes the inventory
    tree = next(path for path in tmp_path.parent.glob("given_plans*") if (path / "ansible.cfg").exists())
    program = Path(sys.executable).parent / "ansible-playbook"
    with subprocess.Popen(
        [str(program), "-i", str(tmp_path / "hosts.json"), str(tree / "playbooks/audit.yml")], cwd=tmp_path,
        env=environment | {"ANSIBLE_CONFIG": str(tree / "ansible.cfg"), "TERM": "xterm"},
        stdin=subprocess.DEVNULL, stdout=follower, stderr=follower,
    ) as process:  # fmt: skip
        os.close(follower)
        text = b""
        while True:
            try:
                text += os.read(leader, 65536)
            except OSError:
                break
        assert process.wait(60) == 2, text.decode()
    os.close(leader)
    shown = [line for line in text.decode().replace("\r", "").splitlines() if line.startswith("  x x")]
    assert shown and max(map(len, shown)) <= 44 and max(map(len, shown)) > 40
