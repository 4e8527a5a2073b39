"""gpu_kernel_module: a live reload restores services and other modules, also when it fails."""

import itertools
import signal
import subprocess
import sys
import threading
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.answers.driver import KernelModuleAnswer
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Host, Result
from plugins.module_utils.gpu_ready.driver import live_reload, pod_processes, stopped_services
from tests.unit.recorded import RecordedHost

FINE = Result(0, "", "")


class Kernel(RecordedHost):
    """A host with modules and services; ``deaf``: what ignores commands, and how often."""

    def __init__(self, modules: tuple[str, ...], services: tuple[str, ...] = (), **deaf: int) -> None:
        super().__init__()
        self.modules = list(modules)
        self.services = list(services)
        self.deaf = deaf
        for name in modules:
            self.load(name)

    def load(self, name: str) -> None:
        self.files[f"/sys/module/{name}/refcnt"] = "0\n"

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.asked.append(tuple(argv))
        words = "_".join(argv[:2]).replace("-", "_").replace(".", "_")
        if argv[0] in ("rmmod", "modprobe") or argv[:2] == ["systemctl", "start"] or argv[:2] == ["systemctl", "stop"]:
            key = words if argv[0] != "systemctl" else f"{words}_{argv[2]}".replace("-", "_").replace(".", "_")
            if self.deaf.get(key, 0) > 0:
                self.deaf[key] -= 1
                return Result(1, "", f"{argv[0]}: ERROR: {argv[-1]} does not")
        if argv[0] == "rmmod":
            del self.files[f"/sys/module/{argv[1]}/refcnt"]
        elif argv[0] == "modprobe":
            self.load(argv[1].replace("-", "_"))
        elif argv[:2] == ["systemctl", "is-active"]:
            return Result(0, "".join("active\n" if unit in self.services else "inactive\n" for unit in argv[2:]), "")
        elif argv[:2] == ["systemctl", "stop"]:
            self.services.remove(argv[2])
        elif argv[:2] == ["systemctl", "start"]:
            self.services.append(argv[2])
        elif argv[0] == "dkms":
            return Result(127, "", "")
        return FINE

    def loaded(self) -> list[str]:
        return sorted(path.split("/")[3] for path in self.files if path.startswith("/sys/module/"))


@pytest.fixture
def swap(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module's function, with a clock that only sleep moves and no device nodes."""
    clock = itertools.count()
    fake_time = types.SimpleNamespace(sleep=lambda _: None, monotonic=lambda: float(next(clock)))
    monkeypatch.setattr(live_reload, "time", fake_time)
    monkeypatch.setattr(live_reload, "create_device_nodes", lambda _: [])
    monkeypatch.setattr(live_reload, "manifest_notes", types.SimpleNamespace(note=lambda *_: None))
    marked: list[str] = []
    monkeypatch.setattr(stopped_services, "read_stopped", lambda _: list(marked))

    def record_stopped(_: Host, units: list[str]) -> list[str]:
        marked.extend(units)
        return list(marked)

    monkeypatch.setattr(live_reload, "record_stopped", record_stopped)
    monkeypatch.setattr(live_reload, "clear_stopped", marked.clear)

    def change(
        host: Host,
        state: str = "reloaded",
        check: bool = False,
        later: Sequence[str] = (),
        force: bool = False,
        kubelet: str = "",
    ) -> dict[str, Any]:
        request = live_reload.ModuleRequest(state, ["nvidia", "nvidia-uvm"], list(later), force, kubelet)
        answer = live_reload.change_modules(host, request, check)
        KernelModuleAnswer(**answer)  # as the module answers
        return answer

    return types.SimpleNamespace(swap=change, marked=marked, ModuleError=live_reload.ModuleError)


def test_a_module_removed_from_dkms_by_a_reinstalled_package_is_built_again(swap: Any) -> None:
    """A power cut in %post, and the repair's `dnf reinstall`: %post builds, then %preun of the old one removes."""

    class Forgetful(Kernel):
        def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
            super().run(argv, timeout, env)
            return FINE

    host = Forgetful(())
    host.files["/usr/src/nvidia-open-580.178.04/dkms.conf"] = ""
    assert swap.swap(host, state="loaded")["changed"]
    calls = [call for call in host.asked if call[0] == "dkms"]
    assert [call[:2] for call in calls] == [("dkms", "status"), ("dkms", "add"), ("dkms", "install")]
    assert "nvidia-open/580.178.04" in calls[1] and "nvidia-open/580.178.04" in calls[2]


PERSISTENCED, EXPORTER = "nvidia-persistenced.service", "dcgm-exporter.service"


def test_modules_that_were_loaded_before_are_loaded_after(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm", "nvidia_peermem", "nvidia_drm", "nvidia_modeset", "gdrdrv"), (PERSISTENCED,))
    before = host.loaded()
    answer = swap.swap(host)
    assert answer["changed"] and not answer["reboot_required"] and answer["warnings"] == []
    assert host.loaded() == before and host.services == [PERSISTENCED]
    assert sorted(answer["modules"]) == before


def test_a_module_of_others_that_does_not_load_again_is_reported(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm", "gdrdrv"), (PERSISTENCED,), modprobe_gdrdrv=9)
    answer = swap.swap(host)
    assert answer["changed"] and host.loaded() == ["nvidia", "nvidia_uvm"] and host.services == [PERSISTENCED]
    (warning,) = answer["warnings"]
    assert "gdrdrv" in warning and "it was loaded before" in warning


def test_a_monitor_that_opens_the_device_meanwhile_is_awaited(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm"), (PERSISTENCED,), rmmod_nvidia=2)
    answer = swap.swap(host)
    assert answer["changed"] and not answer["reboot_required"] and host.services == [PERSISTENCED]


def test_a_program_that_ends_by_itself_is_awaited_without_any_service(swap: Any) -> None:
    class Brief(Kernel):
        looks = 0

        def listdir(self, path: str) -> list[str]:
            self.looks += path == "/proc"
            return [name for name in super().listdir(path) if name != "42" or self.looks < 4]

    host = Brief(("nvidia",))
    host.files["/proc/42/fd/7"] = ""
    host.links["/proc/42/fd/7"] = "/dev/nvidia0"
    answer = swap.swap(host)
    assert answer["changed"] and not answer["reboot_required"]


def test_a_module_that_stays_needs_a_reboot_and_the_services_run_again(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm"), (PERSISTENCED, EXPORTER), rmmod_nvidia=99)
    answer = swap.swap(host)
    assert answer["reboot_required"] and "rmmod nvidia" in answer["held_by"]
    assert sorted(host.services) == sorted([PERSISTENCED, EXPORTER])
    assert host.loaded() == ["nvidia", "nvidia_uvm"]  # what had been unloaded is loaded again


def test_a_service_that_cannot_start_with_the_old_module_does_not_hide_the_reboot(swap: Any) -> None:
    key = "systemctl_start_nvidia_persistenced_service"
    host = Kernel(("nvidia",), (PERSISTENCED, EXPORTER), rmmod_nvidia=99, **{key: 9})
    answer = swap.swap(host)
    assert answer["reboot_required"] and host.services == [EXPORTER]
    assert any(PERSISTENCED in warning for warning in answer["warnings"])


def test_a_service_that_does_not_start_does_not_block_the_others(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm"), (PERSISTENCED, EXPORTER), systemctl_start_nvidia_persistenced_service=9)
    with pytest.raises(swap.ModuleError, match=PERSISTENCED):
        swap.swap(host)
    assert host.services == [EXPORTER]


def test_a_service_that_does_not_stop_leaves_the_others_running(swap: Any) -> None:
    host = Kernel(("nvidia",), (EXPORTER, PERSISTENCED), systemctl_stop_nvidia_persistenced_service=9)
    with pytest.raises(swap.ModuleError, match=PERSISTENCED):
        swap.swap(host)
    assert sorted(host.services) == sorted([PERSISTENCED, EXPORTER]) and host.loaded() == ["nvidia"]


def test_a_check_changes_nothing(swap: Any) -> None:
    host = Kernel(("nvidia",), (PERSISTENCED,))
    assert swap.swap(host, check=True)["changed"] and {argv[0] for argv in host.asked} <= {"modinfo"}


def test_a_service_that_a_later_step_upgrades_is_left_to_that_step(swap: Any) -> None:
    fabric = "nvidia-fabricmanager.service"
    host = Kernel(("nvidia", "nvidia_uvm"), (PERSISTENCED, fabric), systemctl_start_nvidia_fabricmanager_service=9)
    answer = swap.swap(host, later=[fabric])
    assert host.services == [PERSISTENCED] and answer["services"] == [PERSISTENCED] and swap.marked == []


def test_services_of_a_failed_reload_are_started_by_the_next_one(swap: Any) -> None:
    host = Kernel(("nvidia",), (EXPORTER,), modprobe_nvidia=1)
    with pytest.raises(swap.ModuleError):
        swap.swap(host)
    assert host.services == [] and swap.marked == [EXPORTER]
    assert swap.swap(host, "loaded", check=True)["changed"] and host.services == []
    assert swap.swap(host, "loaded")["changed"] and host.services == [EXPORTER] and swap.marked == []
    assert not swap.swap(host, "loaded")["changed"]


def test_the_mark_of_stopped_services(tmp_path: Path) -> None:
    path, host = str(tmp_path / "state/services-stopped.json"), Host()
    assert stopped_services.read_stopped(host, path) == []
    assert live_reload.record_stopped(host, [], path) == [] and not Path(path).exists()
    assert live_reload.record_stopped(host, ["b", "a"], path) == ["b", "a"]
    assert (
        live_reload.record_stopped(host, ["a", "c"], path)
        == ["b", "a", "c"]
        == stopped_services.read_stopped(host, path)
    )
    live_reload.clear_stopped(path)
    live_reload.clear_stopped(path)
    assert stopped_services.read_stopped(host, path) == []


@pytest.mark.parametrize("text", ["", "{", "null", '{"a": 1}'])
def test_an_invalid_mark_is_refused_with_a_remedy(text: str) -> None:
    with pytest.raises(GpuReadyError, match=r"services-stopped\.json is damaged.*Start the services.*delete it"):
        stopped_services.read_stopped(RecordedHost(files={stopped_services.STOPPED: text}))


OPEN = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n"
CLOSED = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.95.05  Release Build\n"
MODINFO = "version:        580.95.05\nlicense:        Dual MIT/GPL\nsrcversion:     ABCDEF0123\n"


@pytest.mark.parametrize(
    ("proc", "source", "installed", "unloads"),
    [
        (OPEN, "ABCDEF0123\n", MODINFO, False),
        (OPEN, "0123456789\n", MODINFO, True),
        (CLOSED, "ABCDEF0123\n", MODINFO, True),
        (OPEN, "ABCDEF0123\n", MODINFO.replace("580.95.05", "580.178.04"), True),
        (OPEN, "", MODINFO.partition("srcversion")[0], True),
    ],
)
def test_a_module_that_is_the_installed_one_is_not_reloaded(
    swap: Any, proc: str, source: str, installed: str, unloads: bool
) -> None:
    """Another metapackage was installed, and the module did not change: every GPU stays in use."""
    host = Kernel(("nvidia", "nvidia_uvm"), ("nvidia-persistenced.service",))
    host.files |= {"/proc/driver/nvidia/version": proc, "/sys/module/nvidia/srcversion": source}
    run = host.run
    answer = Result(0, installed, "")
    host.run = lambda argv, *more, **named: answer if argv[0] == "modinfo" else run(argv, *more, **named)  # type: ignore[method-assign]
    done = swap.swap(host)
    assert done["changed"] is unloads
    assert (
        bool([argv for argv in host.asked if argv[0] in ("rmmod", "systemctl") and "is-active" not in argv]) is unloads
    )


def test_the_installed_module_is_reloaded_for_new_parameters(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm"), ("nvidia-persistenced.service",))
    host.files |= {"/proc/driver/nvidia/version": OPEN, "/sys/module/nvidia/srcversion": "ABCDEF0123\n"}
    run, answer = host.run, Result(0, MODINFO, "")
    host.run = lambda argv, *more, **named: answer if argv[0] == "modinfo" else run(argv, *more, **named)  # type: ignore[method-assign]
    assert not swap.swap(host)["changed"]
    assert swap.swap(host, force=True)["changed"]
    assert ("rmmod", "nvidia") in host.asked


class Pods(Kernel):
    """A host on which a process of a pod, and one of another container, hold a GPU."""

    def __init__(self, pid: int, cgroup: str) -> None:
        super().__init__(("nvidia", "nvidia_uvm"), (PERSISTENCED, "kubelet.service"))
        self.pid = pid
        self.files[f"/proc/{pid}/cgroup"] = f"0::{cgroup}\n"
        self.files[f"/proc/{pid}/comm"] = "dcgm-exporter\n"
        self.links[f"/proc/{pid}/fd/3"] = "/dev/nvidia0"

    def listdir(self, path: str) -> list[str]:
        """Without the process once it has ended."""
        ended = not Path(f"/proc/{self.pid}/exe").exists()
        return [name for name in super().listdir(path) if not (ended and path == "/proc" and name == str(self.pid))]


OF_POD = "/kubepods.slice/kubepods-burstable.slice/kubepods-pod1.slice/cri-containerd-" + 64 * "a" + ".scope"


@pytest.fixture
def process() -> Any:
    """A process that ignores SIGTERM, as the first one of a container does."""
    command = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", command], stdout=subprocess.PIPE) as running:
        assert running.stdout and running.stdout.readline()
        reaper = threading.Thread(target=running.wait)  # as a container's shim does
        reaper.start()
        yield running
        running.kill()
        reaper.join()


def test_pods_of_daemon_sets_are_ended_while_the_kubelet_is_stopped(
    swap: Any, process: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_processes, "GRACE", 0.5)
    host = Pods(process.pid, OF_POD)
    answer = swap.swap(host, kubelet="kubelet")
    assert process.wait(60) == -signal.SIGKILL
    assert not answer["reboot_required"] and answer["held_by"] == ""
    calls = [" ".join(call) for call in host.asked if call[0] in ("systemctl", "rmmod", "modprobe")]
    calls = [call for call in calls if "is-active" not in call]
    assert calls[0] == "systemctl stop kubelet.service" and calls[-1] == "systemctl start kubelet.service"
    assert calls.index("systemctl stop kubelet.service") < calls.index("rmmod nvidia") < len(calls) - 1


def test_the_kubelet_runs_on_where_no_pod_holds_a_gpu(swap: Any) -> None:
    host = Kernel(("nvidia", "nvidia_uvm"), (PERSISTENCED, "k3s.service"))
    answer = swap.swap(host, kubelet="k3s")
    assert answer["changed"] and not answer["reboot_required"]
    assert not [call for call in host.asked if "k3s.service" in call and {"stop", "start"} & set(call)]


@pytest.mark.parametrize(
    ("cgroup", "kubelet"),
    [(OF_POD, ""), ("/system.slice/docker-" + 64 * "a" + ".scope", "kubelet"), ("/user.slice", "kubelet")],
)
def test_no_other_process_is_ended(
    swap: Any, process: Any, cgroup: str, kubelet: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod_processes, "GRACE", 0.5)
    host = Pods(process.pid, cgroup)
    answer = swap.swap(host, kubelet=kubelet)
    assert process.poll() is None
    assert answer["reboot_required"] and f"process {process.pid} (dcgm-exporter)" in answer["held_by"]
    assert set(host.services) == {PERSISTENCED, "kubelet.service"}
