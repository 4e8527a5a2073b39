"""Texts of hosts never control the terminal, the reports, or the program that opens a table."""

import csv
import io
import json
import sys
import unicodedata
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.plain_text import CONTROLS, plain_text
from plugins.plugin_utils.fleet_report import audit_table, commands, model
from plugins.plugin_utils.fleet_report import run as report
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from tests.unit.fleet_reports import report_of
from tests.unit.test_progress_plugin import in_pipe, on_terminal, playbooks

HOSTILE = "\x1b]0;owned\x07\x1b[2J\x1b]52;c;ZWNobyBoaQ==\x07\x9b31m\rfine\u202eevil\u2028line\x7f\u2066\ud800"
"""The title, the screen, the clipboard, colours by C1, the start of the line, directions and lines of Unicode."""


ENCODABLE = HOSTILE.replace("\ud800", "")
"""What reaches a callback: Ansible itself refuses answers with halves of surrogate pairs."""


IGNORABLE = (
    (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F),
    (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8),
    (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Default_Ignorable_Code_Point in DerivedCoreProperties.txt of Unicode 16, which Python's unicodedata does not have."""
BLANK = (0x2800, 0x16FE4, 0x1D159)
"""Braille pattern blank, Khitan small script filler, musical symbol null notehead: no blanks by category, but blank."""
NEWER = range(0x13430, 0x13440)
"""Format controls of hieroglyphs, of which Unicode 15 has seven more than the Unicode 14 of Python 3.11."""


HIDDEN = {
    *(code for first, last in IGNORABLE for code in range(first, last + 1)), *BLANK, *NEWER,
    *(
        code
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs", "Zl", "Zp") and chr(code) not in "\n\t"
    ),
}  # fmt: skip
"""What a terminal obeys or shows nothing for, by Unicode's tables and not by the pattern under test."""


def controls(text: str) -> list[str]:
    return [one for one in text if ord(one) in HIDDEN]


def test_every_character_that_controls_or_shows_nothing_becomes_a_question_mark() -> None:
    found = {ord(one) for one in CONTROLS.findall("".join(map(chr, range(sys.maxunicode + 1))))}
    assert sorted(map(hex, found ^ HIDDEN)) == []
    assert plain_text("GPU 0: Tesla\tK80\n→ für 東京 é") == "GPU 0: Tesla\tK80\n→ für 東京 é"
    assert plain_text("\u3164\u115f\u2800\ufe0f\xad") == "?????"


def audit(**values: Any) -> dict[str, Any]:
    check = {"name": "loaded", "desired": HOSTILE, "found": HOSTILE, "ok": False, "why": HOSTILE}
    holder = {"pid": 7, "name": HOSTILE, "command": HOSTILE, "container": HOSTILE}
    return {
        "state": "drift", "why": [HOSTILE], "checks": [check, check | {"name": "reboot", "ok": None}],
        "holders": [holder], "warnings": [HOSTILE], "row": {"gpus": HOSTILE, "driver_installed": HOSTILE},
    } | values  # fmt: skip


@pytest.mark.parametrize("form", ["table", "diff", "json", "csv"])
def test_an_audit_shows_no_control_characters(form: str) -> None:
    hosts: dict[str, dict[str, Any]] = {
        "n1": {"audit": audit()},
        "n2": {"unreachable": True, "message": HOSTILE},
        "n3": {"failure": HOSTILE},
        "n4": {"audit": audit(state=HOSTILE, checks=[{"name": HOSTILE, "found": "x", "ok": False}])},
        "n5": {"audit": HOSTILE},
    }
    made = report_of("audit", hosts)
    text = audit_table.text(made, form, 150, differences=True)
    assert "n5" in text and controls(text) == []
    assert [controls(message) for message in commands.bad_hosts(made).values()] == [[]] * 5


def test_a_host_adds_no_lines_of_another_host_to_a_diff() -> None:
    check = {"name": "loaded", "found": "x\n--- n2: found\n-x", "desired": "y\n+++ n2", "ok": False, "why": "\n--- n2"}
    text = audit_table.text(report_of("audit", {"n1": {"audit": audit(checks=[check])}}), "diff", 150)
    assert not [line for line in text.splitlines() if line.startswith(("--- n2", "+++ n2"))]


def test_a_report_shows_no_control_characters() -> None:
    hosts: dict[str, dict[str, Any]] = {
        "n1": {"row": {"gpus": HOSTILE, "why": HOSTILE}, "refusals": [{"message": HOSTILE}]},
        "n2": {"failure": {"step": HOSTILE, "message": HOSTILE}},
        "n3": {
            "row": {"distribution": HOSTILE},
            "steps": [{}],
            "warnings": [{"message": HOSTILE, "remedy": HOSTILE}],
            "verify": {"verify": {"ok": True, "checks": [{"name": HOSTILE, "ok": None, "found": "skipped: " + HOSTILE}]}},
        },
    }  # fmt: skip
    made = report_of("site", hosts)
    assert controls(report.table(made)) == []
    assert controls(json.dumps(model.to_json(made))) == []


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        ("=cmd|'/C calc'!A0", "'=cmd|'/C calc'!A0"),
        ("+1+cmd", "'+1+cmd"),
        ("-2+3+cmd", "'-2+3+cmd"),
        ("@SUM(1)", "'@SUM(1)"),
        ("\t=1", "'=1"),
        ("\r=1", "'=1"),
        ("\n=1", "'=1"),
        ("＝1", "'＝1"),
        ("\x01=1", "?=1"),
        ("-12", "-12"),
        ("+3.5", "+3.5"),
        ("580.95.05", "580.95.05"),
        ("-", "'-"),
    ],
)
def test_no_cell_of_csv_is_a_formula(found: str, shown: str) -> None:
    holder = {"pid": 7, "command": "x", "container": found}
    check = {"name": "loaded", "found": found, "desired": found, "ok": False, "why": found}
    made = report_of("audit", {"n1": {"audit": audit(checks=[check], holders=[holder], why=[found])}})
    rows = list(csv.DictReader(io.StringIO(audit_table.text(made, "csv", 150))))
    assert [rows[1][key] for key in ("found", "desired", "why")] == [shown] * 3
    assert rows[0]["why"] == shown
    assert not [cell for row in rows for cell in row.values() if cell[:1] in ("=", "@", "\t", "\r")]


@pytest.mark.parametrize("kind", sorted(explain.KINDS))
@pytest.mark.parametrize("more", [[], ["--json"]], ids=["text", "json"])
def test_gpu_explain_shows_no_control_characters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str, more: list[str]
) -> None:
    texts = {
        "os-release": 'ID=x\nVERSION_ID="%s"\nPRETTY_NAME="%s"\n',
        "lspci": "01:00.0 VGA compatible controller [0300]: NVIDIA Corporation %s [10de:%s]\n",
        "daemon-json": '{"default-runtime": "%s", "runtimes": {"nvidia": {"path": "%s"}}}',
        "proc-driver-version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  %s\nGCC version: %s\n",
        "auto": "Failed to initialize NVML: %s Driver/library version mismatch %s\n",
        "nvidia-smi": "Failed to initialize NVML: %s %s\n",
        "container-error": "docker: Error response from daemon: %s could not select device driver %s\n",
        "installer-log": "ERROR: %s nouveau kernel driver is currently in use %s\n",
        "dmesg": "[ 1.0] NVRM: Xid (PCI:0000:01:00): 79, %s GPU has fallen off the bus %s\n",
        "nvidia-detect": "Detected NVIDIA GPUs:\n01:00.0 VGA [0300]: NVIDIA %s [10de:%s]\n",
    }
    file = tmp_path / "file"
    file.write_text(texts[kind] % (ENCODABLE, ENCODABLE), encoding="utf-8")
    explain.main(["read", kind, str(file), *more])
    explain.main(["read", kind, str(tmp_path / ENCODABLE)])
    shown = capsys.readouterr()
    assert shown.out and controls(shown.out + shown.err) == []


# ---- the callback ---------------------------------------------------------------------------------------------------

PLAYBOOK = """\
- name: Roll
  hosts: all
  gather_facts: false
  connection: local
  tasks:
    - name: Answer as a hostile host
      answer: {kind: warning}
    - name: Answer with a difference
      answer: {kind: diff}
    - name: Answer for items
      answer: {kind: "{{ item }}"}
      loop: [fine, "{{ hostile }}"]
    - name: verify | Collect facts again
      ansible.builtin.set_fact:
        gpu_upgrade_result: {state: upgraded, reason: "{{ hostile }}"}
    - name: Show
      ansible.builtin.debug: {msg: "{{ hostile }}"}
    - name: Show the table
      ansible.builtin.debug: {msg: "{{ hostile }}"}
      run_once: true
    - name: Fail
      answer: {kind: failure}
"""
MODULE = f"""\
#!/usr/bin/python
import json
import sys

from ansible.module_utils.basic import AnsibleModule

HOSTILE = {ENCODABLE!r}


def main():
    module = AnsibleModule({{"kind": {{"type": "str"}}}}, supports_check_mode=True)
    kind = module.params["kind"]
    answer = {{"changed": True, "stdout": HOSTILE, "msg": HOSTILE}}
    if kind == "warning":
        answer["warnings"] = [HOSTILE]
        answer["deprecations"] = [{{"msg": HOSTILE, "version": "9"}}]
    if kind == "diff":
        answer["diff"] = {{"before": "a\\n", "after": HOSTILE + "\\n", "before_header": HOSTILE, "after_header": HOSTILE}}
    if kind == "failure":
        answer.update(failed=True, rc=1, cmd=["x", HOSTILE], stderr=HOSTILE, module_stderr=HOSTILE, exception=HOSTILE)
    print(json.dumps(answer))
    sys.exit(0)


main()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = playbooks(tmp_path_factory.mktemp("site"), upgrade_drivers=PLAYBOOK)
    (directory / "library").mkdir()
    (directory / "library/answer.py").write_text(MODULE)
    (directory / "hostile.json").write_text(json.dumps({"hostile": ENCODABLE}))
    return directory


@pytest.mark.host_io
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([], id="progress"),
        pytest.param(["-vvv"], id="verbose"),
        pytest.param(["--diff"], id="diff", marks=pytest.mark.long),
    ],
)
def test_nothing_of_a_host_controls_the_terminal(site: Path, arguments: list[str]) -> None:
    local = {"ansible_python_interpreter": sys.executable}
    shown = in_pipe(site, "upgrade_drivers.yml", "-e", json.dumps(local), "-e", "@hostile.json", *arguments)
    assert "owned" in shown and controls(shown) == []


@pytest.mark.host_io
def test_the_live_line_has_no_text_that_controls_the_terminal(site: Path) -> None:
    variables = {"ansible_python_interpreter": sys.executable, "hostile": "\x1b]0;owned\x07\x9b31m\u202e"}
    (site / "provision.yml").write_text(
        PLAYBOOK.replace("name: Fail", "name: \"prestage | {{ hostile | default('') }}\"")
        .replace("- name: Roll\n", "- name: Roll\n  vars: " + json.dumps(variables) + "\n")
    )  # fmt: skip
    shown = on_terminal(site, "provision.yml", ANSIBLE_FORCE_COLOR="1")
    assert "owned" in shown and "\x1b]" not in shown and "\x07" not in shown
    assert not [one for one in controls(shown) if one not in "\x1b\r"]
    # What stays is of the callback (erase the line) and of Ansible (its colours).
    left = shown.replace("\x1b[2K", "")
    for code in ("0", "0;31", "0;33", "0;32", "0;36", "1;35", "0;35", "0;34", "1;31", "1;30"):
        left = left.replace(f"\x1b[{code}m", "")
    assert "\x1b" not in left
