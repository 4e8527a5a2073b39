"""--help of gpu-explain, and completion as argcomplete's shell function asks for it."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.plugin_utils.gpu_ready.catalog.settings import Settings
from plugins.plugin_utils.gpu_ready.explain import cli

ROOT = Path(__file__).resolve().parents[2]
CASES = {
    "gpu-explain re": {"read "},
    "gpu-explain read ": {*cli.KINDS, "-h", "--help", "--json"},
    "gpu-explain read nv": {"nvidia-smi", "nvidia-detect"},
    "gpu-explain read dmesg lo": {"log "},
    "gpu-explain host --l": {"--lspci "},
    "gpu-explain host --os-release lo": {"log "},
    "gpu-explain host --set nvidia_driver_b": {"nvidia_driver_branch="},
}


@pytest.mark.host_io
@pytest.mark.parametrize("line", CASES)
def test_a_shell_that_asks_gets_what_may_follow(line: str, tmp_path: Path) -> None:
    (tmp_path / "log").write_text("")
    answer = tmp_path / "answer"
    asked = {"COMP_LINE": line, "COMP_POINT": str(len(line)), "_ARGCOMPLETE_STDOUT_FILENAME": str(answer)}
    subprocess.run(
        [sys.executable, ROOT / "bin/gpu-explain"],
        env=os.environ | asked | {"_ARGCOMPLETE": "1", "_ARGCOMPLETE_IFS": "\n"},
        cwd=tmp_path,
        check=True,
        timeout=60,
    )
    assert set(answer.read_text().split("\n")) == CASES[line]


def test_help_names_every_command_kind_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for part in ("commands:", "examples:", "exit status:", "read", "host"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 120
    with pytest.raises(SystemExit):
        cli.main(["read", "--help"])
    text = capsys.readouterr().out
    assert all(re.search(rf"^  {kind} +\S", text, re.MULTILINE) for kind in cli.KINDS)
    assert set(re.findall(r"--set (\w+)=", cli.EPILOG)) <= set(Settings._fields)


def test_the_examples_of_the_help_are_read_by_the_parsers() -> None:
    examples = re.findall(r"^  (?:dmesg \| )?gpu-explain (.*?)(?:   .*)?$", cli.EPILOG, re.MULTILINE)
    assert len(examples) == 8
    from plugins.plugin_utils.gpu_ready.explain import fleet, host

    parsers = {"host": host.parser(), "fleet": fleet.parser()}
    for example in examples:
        words = shlex.split(example)
        parsers.get(words[0], cli.parser()).parse_args(words[words[0] in parsers :])
