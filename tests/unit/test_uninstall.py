"""Uninstall reverts what the manifest lists and still exists, and nothing else."""

import base64
import importlib
import json
import re
import types
from pathlib import Path

import pytest
from ansible_collections.gpu_ready.nodes.plugins.action import gpu_host_module

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.base.disruptions import DISRUPTIONS
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.lifecycle import uninstall
from plugins.module_utils.gpu_ready.lifecycle.removal import drivers, engines, packages, purge, written_files
from plugins.module_utils.gpu_ready.lifecycle.removal.context import Removal
from plugins.module_utils.gpu_ready.lifecycle.removal.errors import UninstallError
from plugins.module_utils.gpu_ready.packaging import apt, rpm
from plugins.plugin_utils.gpu_ready.catalog import driver_packages
from tests.unit.recorded import RecordedHost


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def note(directory: Path, value: dict[str, object]) -> str:
    (directory / "manifest.json").write_text(json.dumps(value))
    return str(directory)


def written(content: str, before: str | None = None) -> dict[str, object]:
    """The record of a file that gpu-ready wrote, and that RecordedHost has with its mode and owner."""
    states = [[manifest.digest(content.encode()), 0o644, 0]]
    return {"before": None if before is None else text(before), "mode": before and 0o644, "written": states}


def test_an_empty_manifest_changes_nothing(tmp_path: Path) -> None:
    assert uninstall.find_actions(Removal(RecordedHost(), str(tmp_path / "none"))) == []


def test_files_are_restored_or_deleted_when_they_differ(tmp_path: Path) -> None:
    directory = note(
        tmp_path,
        {
            "files": {
                "/etc/a": written("ours"),
                "/etc/b": written("new", "old"),
                "/etc/same": {"before": text("x"), "mode": 420, "written": []},
                "/etc/deleted": {"before": None, "mode": None, "written": []},
            }
        },
    )
    host = RecordedHost(files={"/etc/a": "ours", "/etc/b": "new", "/etc/same": "x"})
    words = [action.words for action in uninstall.find_actions(Removal(host, directory))]
    assert words == ["delete /etc/a", "restore /etc/b"]


SOURCES = {
    "before": text("deb http://mirror.example/debian trixie main\n"),
    "mode": 420,
    "written": [],
    "codename": "trixie",
    "components": ["contrib", "non-free"],
}


@pytest.mark.parametrize(
    ("now", "after"),
    [
        ("deb http://mirror.example/debian trixie main contrib non-free\n", "deb http://mirror.example/debian trixie main\n"),
        ("# mine\ndeb http://mirror.example/debian trixie main contrib non-free\n", "# mine\ndeb http://mirror.example/debian trixie main\n"),
        ("# mine\ndeb http://mirror.example/debian trixie main\n", None),
        ("", None),
    ],
)  # fmt: skip
def test_components_are_removed_from_a_source_list_that_was_edited_since(
    tmp_path: Path, now: str, after: str | None
) -> None:
    path = tmp_path / "sources.list"
    path.write_text(now)
    directory = note(tmp_path, {"files": {str(path): SOURCES}})
    actions = written_files.find_files(Removal(RecordedHost(files={str(path): now}), directory))
    assert len(actions) == (after is not None)
    for action in actions:
        action.act()
    assert path.read_text() == (now if after is None else after)


def test_an_outstanding_rebuild_after_a_modprobe_file_is_done_by_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    directory = note(tmp_path, {"files": {"/etc/modprobe.d/x.conf": written("")}})
    argv = ("update-initramfs", "-u", "-k", "all")
    host = RecordedHost(files={"/etc/modprobe.d/x.conf": ""}, programs={argv: Result(0, "", "")})
    work = Removal(host, directory)
    words = [action.words for action in written_files.find_files(work)]
    assert words == ["delete /etc/modprobe.d/x.conf", "rebuild the initial RAM disk"]
    written_files.restore_file(work, str(path), None, None, list(argv))
    del host.files["/etc/modprobe.d/x.conf"]
    host.files[work.mark] = Path(work.mark).read_text()
    (action,) = written_files.find_files(Removal(host, directory))
    action.act()
    assert host.asked == [argv]


def test_the_record_of_a_source_list_has_the_components_of_all_runs(tmp_path: Path) -> None:
    path = note(tmp_path, {"files": {"/a": {"before": "", "mode": 420, "written": []}}}) + "/manifest.json"
    for names in (["contrib"], ["contrib", "non-free"]):
        manifest_notes.note_components("/a", names, "trixie", path)
    entry = manifest.read(path)["files"]["/a"]
    assert entry == {
        "before": "",
        "mode": 420,
        "written": [],
        "codename": "trixie",
        "components": ["contrib", "non-free"],
    }


def test_a_source_list_that_somebody_deleted_is_not_restored(tmp_path: Path) -> None:
    directory = note(tmp_path, {"files": {"/etc/apt/sources.list": SOURCES}})
    assert written_files.find_files(Removal(RecordedHost(), directory)) == []


def query(*lines: str) -> dict[tuple[str, ...], Result]:
    return {
        ("dpkg-query", "-W", "-f", apt.QUERY): Result(0, "".join(f"{line}\tamd64\n" for line in lines), ""),
        ("apt-mark", *apt.WITHOUT_SOURCES, "showmanual"): Result(0, "", ""),
    }


def simulate(names: list[str], out: str) -> dict[tuple[str, ...], Result]:
    argv = [
        "apt-get",
        *apt.OPTIONS,
        "-s",
        "-o",
        "Debug::NoLocking=1",
        *apt.WITHOUT_SOURCES,
        "purge",
        "--allow-change-held-packages",
        "--ignore-hold",
        *names,
    ]
    return {tuple(argv): Result(0, out, "")}


def test_only_installed_packages_are_purged(tmp_path: Path) -> None:
    directory = note(tmp_path, {"packages": {"a": {}, "b": {}, "c": {}}})
    programs = query("a\t1\tinstalled\tinstall", "b\t1\tconfig-files\tdeinstall", "x\t1\tinstalled\tinstall")
    programs |= simulate(["a", "b"], "Purg b [1]\nPurg a [1]\n")
    words = [a.words for a in uninstall.find_actions(Removal(RecordedHost(programs=programs), directory))]
    assert words == ["purge 2 packages: a, b"]


def test_a_package_that_others_need_is_kept_and_the_rest_is_reverted(tmp_path: Path) -> None:
    directory = note(tmp_path, {"packages": {"a": {}}, "files": {"/etc/a": written("ours")}})
    programs = query("a\t1\tinstalled\tinstall") | simulate(["a"], "Remv theirs [1]\nPurg a [1]\n")
    removal = Removal(RecordedHost(files={"/etc/a": "ours"}, programs=programs), directory)
    assert [action.words for action in uninstall.find_actions(removal)] == ["delete /etc/a"]
    assert removal.kept == ["the package a: theirs needs it"]


def test_own_keys_are_removed_from_daemon_json(tmp_path: Path) -> None:
    keys = {"/runtimes/nvidia": {"after": {"path": "nvidia-container-runtime"}, "made": ["/runtimes"]}}
    directory = note(tmp_path, {"daemon_json": {"/etc/docker/daemon.json": {"before": None, "keys": keys}}})
    host = RecordedHost(
        files={"/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'}
    )
    words = [a.words for a in uninstall.find_actions(Removal(host, directory))]
    assert words == ["remove gpu-ready's keys from /etc/docker/daemon.json"]


CDI: dict[str, object] = {"/features/cdi": {"after": True, "made": ["/features"]}}
RUNTIME: dict[str, object] = {
    "/runtimes/nvidia": {"after": {"path": "nvidia-container-runtime"}, "made": ["/runtimes"]}
}
NVIDIA = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'


def engine(tmp_path: Path, keys: dict[str, object], text: str, **more: object) -> tuple[RecordedHost, str]:
    """A host whose docker was installed before, with one GPU container; ``text`` is its daemon.json."""
    path = tmp_path / "daemon.json"
    path.write_text(text)
    directory = note(tmp_path, {"daemon_json": {str(path): {"before": None, "keys": keys}}})
    info = {"ServerVersion": "26.1.5", "ContainersRunning": 1, **more}
    container = {
        "Name": "/train",
        "HostConfig": {"DeviceRequests": [{"Driver": "", "Count": -1, "Capabilities": [["gpu"]]}]},
    }
    host = RecordedHost(
        files={str(path): text, "/run/docker.sock": "", "/run/docker.pid": "7", "/proc/7/comm": "dockerd\n"},
        programs={
            ("systemctl", "reload", "docker"): Result(0, "", ""),
            ("systemctl", "restart", "docker"): Result(0, "", ""),
        },
        sockets={
            ("/run/docker.sock", "/info"): json.dumps(info),
            ("/run/docker.sock", "/containers/json"): '[{"Id": "c1", "Names": ["/train"]}]',
            ("/run/docker.sock", "/containers/c1/json"): json.dumps(container),
        },
        times={"/run/docker.pid": 10.0},
    )
    return host, directory


@pytest.mark.parametrize(
    ("keys", "text", "permitted", "verb"),
    [(RUNTIME, NVIDIA, [], "reload"), (CDI, '{"features": {"cdi": true}}', ["docker_restart"], "restart")],
)
def test_docker_applies_the_removal_of_keys(
    tmp_path: Path, keys: dict[str, object], text: str, permitted: list[str], verb: str
) -> None:
    host, directory = engine(tmp_path, keys, text)
    work = Removal(host, directory, permitted)
    (action,) = engines.find_docker_edits(work)
    action.act()
    assert host.asked == [("systemctl", verb, "docker")]
    assert not (tmp_path / "daemon.json").exists()
    assert (tmp_path / "docker-restart.json").exists() == (verb == "restart")
    assert work.stops == (
        [
            "docker would restart (features is removed from %s), which stops container train (GPU)"
            % (tmp_path / "daemon.json")
        ]
        if verb == "restart"
        else []
    )


def test_a_restart_that_would_stop_containers_is_refused_before_any_change(tmp_path: Path) -> None:
    host, directory = engine(tmp_path, CDI, '{"features": {"cdi": true}}')
    with pytest.raises(
        UninstallError,
        match=r"stops container train \(GPU\); nothing was removed.*gpu_ready_disrupt: \[docker_restart\]",
    ):
        uninstall.find_actions(Removal(host, directory))
    host, directory = engine(tmp_path, CDI, '{"features": {"cdi": true}}', LiveRestoreEnabled=True)
    assert uninstall.find_actions(Removal(host, directory))


def in_use(recorded: dict[str, object], tmp_path: Path) -> tuple[RecordedHost, str]:
    """A host with a container on a GPU, which holds it, and what gpu-ready added there."""
    host, _ = engine(tmp_path, CDI, "{}")
    host.files |= {
        "/sys/module/nvidia/refcnt": "1\n",
        "/proc/42/comm": "python3\n",
        "/proc/42/cgroup": "0::/user.slice\n",
        "/var/lib/dpkg/status": "".join(
            f"Package: {name}\nStatus: install ok installed\nVersion: 1\n\n" for name in INSTALLED
        ),
    }
    host.links["/proc/42/fd/3"] = "/dev/nvidia0"
    host.programs |= query()
    return host, note(tmp_path, recorded)


INSTALLED = ("docker.io", "nvidia-container-toolkit")
DRIVER_USED = "the driver would be removed while it is used by process 42 (python3), container train (GPU)"
DOCKER_USED = "docker would be removed, which stops container train (GPU)"
TOOLKIT_USED = "the NVIDIA container toolkit would be removed, which is used by container train (GPU)"


@pytest.mark.parametrize(
    ("recorded", "disruption", "message"),
    [
        ({"modules": {"nvidia": {}}}, "driver_reload", DRIVER_USED),
        ({"runfile": {"driver": {"versions": []}}}, "driver_reload", DRIVER_USED),
        ({"packages": {"docker.io": {}}}, "docker_restart", DOCKER_USED),
        ({"packages": {"nvidia-container-toolkit": {}}}, "docker_restart", TOOLKIT_USED),
    ],
)
def test_what_is_in_use_is_not_removed_without_permission(
    recorded: dict[str, object], disruption: str, message: str, tmp_path: Path
) -> None:
    host, directory = in_use(recorded, tmp_path)
    for permitted in ([], ["reboot"]):
        work = Removal(host, directory, permitted)
        with pytest.raises(UninstallError) as caught:
            refuse(work)
        assert str(caught.value).startswith(message + "; nothing was removed")
        assert f"gpu_ready_disrupt: [{disruption}]" in str(caught.value)
    work = Removal(host, directory, [disruption])
    refuse(work)
    assert work.stops == [message]


def refuse(work: Removal) -> None:
    """Look for work that the removal would stop, as the list of the actions does."""
    drivers.find_modules(work)
    packages.refuse_removal_in_use(work, sorted(work.recorded.get("packages", {})))


def test_the_drivers_own_services_do_not_keep_it(tmp_path: Path) -> None:
    host, directory = in_use({"modules": {"nvidia": {}}}, tmp_path)
    host.files["/proc/42/cgroup"] = "0::/system.slice/nvidia-persistenced.service\n"
    host.sockets["/run/docker.sock", "/containers/json"] = "[]"
    assert [action.words for action in drivers.find_modules(Removal(host, directory))] == ["unload nvidia"]


def test_without_confirmation_it_is_listed_what_would_be_removed_and_stopped(tmp_path: Path) -> None:
    host, directory = in_use({"modules": {"nvidia": {}}, "files": {"/etc/a": written("ours")}}, tmp_path)
    host.files["/etc/a"] = "ours"
    work = Removal(host, directory, DISRUPTIONS)
    lines = uninstall.describe_unconfirmed(uninstall.find_actions(work), work).splitlines()
    assert lines[0].startswith("nothing was removed: set gpu_ready_uninstall=true")
    assert {"- unload nvidia", "- delete /etc/a", "- " + DRIVER_USED} <= set(lines)


def test_an_outstanding_restart_of_a_killed_run_is_done_by_the_next(tmp_path: Path) -> None:
    host, directory = engine(tmp_path, CDI, '{"debug": true}', ContainersRunning=0)
    host.files["/var/lib/gpu-ready/docker-restart.json"] = ""
    host.times["/var/lib/gpu-ready/docker-restart.json"] = 20.0
    host.sockets["/run/docker.sock", "/containers/json"] = "[]"
    (action,) = engines.find_docker_edits(Removal(host, directory))
    action.act()
    assert action.words == "restart docker" and host.asked[-1] == ("systemctl", "restart", "docker")


@pytest.mark.parametrize(
    ("recorded", "unloaded"),
    [
        ({"modules": {"nvidia": {}}}, True),
        ({"packages": {"nvidia-kernel-open-dkms": {}}}, True),  # the host loaded it at boot
        ({"packages": {"kmod-nvidia-open-dkms": {}}}, True),
        ({"runfile": {"driver": {"versions": []}}}, True),
        ({"packages": {"docker.io": {}, "nvidia-container-toolkit": {}}}, False),  # the driver belongs to somebody else
    ],
)
def test_modules_of_a_removed_driver_are_unloaded(recorded: dict[str, object], unloaded: bool, tmp_path: Path) -> None:
    host = RecordedHost(files={"/sys/module/nvidia/refcnt": "0\n"}, programs=query())
    actions = drivers.find_modules(
        Removal(host, note(tmp_path, recorded), driver_packages=driver_packages.driver_pattern())
    )
    assert [action.words for action in actions] == (["unload nvidia"] if unloaded else [])


def test_own_images_are_removed_from_a_docker_that_stays(tmp_path: Path) -> None:
    ls = ("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "gpu-ready/verify")
    images = Result(0, "gpu-ready/verify:1\ngpu-ready/verify:2\n", "")
    installed = query("docker.io\t1\tinstalled\tinstall") | simulate(["docker.io"], "Purg docker.io [1]\n")
    host = RecordedHost(programs={ls: images, **installed})
    directory = note(tmp_path, {"modules": {"nvidia": {}}})
    (action,) = engines.find_images(Removal(host, directory))
    assert action.words == "remove the images gpu-ready/verify:1, gpu-ready/verify:2"
    directory = note(tmp_path, {"packages": {"docker.io": {}}})
    assert engines.find_images(Removal(host, directory)) == []


def test_leftovers_of_a_purge_are_removed_unless_they_existed_before(tmp_path: Path) -> None:
    directory = note(tmp_path, {"packages": {"docker.io": {}, "dkms": {}}, "stays": {"/var/lib/dkms/mok.key": {}}})
    files = {
        "/etc/docker/key.json": "",
        "/var/lib/dkms/mok.key": "",
        "/var/lib/dkms/mok.pub": "",
        "/etc/group": "docker:x:103:\n",
    }
    words = [a.words for a in uninstall.find_actions(Removal(RecordedHost(files=files, programs=query()), directory))]
    assert words == ["delete the group docker", "delete /etc/docker/key.json", "delete /var/lib/dkms/mok.pub"]


def test_a_group_with_members_stays(tmp_path: Path) -> None:
    directory = note(tmp_path, {"packages": {"docker.io": {}}})
    host = RecordedHost(files={"/etc/group": "docker:x:103:ann\n"}, programs=query())
    assert uninstall.find_actions(Removal(host, directory)) == []


ROCKY = 'ID="rocky"\nPLATFORM_ID="platform:el9"\nVERSION_ID="9.6"\n'
DNF = {"/etc/os-release": ROCKY, "/usr/bin/dnf": ""}


def test_packages_streams_and_keys_of_a_host_with_rpms(tmp_path: Path) -> None:
    recorded: dict[str, object] = {
        "packages": {"nvidia-driver": {"manual": True}, "kernel-devel-5.14.0-600.el9.x86_64": {}, "deleted": {}},
        "streams": {"nvidia-driver": {"before": None}},
        "rpm_keys": {"b31eec9d30382b5b98a2c5801d7127ecd6839024": {}},
    }
    rows = (
        "nvidia-driver\t3\t580.1\t1.el9\tx86_64\nkernel-devel\t(none)\t5.14.0\t570.el9\tx86_64\n"
        "kernel-devel\t(none)\t5.14.0\t600.el9\tx86_64\n"
    )
    names = ["kernel-devel-5.14.0-600.el9.x86_64", "nvidia-driver"]
    table = "Removing:\n kernel-devel x86_64 5.14.0-600.el9 @r 1 k\n nvidia-driver x86_64 3:580.1-1.el9 @r 1 k\n"
    keys = ("rpm", "-q", "gpg-pubkey", "--qf", "%{VERSION} %{NAME}-%{VERSION}-%{RELEASE}\n")
    host = RecordedHost(
        files=DNF | {"/etc/dnf/modules.d/nvidia-driver.module": "[nvidia-driver]\nstream=580-open\nstate=enabled\n"},
        programs={
            tuple(rpm.QUERY): Result(0, rows, ""),
            keys: Result(0, "d6839024 gpg-pubkey-d6839024-6b012e80\n11111111 gpg-pubkey-11111111-1\n", ""),
        },
    )
    work = Removal(host, note(tmp_path, recorded))
    removal = ("/usr/bin/dnf", "--assumeno", *work.manager.options(), "remove", *names)  # type: ignore[attr-defined]
    host.programs[removal] = Result(1, table, "Operation aborted.")
    options = work.manager.options()  # type: ignore[attr-defined]
    query = ("/usr/bin/dnf", "-y", *options, "repoquery", "--userinstalled", "--qf", "%{name}\\n")
    host.programs[query] = Result(0, "bash\nnvidia-driver\n", "")  # recorded as requested by gpu-ready itself
    assert [action.words for action in uninstall.find_actions(work)] == [
        "purge 2 packages: " + ", ".join(names),
        "restore the module stream none of nvidia-driver",
        "remove gpg-pubkey-d6839024-6b012e80 from the RPM database",
    ]
    host.programs[removal] = Result(1, table + " theirs x86_64 1-1 @r 1 k\n", "Operation aborted.")
    devel = Result(1, "\n".join(table.splitlines()[:2]) + "\n", "Operation aborted.")
    host.programs[(*removal[:-2], names[0])] = devel
    work = Removal(host, str(tmp_path))
    uninstall.find_actions(work)
    assert work.packages == ([names[0]], {"nvidia-driver": "theirs needs it"})
    assert work.kept == ["the package nvidia-driver: theirs needs it"]


@pytest.mark.parametrize(
    ("now", "after"),
    [
        ("[a]\nenabled=1\n[crb]\nenabled=1\n", "[a]\nenabled=1\n[crb]\nenabled=0\n"),
        ("# mine\n[a]\nenabled=0\n[crb]\nenabled=1\n", "# mine\n[a]\nenabled=0\n[crb]\nenabled=0\n"),
        ("[a]\nenabled=1\n[crb]\nenabled=0\n", None),
    ],
)
def test_enabled_sections_are_disabled_again_and_an_edit_stays(tmp_path: Path, now: str, after: str | None) -> None:
    path = tmp_path / "rocky.repo"
    path.write_text(now)
    entry = {"before": text("[a]\nenabled=1\n[crb]\nenabled=0\n"), "mode": 420, "written": [], "sections": ["crb"]}
    directory = note(tmp_path, {"files": {str(path): entry}})
    for action in written_files.find_files(Removal(RecordedHost(files=DNF | {str(path): now}), directory)):
        action.act()
    assert path.read_text() == (now if after is None else after)


def test_the_driver_of_an_own_installer_is_removed_and_that_of_another_stays(tmp_path: Path) -> None:
    argv = ("/usr/bin/nvidia-uninstall", "--silent")
    host = RecordedHost(files={"/usr/bin/nvidia-uninstall": "#!/bin/sh\n"}, programs={argv: Result(1, "", "no")})
    assert drivers.find_installer_driver(Removal(host, note(tmp_path, {"packages": {}}))) == []
    (action,) = drivers.find_installer_driver(Removal(host, note(tmp_path, {"runfile": {"driver": {"versions": []}}})))
    assert "installer" in action.words
    with pytest.raises(UninstallError, match="did not remove the driver"):
        action.act()


def test_empty_directories_of_module_sources_are_removed(tmp_path: Path) -> None:
    (tmp_path / "nvidia-580.95.05/lib").mkdir(parents=True)
    (tmp_path / "nvidia-1.0/lib").mkdir(parents=True)
    (tmp_path / "nvidia-1.0/notes").touch()
    for name in ("nvidia-580.95.05", "nvidia-1.0"):
        purge.remove_empty(str(tmp_path / name))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == ["nvidia-1.0", "nvidia-1.0/notes"]  # fmt: skip
    host = RecordedHost(files={"/usr/src/nvidia-1.0/a": "", "/usr/src/zfs-2/a": "", "/var/lib/dkms/nvidia/b": ""})
    found = purge.find_module_sources(host)
    assert found == ["/usr/src/nvidia-1.0", "/var/lib/dkms/nvidia"]


def test_toolkits_of_the_installer_are_removed_before_packages_and_after_cudnn(tmp_path: Path) -> None:
    value = {
        "cuda_runfile": {"12.9": {"before": None}, "12.8": {"before": None}},
        "cudnn": {"12.9": {"version": "9.10.2.21", "files": {}}},
    }
    words = [action.words for action in uninstall.find_actions(Removal(RecordedHost(), note(tmp_path, value)))]
    assert words == [
        "remove cuDNN from CUDA 12.9",
        "remove CUDA 12.8 of NVIDIA's installer",
        "remove CUDA 12.9 of NVIDIA's installer",
    ]


def test_which_packages_are_a_driver_comes_from_the_control_node() -> None:
    plugin = object.__new__(gpu_host_module.ActionModule)
    plugin._task = types.SimpleNamespace(action="gpu_ready.nodes.gpu_uninstall", args={"gpu_ready_uninstall": True})
    given = plugin.module_arguments()
    assert given["gpu_ready_uninstall"] and re.fullmatch(given["driver_packages"], "nvidia-driver-580-open")
    assert not re.fullmatch(given["driver_packages"], "nvidia-container-toolkit")
    module = importlib.import_module("ansible_collections.gpu_ready.nodes.plugins.modules.gpu_uninstall")
    with pytest.raises(GpuReadyError, match="did not find the action plugin of gpu_uninstall"):
        module.run(RecordedHost(), {"gpu_ready_uninstall": True, "driver_packages": None}, True)
