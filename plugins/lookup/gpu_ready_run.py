# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Which run of ansible-playbook this is, for the leases on the hosts (module_utils/gpu_ready/base/lease.py)."""

from __future__ import annotations

import getpass
import hashlib
import multiprocessing
import os
import platform
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ansible import context
from ansible.plugins.lookup import LookupBase

DOCUMENTATION = """
name: gpu_ready_run
short_description: which run of ansible-playbook this is
description:
  - The same value in all tasks of one process of ansible-playbook, and another one in any other.
options:
  _terms:
    description:
      - V(run) is the value of the environment variable GPU_READY_RUN - an id, user@host and the playbook.
      - V(living) are the Python processes of this user on this machine, as PID.START and separated by commas; empty
        where the system does not show them.
      - V(age) are the seconds since this run began; empty where the system does not show it.
      - V(lasts) are the seconds that may pass between two steps of this run on one host.
    required: true
"""

USUAL = 600
"""Seconds between two steps on a host, where all hosts of a batch work at the same time."""
MOST = 3600
"""Seconds at most, also for a batch of thousands: a run that died must not keep a host from others for long."""
PROC = Path("/proc")
"""Absent on macOS, where a control node may be too."""


def start_of(pid: int) -> str:
    """Start of a process as in proc(5), "" if there is none."""
    try:
        return (PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def process() -> int:
    """The process of ansible-playbook: a task's templates are evaluated in a worker, which is a child of it."""
    parent = multiprocessing.parent_process()
    return os.getpid() if parent is None or parent.pid is None else parent.pid


def origin() -> str:
    """A word for this user on this boot of this machine, or of this container: process ids mean nothing elsewhere."""
    parts = [str(os.getuid()), platform.node()]
    for path in ("/etc/machine-id", "/proc/sys/kernel/random/boot_id"):
        parts.append(Path(path).read_text().strip() if Path(path).exists() else "")
    parts.append(str((PROC / "self/ns/pid").readlink()) if (PROC / "self/ns/pid").is_symlink() else "")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def word(text: str) -> str:
    return re.sub(r"[^\w.+-]", "_", text, flags=re.ASCII) or "unknown"


def user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return str(os.getuid())


def run_id() -> str:
    """Id of this run: where it runs, its process, and when that began."""
    pid = process()
    return f"{origin()}.{pid}.{start_of(pid) or 0}"


def find_process(run: str) -> int:
    """Return the process of another run on this machine by its id; 0 where it has ended, or is not to be seen."""
    place, _, numbers = run.partition(".")
    pid, _, start = numbers.partition(".")
    is_here = pid.isdecimal() and place == origin() and start and start_of(int(pid)) == start
    return int(pid) if is_here and int(pid) != process() else 0


def describe_run() -> str:
    """Id, user@host and playbook."""
    playbook = Path(next(iter(context.CLIARGS.get("args") or ()), "ansible")).name
    return f"{run_id()} {word(user())}@{word(platform.node())} {word(playbook)}"


def living_processes() -> Iterator[str]:
    """Processes of this user that may be an ansible-playbook: a program of Python, however it was started."""
    for entry in os.scandir(PROC) if start_of(process()) else ():
        try:
            own = entry.name.isdigit() and entry.stat().st_uid == os.geteuid()
            if own and re.search("python|pypy", (PROC / entry.name / "exe").readlink().name):
                yield f"{entry.name}.{start_of(int(entry.name))}"
        except OSError:  # it has ended
            continue


def seconds_since_start() -> int | str:
    """Age of the process of ansible-playbook; "" where it is unknown."""
    start = start_of(process())
    # proc(5) counts a start in ticks since the boot, with the time in suspension; in a container, of the host.
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) - int(start) / os.sysconf("SC_CLK_TCK")) if start else ""


def seconds_between_steps(variables: dict[str, Any]) -> int:
    """More for a batch larger than forks: a host's next step may then wait for those of all the others."""
    hosts, forks = len(variables.get("ansible_play_batch") or ()), int(variables.get("ansible_forks") or 5)
    return min(USUAL * max(-(-hosts // forks), 1), MOST)


class LookupModule(LookupBase):  # type: ignore[misc]  # Ansible is untyped
    def run(self, terms: list[str], variables: dict[str, Any] | None = None, **kwargs: Any) -> list[Any]:
        """Return one value for each term."""
        found: dict[str, Callable[[], Any]] = {
            "run": describe_run,
            "living": lambda: ",".join(living_processes()),
            "age": seconds_since_start,
            "lasts": lambda: seconds_between_steps(variables or {}),
        }
        return [found[term]() for term in terms]
