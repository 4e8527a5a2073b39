"""States: hosts provisioned by site.yml, made once, kept in the cache, and used like an image.

A state is an image of the lab's engine (the host's file system) and a directory in the cache (the data of its own
container engines). Its name ends with a digest of everything that it was made of, so a change of the product makes
a new one. A host that starts from a state boots as after a power cycle. It has its own name, address, SSH host keys
and machine id; its GPUs, with their UUIDs, are those of the state, because the product has recorded them.
"""

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from . import engine, fleet, hardware, hosts, images, inventory, mirror, paths, pci_tree
from .fleet import Fleet, Host
from .hosts import State
from .say import LabError, locked, say, succeeds

PRODUCT = (
    "module_utils", "library", "meta", "roles", "playbooks", "plugins", "catalog", "requirements", "site.yml",
    "ansible.cfg",
)  # fmt: skip
"""What can change the outcome of a run, relative to the checkout."""
FRESH_FOR = images.FRESH_FOR
KEPT = 2
"""How many states of one name stay in the cache: two checkouts may alternate on one machine."""
PLAY_LIMIT = 4800  # seconds
STOP_LIMIT = 180
"""Seconds of a shutdown: docker kills a host that takes longer, and its state would be that of a power cut."""


def ensure(needed: Fleet, proxy: str | None, variables: Mapping[str, Any]) -> dict[str, State]:
    """Return the state of each host of a fleet that starts from one, by host; missing states are made together."""
    names = sorted({host.state for host in needed.hosts if host.state is not None})
    if not names:
        return {}
    declared = {name: fleet.states()[name] for name in names}
    bases = images.ensure_all({host.distribution for host in declared.values()}, proxy)
    with contextlib.ExitStack() as locks:
        for name in names:  # in one order, so that two commands cannot wait for each other
            locks.enter_context(locked(paths.STATE / f"state-{name}.lock"))
        found = {name: _state(name, host, bases[host.distribution], variables) for name, host in declared.items()}
        missing = [name for name in names if not _exists(found[name])]
        if missing:
            _make([declared[name] for name in missing], found, proxy, variables)
            for name in missing:
                _forget_older(name)
    return {host.name: found[host.state] for host in needed.hosts if host.state is not None}


# ---- identity -------------------------------------------------------------------------------------


def _state(name: str, host: Host, base: str, variables: Mapping[str, Any]) -> State:
    total = hashlib.sha256(product_digest().encode())
    identity = engine.docker("image", "inspect", "-f", "{{.Id}}", base).strip()
    tree = mirror.tree_of_checkout(paths.cache()).name
    code = b"".join(Path(str(module.__file__)).read_bytes() for module in (hardware, pci_tree, sys.modules[__name__]))
    for part in (identity, tree, repr(host), repr(sorted(variables.items())), hashlib.sha256(code).hexdigest()):
        total.update(f"{part}\n".encode())
    digest = total.hexdigest()[:16]
    return State(f"gpu-ready-lab/state-{name}:{digest}", paths.cache() / "states" / f"{name}-{digest}")


@cache
def product_digest() -> str:
    """Return a digest of the files of the product: paths and contents."""
    total = hashlib.sha256()
    for name in PRODUCT:
        top = paths.REPO / name
        for path in [top] if top.is_file() else paths.sources(top):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.relative_to(paths.REPO)} {content}\n".encode())
    return total.hexdigest()


def _exists(state: State) -> bool:
    return state.directory.is_dir() and bool(engine.docker("images", "-q", state.image).strip())


# ---- making ---------------------------------------------------------------------------------------


def _make(
    declared: Collection[Host], found: Mapping[str, State], proxy: str | None, variables: Mapping[str, Any]
) -> None:
    """Provision one host for each state, shut it down and save it."""
    started = time.monotonic()
    names = [host.name for host in declared]
    say(f"making the states {', '.join(names)} with site.yml (kept in the cache until the product changes)")
    maker = Fleet(f"states-{os.getpid()}", tuple(replace(host, state=host.name) for host in declared))
    try:
        running = hosts.up(maker, proxy, {})
        order = {name: running[name].address for name in names}
        keys = {name: hosts.host_key(running[name]) for name in names}
        path = inventory.write(maker, order, keys, variables)
        _play(path)
        hosts.parallel(lambda host: _keep(running[host.name], found[host.name]), maker.hosts)
    finally:
        hosts.remove([each for each in hosts.existing() if each.fleet == maker.name])
        shutil.rmtree(paths.fleet_directory(maker.name), ignore_errors=True)
    say(f"made the states {', '.join(names)} in {time.monotonic() - started:.0f} s")


def _play(hosts_file: Path) -> None:
    """Run site.yml on the hosts, as a user does."""
    program = Path(sys.executable).parent / "ansible-playbook"
    log = hosts_file.parent / "site.log"
    reports = hosts_file.parent / "reports"
    with log.open("wb") as output:
        try:
            status = subprocess.run(
                [str(program), "site.yml", "-i", str(hosts_file), "-e", f"gpu_report_directory={reports}"],
                cwd=paths.REPO, stdin=subprocess.DEVNULL, stdout=output, stderr=output, timeout=PLAY_LIMIT, check=False,
                env=dict(os.environ, ANSIBLE_NOCOLOR="1"),
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            status = -1
    if status != 0:
        lines = log.read_text(errors="replace").strip().splitlines()[-40:]
        raise LabError(f"site.yml failed (status {status}) on the hosts of a state:\n  " + "\n  ".join(lines))


def _keep(running: hosts.Running, state: State) -> None:
    """Shut a host down and save its file system and the data of its container engines."""
    engine.docker(
        "stop", "--time", str(STOP_LIMIT), running.container, limit=STOP_LIMIT + 60, what=f"shut down {running.host}"
    )
    shutil.rmtree(state.directory, ignore_errors=True)
    state.directory.parent.mkdir(parents=True, exist_ok=True)
    new = state.directory.with_name(f"{state.directory.name}.new")
    shutil.rmtree(new, ignore_errors=True)
    new.mkdir()
    for name in hosts.ENGINES:
        hosts.copy_directory(hosts.volume(running.container, name), new / name)
    engine.docker("commit", running.container, state.image, limit=900, what=f"save the state {running.host}")
    new.rename(state.directory)


# ---- removing -------------------------------------------------------------------------------------


def _forget_older(name: str) -> None:
    """Remove the states of a name except the newest ones, and old states of any name."""
    repository = f"gpu-ready-lab/state-{name}"
    tags = engine.docker("images", "--format", "{{.Tag}}", repository).split()  # newest first
    for tag in tags[KEPT:]:
        _remove(name, tag)
    for directory in (paths.cache() / "states").iterdir():
        if time.time() - directory.stat().st_mtime > FRESH_FOR:
            old, _, tag = directory.name.rpartition("-")
            _remove(old, tag)


def _remove(name: str, tag: str) -> None:
    image = f"gpu-ready-lab/state-{name}:{tag}"
    if succeeds([engine.DOCKER, "-H", f"unix://{engine.SOCKET}", "rmi", image], limit=120):
        shutil.rmtree(paths.cache() / "states" / f"{name}-{tag}", ignore_errors=True)
