"""The calls by which each step is carried out: module, arguments, seconds, and whether the module only checks.

golden/calls.txt has them: in full for the first parameters of each step that are listed, or that a golden plan has, and
a checksum over all golden plans. `.venv/bin/python -m tests.unit.step_calls` writes it again.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.execute import steps
from tests.unit import catalogs, goldens, plans

CALLS = Path(__file__).parent / "golden/calls.txt"
# /etc/passwd: a file of the control node that is the same file everywhere, where a step copies an installer.
SETTINGS: dict[str, Any] = {
    "gpu_verify_image": "ubuntu:24.04",
    "gpu_verify_devices": "all",
    "gpu_verify_timeout": 300,
    "gpu_verify_compute": True,
    "gpu_verify_framework": "none",
    "gpu_verify_framework_image": "",
    "cuda_toolkit_runfiles": {"12.4": {"file": "/etc/passwd"}},
}
FILES: list[dict[str, str]] = [{"path": "/etc/x", "content": "x"}]
OPTIONS: dict[str, Any] = {"path": "/etc/docker/daemon.json", "set": {"runtimes": {"nvidia": {}}}, "unset": ["y"]}
I_OF_580 = {"name": "i", "version": "580.*"}
MORE: dict[str, list[dict[str, Any]]] = {
    "nvidia_driver.parameters": [
        {"path": "/p", "content": "c", "rebuild": "r"},
        {"path": "/p", "content": "", "rebuild": None},
    ],
    "nvidia_driver.install": [
        {
            "runfile": {"version": "1"},
            "pin_packages": ["pin"],
            "pin_remove": ["old-pin"],
            "packages": ["d"],
            "streams": ["s"],
            "unhold": ["u"],
            "allow_remove": ["a"],
            "remove": ["r"],
            "optional": ["o"],
            "rebuild": {"kernel": "6.1"},
        }
    ],
    "nvidia_driver.runfile": [
        {
            "source": "https://x/y.run",
            "version": "1",
            "flavour": "open",
            "kernels": ["k"],
            "uninstall": "u",
            "sha256": "s",
            "sha256_url": "h",
        },
        {
            "source": "/etc/passwd",
            "version": "1",
            "flavour": "open",
            "kernels": ["k"],
            "uninstall": None,
            "sha256": "s",
            "sha256_url": "h",
        },
    ],
    "nvidia_driver.activate": [
        {"action": action, "modules": ["m"], "later": ["l"], "force": True, "kubelet": "k", "fallback": None, "why": ""}
        for action in ("load", "reload", "reboot", "none")
    ],
    "nvidia_driver.umad": [
        {"packages": ["x"], "path": "/u", "content": "u", "modules": ["ib_umad"]},
        {"packages": [], "path": "/u", "content": "u", "modules": ["ib_umad"]},
    ],
    "nvidia_driver.imex": [
        {"packages": [I_OF_580], "hold": ["h"], "remove": ["r"], "service": "nvidia-imex", "start": True},
        {"packages": [I_OF_580], "hold": ["h"], "remove": ["r"], "service": "nvidia-imex", "start": False},
    ],
    "cuda_toolkit.remove": [{"packages": ["x"], "toolkits": ["t"]}, {"packages": [], "toolkits": ["t"]}],
    "cuda_toolkit.runfile": [
        {
            "packages": ["x"],
            "installers": [
                {"source": "/etc/passwd", "file": "/var/lib/gpu-ready/c.run", "version": "12.4"},
                {"source": "https://x", "file": "", "version": "12.5"},
            ],
        },
        {
            "packages": [],
            "installers": [
                {"source": "/etc/passwd", "file": "/var/lib/gpu-ready/c.run", "version": "12.4"},
                {"source": "https://x", "file": "", "version": "12.5"},
            ],
        },
    ],
    "cudnn.repository": [{"repositories": ["r"]}],
    "cudnn.packages": [
        {"packages": ["p"], "tools": ["t"], "remove": ["r"], "hold": ["h"], "unhold": ["u"], "release": "9.1"}
    ],
    "cudnn.install": [{"file": "", "installs": ["i"]}, {"file": "/etc/passwd", "installs": ["i"]}],
    "cudnn.remove": [{"installs": ["i"]}],
    "cudnn.remove_packages": [{"packages": ["p"], "unhold": ["u"]}],
    "docker_engine.install": [
        {
            "packages": [],
            "optional": [],
            "remove": ["r"],
            "hold": [],
            "unhold": [],
            "service": "docker",
            "state": "started",
        },
        {
            "packages": [],
            "optional": [],
            "remove": ["r"],
            "hold": ["h"],
            "unhold": ["u"],
            "service": "docker",
            "state": "restarted",
        },
    ],
    "docker_engine.configure": [
        {
            "daemon_json": {"path": "/etc/docker/daemon.json", "set": {"runtimes": {"nvidia": {}}}, "unset": ["y"]},
            "activation": "reload",
        },
        {
            "daemon_json": {"path": "/etc/docker/daemon.json", "set": {"runtimes": {"nvidia": {}}}, "unset": ["y"]},
            "activation": "restart",
        },
    ],
    "nvidia_container_runtime.migrate": [
        {
            "containers": ["c"],
            "volumes": ["v"],
            "services": ["s1", "s2"],
            "keep": ["k"],
            "packages": ["p"],
            "left": ["/l1", "/l2"],
            "daemon_json": "/etc/docker/daemon.json",
        },
        {
            "containers": [],
            "volumes": [],
            "services": [],
            "keep": [],
            "packages": ["p"],
            "left": [],
            "daemon_json": "/etc/docker/daemon.json",
        },
    ],
    "nvidia_container_runtime.cleanup": [
        {"containers": ["c"], "packages": ["p"], "paths": ["/x"], "remains": ["/y"]},
        {"containers": [], "packages": ["p"], "paths": ["/x"], "remains": ["/y"]},
    ],
    "nvidia_container_runtime.cdi_spec": [
        {
            "files": [{"path": "/etc/x", "content": "x"}],
            "path": "/s",
            "unrefreshed": "u",
            "generator": "g",
            "feature_flags": ["f"],
            "remove": ["/r"],
        },
        {
            "files": [{"path": "/etc/x", "content": "x"}],
            "path": "/s",
            "generator": "g",
            "feature_flags": [],
            "remove": [],
        },
    ],
    "nvidia_container_runtime.volume": [{"files": [{"path": "/etc/x", "content": "x"}]}],
    "nvidia_container_runtime.configure": [
        {
            "daemon_json": {"path": "/etc/docker/daemon.json", "set": {"runtimes": {"nvidia": {}}}, "unset": ["y"]},
            "activation": "reload",
        },
        {
            "daemon_json": {"path": "/etc/docker/daemon.json", "set": {"runtimes": {"nvidia": {}}}, "unset": ["y"]},
            "activation": "restart",
        },
        {
            "daemon_json": {"path": "/etc/docker/daemon.json", "set": {"runtimes": {"nvidia": {}}}, "unset": ["y"]},
            "activation": "none",
        },
    ],
    "nvidia_container_runtime.containerd": [
        {"mode": "cdi", "default": True, "state": "started"},
        {"mode": "cdi", "default": True, "state": "restarted"},
        {"mode": "cdi", "default": True, "state": ""},
    ],
    "nvidia_container_runtime.crio": [
        {"files": [{"path": "/etc/x", "content": "x"}], "state": "restarted"},
        {"files": [{"path": "/etc/x", "content": "x"}], "state": ""},
    ],
    "nvidia_container_runtime.kubernetes": [{"unit": "k3s", "state": "restarted", "file": "/f"}],
    "gpu_monitoring.node_exporter": [{"packages": ["p"], "service": "s"}],
    "gpu_monitoring.textfile": [
        {
            "python": "p",
            "directory": "/d",
            "interval": 30,
            "old_names": False,
            "branch_ends": {"580": "x"},
            "reload": True,
        }
    ],
    "gpu_monitoring.repository": [{"repositories": ["r"]}],
    "gpu_monitoring.dcgm": [{"packages": ["p"], "hold": ["h"]}],
    "gpu_monitoring.check": [
        {
            "python": "p",
            "wirings": ["systemd", "slurm"],
            "off": ["clocks"],
            "limits": {"nvlinks": 1},
            "leftovers": ["/x"],
            "timer": True,
        }
    ],
    "gpu_monitoring.remove_check": [{"paths": ["/x"], "timer": True}],
    "gpu_monitoring.remove_dcgm": [{"packages": ["p"], "paths": ["/x"]}],
    "gpu_monitoring.remove": [{}],
    "gpu_monitoring.remove_node_exporter": [{"packages": ["p"]}],
}
"""Parameters of steps that are in no golden plan, or not in this way."""


class Recorded:
    """Modules that all succeed: `calls` are those that were made."""

    check = False

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.calls: list[list[Any]] = []
        self.settings = settings
        self.clock = 0.0
        self.warnings: list[str] = []

    def run(self, module: str, arguments: Mapping[str, Any], seconds: int, check: bool) -> dict[str, Any]:
        """Return what a module answers that has changed everything."""
        self.calls.append([module, json.loads(json.dumps(dict(arguments))), seconds, check])
        answer = {"changed": True, "rc": 0, "stdout": ""}
        return {
            **answer,
            "json": {"Runtimes": {"nvidia": {}}},
            "stat": {"exists": True},
            "needs_file": True,
            "needs": ["12.4", "12.5"],
        }

    def setting(self, name: str) -> Any:
        """Return a variable of the host."""
        return self.settings.get(name)

    def now(self) -> float:
        """Return the time that passes in `sleep` alone."""
        return self.clock

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        self.clock += seconds

    def warn(self, text: str) -> None:
        """Keep a warning."""
        self.warnings.append(text)


def calls(step: str, parameters: dict[str, Any]) -> list[list[Any]]:
    """Return the calls of a step; the operator has named the files that it copies."""
    named = {"nvidia_driver_runfile": parameters.get("source"), "cudnn_archive": parameters.get("file")}
    modules = Recorded({**SETTINGS, **named})
    steps.execute(step.partition(".")[0], {step: parameters}, modules, lambda _: None)
    return modules.calls


def planned() -> dict[str, list[dict[str, Any]]]:
    """Return the different parameters that steps have in the golden plans, by step."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for distro in catalog.distros():
        for _, plan, *_ in goldens.plans(distro, catalog.distro(distro)):
            for step, parameters in plans.all_todo(plan).items():
                found.setdefault(step, {})[json.dumps(parameters, sort_keys=True)] = parameters
    return {step: list(parameters.values()) for step, parameters in found.items()}


def every() -> Iterator[list[Any]]:
    """Yield the calls of all steps, with the parameters of all golden plans and those above."""
    given = planned()
    for step in steps.STEPS:
        for parameters in [*given.get(step, []), *MORE.get(step, [])]:
            yield from calls(step, parameters)


def text() -> str:
    """Return the calls of all steps; a branch that came after 620 changes none of them."""
    with catalogs.until(620):
        given = planned()
        return "\n".join(line for step in steps.STEPS for line in section(step, given.get(step, [])))


def section(step: str, given: list[dict[str, Any]]) -> Iterator[str]:
    """Yield the calls of a step."""
    yield f"## {step}"
    for parameters in [*MORE.get(step, given[:1])]:
        yield "for " + json.dumps(parameters, sort_keys=True)
        for module, arguments, seconds, check in calls(step, parameters):
            yield f"    {module}{' (check)' if check else ''} {seconds} {json.dumps(arguments, sort_keys=True)}"
    if given:
        every = json.dumps([calls(step, parameters) for parameters in given], sort_keys=True)
        yield f"{len(given)} in golden plans: {hashlib.sha256(every.encode()).hexdigest()[:16]}"
    yield ""


if __name__ == "__main__":
    CALLS.write_text(text())
