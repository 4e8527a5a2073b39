"""Observed hosts as plain values, and what they look like after a plan was carried out."""

import copy
from typing import Any

from gpu_ready import catalog, daemon_json

KERNEL = "6.1.0-50-amd64"
K80, P40, V100, T4, A100, H100, B200, GB10 = "102d", "1b38", "1db1", "1eb8", "20b2", "2330", "2901", "2e12"
NVSWITCH, UNKNOWN = "22a3", "3fff"

NO_DOCKER: dict[str, Any] = {
    "installed": False,
    "program": None,
    "version": None,
    "package": None,
    "active": False,
    "pid": None,
    "started": None,
    "enabled": False,
    "socket": None,
    "info": None,
    "flags": [],
    "daemon_json": {"path": "/etc/docker/daemon.json", "exists": False, "text": None, "error": None},
    "gpu_containers": [],
    "restart_pending": False,
}
NO_RUNTIME: dict[str, Any] = {
    "toolkit": False,
    "programs": {"nvidia-ctk": None},
    "hook_known": False,
    "refresh": False,
    "specs": [],
    "driver_files": None,
    "boot_nodes": None,
}


def card(device: str, position: int = 0, driver: str | None = None) -> dict[str, Any]:
    known = catalog.gpu(device)
    name = known.name if known else f"NVIDIA device 10de:{device}"
    return {"address": f"0000:{0x3B + position:02x}:00.0", "device": device, "driver": driver, "name": name}


def bare(*devices: str, distro: str = "debian12", nvswitches: int = 0, **base: Any) -> dict[str, Any]:
    """Return a freshly installed host with these GPUs."""
    return {
        "base": {
            "os": {"id": "debian", "version_id": distro[6:], "pretty_name": f"Debian {distro[6:]}"},
            "distro": distro,
            "arch": "x86_64",
            "python": "3.11.2",
            "boot_id": "b0",
            "kernel": {"running": KERNEL, "installed": [KERNEL], "next_boot": KERNEL, "headers": {KERNEL: False}},
            "compiler": None,
            "initramfs": True,
            "secure_boot": {"on": False, "key": None, "enrolled": False},
            "gpus": [card(device, position) for position, device in enumerate(devices)],
            "nvswitches": [
                {"address": f"0000:0{n}:00.0", "device": NVSWITCH, "driver": None} for n in range(nvswitches)
            ],
            "other_functions": [],
            "nouveau": {"loaded": False, "bound": [], "blacklisted": False},
            "disk": {"/": 10**11, "/usr": 10**11, "/var": 10**11, "/boot": 10**9},
            **base,
        },
        "packages": {"installed": {}, "held": [], "broken": []},
        "apt": {"sources": {"/etc/apt/sources.list": "deb http://deb.example/debian bookworm main\n"}}
        | {"preferences": [], "keyrings": []},
        "driver": {
            "loaded": None,
            "on_disk": None,
            "module_files": [],
            "userspace": [],
            "packages": {},
            "held": [],
            "runfile": None,
            "origin": None,
            "use": {},
            "busy": False,
            "clients": [],
            "dkms": [],
        },
        "docker": copy.deepcopy(NO_DOCKER),
        "runtime": copy.deepcopy(NO_RUNTIME),
        "cuda": {"toolkits": [], "default": {"target": None, "kind": "absent", "mode": None}, "profile": {}},
        "cudnn": {},
        "verified": None,
    }


def with_driver(
    observed: dict[str, Any], version: str, flavour: str, source: str, names: list[str], loaded: bool = True
) -> dict[str, Any]:
    """Return the host with a whole driver of a source."""
    after = copy.deepcopy(observed)
    after["driver"].update(
        on_disk={"path": "/lib/modules/x/nvidia.ko", "version": version, "flavour": flavour, "signer": None},
        userspace=[version],
        packages={name: version + "-1" for name in names},
        origin=source,
        runfile=None,
    )
    if loaded:
        after["driver"]["loaded"] = {"version": version, "flavour": flavour}
    after["packages"]["installed"].update(after["driver"]["packages"])
    return after


def carried_out(observed: dict[str, Any], decided: Any) -> dict[str, Any]:
    """Return the host after every step of the driver was done and the result was proved."""
    after = copy.deepcopy(observed)
    for step in decided.steps:
        STEPS[step.id](after, step.params, decided)
    return after


def _headers(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["base"]["kernel"]["headers"] = dict.fromkeys(after["base"]["kernel"]["installed"], True)
    after["base"]["compiler"] = "/usr/bin/gcc"


def _repository(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    if params.get("components"):
        after["apt"]["sources"]["/etc/apt/sources.list"] += "deb x y " + " ".join(params["components"]) + "\n"
    for section in params.get("enable") or []:
        for path, text in after["yum"]["sources"].items():
            after["yum"]["sources"][path] = text.replace(f"[{section}]\nenabled=0", f"[{section}]\nenabled=1")
    for third in params.get("repositories") or []:
        there = after["yum" if third.get("kind") == "rpm" else "apt"]
        there["sources"][third["list"]] = "URIs: " + third["url"]
        there["keyrings"].append(third["keyring"].rpartition("/")[2])
        if third.get("pin"):
            there["preferences"].append(third["pin"]["path"].rpartition("/")[2])


def _runfile(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after.update(with_driver(after, params["version"], params["flavour"], "runfile", [], loaded=False))
    after["driver"]["runfile"] = "/usr/bin/nvidia-uninstall"


def _remove_packages(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for name in params["packages"]:
        after["packages"]["installed"].pop(name, None)
    after["driver"].update(packages={}, held=[], on_disk=None, userspace=[], origin=None)


def _install(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    chosen = decided.choice["driver"]
    version = params["expect"]["version"] or f"{params['expect']['branch']}.100.01"
    names = [package["name"] for package in params["packages"]]
    for name in params["remove"]:
        after["packages"]["installed"].pop(name, None)
    after["packages"]["held"] = [name for name in after["packages"]["held"] if name not in params["unhold"]]
    after.update(with_driver(after, version, chosen["flavour"], chosen["source"], names, loaded=False))


def _activate(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    if params["action"] == "reboot":
        after["base"]["boot_id"] = "b1"
        after["base"]["nouveau"].update(loaded=False, bound=[])
    disk = after["driver"]["on_disk"]
    after["driver"]["loaded"] = {"version": disk["version"], "flavour": disk["flavour"]}
    after["driver"].update(busy=False, clients=[])


def _fabricmanager(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for package in params["packages"]:
        name = package["name"] if isinstance(package, dict) else package
        after["packages"]["installed"][name] = after["driver"]["on_disk"]["version"] + "-1"
    after["driver"]["fabricmanager"] = True


def _persistenced(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for package in params["packages"]:
        after["packages"]["installed"][package["name"]] = after["driver"]["on_disk"]["version"] + "-1"
    after["driver"]["persistenced"] = True


def _docker(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    info = {"runtimes": ["runc"], "default_runtime": "runc", "cdi_dirs": [], "live_restore": False, "running": 0}
    after["docker"].update(installed=True, active=True, enabled=True, version="20.10.24", pid=1, info=info)


def _daemon_json(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    found = after["docker"]["daemon_json"]
    found["text"] = daemon_json.merge(found["text"], params["daemon_json"]["set"]).after
    found["exists"] = True
    after["docker"]["restart_pending"] = False
    after["docker"]["info"]["runtimes"].append("nvidia")
    after["runtime"]["hook_known"] = True


def _toolkit(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["runtime"].update(toolkit=True, hook_known=False)


def _cuda(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for version in params["versions"]:
        row = {"version": version, "path": f"/usr/local/cuda-{version}", "release": version, "origin": "package"}
        after["cuda"]["toolkits"].append(row)
        after["cudnn"][version] = {"version": None, "recorded": None, "complete": False, "missing": []}


def _cuda_default(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["cuda"]["default"] = {"target": params["path"], "kind": "alternatives", "mode": "manual"}


def _profile(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["cuda"]["profile"].update({file["path"]: file["content"] for file in params["files"]})


def _cudnn(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for install in params["installs"]:
        version = install["version"]
        row = {"version": ".".join(version.split(".")[:3]), "recorded": version, "complete": True, "missing": []}
        after["cudnn"][install["cuda"]] = row


def _verify(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["verified"] = {
        "ok": True,
        "boot_id": after["base"]["boot_id"],
        "digest": params["digest"],
        "driver": after["driver"]["on_disk"]["version"],
        "userspace": after["driver"]["userspace"],
        "addresses": [gpu["address"] for gpu in after["base"]["gpus"]],
        "time": "2026-11-21T10:00:00Z",
    }


STEPS = {
    "gpu_plan.repair_packages": lambda after, params, decided: after["packages"].update(broken=[]),
    "kernel_headers.install": _headers,
    "kernel_headers.repository": _repository,
    "nvidia_driver.repository": _repository,
    "nvidia_driver.detect": lambda after, params, decided: None,
    "nvidia_driver.remove_packages": _remove_packages,
    "nvidia_driver.runfile": _runfile,
    "nvidia_driver.blacklist_nouveau": lambda after, params, d: after["base"]["nouveau"].update(blacklisted=True),
    "nvidia_driver.install": _install,
    "nvidia_driver.hold": lambda after, params, decided: after["packages"]["held"].extend(params["packages"]),
    "nvidia_driver.activate": _activate,
    "nvidia_driver.fabricmanager": _fabricmanager,
    "nvidia_driver.persistenced": _persistenced,
    "cuda_toolkit.repository": _repository,
    "cuda_toolkit.install": _cuda,
    "cuda_toolkit.default": _cuda_default,
    "cuda_toolkit.profile": _profile,
    "cudnn.install": _cudnn,
    "docker_engine.repository": _repository,
    "docker_engine.install": _docker,
    "docker_engine.configure": _daemon_json,
    "nvidia_container_runtime.repository": _repository,
    "nvidia_container_runtime.install": _toolkit,
    "nvidia_container_runtime.configure": _daemon_json,
    "gpu_verify.verify": _verify,
}
