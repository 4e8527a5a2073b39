"""What is prepared for a machine with a real GPU, on a provisioned lab host: Debian's nvidia-smi, the lab's NVML, no PyTorch.

The host gets a copy of the checkout and Ansible as wheels, as that machine does, and has no network of its own to use.
"""

import io
import json
import subprocess
import tarfile
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.integration.fleet import ROOT, Fleet
from tools.real_gpu import explain, outputs, run

pytestmark = pytest.mark.lab

HOST = "real-debian12"
COPY = "/tmp/gpu-ready-copy"
RESULTS = "/tmp/gpu-ready-results"
ANSIBLE = ("ansible-core", "cffi", "cryptography", "Jinja2", "MarkupSafe", "packaging", "PyYAML", "resolvelib")
CHANGED = f"""
find / -xdev -newercc /tmp/before ! -type d \\
  ! -path '{COPY}*' ! -path '{RESULTS}*' ! -path '/var/log/*' ! -path '/var/lib/docker/*' ! -path '/var/lib/containerd/*'
"""
"""Files that were written since /tmp/before, without those that services of the host write all the time."""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("real_gpu")
    fleet.up()
    return fleet


def make_wheels(directory: Path) -> None:
    """Pack what Ansible needs from the virtual environment: it has the same Python, Debian 12's, as the host."""
    directory.mkdir(parents=True)
    for name in ANSIBLE:
        with zipfile.ZipFile(directory / f"{name}.whl", "w") as archive:
            for path in metadata.files(name) or []:
                if path.parts[0] != ".." and path.suffix != ".pyc":
                    archive.write(str(path.locate()), str(path))


@pytest.fixture(scope="module")
def results(fleet: Fleet, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The summary of a run, its files by name, its screen, and the files of the host that were written meanwhile."""
    directory = tmp_path_factory.mktemp("real_gpu")
    make_wheels(directory / "build/real_gpu/wheels")
    (directory / "build/real_gpu/commit").write_text("0123abc\n")
    names = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"], capture_output=True, text=True, check=True, cwd=ROOT
    ).stdout.splitlines()
    copy = directory / "copy.tar"
    with tarfile.open(copy, "w") as archive:
        for name in names:
            if (ROOT / name).exists():
                archive.add(ROOT / name, name)
        archive.add(directory / "build", "build")
    ssh = ["/usr/bin/ssh", "-F", str(fleet.directory / "ssh_config"), HOST]
    with copy.open("rb") as stream:
        subprocess.run([*ssh, f"mkdir -p {COPY} && tar -C {COPY} -x"], stdin=stream, check=True, timeout=300)
    fleet.ssh(HOST, "touch /tmp/before && sleep 0.1")
    screen = fleet.ssh(HOST, f"cd {COPY} && python3 -m tools.real_gpu.run {RESULTS}", check=False, limit=600)
    changed = fleet.ssh(HOST, CHANGED).split()
    packed = subprocess.run([*ssh, f"cat {RESULTS}/{run.ARCHIVE}"], capture_output=True, check=True, timeout=60).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        members = [member for member in archive if member.isfile()]
        files = {member.name.removeprefix("real-gpu/"): archive.extractfile(member) for member in members}
        texts = {name: stream.read().decode() for name, stream in files.items() if stream}
    print(screen)
    return {"summary": json.loads(texts[run.SUMMARY]), "files": texts, "screen": screen, "changed": changed}


def test_every_part_ends_with_a_status(fleet: Fleet, results: dict[str, Any]) -> None:
    kept = f"driver {fleet.ssh(HOST, 'cat /sys/module/nvidia/version').strip()} is kept, 5 steps"
    found = {part["name"]: (part["status"], part["message"]) for part in results["summary"]["parts"]}
    assert list(found) == [part.name for part in run.PARTS]
    assert {name: status for name, (status, _) in found.items()} == {
        "outputs": "ok",
        "explain": "ok",
        "plan": "ok",
        "verify": "ok",
        "metrics": "not run",
    }, found
    assert "PyTorch is missing" in found["metrics"][1] and "3 samples without one: memory" in found["metrics"][1]
    assert found["plan"][1] == f"default: {kept}; kept: {kept}"
    assert all(part["seconds"] > 0 and part["cpu"] > 0 for part in results["summary"]["parts"])
    assert results["summary"]["commit"] == "0123abc"
    for name, (status, _) in found.items():
        assert f"{name:10}{status:10}" in results["screen"]


def test_the_archive_has_the_outputs_and_their_explanations(results: dict[str, Any]) -> None:
    files = results["files"]
    smi = [name for name in outputs.PROGRAMS if name.startswith("nvidia-smi") and name != "nvidia-smi-nvlink"]
    assert "nvidia-smi-nvlink (it printed nothing)" in results["screen"]  # these cards have none
    assert {f"outputs/{name}.txt" for name in [*smi, "dmesg", "proc-driver-nvidia-version"]} <= set(files)
    for name in explain.KINDS:
        if f"outputs/{name}.txt" in files:
            assert files[f"explain/{name}.txt"] and json.loads(files[f"explain/{name}.json"])
    assert "<gpu id=" in files["outputs/nvidia-smi-q-x.txt"]
    assert json.loads(files["verify/verify.json"])["differences"] == []
    assert len(files["metrics/samples.jsonl"].splitlines()) == 3


def test_copies_for_the_corpus_have_no_identifier(fleet: Fleet, results: dict[str, Any]) -> None:
    files = results["files"]
    uuid = fleet.ssh(HOST, "nvidia-smi -L").split("GPU-")[1].split(")")[0]
    assert uuid in files["outputs/nvidia-smi-q.txt"] and not [
        name for name, text in files.items() if name.startswith("corpus/") and uuid in text
    ]
    assert "GPU-00000000-0000-0000-0000-000000000001" in files["corpus/nvidia-smi-q.txt"]


def test_nothing_of_the_host_was_changed(fleet: Fleet, results: dict[str, Any]) -> None:
    assert results["changed"] == []
    assert "tools.real_gpu" not in fleet.ssh(HOST, "ps -eo args")
