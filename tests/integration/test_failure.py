"""A failure on a host ends in one message: a build, a module that the kernel refuses, a service that does not start."""

import json
from pathlib import Path

import pytest

from tests.integration.fleet import Fleet

pytestmark = pytest.mark.lab

HOST, OTHERS = "fail-debian12", "fail-others"
COMPILERS = ("gcc", "cc", "gcc-12", "x86_64-linux-gnu-gcc-12")
# A compiler before the real one on PATH, which fails for every file.
BROKEN_COMPILER = (
    "mkdir -p /usr/local/bin; for name in "
    + " ".join(COMPILERS)
    + r"""; do
  cat >/usr/local/bin/$name <<END
#!/bin/sh
case " \$* " in *" -c "*) echo "nv-mmap.c:77:5: error: implicit declaration of function take_lock" >&2; exit 1;; esac
exec /usr/bin/$name "\$@"
END
  chmod 755 /usr/local/bin/$name
done"""
)
WHOLE_COMPILER = "rm -f " + " ".join(f"/usr/local/bin/{name}" for name in COMPILERS)
REFUSING = (
    "install nvidia /bin/sh -c 'echo modprobe: ERROR: could not insert nvidia: Key was rejected by service >&2; exit 1'"
)
REFUSED = "/etc/modprobe.d/nvidia.conf"
"""In place of the package's file of that name, because its softdep would take precedence (modprobe.d(5), SOFTDEP)."""
UNIT = """[Unit]
Description=A test
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "failed to start daemon: specified default runtime \\\\"nvidia\\\\" does not exist" >&2; exit 1'
"""


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("failure")
    fleet.up()
    return fleet


def failure_message(fleet: Fleet, directory: Path, module: str, **arguments: str) -> str:
    """Run a module on the host and return the message that it fails with."""
    play = [
        {
            "hosts": HOST,
            "gather_facts": False,
            "become": True,
            "tasks": [{"name": "It fails", f"gpu_ready.nodes.{module}": arguments}],
        }
    ]
    (directory / "play.json").write_text(json.dumps(play))
    run = fleet.play(playbook=str(directory / "play.json"))
    assert run.rc == 2, run.screen
    return run.failures(HOST)


def test_a_module_that_the_kernel_refuses(fleet: Fleet, tmp_path: Path) -> None:
    fleet.ssh(HOST, "systemctl stop nvidia-persistenced; rmmod nvidia_uvm nvidia_modeset nvidia")
    fleet.ssh(HOST, f'echo "{REFUSING}" >{REFUSED}')
    try:
        message = failure_message(fleet, tmp_path, "gpu_kernel_module", state="loaded")
    finally:
        fleet.ssh(HOST, f"rm {REFUSED}")
    assert "\n" not in message and message.startswith("the module nvidia does not load into the kernel ")
    assert "Secure Boot accepts only modules that are signed with an enrolled key (modprobe: ERROR: " in message
    assert "; the whole log is the output of `dmesg` on the host. Remedy: " in message and "mokutil --import" in message


def test_a_service_that_does_not_start(fleet: Fleet, tmp_path: Path) -> None:
    fleet.ssh(HOST, f"cat >/run/systemd/system/refusing.service <<'END'\n{UNIT}END\nsystemctl daemon-reload")
    fleet.ssh(HOST, "systemctl start refusing", check=False)
    message = failure_message(fleet, tmp_path, "gpu_service_failure", name="refusing")
    fleet.ssh(HOST, "rm /run/systemd/system/refusing.service; systemctl daemon-reload")
    assert message.startswith("the service refusing does not run: docker has no runtime named nvidia")
    assert "; the whole log is the output of `journalctl -u refusing` on the host. Remedy: " in message


def test_a_command_of_a_drop_in_that_fails(fleet: Fleet, tmp_path: Path) -> None:
    drop_in = "/run/systemd/system/refusing.service.d/zz.conf"
    write = (
        f"mkdir -p {drop_in.rpartition('/')[0]}; printf '[Service]\\nExecStartPre=/bin/sh -c \"exit 3\"\\n' >{drop_in}"
    )
    fleet.ssh(HOST, f"cat >/run/systemd/system/refusing.service <<'END'\n{UNIT}END\n{write}; systemctl daemon-reload")
    fleet.ssh(HOST, "systemctl start refusing", check=False)
    message = failure_message(fleet, tmp_path, "gpu_service_failure", name="refusing")
    fleet.ssh(HOST, f"rm /run/systemd/system/refusing.service {drop_in}; systemctl daemon-reload")
    assert message.startswith("the service refusing does not run: ExecStartPre=/bin/sh -c exit 3 ended with status 3; ")
    assert f"Remedy: correct or remove that line in {drop_in} (`systemctl cat refusing`" in message


def test_a_driver_that_does_not_compile(fleet: Fleet) -> None:
    fleet.ssh(HOST, BROKEN_COMPILER)
    try:
        run = fleet.play("--limit", HOST, extra={"nvidia_driver_branch": 595})
    finally:
        fleet.ssh(HOST, WHOLE_COMPILER)
    assert run.rc != 0
    message = " ".join(run.failures(HOST).split())
    assert "DKMS could not build the module for kernel" in message
    assert (
        "does not compile for this kernel (nv-mmap.c:77:5: error: implicit declaration of function take_lock)"
        in message
    )
    assert "choose a newer driver branch" in message and "the whole log is /var/lib/gpu-ready/dkms-make.log" in message
    assert "CC [M]" not in message
    assert fleet.ssh(HOST, "dpkg --audit") == ""  # the package of the module was removed in the same step


@pytest.mark.long
def test_a_module_of_others_that_does_not_build(fleet: Fleet) -> None:
    """The headers build it: they are removed again in the same step, and the next runs refuse before any change."""
    extra = {"cuda_toolkit_source": "none", "cudnn_source": "none"}
    checked = fleet.play("--check", "--limit", OTHERS, extra=extra)
    assert "other_module_builds" in [one["code"] for one in checked.plan(OTHERS)["warnings"]]
    # It checks the package manager too: dpkg --audit, a real installation.
    first = fleet.play("--limit", OTHERS, extra=extra)
    message = " ".join(first.failures(OTHERS).split())
    assert "DKMS could not build evdi/1.9.1 for kernel" in message and "`dkms remove evdi/1.9.1 --all`" in message
    assert "evdi.c:" in message and "driver branch" not in message
    assert "Removed again, because they were left half configured: linux-headers-" in message
    for _ in range(2):
        run = fleet.play("--limit", OTHERS, extra=extra)
        (refusal,) = run.plan(OTHERS)["refusals"]
        assert refusal["code"] == "other_module_fails" and "`dkms remove evdi/1.9.1 --all`" in refusal["remedy"]
        assert run.changed(OTHERS) == []
    fleet.ssh(OTHERS, "dkms remove evdi/1.9.1 --all")
    last = fleet.play("--limit", OTHERS, extra=extra)
    assert last.rc == 0, last.failures(OTHERS)
