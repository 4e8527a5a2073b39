"""gpu-explain fleet: the plans of captured hosts, their groups, unusual hosts, and what other settings change."""

from __future__ import annotations

import html.parser
import json
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.explain import captures, cli, extra_vars, fleet, fleet_compare, fleet_plans
from plugins.plugin_utils.gpu_ready.settings.variables import parse_settings
from tests.unit.goldens import decide
from tests.unit.hosts import T4, V100, bare, having
from tests.unit.lying_host import ready_facts

pytestmark = pytest.mark.usefixtures("catalog_of_2026")


def capture(directory: Path, host: str, facts: Facts, day: int = 20, **settings: Any) -> Path:
    header = captures.Header(host, f"2026-11-{day}T20:00:00Z", "0.1.0", "2.19.14", settings)
    return Path(captures.write(str(directory), header, facts, {}))


def with_kernel(facts: Facts, name: str) -> Facts:
    kernel = having(facts.base.kernel, running=name, installed=[name], next_boot=name, headers={name: True})
    return having(facts, base={"kernel": kernel})


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """Four equal bare hosts, one with another kernel, one in the desired state, one without a driver for both GPUs."""
    for number in range(1, 5):
        capture(tmp_path / "all", f"gpu{number}", bare(T4), 20 + number)
    capture(tmp_path / "all", "gpu5", with_kernel(bare(T4), "5.10.0-1-amd64"))
    capture(tmp_path / "all", "ready", ready_facts())
    capture(tmp_path / "all", "mixed", bare("2901", V100))
    return tmp_path / "all"


@pytest.fixture(autouse=True)
def wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "150")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    status = cli.main(["fleet", *map(str, words)])
    shown = capsys.readouterr()
    return status, " ".join(shown.out.split()), shown.err


def test_the_table_has_groups_refusals_with_remedies_and_unusual_hosts(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text, err = run(capsys, str(directory))
    assert (status, err) == (1, "")
    assert "7 hosts captured from 2026-11-20T20:00:00Z to 2026-11-24T20:00:00Z" in text
    assert "5: gpu1, gpu2 and 3 more" in text and "ready Debian 12 1x Tesla T4" in text
    (refusal,) = decide(bare("2901", V100)).refusals
    assert f"mixed: refused {refusal.code}: {' '.join(refusal.message.split())}. Remedy: {refusal.remedy}." in text
    assert "gpu5: kernel 5.10.0-1-amd64 (5 others: 6.1.0-50-amd64)" in text
    assert "7 hosts: 5 planned, 1 ready, 1 refused; docker restart of 5 catalog of " in text


@pytest.mark.parametrize("width", [40, 80, 200])
def test_the_table_fits_the_terminal(
    width: int, directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    cli.main(["fleet", str(directory)])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if len(line) > max(width, 12 + 8 + 12 + 9 + 9 + 20 + 10 + 12)] == []


def test_a_host_of_the_inventory_has_its_variables_and_e_takes_precedence(tmp_path: Path) -> None:
    capture(tmp_path, "gpu1", bare(T4), nvidia_driver_branch="595")
    (one,) = fleet_plans.plan_directory(str(tmp_path), {}).hosts
    (other,) = fleet_plans.plan_directory(str(tmp_path), {"nvidia_driver_branch": "580"}).hosts
    assert (one.plan.desired, other.plan.desired) == ("595", "580")


def test_a_wrong_value_is_the_refusal_of_site_yml(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = run(capsys, str(directory), "-e", "nvidia_driver_branch=x", "-e", "gpu_report_keep=many")
    (refusal,) = parse_settings({"nvidia_driver_branch": "x"}).refusals
    assert status == 1 and f"{refusal.code}: {refusal.message}. Remedy: {refusal.remedy}." in text
    assert "gpu_report_keep" in text and "7 hosts: 7 refused" in text


@pytest.mark.parametrize(
    ("option", "found"),
    [
        ("nvidia_driver_branch=595", {"nvidia_driver_branch": "595"}),
        ("nvidia_driver_branch=595 gpu_ready_reboot_ok=true", {"nvidia_driver_branch": "595", "gpu_ready_reboot_ok": "true"}),
        ("nvidia_driver_runfile='/a b'", {"nvidia_driver_runfile": "/a b"}),
        ('{"gpu_ready_disrupt": ["reboot"]}', {"gpu_ready_disrupt": ["reboot"]}),
        ("{gpu_ready_disrupt: [reboot]}", {"gpu_ready_disrupt": ["reboot"]}),
        ("@FILE", {"gpu_ready_reboot_ok": True, "cuda_toolkit_versions": ["12.9"]}),
        ("", {}),
    ],
)  # fmt: skip
def test_variables_are_read_as_ansible_reads_them(option: str, found: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "more.yml").write_text("gpu_ready_reboot_ok: true\ncuda_toolkit_versions: ['12.9']\n")
    assert extra_vars.read_variables([option.replace("FILE", str(tmp_path / "more.yml"))]) == found


@pytest.mark.parametrize(
    ("option", "what"),
    [
        ("nvidia_driver_brnach=595", "no variable of this name. Did you mean nvidia_driver_branch?"),
        ("ansible_user=x", "no variable of this name. docs/variables.md has all variables."),
        ("gpu_ready_treat_as=debian12", "it decides how facts are read. Set it in the inventory and capture again"),
        ("nvidia_driver_branch", "write it as name=value"),
        ("./more.yml", "write @ before the name of a file"),
        ("@missing.yml", "No such file"),
        ("[1, 2]", "it must be a mapping of variables"),
        ("{a: [", "it is no YAML"),
    ],
)
def test_other_variables_are_an_error(
    option: str, what: str, directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, text, err = run(capsys, str(directory), "-e", option)
    assert (status, text) == (2, "") and what in err and err.startswith("gpu-explain fleet: ")


def test_two_settings_are_compared(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, text, _ = run(capsys, str(directory), "-e", "nvidia_driver_branch=595", "--against", "")
    assert status == 1
    assert "Before: the variables of the inventory." in text
    rows = text.partition("after")[2]
    assert "5: gpu1, gpu2 and 3 more" in rows and "driver 580; docker_restart" in rows and "driver 595;" in rows
    assert "ready" in rows
    status, text, _ = run(capsys, str(directory), "--against", "-e gpu_report_keep=3 -e gpu_report_width=90")
    assert "No host would be treated differently." in text
    status, other, _ = run(capsys, str(directory), "--against", "gpu_report_keep=3 gpu_report_width=90")
    assert other == text


def test_two_directories_are_compared(directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(1, 5):
        capture(tmp_path / "before", f"gpu{number}", bare(T4) if number > 1 else ready_facts())
    capture(tmp_path / "before", "retired", bare(T4))
    (changes,) = [fleet.compute(str(directory), [], str(tmp_path / "before")).changes]
    assert changes is not None
    assert {(*one.names, one.before[:12], one.after[:12]) for one in changes} == {
        ("gpu1", "driver 580; ", "driver 580; "),
        ("gpu5", "not captured", "driver 580; "),
        ("ready", "not captured", "driver 580; "),
        ("mixed", "not captured", "refused: no_"),
        ("retired", "driver 580; ", "not captured"),
    }
    assert "captures in" in run(capsys, str(directory), "--against", str(tmp_path / "before"))[1]


@pytest.mark.parametrize("text", ["last-week", "-x a=b", "-e"])
def test_against_needs_options_or_a_directory(text: str, directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = run(capsys, str(directory), "--against", text)
    assert status == 2 and "it is no directory, and not name=value" in err


def test_a_damaged_capture_is_named_and_the_others_are_shown(
    directory: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (directory / "gpu1.jsonl").write_text("{}")
    (directory / "gpu2.jsonl").write_text((directory / "gpu3.jsonl").read_text())
    facts = directory / "gpu4.jsonl"
    facts.write_text(facts.read_text().replace('"gpus": [{', '"gpus": [{"x": "\\u001b[31m", '))
    status, text, err = run(capsys, str(directory))
    assert status == 2 and "4 hosts captured" in text
    assert f"{directory}/gpu1.jsonl: no capture that this release can read" in err
    assert f"{directory}/gpu3.jsonl: a second capture of gpu3" in err
    assert f"{directory}/gpu4.jsonl: no capture that this release can read: Facts.base.gpus[0] has unknown" in err
    assert "\x1b" not in err


def test_facts_that_are_made_to_take_long_are_no_plan(
    directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packages = {f"package{number}": "1.0" for number in range(300_000)}
    path = capture(directory, "large", having(bare(T4), packages={"installed": packages}))
    assert run(capsys, str(directory))[0] == 1
    monkeypatch.setattr(fleet_plans, "PLANNING", 0.0)
    status, text, err = run(capsys, str(directory))
    assert status == 2 and f"{path}: no plan can be computed from these facts (more than 0 seconds of processor" in err


def test_a_directory_without_captures_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, str(tmp_path))[0] == 2
    assert "No such file" in run(capsys, str(tmp_path / "missing"))[2]


HOSTILE = "<script>alert(1)</script>\x1b]52;c;x\x07\u202e\nroot: x"


class Elements(html.parser.HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)


def test_texts_of_hosts_are_shown_and_never_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(12):
        facts = with_kernel(bare(T4), HOSTILE) if number < 2 else bare(T4)
        gpus = [gpu._replace(name=HOSTILE) for gpu in facts.base.gpus]
        os = facts.base.os._replace(pretty=HOSTILE)
        capture(tmp_path, f"{HOSTILE}{number}", having(facts, base={"gpus": gpus, "os": os}))
    for form in ("table", "json", "html"):
        cli.main(["fleet", str(tmp_path), "--format", form, "-e", "nvidia_driver_branch=595", "--against", ""])
        text = capsys.readouterr().out
        assert not set(text) & {"\x1b", "\x07", "\u202e"}
        if form == "html":
            elements = Elements()
            elements.feed(text)
            assert "script" not in elements.found and "details" in elements.found
            assert "default-src 'none'" in text
        if form == "json":
            assert len(json.loads(text)["hosts"]) == 12
        if form == "table":
            assert "root: x" not in text.splitlines()


def test_the_json_has_every_host_with_its_plan(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cli.main(["fleet", str(directory), "--format", "json"])
    value = json.loads(capsys.readouterr().out)
    decided = decide(bare(T4))
    assert [step["id"] for step in value["hosts"]["gpu1"]["steps"]] == [step.id for step in decided.steps]
    assert value["hosts"]["mixed"]["refusals"][0]["code"] == decide(bare("2901", V100)).refusals[0].code
    assert value["hosts"]["gpu5"]["unlike_others"].startswith("kernel")
    assert ["gpu1", "gpu2", "gpu3", "gpu4", "gpu5"] in value["groups"]


def test_several_processes_make_the_same_plans_and_equal_captures_are_one_job(tmp_path: Path) -> None:
    jobs: list[tuple[str, dict[str, Any]]] = [
        (str(capture(tmp_path, f"gpu{number}", with_kernel(bare(T4), f"6.1.0-{number % 20}-amd64"))), {})
        for number in range(40)
    ]
    assert fleet_plans.plan_all(jobs) == [fleet_plans.plan_file(job) for job in jobs]
    digests = {captures.read(path).digest for path, _ in jobs}
    assert len(digests) == 20
    other = capture(tmp_path, "gpu0", with_kernel(bare(T4), "6.1.0-0-amd64"), nvidia_driver_branch="595")
    assert captures.read(str(other)).digest not in digests


def test_a_fleet_that_is_half_changed_has_no_unusual_hosts() -> None:
    def host(number: int, kernel: str) -> fleet_plans.CapturedHost:
        return fleet_plans.CapturedHost(f"gpu{number}", "", fleet_plans.plan_facts(with_kernel(bare(T4), kernel), {}))

    half = [host(number, f"6.1.0-{number % 2}-amd64") for number in range(8)]
    assert fleet_compare.outliers(half) == []
    assert [name for name, _ in fleet_compare.outliers([*half[::2], half[1]])] == ["gpu1"]


def test_host_reads_a_capture(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(directory / "gpu1.jsonl")
    assert cli.main(["host", path]) == 0
    assert "nvidia_driver.install" in capsys.readouterr().out
    assert cli.main(["host", path, "--json", "--set", "nvidia_driver_branch=595"]) == 0
    assert json.loads(capsys.readouterr().out)["plan"]["choice"]["driver"]["branch"] == 595
    assert cli.main(["host", str(directory / "mixed.jsonl")]) == 1
    capsys.readouterr()
    Path(path).write_text("{}")
    assert cli.main(["host", path]) == 2
    assert f"{path}: no capture that this release can read" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main(["host", path, "--pci-id", "1db1"])
