"""docs/explain.md: every kind has a worked example, and each prints what the page shows."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from gpu_ready.explain import cli as explain

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
def test_the_commands_of_the_readme_run_as_they_are(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8").split("## gpu-explain")[1].split("```")[1]
    commands = [line.split("   #")[0].strip() for line in text.strip().splitlines()]
    assert len(commands) == 5
    for command in commands:
        words = command.replace("dmesg |", "echo |")  # this machine's kernel log may be closed to its users
        environment = {**os.environ, "PATH": f"{ROOT / 'bin'}:{os.environ['PATH']}"}
        found = subprocess.run(["bash", "-c", words], capture_output=True, text=True, env=environment)
        assert found.returncode in (0, 1) and found.stdout and not found.stderr, (command, found.stderr)
