"""`gpu-explain host`: the decision without the host."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base import host
from plugins.plugin_utils.gpu_ready.explain import host as explain_host

ROOT = Path(__file__).resolve().parents[2]
P40 = "3b:00.0 3D controller [0302]: NVIDIA Corporation GP102GL [Tesla P40] [10de:1b38] (rev a1)\n"
AUDIO = "3b:00.1 Audio device [0403]: NVIDIA Corporation GP102 HDMI Audio Controller [10de:10ef] (rev a1)\n"
RELEASE = 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'


@pytest.fixture
def release(tmp_path: Path) -> str:
    path = tmp_path / "os-release"
    path.write_text(RELEASE)
    return str(path)


def ask(capsys: Any, *words: str) -> tuple[int, Any]:
    status = explain_host.main([*words, "--json"])
    return status, json.loads(capsys.readouterr().out)


def test_gpus_from_lspci(tmp_path: Path, release: str, capsys: Any) -> None:
    path = tmp_path / "lspci"
    path.write_text(P40 + AUDIO)
    status, answer = ask(capsys, "--lspci", str(path), "--os-release", release)
    driver = answer["plan"]["choice"]["driver"]
    assert (status, driver["source"], driver["branch"], driver["flavour"]) == (0, "cuda_repo", 580, "proprietary")
    assert [gpu["device"] for gpu in answer["gpus"]] == ["1b38"]


@pytest.mark.parametrize("identity", ["1b38", "10de:1b38", "0x10de:0x1B38", "[10de:1b38]"])
def test_gpus_from_ids(identity: str, release: str, capsys: Any) -> None:
    _, answer = ask(capsys, "--pci-id", identity, "--os-release", release)
    assert [gpu["device"] for gpu in answer["gpus"]] == ["1b38"]


def test_variables_and_refusals_with_their_remedy(release: str, capsys: Any) -> None:
    words = ["--pci-id", "1b38", "--os-release", release, "--set", "nvidia_driver_branch=595"]
    assert explain_host.main(words) == 1
    shown = capsys.readouterr().out
    assert "refused: " in shown
    assert "580" in shown
    assert "remedy: " in shown


def test_the_text_gives_the_reason_and_the_steps(release: str, capsys: Any) -> None:
    assert explain_host.main(["--pci-id", "1b38", "2330", "--os-release", release]) == 0
    shown = capsys.readouterr().out
    assert "driver: branch 580 with the proprietary kernel module" in shown
    assert "nvidia_driver.install" in shown


def test_message_of_a_wrong_setting(release: str, capsys: Any) -> None:
    assert explain_host.main(["--pci-id", "1b38", "--os-release", release, "--set", "x"]) == 2
    assert "name=value" in capsys.readouterr().err
    for value in ("[", '{"a"', "[" * 100_000):
        words = ["--pci-id", "1b38", "--os-release", release, "--set", "cuda_toolkit_versions=" + value]
        assert explain_host.main(words) == 2
        assert "--set cuda_toolkit_versions: the value is not valid JSON (" in capsys.readouterr().err
    assert explain_host.main(["--pci-id", "1b38", "--os-release", release, "--set", "nvidia_driver_hold=x"]) == 1
    assert "true or false" in capsys.readouterr().out


def test_a_host_without_gpu(release: str, capsys: Any, tmp_path: Path) -> None:
    path = tmp_path / "lspci"
    path.write_text(AUDIO)
    status, answer = ask(capsys, "--lspci", str(path), "--os-release", release)
    assert (status, answer["plan"]["gpu_host"]) == (0, False)


def test_no_program_is_run_on_this_machine(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """RPM packages are listed by a program, and those of this machine are not those of the described host."""
    monkeypatch.setattr(host.Host, "run", lambda *_, **__: pytest.fail("a program was run"))
    path = tmp_path / "os-release"
    path.write_text('ID="rocky"\nVERSION_ID="9.6"\nID_LIKE="rhel centos fedora"\n')
    status, answer = ask(capsys, "--pci-id", "1eb8", "--os-release", str(path))
    steps = [step["id"] for step in answer["plan"]["steps"]]
    assert status == 0
    assert steps[:2] == ["kernel_headers.repository", "kernel_headers.install"]


def test_every_public_variable_is_known(release: str, capsys: Any) -> None:
    names = json.loads((ROOT / "plugins/plugin_utils/variables/names.json").read_text())
    public = {*names["settings"], *names["rules"]}
    assert public == set(re.findall(r'<a id="(\w+)"', (ROOT / "docs/variables.md").read_text()))
    for name in sorted(public):
        explain_host.main(["--pci-id", "2330", "--os-release", release, "--set", name + "="])
        assert "is not a variable" not in capsys.readouterr().out, name


@pytest.mark.parametrize(
    ("setting", "status", "shown"),
    [
        ("gpu_verify_timeout=300", 0, "nvidia_driver.install"),
        ("gpu_verify_timeout=5 minutes", 1, "refused: gpu_verify_timeout is '5 minutes', but must be a number"),
        ("nvidia_driver_brnach=580", 1, "remedy: use nvidia_driver_branch"),
        ("nvidia_driver_flavour=propietary", 1, "did you mean proprietary?"),
    ],
)
def test_values_are_judged_as_by_a_run(setting: str, status: int, shown: str, release: str, capsys: Any) -> None:
    assert explain_host.main(["--pci-id", "2330", "--os-release", release, "--set", setting]) == status
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "status", "shown"),
    [
        (["2330"], 0, "H100 80GB HBM3 [10de:2330] at 0000:01:00.0: branches 535 to "),
        (["3fff"], 0, "NVIDIA device 10de:3fff [10de:3fff] at 0000:01:00.0: branch "),
        (["1db1", "2901"], 1, "refused: one host runs one driver"),
        (["1b8f"], 1, "is that of a chip before Turing"),
        (["1db1", "--set", "nvidia_driver_branch=595"], 1, "branches 390 to 580, proprietary module: that leaves"),
        (["1db1", "--set", "nvidia_driver_branch=580"], 0, "branches 390 to 580, proprietary module"),
    ],
)
def test_without_a_system_the_answer_is_about_the_cards(words: list[str], status: int, shown: str, capsys: Any) -> None:
    assert explain_host.main(["--pci-id", *words]) == status
    output = capsys.readouterr().out
    assert shown in output and "add --os-release FILE" in output and "None" not in output
    assert "ID=," not in output and "gpu_ready_treat_as" not in output


def test_an_answer_about_a_host_on_paper_says_first_that_it_is_unverified() -> None:
    found = explain_host.explain(None, ["10de:2330"], "ID=ubuntu\nVERSION_ID=24.04\n", {})
    assert found["unverified"] and found["text"].startswith("unverified: no host was asked")
