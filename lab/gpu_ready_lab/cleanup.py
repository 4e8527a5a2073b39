"""Removal of the lab without a trace except the cache."""

import shutil
from pathlib import Path

from . import engine, hosts, mirror, paths
from .say import LabError, say


def down(everything: bool) -> None:
    """Stop and remove hosts, services, engine and state; with everything, the cache too."""
    if not engine.answers() and engine.has_containers():
        say("the engine was stopped from outside and left hosts behind: starting it to remove them")
        engine.start()
    existing = hosts.existing()
    hosts.remove(existing)
    for name in sorted({r.fleet for r in existing}):
        if paths.fleet_directory(name).exists():
            shutil.rmtree(paths.fleet_directory(name))
    mirror.stop()
    engine.stop()
    engine.remove_state()
    if everything and paths.cache().exists():
        say(f"deleting the cache {paths.cache()}")
        shutil.rmtree(paths.cache())
    left = leftovers()
    if left:
        raise LabError("the lab is down, but these remain: " + "; ".join(left))
    say("the lab is down")


def leftovers() -> list[str]:
    """What remains of a lab that was removed: processes, mounts, network, control groups, directories."""
    found = []
    marks = (str(paths.STATE).encode() + b"/", b"gpu_ready_lab.mirror")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue  # it has ended
        if command.split(b"\0")[0].rsplit(b"/", 1)[-1] in (b"ssh", b"sh", b"bash"):
            continue  # somebody's shell or connection that names our directory
        if any(mark in command for mark in marks):
            found.append(
                f"process {process.name} ({command.replace(bytes(1), b' ').decode(errors='replace')[:80].strip()})"
            )
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        point = line.split()[4]
        if point.startswith((f"{paths.STATE}/", f"{paths.cache()}/")):
            found.append(f"mount {point}")
    if Path(f"/sys/class/net/{paths.BRIDGE}").exists():
        found.append(f"network interface {paths.BRIDGE}")
    found += [f"control group {path}" for path in Path("/sys/fs/cgroup").glob(f"**{engine.CGROUP}")]
    if paths.STATE.exists():
        found.append(f"directory {paths.STATE}")
    return found
