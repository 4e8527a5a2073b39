"""A failed build, module or service ends in one message: thing, cause, remedy, and the place of the complete log."""

import pytest

from plugins.module_utils.gpu_ready.base import log_texts
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.driver import kernel_module, service
from plugins.module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from plugins.module_utils.gpu_ready.driver.runfile import install as runfile
from plugins.module_utils.gpu_ready.driver.runfile import messages as runfile_messages
from plugins.module_utils.gpu_ready.driver.runfile import spec as runfile_spec
from plugins.module_utils.gpu_ready.packaging import apt, apt_errors
from plugins.plugin_utils.explanations import find
from tests.unit.explained import explained
from tests.unit.recorded import RecordedHost

MAKE_LOG = "/var/lib/dkms/nvidia/580.95.05/build/make.log"
CALLED = (
    "Building module:\nCleaning build area...\n"
    "Error! Bad return status for module build on kernel: 6.12.0-1-amd64 (x86_64)\n"
    f"Consult {MAKE_LOG} for more information.\n"
    "dpkg: error processing package nvidia-kernel-dkms (--configure):\n"
    " installed nvidia-kernel-dkms package post-installation script subprocess returned error exit status 10\n"
)
NOISE = "".join(f"  CC [M]  /var/lib/dkms/nvidia/580.95.05/build/part{number}.o\n" for number in range(300))
HEAD = "DKMS make.log for nvidia-580.95.05 for kernel 6.12.0-1-amd64 (x86_64)\nmake[1]: Entering directory '/usr/src'\n"


def explained_build(manager: apt.Apt, answer: Result) -> str:
    """What the control node says of the build that failed in a call."""
    build = manager.find_build(answer)
    assert build
    return explained(manager.describe_build(build))


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (
            HEAD + NOISE + "/build/nv-mmap.c:77:5: error: implicit declaration of function 'take_lock' [-Werror]\n"
            "make[3]: *** [nv-mmap.o] Error 1\n",
            ["does not compile for this kernel", "take_lock", "newer driver branch"],
        ),
        (HEAD + "make: gcc-12: No such file or directory\nmake: *** [x] Error 127\n", ["tool for building", "gcc-12"]),
        (HEAD + "/bin/sh: 1: gcc-12: not found\nmake: *** [x] Error 127\n", ["tool for building", "gcc-12"]),
        (
            HEAD + "Compiler version check failed:\n\nThe major and minor number of the compiler differ.\n",
            ["built with another compiler", "name it in CC"],
        ),
        (
            HEAD + "make[1]: *** /lib/modules/6.12.0-1-amd64/build: No such file or directory.  Stop.\n",
            ["headers of the kernel are missing", "exactly this kernel"],
        ),
        (HEAD + "cc1: some failure nobody knows: error: strange\n", ["not known to gpu-ready", "strange"]),
    ],
)
def test_a_failed_build_names_the_compilers_reason_and_the_log(log: str, words: list[str]) -> None:
    host = RecordedHost(files={MAKE_LOG: log})
    manager = apt.Apt(host)
    answer = Result(100, CALLED, "E: Sub-process /usr/bin/dpkg returned an error code (1)\n")
    message = apt_errors.explain_failure("installing the driver", answer) + explained_build(manager, answer)
    assert message.startswith("installing the driver: DKMS could not build the module for kernel 6.12.0-1-amd64: ")
    assert f"; the whole log is {MAKE_LOG} on the host. Remedy: " in message
    assert len(message) < 700 and "\n" not in message and "CC [M]" not in message
    for word in words:
        assert word in message


def test_a_failure_without_a_build_gets_no_log() -> None:
    assert apt.Apt(RecordedHost()).find_build(Result(100, "", "E: Unable to locate package x")) is None


def test_missing_headers_are_named_without_a_log() -> None:
    text = (
        "Error! Your kernel headers for kernel 6.1.0-50-amd64 cannot be found at /lib/modules/6.1.0-50-amd64/build.\n"
    )
    message = explained_build(apt.Apt(RecordedHost()), Result(100, text, ""))
    assert "headers of the kernel are missing" in message and "install the headers" in message


NVRM = "[ 912.0] nvidia-nvlink: Nvlink Core is being initialized, major device number 509\n"


@pytest.mark.parametrize(
    ("printed", "log", "words"),
    [
        (
            "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service",
            "[ 912.1] Loading of module with unavailable key is rejected\n",
            ["Key was rejected by service", "Secure Boot", "mokutil --import"],
        ),
        (
            "modprobe: ERROR: could not insert 'nvidia': Operation not permitted",
            "[ 912.1] Lockdown: modprobe: unsigned module loading is restricted; see man kernel_lockdown.7\n",
            ["Operation not permitted", "Secure Boot", "mokutil --import"],
        ),
        (
            "modprobe: ERROR: could not insert 'nvidia': No such device",
            NVRM + "[ 912.1] NVRM: The NVIDIA probe routine was not called for 1 device(s).\n"
            "[ 912.1] NVRM: This can occur when another driver was loaded and \n"
            "NVRM: obtained ownership of the NVIDIA device(s).\n[ 912.2] NVRM: No NVIDIA devices probed.\n",
            ["No such device", "nouveau, vfio-pci", "blacklist nouveau"],
        ),
        (
            "modprobe: ERROR: could not insert 'nvidia': No such device",
            NVRM + "[ 912.1] NVRM: The NVIDIA Tesla K80 GPU installed in this system is\n"
            "[ 912.1] NVRM:  supported through the NVIDIA 470.xx Legacy drivers. Please\n"
            "[ 912.2] NVRM: No NVIDIA GPU found.\n",
            ["no longer supports the GPU", "470.xx", "branch that the message names"],
        ),
        (
            "modprobe: ERROR: could not insert 'nvidia_current': No such device",
            NVRM + "[ 912.2] NVRM: No NVIDIA GPU found.\n",
            ["No such device", "no GPU that it supports"],
        ),
        ("modprobe: ERROR: could not insert 'nvidia': Exec format error", "", ["built for another kernel", "6.1.0-50"]),
        (
            "modprobe: ERROR: could not insert 'nvidia_drm': Invalid argument",
            "[ 912.1] nvidia_drm: disagrees about version of symbol drm_open\n",
            ["Invalid argument", "built for another kernel"],
        ),
        (
            "modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.1.0-50-amd64",
            "",
            ["not found in directory", "was not built for the running kernel", "dkms status"],
        ),
        (
            "modprobe: ERROR: could not insert 'nvidia': File exists",
            "",
            ["File exists", "in use"],
        ),
        ("modprobe: ERROR: could not insert 'nvidia': Cannot allocate memory", "", ["Cannot allocate memory", "dmesg"]),
        ("", "", ["modprobe printed nothing", "dmesg"]),
    ],
)  # fmt: skip
def test_message_of_a_module_that_does_not_load(printed: str, log: str, words: list[str]) -> None:
    message = explained(kernel_module.describe_modprobe("nvidia", printed, "6.1.0-50-amd64", log))
    assert message.startswith("the module nvidia does not load") and "dmesg" in message
    assert "\n" not in message and len(message) < 700
    for word in words:
        assert word in message


def test_earlier_kernel_messages_do_not_explain_a_new_failure() -> None:
    before = "[1.0] NVRM: Xid (PCI:0000:01:00): 79, pid=1\n[2.0] usb: new device\n"
    assert log_texts.new_lines(before, before + "[3.0] NVRM: new\n") == "\n[3.0] NVRM: new\n"
    assert log_texts.new_lines("", "[3.0] x\n") == "[3.0] x\n"
    assert log_texts.new_lines("[1.0] dropped from the ring\n", "[3.0] x\n") == "[3.0] x\n"


STARTING = "Starting docker.service - Docker Application Container Engine...\n"


@pytest.mark.parametrize(
    ("journal", "words"),
    [
        (
            "unable to configure the Docker daemon with file /etc/docker/daemon.json: old trouble\n" + STARTING
            + 'failed to start daemon: specified default runtime "nvidia" does not exist\n'
            "docker.service: Main process exited, code=exited, status=1/FAILURE\n",
            ["no runtime named nvidia"],
        ),
        (
            STARTING + "unable to configure the Docker daemon with file /etc/docker/daemon.json: invalid character '}'\n",
            ["daemon.json is not valid", "invalid character"],
        ),
        (
            STARTING + "unable to configure the Docker daemon with file /etc/docker/daemon.json: the following directives"
            " are specified both as a flag and in the configuration file: hosts: (from flag: [fd://])\n",
            ["both as a flag and in"],
        ),
        (
            STARTING + "failed to start daemon: Error initializing network controller: error obtaining controller instance:"
            " failed to create NAT chain DOCKER: iptables failed: iptables: No chain\n",
            ["firewall", "iptables"],
        ),
        (
            STARTING + "failed to start daemon: Error initializing network controller: failed to append jump rules to"
            " nat-PREROUTING: Warning: Extension addrtype revision 0 not supported, missing kernel module?\n",
            ["firewall", "addrtype", "kernel-modules-extra"],
        ),
        (
            STARTING + "failed to start daemon: error initializing graphdriver: driver not supported: overlay2\n",
            ["storage driver"],
        ),
        (STARTING + "failed to start daemon: a thing nobody knows\n", ["not known to gpu-ready", "a thing nobody knows"]),
        (
            "failed to start daemon: specified default runtime \"nvidia\" does not exist\n" + STARTING
            + "docker.service: Main process exited, code=exited, status=1/FAILURE\n"
            "Failed to start docker.service - Docker Application Container Engine.\n",
            ["no runtime named nvidia"],
        ),
        (
            STARTING + "docker.service: Control process exited, code=exited, status=1/FAILURE\n"
            "docker.service: Failed with result 'exit-code'.\n",
            ["a command of the unit itself failed", "status=1/FAILURE", "drop-in"],
        ),
        (
            STARTING + "Traceback (most recent call last):\n  File \"/opt/x.py\", line 3, in <module>\nValueError: no such unit of time\n"
            "docker.service: Main process exited, code=exited, status=1/FAILURE\n"
            "docker.service: Failed with result 'exit-code'.\n"
            "docker.service: Scheduled restart job, restart counter is at 5.\n"
            "Stopped docker.service - Docker Application Container Engine.\n",
            ["not known to gpu-ready", "ValueError: no such unit of time"],
        ),
        ("", ["Unable to start service docker"]),
    ],
)  # fmt: skip
def test_message_of_a_service_that_does_not_start(journal: str, words: list[str]) -> None:
    host = RecordedHost(programs={service.journal_command("docker"): Result(0, journal, "")})
    message = explained(
        service.describe_service(host, "docker", "Unable to start service docker: Job failed. See 'systemctl status'.")
    )
    assert message.startswith("the service docker does not run: ")
    assert "; the whole log is the output of `journalctl -u docker` on the host. Remedy: " in message
    assert "\n" not in message and "old trouble" not in message
    for word in words:
        assert word in message


UNIT = "/lib/systemd/system/docker.service"
DROP_IN = "/etc/systemd/system/docker.service.d/50-check.conf"
RAN = "start_time=[Thu 2026-11-26 09:00:01 UTC] ; stop_time=[Thu 2026-11-26 09:00:02 UTC] ; pid=812 ; code=%s ; status=%s }"
NOT_RUN = "start_time=[n/a] ; stop_time=[n/a] ; pid=0 ; code=(null) ; status=0/0 }"


def command_line(directive: str, command: str, state: str, ignore: str = "no") -> str:
    """A command as `systemctl show` of systemd 252 prints it."""
    return f"{directive}={{ path={command.split()[0]} ; argv[]={command} ; ignore_errors={ignore} ; {state}\n"


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (
            command_line("ExecStartPre", "/bin/false", RAN % ("exited", "1")),
            ["ExecStartPre=/bin/false ended with status 1", f"remove that line in {DROP_IN} (`systemctl cat docker`"],
        ),
        (
            command_line("ExecStartPre", "/bin/true", RAN % ("exited", "0"))
            + command_line("ExecStartPost", "/opt/check --all now", RAN % ("killed", "9/KILL")),
            ["ExecStartPost=/opt/check --all now ended with status 9/KILL", f"remove that line in {UNIT} ("],
        ),
        (
            command_line("ExecStartPre", "/usr/bin/elsewhere", RAN % ("exited", "203")),
            ["ExecStartPre=/usr/bin/elsewhere ended with status 203", "correct or remove that line (`systemctl cat"],
        ),
        (command_line("ExecStartPre", "/bin/false", RAN % ("exited", "1"), ignore="yes"), ["the unit itself failed"]),
        (command_line("ExecStartPre", "/bin/false", NOT_RUN), ["the unit itself failed"]),
        (command_line("ExecStart", "/usr/bin/dockerd", RAN % ("exited", "1")), ["the unit itself failed"]),
    ],
)
def test_a_command_of_the_unit_that_failed_is_named_with_its_file(shown: str, words: list[str]) -> None:
    earlier = STARTING + 'failed to start daemon: specified default runtime "nvidia" does not exist\n'
    journal = earlier + STARTING + "docker.service: Control process exited, code=exited, status=1/FAILURE\n"
    paths = f"FragmentPath={UNIT}\nDropInPaths={DROP_IN}\n"
    host = RecordedHost(
        files={
            UNIT: '[Service]\nExecStart=/usr/bin/dockerd\nExecStartPost=+/opt/check  --all "now"\n',
            DROP_IN: "[Service]\n#ExecStartPre=/usr/bin/elsewhere\nExecStartPre=/bin/false\n",
        },
        programs={
            service.journal_command("docker"): Result(0, journal, ""),
            tuple(service.show_command("docker", *service.DIRECTIVES)): Result(0, shown, ""),
            tuple(service.show_command("docker", "FragmentPath", "DropInPaths")): Result(0, paths, ""),
        },
    )
    message = explained(service.describe_service(host, "docker", ""))
    assert all(word in message for word in words), message
    assert " Remedy: " in message


def test_the_services_own_reason_comes_before_a_command_that_failed() -> None:
    journal = STARTING + 'failed to start daemon: specified default runtime "nvidia" does not exist\n'
    shown = command_line("ExecStartPost", "/opt/check", RAN % ("exited", "1"))
    host = RecordedHost(
        programs={
            service.journal_command("docker"): Result(0, journal, ""),
            tuple(service.show_command("docker", *service.DIRECTIVES)): Result(0, shown, ""),
        }
    )
    assert "no runtime named nvidia" in explained(service.describe_service(host, "docker", ""))


def test_quoted_evidence_ends_with_its_line() -> None:
    journal = (
        STARTING
        + "unable to configure the Docker daemon with file /etc/docker/daemon.json: EOF\ndocker.service: Failed\n"
    )
    found = find([("container-error", journal)])
    assert found and found.message == "unable to configure the Docker daemon with file /etc/docker/daemon.json: EOF"
    modprobe = (
        "modprobe: ERROR: could not insert nvidia: Key was rejected by service\nmodprobe: ERROR: ../libkmod.c:1\n"
    )
    found = find([("installer-log", modprobe)])
    assert found and found.message == "Key was rejected by service"


def test_an_installer_whose_build_failed_names_the_compilers_reason() -> None:
    log = (
        "ERROR: Failed to run `/usr/sbin/dkms build -m nvidia -v 580.95.05 -k 6.12.0-1-amd64`: Building module:\n"
        f"Error! Bad return status for module build on kernel: 6.12.0-1-amd64 (x86_64)\nConsult {MAKE_LOG} for more.\n"
        "ERROR: Failed to install the kernel module through DKMS.  No kernel module was installed; see the DKMS logs.\n"
        "ERROR: Installation has failed.  Please see the file '/var/log/nvidia-installer.log' for details.\n"
    )
    files = {
        runfile_messages.LOG: log,
        MAKE_LOG: HEAD + NOISE + "nv-pci.c:9:5: error: 'struct x' has no member named 'y'\n",
    }
    host = RecordedHost(files=files, programs={("sh", "x.run"): Result(1, "", "")})
    spec = runfile_spec.DriverSpec("580.95.05", "open", ["6.12.0-1-amd64"])
    with pytest.raises(runfile_spec.RunfileError) as caught:
        runfile._call_installer(host, spec, ["sh", "x.run"], runfile_fetch.RunfileLimits(), {}, None)
    message = explained(str(caught.value))
    assert "does not compile for this kernel (nv-pci.c:9:5: error: 'struct x' has no member named 'y')" in message
    assert "ended with 1, and no driver was installed: " in message
    assert "; the whole log is /var/log/nvidia-installer.log on the host. Remedy: " in message
    assert len(message) < 500 and "CC [M]" not in message
