"""Reports of made-up fleets for tests of their formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import read
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.gpu_ready.rollout import fold

ROOT = Path(__file__).resolve().parents[2]
TIME = "2026-11-21T02:12:00Z"
ROW = {
    "distribution": "Debian 12", "gpus": "8x NVIDIA H100 80GB HBM3", "driver_desired": "580", "driver_installed": "580.95.05",
    "driver_loaded": "580.95.05", "driver_userspace": "580.95.05", "cuda": "12.9", "cudnn": "9.10.2.21",
    "docker_runtime": "cdi", "verified": "2026-11-21T02:12:00Z", "why": "nothing to do",
}  # fmt: skip
STEPS = [
    {"id": "kernel_headers.install", "why": "no headers for 6.1.0-40-amd64", "disruption": "none"},
    {"id": "nvidia_driver.install", "why": "no driver is installed", "disruption": "none"},
    {"id": "nvidia_driver.activate", "why": "no NVIDIA module is loaded", "disruption": "driver_reload"},
    {"id": "docker_engine.packages", "why": "docker is not installed", "disruption": "docker_restart"},
    {"id": "gpu_verify.run", "why": "never verified", "disruption": "none"},
]
CHECKS = [
    {"name": "host_gpus", "ok": True, "expected": "8 GPUs", "found": "8 GPUs"},
    {"name": "container_gpus", "ok": False, "expected": "8 GPUs", "found": "7 GPUs", "cause": "GPU 0000:1b:00.0 is missing in the container",
     "remedy": "Run `nvidia-smi -q -i 0000:1b:00.0` on the host."},
    {"name": "framework", "ok": None, "expected": "", "found": "skipped: gpu_verify_framework is none"},
]  # fmt: skip


def report_of(kind: str, hosts: dict[str, dict[str, Any]], check_mode: bool = False) -> Any:
    """A report of hosts, first by host, then by part; one without any part was not reached."""
    return read.read(kind, hosts, TIME, check_mode)


def hosts_of(report: Any) -> dict[str, Any]:
    """Its hosts by name."""
    return {host.name: host for host in report.hosts}


def site(number: int = 12) -> Any:
    """A run of site.yml in which hosts end in every way; of more than five, the others are ready."""
    refusal = {
        "message": "V100 (Volta) needs branch 580 or older, B200 (Blackwell) needs 570 or newer and the open module: no driver serves both.",
        "remedy": "Move one of the cards to another host.",
    }
    bad: dict[str, dict[str, Any]] = {
        "mixed": {"row": ROW | {"gpus": "1x V100, 1x B200", "verified": None, "why": refusal["message"]}, "refusals": [refusal], "steps": []},
        "asleep": {"row": {}, "failure": {"step": "unreachable", "message": "the host cannot be reached: no route to host. Check that it is up."}},
        "broken": {
            "row": ROW | {"verified": None}, "steps": STEPS,
            "failure": {"step": "nvidia_driver.activate", "message": "the module nvidia cannot be loaded: Key was rejected by service. Remedy: enrol the key of DKMS."},
        },
        "seven": {
            "row": ROW | {"verified": None}, "steps": STEPS, "verify": {"verify": {"ok": False, "checks": CHECKS}},
            "failure": {"step": "gpu_verify.run", "message": "container_gpus: 7 GPUs in place of 8. Remedy: see the check."},
        },
        "plain": {"row": dict.fromkeys(ROW) | {"distribution": "Debian 13", "why": "no NVIDIA GPU: left alone"}, "gpu_host": False, "steps": []},
    }  # fmt: skip
    good = {
        f"gpu{n}": {"row": ROW, "steps": [], "warnings": []}
        if n % 4
        else {"row": ROW, "steps": STEPS, "verify": {"verify": {"ok": True, "checks": CHECKS[:1]}}, "warnings": [{"message": "a new kernel waits for a reboot", "remedy": "Reboot."}]}
        for n in range(1, max(number - len(bad), 0) + 1)
    }  # fmt: skip
    return read.read("site", dict(list((bad | good).items())[:number]), TIME, False)


def audit() -> Any:
    """An audit with drift, and a host that did not answer."""

    def checks(loaded: str) -> list[dict[str, Any]]:
        return [
            {"name": "loaded", "desired": "580.95.05", "found": loaded, "ok": loaded == "580.95.05", "why": "" if loaded == "580.95.05" else "an unattended upgrade replaced the packages"},
            {"name": "holds", "desired": "3 held", "found": "3 held", "ok": True, "why": ""},
            {"name": "reboot", "desired": None, "found": "not needed", "ok": True, "why": ""},
            {"name": "verified", "desired": None, "found": None, "ok": loaded == "580.95.05", "why": ""},
        ]  # fmt: skip

    def answer(state: str, loaded: str) -> dict[str, Any]:
        found = {"gpus": "1x Tesla T4", "driver_installed": "580.95.05", "driver_loaded": loaded}
        why = [] if state == "ok" else ["loaded: an unattended upgrade replaced the packages"]
        holders = [{"pid": 4242, "name": "python", "command": "python train.py", "container": "train"}]
        return {"audit": {"state": state, "why": why, "checks": checks(loaded), "holders": holders, "row": found}}

    hosts: dict[str, dict[str, Any]] = {
        "up-a": answer("ok", "580.95.05"),
        "up-b": answer("drift", "580.82.07"),
        "up-c": answer("drift", "580.82.07"),
        "up-d": {"unreachable": True, "message": "no route to host"},
    }
    return read.read("audit", hosts, TIME, False)


def upgrade(number: int = 24) -> Any:
    """A rollout in two runs; one host was rolled back, one was lost, the last ones were not reached."""
    outcomes: dict[str, dict[str, Any]] = {}
    members: dict[str, fold.RecordedHost] = {}
    begin = 1763690000
    for n in range(number):
        name = f"gpu-node-{n + 1:04}"
        state = "rolled_back" if n == 5 else "failed" if n == 9 else "not_reached" if n > number - 4 else "upgraded"
        reason = {
            "upgraded": "active and verified",
            "rolled_back": "Verify: container_gpus failed. Remedy: see the log. -- Rolled back to 580.95.05.",
            "failed": "the host became unreachable",
            "not_reached": "the rollout did not reach this host",
        }[state]
        began = begin + (0 if n == 0 else 150 + (n - 1) // 4 * 140 + (n - 1) % 4 * 9)
        run = 1 if n < 9 else 2
        began += 0 if run == 1 else 400
        ended = None if state == "failed" else began + 110 + n % 3 * 12
        phases: tuple[tuple[str, int], ...] = (
            ("draining", began + 2),
            ("switching", began + 20),
            ("verify", began + 80),
            ("verified", began + 100),
        )
        phases += (
            (("going_back", began + 101), ("back", began + 109)) if state == "rolled_back" else (("done", began + 104),)
        )
        earlier = () if n != 10 else (fold.RecordedTurn(1, "", begin + 440, None, (("draining", begin + 445),)),)
        outcomes[name] = {
            "outcome": {"state": state, "from": "580.95.05", "to": "595.91.07", "way": "reload", "seconds_unavailable": 61 + n if state != "failed" else None, "reason": reason},
        }  # fmt: skip
        members[name] = (
            fold.RecordedHost("595.91.07")
            if state == "not_reached"
            else fold.RecordedHost(
                "595.91.07", state, "", began, ended, phases[: 2 if ended is None else 9], run, True, earlier
            )
        )
    runs = [
        fold.RecordedRun(begin - 60, "alice@control", dict.fromkeys(members, "595.91.07"), list(members), [], 2, ""),
        fold.RecordedRun(begin + 800, "bob@control", dict.fromkeys(members, "595.91.07"), list(members)[9:], [], 2, ""),
    ]
    found = read.read("upgrade", outcomes, TIME, False)
    return read.with_rollout(found, fold.RolloutRecord(begin - 60, "upgrade", 0, "0.1.0", members, runs))


def undrain() -> Any:
    hosts: dict[str, dict[str, Any]] = {
        "gpu1": {"turn": {"state": {"phase": "undrained"}}},
        "gpu2": {"turn": {"failed": True, "msg": "the driver cannot be verified. Remedy: run site.yml for this host"}},
    }
    return read.read("undrain", hosts, TIME, False)


def uninstall() -> Any:
    removal = {"actions": ["delete /etc/profile.d/cuda.sh", "purge nvidia-open"], "kept": ["/etc/docker/daemon.json: somebody changed it"], "stops": [], "reboot_required": True}  # fmt: skip
    hosts = {"gpu1": {"removal": removal}, "gpu2": {"removal": {"failed": True, "msg": "not permitted"}}}
    return read.read("uninstall", hosts, TIME, False)


FLEETS = {"site": site, "audit": audit, "upgrade": upgrade, "undrain": undrain, "uninstall": uninstall}
