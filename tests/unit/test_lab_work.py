"""Running work of lab hosts: fleet files name it, and every kind is described and documented."""

import subprocess

import pytest
from gpu_ready_lab import fleet, paths, work
from gpu_ready_lab.say import LabError

NAMES = sorted(work.described())


def test_a_host_has_its_work_in_order() -> None:
    text = "{name: x, hosts: {a: {distribution: debian12, work: [pod, container]}, b: {state: debian12, work: [gpu-process]}}}"
    first, second = fleet.parse(text).hosts
    assert (first.work, second.work) == (("pod", "container"), ("gpu-process",))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("distribution: debian12, work: [containers]", ["hosts.a.work.0", "'containers'", *NAMES]),
        ("state: debian12, work: [containers]", ["hosts.a.work.0", "'containers'", *NAMES]),
        ("distribution: debian12, work: container", ["hosts.a.work", "expected a list"]),
        ("kind: vm, distribution: debian12, work: [container]", ["hosts.a.work", "virtual machines have none"]),
        ("distribution: debian12, holder: true", ["unknown key 'holder'", "work"]),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, words: list[str]) -> None:
    with pytest.raises(LabError) as error:
        fleet.parse("{name: x, hosts: {a: {" + text + "}}}", "some.yml")
    assert [word for word in words if word not in str(error.value)] == []


@pytest.mark.host_io
@pytest.mark.parametrize("name", NAMES)
def test_work_is_a_script_that_a_posix_shell_can_read(name: str) -> None:
    text = work.FUNCTIONS.read_text() + (work.SCRIPTS / f"{name}.sh").read_text()
    done = subprocess.run(["sh", "-n"], input=text, text=True, capture_output=True, timeout=300, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_work_is_described_and_documented(name: str) -> None:
    assert work.described()[name][0].isupper()
    table = (paths.REPO / "docs/dev/lab.md").read_text().partition("## Running work")[2].partition("\n## ")[0]
    assert f"`{name}`" in table
