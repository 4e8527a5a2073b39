"""Lab hosts: containers with their own systemd, sshd, package manager and docker engine."""

import shlex
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from . import (
    dress,
    engine,
    hardware,
    images,
    mirror,
    mirror_faults,
    mirror_server,
    pasts,
    paths,
    pci_tree,
    python,
    vendors,
    vms,
    work,
)
from .fleet import NO_PYTHON, Fleet, Host
from .fleet import states as fleet_states
from .say import LabError, locked, run, say, succeeds, wait_for

KEY = "id_ed25519"
LABEL = "gpu-ready-lab.fleet"
OFF = ("exited", "created", "dead")
"""States of a host that does not run, in docker's words."""
BOOT_LIMIT = 360
BOOTED = """
[ -e /run/sshd.pid ] || exit 1
case $(systemctl is-system-running) in running | degraded) ;; *) exit 1 ;; esac
"""
"""True once sshd answers and every unit of the boot has started or failed (systemctl(1), is-system-running)."""
ENGINES = ("docker", "containers", "containerd")
"""Directories of /var/lib with layers of images: an overlay over the host's own overlay is refused by the kernel."""
PARALLEL = 4
# In the kernel's order: the number of each is its bit in the bounding set.
CAPABILITIES = (
    "CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "KILL", "SETGID", "SETUID", "SETPCAP",
    "LINUX_IMMUTABLE", "NET_BIND_SERVICE", "NET_BROADCAST", "NET_ADMIN", "NET_RAW", "IPC_LOCK", "IPC_OWNER",
    "SYS_MODULE", "SYS_RAWIO", "SYS_CHROOT", "SYS_PTRACE", "SYS_PACCT", "SYS_ADMIN", "SYS_BOOT", "SYS_NICE",
    "SYS_RESOURCE", "SYS_TIME", "SYS_TTY_CONFIG", "MKNOD", "LEASE", "AUDIT_WRITE", "AUDIT_CONTROL", "SETFCAP",
    "MAC_OVERRIDE", "MAC_ADMIN", "SYSLOG", "WAKE_ALARM", "BLOCK_SUSPEND", "AUDIT_READ", "PERFMON", "BPF",
    "CHECKPOINT_RESTORE",
)  # fmt: skip
SECURE_BOOT = "SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
BUNDLES = ("etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", "etc/pki/tls/certs/ca-bundle.crt")
"""Certificates that ansible's open_url loads by itself, which fails with Python 3.6 linked with OpenSSL 3
("unknown error (_ssl.c:3626)"), also for http. Enterprise Linux 8 has that Python with OpenSSL 1.1.1."""
BOOT_WITHOUT_PYTHON = "/usr/lib/gpu-ready-lab/boot-without-python"
FIRST_ADDRESS, LAST_ADDRESS = 10, 250
NEW_IDENTITY = "etc/gpu-ready-lab/new-identity"
"""While it exists, the next boot gives the host a machine id and SSH host keys of its own (data/host/kernel.py)."""


@dataclass(frozen=True)
class Running:
    """A container of the lab, running or not."""

    fleet: str
    host: str
    address: str
    state: str
    kind: str = "container"
    key: str = ""
    """The SSH key that it trusts; unknown of hosts that an older version of the lab made."""

    @property
    def container(self) -> str:
        """Its name in the lab's engine."""
        return container(self.fleet, self.host)


@dataclass(frozen=True)
class State:
    """A host's file system and the data of its container engines, as states.py keeps them."""

    image: str
    directory: Path
    """Has a directory for each of ENGINES."""


def volume(name: str, engine_name: str) -> Path:
    """Return the directory on this machine where a container's own container engine keeps its data."""
    return paths.cache() / "engine/volumes" / f"{name}-{engine_name}" / "_data"


def copy_directory(source: Path, target: Path) -> None:
    """Copy a directory's content with owners, device nodes and the extended attributes of overlays."""
    target.mkdir(parents=True, exist_ok=True)
    run(["/usr/bin/cp", "-a", f"{source}/.", str(target)], limit=900, what=f"copy {source} to {target}")


def container(fleet: str, host: str) -> str:
    """Return the container name of a host."""
    return f"grl-{fleet}-{host}"


def existing() -> list[Running]:
    """Return every lab host: the containers that the engine has, and the virtual machines."""
    found = [
        Running(m["fleet"], m["host"], m["address"], vms.state(m["fleet"], m["host"]), "vm", m.get("key", ""))
        for m in vms.existing()
    ]
    # One query: between a list and the details of each, a host of another fleet may be removed.
    shown = "\t".join(f'{{{{.Label "gpu-ready-lab.{name}"}}}}' for name in ("fleet", "host", "address", "key"))
    question = ("ps", "-a", "--filter", f"label={LABEL}", "--format", shown + "\t{{.State}}")
    for line in engine.docker(*question).splitlines() if engine.answers() else ():
        fleet, host, address, key, state = line.split("\t")
        found.append(Running(fleet, host, address, state, key=key))
    return sorted(found, key=lambda r: (r.fleet, r.host))


def find(name: str) -> Running:
    """Return the lab host of a name (HOST, or FLEET/HOST when two fleets have the same)."""
    found = [r for r in existing() if name in (r.host, f"{r.fleet}/{r.host}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise LabError(f"{name} is in more than one fleet: name {' or '.join(f'{r.fleet}/{r.host}' for r in found)}")
    names = ", ".join(r.host for r in existing()) or "none: start a fleet with `up FLEET.yml`"
    raise LabError(f"no lab host {name}; known: {names}")


def parallel(task: Callable[[Host], None], hosts: Iterable[Host]) -> None:
    """Run a task for several hosts at once; the first error is raised after all have ended."""
    with ThreadPoolExecutor(PARALLEL) as pool:
        futures = [pool.submit(task, host) for host in hosts]
    for future in futures:
        future.result()


def up(fleet: Fleet, proxy: str | None, states: Mapping[str, State]) -> dict[str, Running]:
    """Start every host of a fleet that does not run, and return them all; images are made when needed.

    `states` are those of the hosts that start from one, by host.
    """
    containers = [host for host in fleet.hosts if host.kind == "container"]
    plain = images.ensure_all({h.distribution for h in containers if h.name not in states}, proxy)
    image = {host.name: plain.get(host.distribution, "") for host in containers}
    image |= {name: state.image for name, state in states.items()}
    key = ssh_key(fleet.name)
    left = [r.host for r in existing() if r.fleet == fleet.name]
    guests = [host for host in fleet.hosts if host.kind == "vm"]
    bare = [host for host in guests if host.name not in left]
    disks = vms.prepare(bare, proxy) if bare else {}  # may take many minutes

    def create(host: Host) -> None:
        _create(fleet.name, host, image[host.name], address[host.name], key, proxy, new=host.name in states)
        if host.name in states:
            for name in ENGINES:
                copy_directory(states[host.name].directory / name, volume(container(fleet.name, host.name), name))

    with locked(paths.STATE / "addresses.lock"):  # an address is taken once its container or guest exists
        present = {r.host: r for r in existing() if r.fleet == fleet.name}
        address = _addresses(fleet, present)
        tree = mirror.tree_of_checkout(paths.cache())
        for each in address.values():
            mirror_server.point_at(paths.STATE, tree, each)
        new = [host for host in containers if host.name not in present]
        missing = [host.name for host in fleet.hosts if host.name not in present]
        say(
            f"{fleet.name}: {len(fleet.hosts)} hosts, {len(missing)} to be made"
            + (f": {', '.join(missing)}" if missing else "")
        )
        parallel(create, new)
        for host in guests:
            if host.name not in present:
                vms.create(fleet.name, host, disks[host.name], address[host.name], key, proxy)

    def start(host: Host) -> None:
        if host.name not in present or present[host.name].state != "running":
            engine.docker("start", container(fleet.name, host.name), limit=360, what=f"start the host {host.name}")
        wait_booted(container(fleet.name, host.name), host.name)
        if host.name not in present:
            _preinstall(container(fleet.name, host.name), host)
            _replace_gpus(container(fleet.name, host.name), host)
            for past in host.past:
                pasts.make(container(fleet.name, host.name), host.name, past)
            work.start(container(fleet.name, host.name), host.name, host.work)

    parallel(start, containers)
    for host in guests:  # one after the other: two at once only slow each other down
        vms.switch_on(fleet.name, host.name)
    return {r.host: r for r in existing() if r.fleet == fleet.name}


def _replace_gpus(name: str, host: Host) -> None:
    """Put the GPUs into the NVML library of a host that has others than its state, as after-dpkg does."""
    if not host.state or host.gpus == fleet_states()[host.state].gpus:
        return
    text = """
        find /usr/lib /usr/lib64 -type f -name 'libnvidia-ml.so.[0-9]*.[0-9]*' | while read -r library; do
          printf x >>"$library" # without its mark at the end after-dpkg writes it again
        done
        /usr/lib/gpu-ready-lab/after-dpkg
    """
    engine.docker("exec", name, "sh", "-euc", text, what=f"replace the GPUs of {host.name}")


def remove_leftovers(name: str) -> None:
    """Remove the hosts of a fleet that an interrupted run of another checkout left behind.

    This checkout cannot reach them: they trust the key of that one. Hosts that run may be in use there.
    """
    unreachable = [r for r in existing() if r.fleet == name and r.key != own_key(name)]
    running = [r.host for r in unreachable if r.state not in OFF]
    if running:
        raise LabError(
            f"{', '.join(running)} of {name} were started from another checkout, whose key they trust: "
            f"remove them first (`python -m gpu_ready_lab down {name}`)"
        )
    _remove_unreachable(unreachable)


def remove_interrupted() -> None:
    """Remove the containers that a killed engine left behind and that this checkout cannot reach.

    Docker starts them again when it starts (--restart), although nobody uses them. Virtual machines need no engine.
    """
    _remove_unreachable(r for r in existing() if r.kind == "container" and r.key != own_key(r.fleet))


def _remove_unreachable(which: Iterable[Running]) -> None:
    leftovers = list(which)
    if leftovers:
        names = ", ".join(f"{r.fleet}/{r.host}" for r in leftovers)
        say(f"an interrupted run of another checkout left {names}, which trust its key")
        remove(leftovers)


def _addresses(fleet: Fleet, present: dict[str, Running]) -> dict[str, str]:
    """The address of each host of a fleet: those that exist keep theirs."""
    used = {r.address for r in existing()}
    numbers = range(FIRST_ADDRESS, LAST_ADDRESS)
    free = (a for a in (f"{paths.PREFIX}.{n}" for n in numbers) if a not in used)
    return {host.name: present[host.name].address if host.name in present else next(free) for host in fleet.hosts}


def ssh_key(fleet: str) -> str:
    """Return the public half of a fleet's SSH key, created if it does not exist."""
    directory = paths.fleet_directory(fleet)
    directory.mkdir(parents=True, exist_ok=True)
    key = directory / KEY
    if not key.exists():
        run(
            ["/usr/bin/ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", f"gpu-ready lab {fleet}", "-f", str(key)],
            limit=60,
            what="make an SSH key",
        )
    return key.with_suffix(".pub").read_text()


def own_key(fleet: str) -> str | None:
    """Return the public half of this checkout's SSH key of a fleet, None if it has none."""
    path = paths.fleet_directory(fleet) / f"{KEY}.pub"
    return path.read_text().strip() if path.exists() else None


def _missing_capabilities() -> list[str]:
    """Options that drop capabilities missing in this machine's own bounding set, which no container can get."""
    status = Path("/proc/self/status").read_text()
    bounding = int(next(line.split()[1] for line in status.splitlines() if line.startswith("CapBnd:")), 16)
    missing = [name for bit, name in enumerate(CAPABILITIES) if not bounding >> bit & 1]
    return [option for name in missing for option in ("--cap-drop", name)]


def _create(
    fleet: str, host: Host, image: str, address: str, key: str, proxy: str | None, *, new: bool = False
) -> None:
    """Create a host's container; `new` if its image was made from another host, whose identity must not stay."""
    mirror_faults.forget(paths.STATE, address)  # of a host that had the address before
    name = container(fleet, host.name)
    absent = host.python == NO_PYTHON
    compiler_cache = paths.cache() / "ccache" / host.distribution
    compiler_cache.mkdir(parents=True, exist_ok=True)
    engine.docker(
        "create", "--name", name, "--hostname", host.name, "--restart", "always", "--stop-signal", "SIGRTMIN+3",
        "--label", f"{LABEL}={fleet}", "--label", f"gpu-ready-lab.host={host.name}",
        "--label", f"gpu-ready-lab.address={address}", "--label", f"gpu-ready-lab.key={key.strip()}",
        "--network", paths.NETWORK, "--ip", address, "--dns", "127.0.0.1", "--dns-search", ".",
        *vendors.add_hosts(),
        "--cap-add", "ALL", *_missing_capabilities(),
        "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
        "--security-opt", "systempaths=unconfined",
        "--device-cgroup-rule", "a *:* rwm", "--cgroupns", "private", "--tmpfs", "/run:rw,nosuid,nodev,mode=755",
        *[word for engine in ENGINES for word in ("-v", f"{name}-{engine}:/var/lib/{engine}")],
        "-v", f"{compiler_cache}:/var/cache/gpu-ready-lab/ccache",
        "--entrypoint", "", image, *((BOOT_WITHOUT_PYTHON,) if absent else ("/usr/lib/gpu-ready-lab/kernel", "boot")),
        what=f"create the host {host.name}",
    )  # fmt: skip
    files, links = pci_tree.tree(host)
    own: dict[str, tuple[bytes | str, int]] = {
        f"etc/gpu-ready-lab/pci/{path}": (data, 0o644) for path, data in files.items()
    }
    own["etc/gpu-ready-lab/host.json"] = (hardware.kernel_description(fleet, host), 0o644)
    own["etc/gpu-ready-lab/nvml.conf"] = (hardware.nvml_conf(fleet, host), 0o644)
    own["root/.ssh/authorized_keys"] = (key, 0o600)
    if proxy and dress.read(host.distribution).manager == "apt":
        own |= vendors.apt_files(proxy)
    if new:
        own[NEW_IDENTITY] = ("", 0o644)
    if host.secure_boot:  # the variable of the firmware: four bytes of attributes, then the value
        own[f"etc/gpu-ready-lab/efivars/{SECURE_BOOT}"] = (b"\x06\0\0\0\x01", 0o644)
    if absent:
        own[BOOT_WITHOUT_PYTHON.lstrip("/")] = ((paths.DATA / "python/boot-without").read_bytes(), 0o755)
    elif host.python:
        own |= {bundle: ("", 0o644) for bundle in BUNDLES}
        engine.docker(
            "cp", "-", f"{name}:/", stdin=python.archive(host.python), what=f"copy Python {host.python} to {host.name}"
        )
    host_links = {f"etc/gpu-ready-lab/pci/{path}": target for path, target in links.items()}
    engine.docker(
        "cp", "-", f"{name}:/", stdin=images.pack(own, host_links), what=f"copy its hardware to the host {host.name}"
    )


def wait_booted(name: str, host: str) -> None:
    """Wait for the end of a host's boot; the error for a host that does not boot has the end of its console."""
    exec_ = [engine.DOCKER, "-H", f"unix://{engine.SOCKET}", "exec", name]
    try:
        wait_for(
            lambda: succeeds([*exec_, "sh", "-c", BOOTED]),
            limit=BOOT_LIMIT,
            what=f"sshd and the end of the boot on the host {host}",
            pause=0.3,
        )
    except LabError as error:
        console = engine.docker("logs", "--tail", "6", name).strip() or "nothing"
        command = f"docker -H unix://{engine.SOCKET} exec -it {name} journalctl -b"
        raise LabError(f"{error}; its console shows: {console}; read it with: {command}") from None


def host_key(running: Running) -> str:
    """A host's SSH key, read inside the host and not over the network."""
    if running.kind == "vm":
        return vms.host_key(running.fleet, running.host)
    return engine.docker("exec", running.container, "cat", "/etc/ssh/ssh_host_ed25519_key.pub").strip()


PREINSTALL = {
    "apt": (
        "set -e; export DEBIAN_FRONTEND=noninteractive; "
        "for f in /etc/apt/sources.list /etc/apt/sources.list.d/debian.sources; do [ ! -e $f ] || "
        r"sed -i -E 's/^((deb|Components:)( .*)?) main$/\1 main contrib non-free non-free-firmware/' $f; done; "
        "apt-get -qq update; apt-get -qq -y --no-install-recommends install "
    ),
    "dnf": "$(command -v dnf || command -v yum) -q -y --setopt=install_weak_deps=False install ",
}


def _preinstall(name: str, host: Host) -> None:
    if not host.preinstalled:
        return
    say(f"{host.name}: installing {' '.join(host.preinstalled)} beforehand")
    script = PREINSTALL[dress.read(host.distribution).manager] + shlex.join(host.preinstalled)
    engine.docker(
        "exec", name, "sh", "-c", script, limit=1800, what=f"install {' '.join(host.preinstalled)} on {host.name}"
    )


def kill(running: Running) -> None:
    """Cut a host's power."""
    if running.kind == "vm":
        vms.kill(running.fleet, running.host)
        return
    engine.docker("kill", running.container, what=f"cut the power of {running.host}")


def power_on(running: Running) -> None:
    """Start a host that is off, and wait until it is up."""
    if running.kind == "vm":
        vms.switch_on(running.fleet, running.host)
        return
    engine.docker("start", running.container, limit=360, what=f"start {running.host}")
    wait_booted(running.container, running.host)


def remove(which: Iterable[Running]) -> None:
    """Remove hosts with all their data."""
    everything = list(which)
    if not everything:
        return
    say(f"removing {', '.join(r.host for r in everything)}")
    for guest in everything:
        mirror_server.root_link(paths.STATE, guest.address).unlink(missing_ok=True)
        if guest.kind == "vm":
            vms.remove(guest.fleet, guest.host)
    containers = [r for r in everything if r.kind == "container"]
    if not containers:
        return
    engine.docker("rm", "-f", "-v", *(r.container for r in containers), limit=900, what="remove the lab's hosts")
    volumes = set(engine.docker("volume", "ls", "-q").split()) & {
        f"{r.container}-{e}" for r in containers for e in ENGINES
    }
    if volumes:
        engine.docker("volume", "rm", "-f", *sorted(volumes), limit=900, what="remove the hosts' volumes")
