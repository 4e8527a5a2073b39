"""What uninstall takes back: what the manifest lists and is still there, and nothing else."""

import base64
import json
from pathlib import Path

import pytest
from gpu_ready.base import manifest
from gpu_ready.base.host import Result
from gpu_ready.lifecycle import uninstall
from gpu_ready.packaging import apt, rpm

from tests.unit.recorded import RecordedHost


def text(value: str) -> str:
    return base64.b64encode(value.encode()).decode()


def note(folder: Path, value: dict[str, object]) -> str:
    (folder / "manifest.json").write_text(json.dumps(value))
    return str(folder)


def test_nothing_noted_nothing_done(tmp_path: Path) -> None:
    assert uninstall.Uninstall(RecordedHost(), str(tmp_path / "none")).actions() == []


def test_files_are_restored_or_deleted_when_they_differ(tmp_path: Path) -> None:
    folder = note(
        tmp_path,
        {
            "files": {
                "/etc/a": {"before": None, "mode": None},
                "/etc/b": {"before": text("old"), "mode": 420},
                "/etc/same": {"before": text("x"), "mode": 420},
                "/etc/gone": {"before": None, "mode": None},
            }
        },
    )
    host = RecordedHost(files={"/etc/a": "ours", "/etc/b": "new", "/etc/same": "x"})
    words = [action.words for action in uninstall.Uninstall(host, folder).actions()]
    assert words == ["delete /etc/a", "restore /etc/b"]


SOURCES = {
    "before": text("deb http://mirror.example/debian trixie main\n"),
    "mode": 420,
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
def test_components_leave_a_source_list_that_was_edited_after_us(tmp_path: Path, now: str, after: str | None) -> None:
    path = tmp_path / "sources.list"
    path.write_text(now)
    folder = note(tmp_path, {"files": {str(path): SOURCES}})
    actions = uninstall.Uninstall(RecordedHost(files={str(path): now}), folder).files()
    assert len(actions) == (after is not None)
    for action in actions:
        action.act()
    assert path.read_text() == (now if after is None else after)


def test_the_rebuild_after_a_file_of_modprobe_is_marked_and_made_up_for(tmp_path: Path) -> None:
    path = tmp_path / "x.conf"
    folder = note(tmp_path, {"files": {"/etc/modprobe.d/x.conf": {"before": None, "mode": None}}})
    argv = ("update-initramfs", "-u", "-k", "all")
    host = RecordedHost(files={"/etc/modprobe.d/x.conf": ""}, programs={argv: Result(0, "", "")})
    work = uninstall.Uninstall(host, folder)
    words = [action.words for action in work.files()]
    assert words == ["delete /etc/modprobe.d/x.conf", "rebuild the initial RAM disk"]
    work.restore(str(path), None, None, list(argv))
    del host.files["/etc/modprobe.d/x.conf"]
    host.files[work.mark] = Path(work.mark).read_text()
    (action,) = uninstall.Uninstall(host, folder).files()
    action.act()
    assert host.asked == [argv]


def test_the_note_of_a_source_list_gathers_the_components_of_all_runs(tmp_path: Path) -> None:
    path = note(tmp_path, {"files": {"/a": {"before": "", "mode": 420}}}) + "/manifest.json"
    for names in (["contrib"], ["contrib", "non-free"]):
        manifest.note_components("/a", names, "trixie", path)
    entry = manifest.read(path)["files"]["/a"]
    assert entry == {"before": "", "mode": 420, "codename": "trixie", "components": ["contrib", "non-free"]}


def test_a_source_list_that_somebody_deleted_stays_away(tmp_path: Path) -> None:
    folder = note(tmp_path, {"files": {"/etc/apt/sources.list": SOURCES}})
    assert uninstall.Uninstall(RecordedHost(), folder).files() == []


def query(*lines: str) -> dict[tuple[str, ...], Result]:
    return {("dpkg-query", "-W", "-f", apt.QUERY): Result(0, "".join(line + "\n" for line in lines), "")}


def simulate(names: list[str], out: str) -> dict[tuple[str, ...], Result]:
    argv = ["apt-get", *apt.OPTIONS, "-s", "-o", "Debug::NoLocking=1", "purge", "--allow-change-held-packages", *names]
    return {tuple(argv): Result(0, out, "")}


def test_only_packages_that_are_there_are_purged(tmp_path: Path) -> None:
    folder = note(tmp_path, {"packages": {"a": {}, "b": {}, "c": {}}})
    programs = query("a\t1\tinstalled\tinstall", "b\t1\tconfig-files\tdeinstall", "x\t1\tinstalled\tinstall")
    programs |= simulate(["a", "b"], "Purg b [1]\nPurg a [1]\n")
    words = [a.words for a in uninstall.Uninstall(RecordedHost(programs=programs), folder).actions()]
    assert words == ["purge 2 packages: a, b"]


def test_a_package_of_others_that_needs_ours_stops_it_before_anything(tmp_path: Path) -> None:
    folder = note(tmp_path, {"packages": {"a": {}}, "files": {"/etc/a": {"before": None, "mode": None}}})
    programs = query("a\t1\tinstalled\tinstall") | simulate(["a"], "Remv theirs [1]\nPurg a [1]\n")
    with pytest.raises(uninstall.UninstallError, match="theirs needs packages that gpu-ready brought"):
        uninstall.Uninstall(RecordedHost(files={"/etc/a": ""}, programs=programs), folder).actions()


def test_our_keys_leave_daemon_json(tmp_path: Path) -> None:
    keys = {"/runtimes/nvidia": {"after": {"path": "nvidia-container-runtime"}, "made": ["/runtimes"]}}
    folder = note(tmp_path, {"daemon_json": {"/etc/docker/daemon.json": {"before": None, "keys": keys}}})
    host = RecordedHost(
        files={"/etc/docker/daemon.json": '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'}
    )
    words = [a.words for a in uninstall.Uninstall(host, folder).actions()]
    assert words == ["take our keys out of /etc/docker/daemon.json"]


DAEMON_JSON = "/etc/docker/daemon.json"
CDI = {"/features/cdi": {"after": True, "made": ["/features"]}}
RUNTIME = {"/runtimes/nvidia": {"after": {"path": "nvidia-container-runtime"}, "made": ["/runtimes"]}}
NVIDIA = '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}'


def engine(tmp_path: Path, keys: dict[str, object], text: str, **more: object) -> tuple[RecordedHost, str]:
    """A host whose docker was there before us, with one GPU container; ``text`` is its daemon.json."""
    path = tmp_path / "daemon.json"
    path.write_text(text)
    folder = note(tmp_path, {"daemon_json": {str(path): {"before": None, "keys": keys}}})
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
            ("/run/docker.sock", "/containers/json?limit=64"): '[{"Id": "c1"}]',
            ("/run/docker.sock", "/containers/c1/json"): json.dumps(container),
        },
        times={"/run/docker.pid": 10.0},
    )
    return host, folder


@pytest.mark.parametrize(
    ("keys", "text", "restart_ok", "verb"),
    [(RUNTIME, NVIDIA, False, "reload"), (CDI, '{"features": {"cdi": true}}', True, "restart")],
)
def test_docker_takes_over_that_our_keys_are_gone(
    tmp_path: Path, keys: dict[str, object], text: str, restart_ok: bool, verb: str
) -> None:
    host, folder = engine(tmp_path, keys, text)
    (action,) = uninstall.Uninstall(host, folder, restart_ok).docker()
    action.act()
    assert host.asked == [("systemctl", verb, "docker")]
    assert not (tmp_path / "daemon.json").exists()
    assert (tmp_path / "docker-restart.json").exists() == (verb == "restart")
    assert ("ends 1 running container" in action.words) == (verb == "restart")


def test_a_restart_that_would_end_gpu_containers_is_refused_before_anything(tmp_path: Path) -> None:
    host, folder = engine(tmp_path, CDI, '{"features": {"cdi": true}}')
    with pytest.raises(uninstall.UninstallError, match="end the running GPU container train.*docker_engine_restart_ok"):
        uninstall.Uninstall(host, folder).actions()
    host, folder = engine(tmp_path, CDI, '{"features": {"cdi": true}}', LiveRestoreEnabled=True)
    assert uninstall.Uninstall(host, folder).actions()


def test_a_restart_that_a_killed_run_left_out_is_made_up_for(tmp_path: Path) -> None:
    host, folder = engine(tmp_path, CDI, '{"debug": true}', ContainersRunning=0)
    host.files["/var/lib/gpu-ready/docker-restart.json"] = ""
    host.times["/var/lib/gpu-ready/docker-restart.json"] = 20.0
    (action,) = uninstall.Uninstall(host, folder).docker()
    action.act()
    assert action.words == "restart docker" and host.asked[-1] == ("systemctl", "restart", "docker")


@pytest.mark.parametrize(
    ("noted", "goes"),
    [
        ({"modules": {"nvidia": {}}}, True),
        ({"packages": {"nvidia-kernel-open-dkms": {}}}, True),  # the host loaded it at a boot
        ({"packages": {"kmod-nvidia-open-dkms": {}}}, True),
        ({"runfile": {"driver": {}}}, True),
        ({"packages": {"docker.io": {}, "nvidia-container-toolkit": {}}}, False),  # the driver is somebody else's
    ],
)
def test_modules_of_a_driver_that_goes_are_unloaded(noted: dict[str, object], goes: bool, tmp_path: Path) -> None:
    host = RecordedHost(files={"/sys/module/nvidia/refcnt": "0\n"}, programs=query())
    actions = uninstall.Uninstall(host, note(tmp_path, noted)).modules()
    assert [action.words for action in actions] == (["unload nvidia"] if goes else [])


def test_images_of_ours_leave_a_docker_that_stays(tmp_path: Path) -> None:
    ls = ("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "gpu-ready/verify")
    host = RecordedHost(programs={ls: Result(0, "gpu-ready/verify:1\ngpu-ready/verify:2\n", "")})
    folder = note(tmp_path, {"modules": {"nvidia": {}}})
    (action,) = uninstall.Uninstall(host, folder).images()
    assert action.words == "remove the images gpu-ready/verify:1, gpu-ready/verify:2"
    folder = note(tmp_path, {"packages": {"docker.io": {}}})
    assert uninstall.Uninstall(host, folder).images() == []


def test_what_a_purge_leaves_goes_unless_it_was_there_before(tmp_path: Path) -> None:
    folder = note(tmp_path, {"packages": {"docker.io": {}, "dkms": {}}, "stays": {"/var/lib/dkms/mok.key": {}}})
    files = {
        "/etc/docker/key.json": "",
        "/var/lib/dkms/mok.key": "",
        "/var/lib/dkms/mok.pub": "",
        "/etc/group": "docker:x:103:\n",
    }
    words = [a.words for a in uninstall.Uninstall(RecordedHost(files=files, programs=query()), folder).actions()]
    assert words == ["delete the group docker", "delete /etc/docker/key.json", "delete /var/lib/dkms/mok.pub"]


def test_a_group_with_members_stays(tmp_path: Path) -> None:
    folder = note(tmp_path, {"packages": {"docker.io": {}}})
    host = RecordedHost(files={"/etc/group": "docker:x:103:ann\n"}, programs=query())
    assert uninstall.Uninstall(host, folder).actions() == []


ROCKY = 'ID="rocky"\nPLATFORM_ID="platform:el9"\nVERSION_ID="9.6"\n'
DNF = {"/etc/os-release": ROCKY, "/usr/bin/dnf": ""}


def test_packages_streams_and_keys_of_a_host_with_rpms(tmp_path: Path) -> None:
    noted: dict[str, object] = {
        "packages": {"nvidia-driver": {}, "kernel-devel-5.14.0-600.el9.x86_64": {}, "gone": {}},
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
    work = uninstall.Uninstall(host, note(tmp_path, noted))
    removal = ("/usr/bin/dnf", "--assumeno", *work.manager.options(), "remove", *names)  # type: ignore[attr-defined]
    host.programs[removal] = Result(1, table, "Operation aborted.")
    assert [action.words for action in work.actions()] == [
        "purge 2 packages: " + ", ".join(names),
        "go back to the module stream none of nvidia-driver",
        "take gpg-pubkey-d6839024-6b012e80 out of the RPM database",
    ]
    host.programs[removal] = Result(1, table + " theirs x86_64 1-1 @r 1 k\n", "Operation aborted.")
    with pytest.raises(uninstall.UninstallError, match="theirs needs packages that gpu-ready brought"):
        work.actions()


@pytest.mark.parametrize(
    ("now", "after"),
    [
        ("[a]\nenabled=1\n[crb]\nenabled=1\n", "[a]\nenabled=1\n[crb]\nenabled=0\n"),
        ("# mine\n[a]\nenabled=0\n[crb]\nenabled=1\n", "# mine\n[a]\nenabled=0\n[crb]\nenabled=0\n"),
        ("[a]\nenabled=1\n[crb]\nenabled=0\n", None),
    ],
)
def test_sections_that_we_switched_on_go_off_and_an_edit_stays(tmp_path: Path, now: str, after: str | None) -> None:
    path = tmp_path / "rocky.repo"
    path.write_text(now)
    entry = {"before": text("[a]\nenabled=1\n[crb]\nenabled=0\n"), "mode": 420, "sections": ["crb"]}
    folder = note(tmp_path, {"files": {str(path): entry}})
    for action in uninstall.Uninstall(RecordedHost(files=DNF | {str(path): now}), folder).files():
        action.act()
    assert path.read_text() == (now if after is None else after)


def test_the_driver_of_our_installer_takes_itself_away_that_of_another_stays(tmp_path: Path) -> None:
    argv = ("/usr/bin/nvidia-uninstall", "--silent")
    host = RecordedHost(files={"/usr/bin/nvidia-uninstall": "#!/bin/sh\n"}, programs={argv: Result(1, "", "no")})
    assert uninstall.Uninstall(host, note(tmp_path, {"packages": {}})).runfile() == []
    (action,) = uninstall.Uninstall(host, note(tmp_path, {"runfile": {"driver": {"before": None}}})).runfile()
    assert "installer" in action.words
    with pytest.raises(uninstall.UninstallError, match="did not remove the driver"):
        action.act()


def test_folders_of_module_sources_that_a_purge_leaves_empty_go(tmp_path: Path) -> None:
    (tmp_path / "nvidia-580.95.05/lib").mkdir(parents=True)
    (tmp_path / "nvidia-1.0/lib").mkdir(parents=True)
    (tmp_path / "nvidia-1.0/notes").touch()
    for name in ("nvidia-580.95.05", "nvidia-1.0"):
        uninstall.remove_empty(str(tmp_path / name))
    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == ["nvidia-1.0", "nvidia-1.0/notes"]  # fmt: skip
    host = RecordedHost(files={"/usr/src/nvidia-1.0/a": "", "/usr/src/zfs-2/a": "", "/var/lib/dkms/nvidia/b": ""})
    found = uninstall.Uninstall(host, str(tmp_path)).module_sources()
    assert found == ["/usr/src/nvidia-1.0", "/var/lib/dkms/nvidia"]


def test_toolkits_of_the_installer_go_before_packages_and_after_cudnn(tmp_path: Path) -> None:
    value = {
        "cuda_runfile": {"12.9": {"before": None}, "12.8": {"before": None}},
        "cudnn": {"12.9": {"version": "9.10.2.21", "files": {}}},
    }
    words = [action.words for action in uninstall.Uninstall(RecordedHost(), note(tmp_path, value)).actions()]
    assert words == [
        "remove cuDNN from CUDA 12.9",
        "remove CUDA 12.8 of NVIDIA's installer",
        "remove CUDA 12.9 of NVIDIA's installer",
    ]


@pytest.mark.parametrize("enabled", [True, False])
def test_imex_that_we_enabled_is_disabled_before_its_package_goes(tmp_path: Path, enabled: bool) -> None:
    folder = note(tmp_path, {"packages": {"nvidia-imex": {}, "libcuda1": {}}})
    files = {uninstall.WANTS + "nvidia-imex.service": ""} if enabled else {}
    assert uninstall.Uninstall(RecordedHost(files=files), folder).imex() == (["nvidia-imex"] if enabled else [])
