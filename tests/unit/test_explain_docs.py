"""docs/explain.md: every kind has a worked example, and each prints what the page shows."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from plugins.plugin_utils.gpu_ready.explain import captures
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from tests.unit.hosts import T4, bare, having

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs/explain.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ gpu-explain read (\S+) - <<'END'\n(.*?)END\n(.*?)```", TEXT, re.DOTALL)


def test_every_kind_has_an_example() -> None:
    assert sorted(kind for kind, _, _ in EXAMPLES) == sorted(explain.KINDS)


@pytest.mark.parametrize(("kind", "text", "output"), EXAMPLES, ids=[kind for kind, _, _ in EXAMPLES])
def test_an_example_prints_what_the_page_shows(kind: str, text: str, output: str) -> None:
    found = explain.KINDS[kind]
    assert "\n".join(found.describe(found.read(text.encode("utf-8")))) + "\n" == output


@pytest.mark.host_io
@pytest.mark.parametrize("name", ["README.md", "README.zh-CN.md"])
def test_the_commands_of_the_readme_run_as_they_are(name: str, tmp_path: Path) -> None:
    captures.write(str(tmp_path / "captures"), captures.Header("gpu1", "", "0.1.0", "2.19.14"), bare(T4), {})
    text = (ROOT / name).read_text(encoding="utf-8").split("## gpu-explain")[1].split("```")[1]
    commands = [line.split("   #")[0].strip() for line in text.strip().splitlines()]
    assert len(commands) == 5
    for command in commands:
        words = command.replace("dmesg |", "echo |")  # this machine's kernel log may be closed to its users
        environment = {**os.environ, "PATH": f"{ROOT / 'bin'}:{os.environ['PATH']}"}
        found = subprocess.run(["bash", "-c", words], capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert found.returncode in (0, 1) and found.stdout and not found.stderr, (command, found.stderr)


FLEET = re.findall(r"```console\n\$ (gpu-explain fleet [^\n]*)\n(.*?)```", TEXT, re.DOTALL)


def test_the_example_of_a_fleet_prints_what_the_page_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    t4, p40 = bare(T4), bare("1b38")
    kernel = having(t4.base.kernel, running="5.10.0-1-amd64")
    hosts = {f"gpu{number}": t4 for number in range(1, 6)}
    hosts |= {"gpu5": having(t4, base={"kernel": kernel}), "gpu6": p40, "gpu7": p40}
    for name, facts in hosts.items():
        header = captures.Header(name, "2026-11-20T20:00:00Z", "0.1.0", "2.19.14")
        captures.write(str(tmp_path / "captures"), header, facts, {})
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "118")
    ((command, output),) = FLEET
    assert explain.main(shlex.split(command)[1:]) == 1
    *lines, last = capsys.readouterr().out.splitlines()
    assert lines == output.splitlines()[:-1]
    for text in (last, output.splitlines()[-1]):
        assert re.fullmatch(r"catalog of \d{4}-\d\d-\d\d, \d+ days? old", text)
