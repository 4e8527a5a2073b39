"""A host that provisions itself from a git repository by its own timer: deploy/pull as its README installs it.

It begins with a driver, and needs docker and the container toolkit. Then it and others are audited from a control node.
"""

import importlib.metadata
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.integration.fleet import DRIVER_ALONE, PLAY_LIMIT, ROOT, Fleet, Run

pytestmark = pytest.mark.lab
HOST = "self"
WHEELS = (
    "ansible-core",
    "jinja2",
    "MarkupSafe",
    "PyYAML",
    "cryptography",
    "cffi",
    "pycparser",
    "packaging",
    "resolvelib",
)
GPU_HOSTS = """\
localhost ansible_connection=local ansible_python_interpreter=/usr/bin/python3

[all:vars]
gpu_report_directory=/var/lib/gpu-ready-pull/reports
"""
SETTINGS = ("gpu_ready_", "gpu_verify_", "nvidia_", "cuda_", "cudnn_")


def send(fleet: Fleet, archive: Path, directory: str) -> None:
    """Unpack an archive of this machine in a directory of the host."""
    command = [
        "ssh",
        "-F",
        str(fleet.directory / "ssh_config"),
        HOST,
        f"mkdir -p {directory} && tar -xzf - -C {directory}",
    ]
    with archive.open("rb") as content:
        subprocess.run(command, stdin=content, check=True, timeout=600)


def repository(directory: Path) -> Path:
    """An archive with a bare repository of what git tracks here, as it is in the working tree."""
    work, bare = directory / "work", directory / "gpu-ready.git"
    work.mkdir()
    # What git would add from the working tree, including new files that are not committed yet.
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, check=True).stdout.split(b"\0")
    listed = directory / "names"
    listed.write_bytes(b"\0".join(name for name in names if name and os.path.lexists(ROOT / os.fsdecode(name))))
    packed = ["tar", "-c", "--null", "-T", str(listed)]
    content = subprocess.run(packed, cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(["tar", "-x", "-C", str(work)], input=content, check=True)
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
    for command in (["init", "-q", "-b", "stable"], ["add", "-A"], [*identity, "commit", "-q", "-m", "stable"]):
        subprocess.run(["git", *command], cwd=work, check=True)
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(bare)], check=True)
    archive = directory / "repository.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        tar.add(bare, "gpu-ready.git")
    return archive


def wheels(directory: Path) -> Path:
    """An archive with ansible-core and its requirements, as installed on this machine."""
    archive = directory / "site-packages.tar.gz"
    with tarfile.open(archive, "w:gz", compresslevel=1) as tar:
        for name in WHEELS:
            for file in importlib.metadata.files(name) or []:
                path = Path(str(file.locate()))
                if path.is_file() and ".." not in file.parts and file.suffix != ".pyc":
                    tar.add(path, str(file))
    return archive


@pytest.fixture(scope="module")
def pulling(lab_machine: None, tmp_path_factory: pytest.TempPathFactory) -> Fleet:
    """A host with git, a virtual environment with ansible-core, and deploy/pull; its repository is on its own disk."""
    fleet = Fleet("pull")
    fleet.up()
    fleet.ssh(HOST, DRIVER_ALONE)
    version = fleet.ssh(HOST, "python3 -c 'import sys; print(*sys.version_info[:2])'").split()
    if [int(part) for part in version] != list(sys.version_info[:2]):
        pytest.skip(f"the compiled packages here are for Python {sys.version_info[:2]}, the lab host has {version}")
    directory = tmp_path_factory.mktemp("pull")
    fleet.ssh(
        HOST,
        "apt-get update -q >/dev/null && DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends git >/dev/null",
    )
    # pip cannot reach an index from a lab host, so the packages of this machine's environment are copied into its own.
    fleet.ssh(HOST, "python3 -m venv --without-pip /opt/gpu-ready/venv")
    send(fleet, wheels(directory), "/opt/gpu-ready/venv/lib/python3.11/site-packages")
    programs = {"ansible-pull": "pull", "ansible-playbook": "playbook", "ansible": "adhoc"}
    for program, module in programs.items():
        text = f"#!/opt/gpu-ready/venv/bin/python\\nfrom ansible.cli.{module} import main\\nmain()\\n"
        fleet.ssh(
            HOST, f"printf '{text}' >/opt/gpu-ready/venv/bin/{program}; chmod 755 /opt/gpu-ready/venv/bin/{program}"
        )
    send(fleet, repository(directory), "/srv/git")
    units = directory / "units.tar.gz"
    with tarfile.open(units, "w:gz") as tar:
        for name in ("gpu-ready-pull.service", "gpu-ready-pull.timer"):
            tar.add(ROOT / "deploy/pull" / name, name)
    send(fleet, units, "/etc/systemd/system")
    image = lab_variables(fleet)["gpu_verify_image"]
    packed = directory / "image.tar.gz"
    with tarfile.open(packed, "w:gz", compresslevel=1) as tar:
        tar.add(image, Path(image).name)
    send(fleet, packed, str(Path(image).parent))
    conf = "GPU_READY_REPOSITORY=file:///srv/git/gpu-ready.git\\nGPU_READY_REVISION=stable\\n"
    fleet.ssh(
        HOST,
        f"mkdir -p /etc/gpu-ready; printf '{conf}' >/etc/gpu-ready/pull.conf; cat >/etc/gpu-ready/gpu_hosts <<'EOF'\n{host_inventory(fleet)}EOF",
    )
    fleet.ssh(
        HOST,
        "chown -R root: /srv/git /opt/gpu-ready; systemctl daemon-reload",
    )
    return fleet


def lab_variables(fleet: Fleet) -> dict[str, Any]:
    """The host's variables in the lab's inventory: the mirror in place of the vendors' servers, the image."""
    program = Path(sys.executable).parent / "ansible-inventory"
    done = subprocess.run(
        [program, "-i", fleet.inventory, "--host", HOST],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        timeout=600,
    )
    return dict(json.loads(done.stdout))


def host_inventory(fleet: Fleet) -> str:
    """Return the host's own inventory."""
    given = {name: value for name, value in lab_variables(fleet).items() if name.startswith(SETTINGS)}
    return GPU_HOSTS + "".join(f"{name}={json.dumps(value)}\n" for name, value in given.items())


def pull(fleet: Fleet) -> dict[str, Any]:
    """Run the unit once; return its result, the counters of PLAY RECAP and what it wrote to the journal."""
    fleet.ssh(
        HOST,
        "journalctl --rotate -q; journalctl --vacuum-time=1s -q >/dev/null 2>&1; systemctl start gpu-ready-pull || true",
        limit=PLAY_LIMIT,
    )
    text = fleet.ssh(HOST, "journalctl --sync; journalctl -u gpu-ready-pull -o cat --no-pager")
    result = fleet.ssh(HOST, "systemctl show gpu-ready-pull -p Result --value").strip()
    recap = [line for line in text.splitlines() if line.startswith("localhost ") and "changed=" in line]
    print(text[-6000:])
    return {
        "result": result,
        "recap": dict(part.split("=") for part in recap[-1].split(":")[1].split()) if recap else {},
        "text": text,
    }


def test_the_first_run_makes_the_host_ready_and_the_second_changes_nothing(pulling: Fleet) -> None:
    first = pull(pulling)
    assert first["result"] == "success"
    assert int(first["recap"]["changed"]) > 0
    assert json.loads(pulling.ssh(HOST, "cat /var/lib/gpu-ready/verified.json"))["ok"] is True
    assert "verified" in pulling.ssh(HOST, "cat /var/lib/gpu-ready-pull/reports/latest.json")
    second = pull(pulling)
    assert (second["result"], second["recap"]["changed"], second["recap"]["failed"]) == ("success", "0", "0")


def test_the_timer_waits_for_the_next_night(pulling: Fleet) -> None:
    """It is stopped again: these tests may run at the hour at which it starts the unit."""
    listed = pulling.ssh(
        HOST,
        "systemctl enable --now gpu-ready-pull.timer; systemctl list-timers --no-pager gpu-ready-pull.timer;"
        " systemctl stop gpu-ready-pull.timer",
    )
    assert "gpu-ready-pull.timer" in listed


def test_a_run_that_cannot_succeed_is_a_failed_unit(pulling: Fleet) -> None:
    settings = "nvidia_driver_branch=390"
    pulling.ssh(HOST, f"cp /etc/gpu-ready/gpu_hosts /run/gpu_hosts; echo '{settings}' >>/etc/gpu-ready/gpu_hosts")
    try:
        run = pull(pulling)
        assert run["result"] == "exit-code"
        assert "390" in run["text"]
    finally:
        pulling.ssh(HOST, "cp /run/gpu_hosts /etc/gpu-ready/gpu_hosts")


# ------------------------------------------------------------------------------------------------------------- audit


def audit(fleet: Fleet, *arguments: str, silent: bool = False, **extra: Any) -> tuple[Run, dict[str, Any]]:
    """Audit the fleet; return the run and the JSON it wrote. ``silent`` adds a host that does not answer."""
    path = fleet.directory / "audit.json"
    more = ["-i", str(fleet.directory / "asleep")] if silent else []
    if silent:
        (fleet.directory / "asleep").write_text(
            "asleep ansible_host=10.199.0.9 ansible_ssh_common_args='-o ConnectTimeout=3'\n"
        )
    extra = {"gpu_audit_format": "json", "gpu_audit_path": str(path)} | extra
    run = fleet.play(*more, *arguments, playbook="playbooks/audit.yml", extra=extra)
    return run, json.loads(path.read_text())["hosts"]


@pytest.fixture(scope="module")
def provisioned(pulling: Fleet) -> Fleet:
    if "ok" not in pulling.ssh(HOST, "cat /var/lib/gpu-ready/verified.json 2>/dev/null || true"):
        assert pull(pulling)["result"] == "success"
    return pulling


def test_drift_an_unreachable_host_and_gpu_users_are_distinguished(provisioned: Fleet) -> None:
    provisioned.ssh(
        HOST,
        "apt-mark showhold | tee /run/holds | xargs apt-mark unhold >/dev/null;"
        "systemd-run -q --unit gpu-hold /usr/lib/gpu-ready-lab/hold; readlink /vmlinuz >/run/vmlinuz; touch /boot/vmlinuz-6.99.0-1-amd64;"
        "ln -sfn boot/vmlinuz-6.99.0-1-amd64 /vmlinuz",
    )
    provisioned.wait(HOST, "ls -l /proc/$(systemctl show -p MainPID --value gpu-hold)/fd | grep -q /dev/nvidia0")
    undo = "rm -f /boot/vmlinuz-6.99.0-1-amd64; ln -sfn $(cat /run/vmlinuz) /vmlinuz; systemctl stop gpu-hold;"
    undo += "xargs apt-mark hold </run/holds >/dev/null"
    try:
        run, hosts = audit(provisioned, silent=True)
        assert run.rc == 2
        drift = {check["name"]: check["why"] for check in hosts[HOST]["checks"] if check["ok"] is False}
        assert {"holds", "next_boot"} <= set(drift)
        assert "6.99.0-1-amd64" in drift["next_boot"]
        (holder,) = [holder for holder in hosts[HOST]["holders"] if not holder["service"]]
        assert "/usr/lib/gpu-ready-lab/hold" in holder["command"] and not holder["container"]
        assert hosts["asleep"]["state"] == "unreachable" and hosts["plain"]["state"] == "no_gpu"
        assert "drift in" in run.failures(HOST) and run.failures("asleep").startswith("unreachable: ")
        assert run.calls[HOST] == 1
        shown = provisioned.play("--limit", HOST, "--check", "--diff", playbook="playbooks/audit.yml").screen
        assert f"+++ {HOST}: desired" in shown and "!no module" in shown
    finally:
        provisioned.ssh(HOST, undo)


def test_an_audit_of_hosts_in_the_desired_state_succeeds_and_changes_nothing(provisioned: Fleet) -> None:
    """Also without the drift of the test before, which was undone."""
    provisioned.ssh(HOST, "touch /run/before-audit; sleep 1")
    run, hosts = audit(provisioned)
    assert run.rc == 0, run.screen[-3000:]
    assert {name: one["state"] for name, one in hosts.items()} == {HOST: "ok", "plain": "no_gpu"}, hosts
    assert run.calls == {HOST: 1, "plain": 1}
    assert all(run.recap(host)["changed"] == 0 for host in hosts)
    assert (
        provisioned.ssh(
            HOST,
            "find /etc /var/lib /usr /opt /boot /lib -xdev -newercm /run/before-audit -type f | grep -v ^/var/lib/systemd/ || :",
        )
        == ""
    )
