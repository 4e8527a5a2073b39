"""A docker engine for the lab alone, with its own socket, data, network and processes."""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from . import paths
from .say import LabError, end, locked, recorded, run, say, succeeds, wait_for

NETWORKS = "engine/network/files/local-kv.db"
"""In the cache: the engine's database of networks, all of which the lab creates again."""
SOCKET = paths.STATE / "docker.sock"
CONTAINERD = paths.STATE / "containerd.sock"
PIDS = {"dockerd": paths.STATE / "dockerd.pid", "containerd": paths.STATE / "containerd.pid"}
INOTIFY = Path("/proc/sys/fs/inotify/max_user_instances")
INOTIFY_NEEDED = 8192
CGROUP = "/gpu-ready-lab"
ANSWER_LIMIT = 120
DOCKER = "/usr/bin/docker"  # by full path: another client may come first on PATH

# What a lab machine needs: program -> package.
NEEDS = {
    "/usr/sbin/dockerd": "docker.io",
    "/usr/bin/mmdebstrap": "mmdebstrap",
    "/usr/bin/gcc": "gcc",
    "/usr/bin/make": "make",
    "/usr/include/stdio.h": "libc6-dev",
    "/usr/bin/lspci": "pciutils",
    "/usr/bin/ssh-keygen": "openssh-client",
    "/usr/sbin/ip": "iproute2",
    "/usr/sbin/iptables": "iptables",
    "/usr/bin/dpkg-deb": "dpkg",
    "/usr/share/keyrings/debian-archive-keyring.gpg": "debian-archive-keyring",
}


def need_packages(needs: dict[str, str], why: str) -> None:
    """Install the packages of missing programs; their services are not started."""
    missing = _missing(needs)
    if not missing:
        return
    if os.geteuid() != 0:
        raise LabError(f"{why} needs the packages {', '.join(missing)}: run this as root, or install them first")
    if not Path("/usr/bin/apt-get").exists():
        raise LabError(
            f"{why} needs {', '.join(missing)}, and this machine has no apt-get: the lab runs on Debian and Ubuntu"
        )
    with locked(paths.STATE / "packages.lock"):  # apt-get would not wait for another one that reads the lists
        if missing := _missing(needs):
            say(f"installing {' '.join(missing)} with apt-get ({why}; no service is started)")
            _install(missing)


def _missing(needs: dict[str, str]) -> list[str]:
    return sorted({package for program, package in needs.items() if not Path(program).exists()})


def _install(packages: list[str]) -> None:
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    policy = Path("/usr/sbin/policy-rc.d")
    ours = not policy.exists()
    if ours:
        policy.write_text("#!/bin/sh\n# gpu-ready lab: packages it installs start no service\nexit 101\n")
        policy.chmod(0o755)
    try:
        apt = ["/usr/bin/apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=600", "--no-install-recommends"]
        run([*apt, "update"], limit=900, what="update the package lists", env=env)
        run([*apt, "install", *packages], limit=2700, what=f"install {' '.join(packages)}", env=env)
    finally:
        if ours:
            policy.unlink()


def docker(*arguments: str, limit: float = 300, what: str = "", stdin: bytes | None = None) -> str:
    """Run the docker client against the lab's engine and return what it printed."""
    return run(
        [DOCKER, "-H", f"unix://{SOCKET}", *arguments],
        limit=limit,
        stdin=stdin,
        what=what or f"run docker {arguments[0]}",
    )


def answers() -> bool:
    """True if the lab's engine runs. Only slow is not ended: `start` would end it with its hosts."""
    return SOCKET.exists() and succeeds([DOCKER, "-H", f"unix://{SOCKET}", "version"], limit=ANSWER_LIMIT)


def has_containers() -> bool:
    """True if the engine, running or not, has containers."""
    directory = paths.cache() / "engine/containers"
    return directory.is_dir() and any(directory.iterdir())


def start(begun: Callable[[], None] = lambda: None) -> None:
    """Start the engine and its network, unless they run; call `begun` before anybody else can use a new engine."""
    if os.geteuid() != 0:
        raise LabError("the lab starts containers with their own systemd and docker engine: run it as root")
    with locked(paths.STATE / "engine.lock"):
        if _start():
            begun()


def _start() -> bool:
    """Return whether the engine had to be started."""
    need_packages(NEEDS, "the lab's docker engine and host images")
    need_packages({DOCKER: "docker-cli"}, "the lab's docker engine")  # its own package from Debian 13 on
    _raise_limits()
    ran = answers() and recorded(PIDS["containerd"], paths.STATE) is not None
    if not ran:
        _start_processes()
    names = docker("network", "ls", "--format", "{{.Name}}").split()
    if paths.NETWORK not in names:
        docker(
            "network", "create", "--internal", "--subnet", paths.SUBNET, "--gateway", paths.ADDRESS,
            "-o", f"com.docker.network.bridge.name={paths.BRIDGE}", paths.NETWORK,
            what=f"make the network {paths.SUBNET} (is it in use on this machine?)",
        )  # fmt: skip
    wait_for(_has_address, limit=60, what=f"address {paths.ADDRESS} on {paths.BRIDGE}")
    return not ran


def _raise_limits() -> None:
    """Raise this machine's limit of inotify instances, of which every systemd takes several; `down` restores it."""
    before = int(INOTIFY.read_text())
    if before < INOTIFY_NEEDED:
        paths.STATE.mkdir(parents=True, exist_ok=True)
        (paths.STATE / "inotify-before").write_text(f"{before}\n")
        INOTIFY.write_text(f"{INOTIFY_NEEDED}\n")


def _restore_limits() -> None:
    kept = paths.STATE / "inotify-before"
    if kept.exists():
        INOTIFY.write_text(kept.read_text())
        kept.unlink()


def _has_address() -> bool:
    return f" {paths.ADDRESS}/" in run(["/usr/sbin/ip", "-o", "addr", "show"], limit=30, what="list addresses")


def _start_processes() -> None:
    paths.STATE.mkdir(parents=True, exist_ok=True)
    data = paths.cache() / "engine"
    data.mkdir(parents=True, exist_ok=True)
    _stop_processes()  # one of the two may have been killed alone; the other one has locked its data
    say("starting the lab's own docker engine")
    (paths.STATE / "containerd.toml").write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    (paths.STATE / "daemon.json").write_text("{}\n")
    CONTAINERD.unlink(missing_ok=True)
    SOCKET.unlink(missing_ok=True)
    (paths.STATE / "dockerd-own.pid").unlink(missing_ok=True)
    containerd = _spawn(
        "containerd",
        [
            "/usr/bin/containerd", "--config", str(paths.STATE / "containerd.toml"), "--address", str(CONTAINERD),
            "--root", str(data / "containerd"), "--state", str(paths.STATE / "containerd"),
        ],
    )  # fmt: skip
    _wait("containerd", containerd, CONTAINERD.exists)
    dockerd = _spawn(
        "dockerd",
        [
            "/usr/sbin/dockerd", "--config-file", str(paths.STATE / "daemon.json"), "--host", f"unix://{SOCKET}",
            "--containerd", str(CONTAINERD), "--data-root", str(data), "--exec-root", str(paths.STATE / "engine"),
            "--pidfile", str(paths.STATE / "dockerd-own.pid"), "--bridge", "none", "--iptables=false",
            "--ip6tables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false",
            "--exec-opt", "native.cgroupdriver=cgroupfs", "--cgroup-parent", CGROUP,
            "--log-driver", "json-file", "--log-opt", "max-size=1m", "--live-restore=false", "--shutdown-timeout", "10",
        ],
    )  # fmt: skip
    _wait("dockerd", dockerd, answers)


def _spawn(name: str, argv: Sequence[str]) -> subprocess.Popen[bytes]:
    with (paths.STATE / f"{name}.log").open("ab") as log:
        process = subprocess.Popen(
            list(argv), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            env={"PATH": "/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"},
        )  # fmt: skip
    PIDS[name].write_text(f"{process.pid}\n")
    return process


def _wait(name: str, process: subprocess.Popen[bytes], ready: Callable[[], bool]) -> None:
    """Wait until a process that was just started is ready; if it ends, raise an error with the end of its log."""
    log = paths.STATE / f"{name}.log"
    wait_for(lambda: ready() or process.poll() is not None, limit=180, what=f"{name} (its log: {log})")
    if not ready():
        words = "\n  ".join(log.read_text(errors="replace").strip().splitlines()[-5:])
        raise LabError(f"{name} ended at once; the end of {log} is:\n  {words}")


def stop() -> None:
    """Stop the engine, and remove its network, mounts and control groups."""
    miscounted = False
    if answers():
        for name in docker("network", "ls", "--format", "{{.Name}}").split():
            if name == paths.NETWORK:
                try:
                    docker("network", "rm", name, what="remove the lab's network")
                except LabError as error:
                    # Docker loses count of endpoints where a client or a host is killed at the wrong moment.
                    if "active endpoints" not in str(error) or docker("ps", "--all", "--quiet").split():
                        raise
                    miscounted = True
    _stop_processes()
    if miscounted:
        (paths.cache() / NETWORKS).unlink()
    if Path(f"/sys/class/net/{paths.BRIDGE}").exists():
        run(["/usr/sbin/ip", "link", "delete", paths.BRIDGE], limit=30, what=f"delete {paths.BRIDGE}")
    _unmount_below(paths.STATE)
    _unmount_below(paths.cache())
    _remove_control_groups()
    _restore_limits()


def _stop_processes() -> None:
    for name in ("dockerd", "containerd"):
        pid = recorded(PIDS[name], paths.STATE)
        if pid is not None:
            say(f"stopping {name}")
            end(pid, paths.STATE, name)


def _remove_control_groups() -> None:
    """Remove the control groups that the engine made for its containers."""
    tops = [Path("/sys/fs/cgroup"), *Path("/sys/fs/cgroup").iterdir()]
    for top in {(top / CGROUP[1:]).resolve() for top in tops if (top / CGROUP[1:]).is_dir()}:
        for directory in sorted((p for p in top.rglob("*") if p.is_dir()), key=lambda p: len(p.parts), reverse=True):
            directory.rmdir()
        top.rmdir()


def _unmount_below(directory: Path) -> None:
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    for point in sorted((p for p in points if p.startswith(f"{directory}/")), reverse=True):
        run(["/usr/bin/umount", "--lazy", point], limit=30, what=f"unmount {point}")


def remove_state() -> None:
    """Delete the lab's state directory; what could not be unmounted is never deleted through."""
    points = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
    held = [p for p in points if p.startswith(f"{paths.STATE}/")]
    if held:
        raise LabError(f"{held[0]} is still mounted: something uses it; find it with: fuser -vm {held[0]}")
    if paths.STATE.exists():
        shutil.rmtree(paths.STATE)
