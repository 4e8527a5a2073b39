"""--help and shell completion of gpu-explain, in real shells."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from gpu_ready.catalog.settings import Settings
from gpu_ready.explain import cli, completion

CASES = {
    "gpu-explain ": {"read", "host", "completion", "-h", "--help"},
    "gpu-explain re": {"read"},
    "gpu-explain read ": set(cli.KINDS),
    "gpu-explain read nv": {"nvidia-smi", "nvidia-detect"},
    "gpu-explain read -": {"-h", "--help", "--json"},
    "gpu-explain read --json con": {"container-error"},
    "gpu-explain read dmesg lo": {"log of a host.txt"},
    "gpu-explain host --l": {"--lspci"},
    "gpu-explain host --os-release lo": {"log of a host.txt"},
    "gpu-explain host --set nvidia_driver_b": {"nvidia_driver_branch="},
    "gpu-explain completion ": set(completion.SHELLS),
}


@pytest.mark.host_io
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("line", CASES)
def test_bash_completes(line: str, tmp_path: Path) -> None:
    (tmp_path / "log of a host.txt").write_text("")
    words = line.split(" ")
    quoted = " ".join(map(shlex.quote, words))
    # compopt works only inside of a completion; it selects how bash shows what COMPREPLY has.
    code = f"""{cli.completion_script("bash")}
compopt() {{ :; }}
COMP_WORDS=({quoted}) COMP_CWORD={len(words) - 1}
_gpu_explain
printf '%s\\n' "${{COMPREPLY[@]}}"
complete -p gpu-explain"""
    done = subprocess.run(
        ["bash", "--norc", "-euc", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60
    )
    *found, registered = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "") and registered == "complete -F _gpu_explain gpu-explain"
    assert set(found) == CASES[line]


@pytest.mark.host_io
@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_an_interactive_bash_completes_a_file_with_blanks(tmp_path: Path) -> None:
    """With TAB as a person types it: readline asks bash, which asks the function."""
    import os
    import pty
    import select
    import time

    (tmp_path / "log of a host.txt").write_text("")
    (tmp_path / "completion").write_text(cli.completion_script("bash"))
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execvpe("bash", ["bash", "--norc", "--noprofile", "-i"], os.environ | {"PS1": "> ", "TERM": "dumb"})
    seen = ""

    def read_until(text: str) -> None:
        nonlocal seen
        end = time.monotonic() + 60
        while text not in seen and time.monotonic() < end:
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096).decode("utf-8", "replace")
        assert text in seen, seen

    try:
        os.write(terminal, b"gpu-explain() { printf 'called:%s\\n' \"$@\"; }; . ./completion; echo rea''dy\n")
        read_until("ready\r\n")
        os.write(terminal, b"gpu-explain rea\tdme\tlo\t\n")
        read_until("called:log of a host.txt")
        assert "called:read" in seen and "called:dmesg" in seen
    finally:
        os.write(terminal, b"\x03exit\n")
        os.close(terminal)
        os.waitpid(process, 0)


@pytest.mark.host_io
@pytest.mark.usefixtures("zsh")
@pytest.mark.parametrize("line", [line for line in CASES if " lo" not in line and "--json con" not in line])
def test_zsh_completes(line: str, tmp_path: Path) -> None:
    words = line.split(" ")
    # compadd works only inside of a completion: here it prints the words that match, as zsh would.
    code = f"""{cli.completion_script("zsh").replace("compdef _gpu_explain gpu-explain", ":")}
compadd() {{ while [[ $1 != -- ]]; do shift; done; shift; print -rl -- ${{(M)@:#${{words[CURRENT]}}*}} }}
words=({" ".join(map(shlex.quote, words))}) CURRENT={len(words)}
_gpu_explain"""
    done = subprocess.run(["zsh", "-fc", code], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert set(done.stdout.splitlines()) == CASES[line]


def test_help_names_every_command_kind_and_status(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    for part in ("commands:", "examples:", "exit status:", "read", "host", "completion"):
        assert part in text
    assert max(map(len, text.splitlines())) <= 120
    with pytest.raises(SystemExit):
        cli.main(["read", "--help"])
    text = capsys.readouterr().out
    assert all(re.search(rf"^  {kind} +\S", text, re.MULTILINE) for kind in cli.KINDS)
    assert set(re.findall(r"--set (\w+)=", cli.EPILOG)) <= set(Settings._fields)


def test_the_examples_of_the_help_are_read_by_the_parsers() -> None:
    examples = re.findall(r"^  (?:dmesg \| )?gpu-explain (.*?)(?:   .*)?$", cli.EPILOG, re.MULTILINE)
    assert len(examples) == 5
    from gpu_ready.explain import host

    for example in examples:
        words = shlex.split(example)
        (host.parser() if words[0] == "host" else cli.parser()).parse_args(words[words[0] == "host" :])
