"""Hosts as facts, and their facts after a plan was carried out."""

from typing import Any, TypeVar

from plugins.module_utils.gpu_ready.base import records, versions
from plugins.module_utils.gpu_ready.containers import cdi, driver_volume
from plugins.module_utils.gpu_ready.containers.containerd import config as containerd_config
from plugins.module_utils.gpu_ready.containers.containerd import toml
from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.facts.model import (
    AptFacts,
    BaseFacts,
    Facts,
    FunctionFacts,
    GpuFacts,
    KernelFacts,
    ModuleFacts,
    PackageEvidence,
    Place,
    RawFacts,
    RuntimeFacts,
    SecureBootFacts,
    YumFacts,
)
from plugins.module_utils.gpu_ready.packaging import apt_components
from plugins.module_utils.gpu_ready.packaging.repository import format_deb822, format_repo_file, parse_repository
from plugins.module_utils.gpu_ready.system.model import OsRelease
from plugins.plugin_utils.gpu_ready.catalog import driver_packages, driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import driver_origin
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.plan.driver import parameters

KERNEL = "6.1.0-50-amd64"
KERNELS = {"debian12": KERNEL, "debian13": "6.12.48+deb13-amd64"}
KERNELS |= {"el8": "4.18.0-553.144.1.el8_10.x86_64", "el9": "5.14.0-687.5.1.el9_8.x86_64"}
KERNELS |= {"el10": "6.12.0-124.8.1.el10_1.x86_64", "centos7": "3.10.0-1160.119.1.el7.x86_64"}
KERNELS |= {"amzn2023": "6.1.158-178.288.amzn2023.x86_64", "fedora43": "6.17.4-300.fc43.x86_64"}
KERNELS |= {"ubuntu2004": "5.15.0-139-generic", "ubuntu2204": "6.8.0-60-generic", "ubuntu2404": "6.8.0-88-generic"}
CARDS = {
    "K80": "102d",
    "M60": "13f2",
    "P40": "1b38",
    "V100": "1db1",
    "T4": "1eb8",
    "A100": "20b2",
    "H100": "2330",
}
CARDS |= {"L4": "27b8", "GH200": "2342", "B200": "2901", "GB10": "2e12", "RTX 3090": "2204", "unknown": "3fff"}
K80, P40, V100, T4, A100, H100, B200, GB10 = "102d", "1b38", "1db1", "1eb8", "20b2", "2330", "2901", "2e12"
GEFORCE = "2204"
NVSWITCH, UNKNOWN = "22a3", "3fff"
SECURE = SecureBootFacts(on=True, key="/var/lib/dkms/mok.pub", certificate="/var/lib/dkms/mok.pub")
ENROLLED = SECURE._replace(enrolled=True)


def card(device: str, position: int = 0, driver: str | None = None) -> GpuFacts:
    known = catalog.gpu(device)
    name = known.name if known else f"NVIDIA device 10de:{device}"
    return GpuFacts(f"0000:{0x3B + position:02x}:00.0", device, driver, name)


R = TypeVar("R", bound=tuple[Any, ...])


def having(record: R, **changes: Any) -> R:
    """Return a record with changed fields.

    A dictionary changes the fields of a record in it (``driver={"loaded": None}``), or makes the record where there is
    none. Everything else, also a dictionary for a field that is one, replaces the field. Values are validated.
    """
    fields = {}
    names: Any = record
    for key, value in changes.items():
        name = key if key in names._fields else key + "_"
        current = getattr(record, name)
        if isinstance(value, dict) and hasattr(current, "_fields"):
            fields[name] = having(current, **value)
        else:
            fields[name] = records._convert(type(record).__annotations__[name], records.to_json(value), name)
    return names._replace(**fields)  # type: ignore[no-any-return]


def with_packages(facts: Facts, **versions_by_name: str) -> Facts:
    """Return the host with further installed packages; of names with dashes pass ``**{name: version}``."""
    return having(facts, packages={"installed": {**facts.packages.installed, **versions_by_name}})


def without_packages(facts: Facts, *names: str) -> Facts:
    installed = {name: version for name, version in facts.packages.installed.items() if name not in names}
    return having(facts, packages={"installed": installed})


def rpm(distro: str) -> bool:
    """True if a distribution has RPM packages."""
    return bool(catalog.distro(distro)["package_manager"] != "apt")


def own_repositories(data: dict[str, Any]) -> str:
    """A .repo file of a distribution whose optional sections are disabled."""
    optional = [names if isinstance(names, str) else names[0] for names in data.get("build_enable") or []]
    return "[baseos]\nenabled=1\n" + "".join(f"[{name}]\nenabled=0\n" for name in optional)


def bare(*devices: str, distro: str = "debian12", nvswitches: int = 0, **base: Any) -> Facts:
    """Return a freshly installed host with these GPUs; ``base``: changes of its BaseFacts, as for ``having``."""
    data = catalog.distro(distro)
    kernel = KERNELS.get(distro, "6.14.0-1-generic")
    apt = {"/etc/apt/sources.list": f"deb http://mirror.example/{data['ids'][0]} {data.get('codename')} main\n"}
    yum = {"/etc/yum.repos.d/base.repo": own_repositories(data)}
    system = BaseFacts(
        os=OsRelease(
            id=data["ids"][0],
            version_id=data["versions"][0],
            major=None,
            id_like=[],
            family="",
            version_codename=None,
            variant_id=None,
            base=None,
            pretty=data["pretty"],
            platform_id=None,
        ),
        distro=distro,
        python="3.11.2",
        boot_id="b0",
        kernel=KernelFacts(kernel, [kernel], kernel, {kernel: False}),
        gpus=[card(device, position) for position, device in enumerate(devices)],
        nvswitches=[FunctionFacts(f"0000:0{n}:00.0", NVSWITCH, None) for n in range(nvswitches)],
        disk={"/": 10**11, "/usr": 10**11, "/var": 10**11, "/boot": 10**9},
    )
    return Facts(
        having(system, **base),
        apt=AptFacts(sources={} if rpm(distro) else apt),
        yum=YumFacts(sources=yum if rpm(distro) else {}),
        runtime=RuntimeFacts(programs={"nvidia-ctk": None}, hook_known=False),
    )


def package_version(facts: Facts, name: str, version: str) -> str:
    """Return the version of a driver package as the package manager writes it."""
    kernel = facts.base.kernel.running
    if kernel in name:
        return kernel.rpartition("-")[0] + ".88+1"  # modules for one kernel carry the kernel's version
    return f"3:{version}-1.dist" if rpm(facts.base.distro or "debian12") else f"{version}-1"


def with_driver(facts: Facts, version: str, flavour: str, source: str, names: list[str], loaded: bool = True) -> Facts:
    """Return the host with a complete driver of a source."""
    packages = {name: package_version(facts, name, version) for name in names}
    after = having(
        facts,
        driver={
            "on_disk": ModuleFacts(version, flavour, "/lib/modules/x/nvidia.ko"),
            "userspace": [version],
            "packages": packages,
            "origin": source,
            "runfile": None,
        },
    )
    if loaded:
        after = having(after, driver={"loaded": ModuleFacts(version, flavour)})
    return with_packages(after, **packages)


def installed(
    distro: str,
    device: str,
    source: str,
    version: str,
    flavour: str,
    kind: str = driver_sources.DKMS,
    loaded: bool = True,
) -> Facts:
    """Return a host of a distribution with the packages that the catalog names for a driver."""
    host = bare(device, distro=distro)
    data, branch = catalog.distro(distro), int(version.split(".")[0])
    if source == driver_sources.RUNFILE:
        after = with_driver(host, version, flavour, source, [], loaded)
        built = [{"name": "nvidia", "version": version, "kernels": [host.base.kernel.running]}]
        return having(after, driver={"runfile": "/usr/bin/nvidia-uninstall", "dkms": built})
    names = driver_sources.packages(data, source, branch, "compute", flavour, kind, host.base.kernel.running)
    assert names, (distro, source, branch, flavour, kind)
    after = with_driver(host, version, flavour, source, names, loaded)
    pinning = driver_sources.source_entry(data, source, kind).get("pinning")
    if pinning:
        after = with_packages(after, **{pinning.format(branch=branch): "1.0-1"})
    stream = driver_sources.module_stream(data, source, branch, flavour, kind)
    return having(after, yum={"streams": {"nvidia-driver": stream} if stream else {}})


def carried_out(facts: Facts, decided: compose.Plan) -> Facts:
    """Return the host after every step was done and the result was verified.

    The steps change the JSON of the facts by the JSON of their parameters, as roles and later collectors do.
    """
    after = records.to_json(facts)
    for step in decided.steps:
        STEPS[step.id](after, records.to_json(step.params), decided)
    return records.from_json(Facts, after)


def _with_driver(after: dict[str, Any], version: str, flavour: str, source: str, names: list[str]) -> None:
    facts = records.from_json(Facts, after)
    after.update(records.to_json(with_driver(facts, version, flavour, source, names, loaded=False)))


def _headers(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["base"]["kernel"]["headers"] = dict.fromkeys(after["base"]["kernel"]["installed"], True)
    after["base"]["compiler"] = "/usr/bin/gcc"


def _repository(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    if params.get("components"):
        codename = catalog.distro(after["base"]["distro"])["codename"]
        for path, text in after["apt"]["sources"].items():
            after["apt"]["sources"][path] = apt_components.enable_components(
                path, text, params["components"], codename
            ).after
    for section in params.get("enable") or []:
        for path, text in after["yum"]["sources"].items():
            after["yum"]["sources"][path] = text.replace(f"[{section}]\nenabled=0", f"[{section}]\nenabled=1")
    for third in params.get("repositories") or []:
        one = parse_repository(third)
        present = after["yum" if one.kind == "rpm" else "apt"]
        if not one.adopted:
            present["sources"][third["list"]] = (
                format_repo_file(one) if one.kind == "rpm" else format_deb822(one, "amd64")
            )
        present["keyrings"].append(third["keyring"].rpartition("/")[2])
        if third.get("pin"):
            present["preferences"].append(third["pin"]["path"].rpartition("/")[2])


def _runfile(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    assert not after["driver"]["packages"], "an installer is never used over packages"
    _with_driver(after, params["version"], params["flavour"], "runfile", [])
    after["driver"]["runfile"] = "/usr/bin/nvidia-uninstall"
    after["driver"]["dkms"] = [{"name": "nvidia", "version": params["version"], "kernels": params["kernels"]}]


def _remove_packages(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for name in params["packages"]:
        after["packages"]["installed"].pop(name, None)
    after["packages"]["held"] = [name for name in after["packages"]["held"] if name not in params["unhold"]]
    after["driver"].update(packages={}, held=[], on_disk=None, userspace=[], origin=None)


def _install(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    """Do what a package manager does: remove foreign and conflicting packages of a driver, install the named ones."""
    chosen = decided.choices.driver
    known = catalog.branch(params["expect"]["branch"])
    newest = known.newest if known and known.newest.count(".") else f"{params['expect']['branch']}.100.01"
    version = params["expect"]["version"] or newest
    names = [package["name"] for package in params["packages"]]
    for name in set(params["remove"]) | set(params["allow_remove"]) - set(names):
        after["packages"]["installed"].pop(name, None)
    for name in params["pin_remove"]:
        after["packages"]["installed"].pop(name, None)
    after["packages"]["installed"].update(dict.fromkeys(params["pin_packages"], "1.0-1"))
    after["packages"]["held"] = [name for name in after["packages"]["held"] if name not in params["unhold"]]
    _with_driver(after, version, chosen.flavour, chosen.source, names)
    exact = {one["name"]: one["version"] for one in params["packages"] if not (one["version"] or "*").endswith("*")}
    after["driver"]["packages"].update(exact)
    after["packages"]["installed"].update(exact)
    after["yum"]["streams"].update(params["streams"])
    everything = make_probes().driver_packages(after["packages"]["installed"])
    after["driver"]["origin"] = attributed(everything, after["base"]["distro"], chosen.source)


def evidence_of(packages: dict[str, str], distro: str, source: str) -> list[PackageEvidence]:
    """Return what a package manager says of driver packages that a source of the catalog has in its repository."""
    data = catalog.distro(distro)
    entry = driver_sources.source_entry(data, source)
    if entry.get("repository"):
        place = Place(catalog.repository(entry["repository"])["url"])
    else:
        place = Place("http://mirror.example/os", data["codename"] + "-updates", entry["components"][0])
    deciding = make_probes().deciding_packages(packages) or sorted(packages)
    return [PackageEvidence(name, packages[name], [place]) for name in deciding]


def attributed(packages: dict[str, str], distro: str, source: str) -> str:
    """Return the origin of driver packages that a source of the catalog has in its repository."""
    found = evidence_of(packages, distro, source)
    data = catalog.distro(distro)
    return driver_packages.source_of_publisher(driver_origin.find_origin(found, packages, data).publisher)


def as_collected(facts: Facts) -> Facts:
    """Return what a host with these facts answers, from which completion makes them again."""
    system, driver, distro = facts.base.os, facts.driver, facts.base.distro
    values = {
        "ID": system.id, "VERSION_ID": system.version_id, "ID_LIKE": " ".join(system.id_like), "PRETTY_NAME": system.pretty,
        "VERSION_CODENAME": system.version_codename, "VARIANT_ID": system.variant_id, "PLATFORM_ID": system.platform_id,
    }  # fmt: skip
    tools = ["update-initramfs", "dracut"] if facts.base.initramfs else []
    known = distro and driver.packages and driver.origin in catalog.distro(distro)["driver_sources"]
    by_packages = known and driver.origin != driver_sources.RUNFILE
    return facts._replace(
        driver=driver._replace(origin=None if by_packages else driver.origin),
        raw=RawFacts(
            os_release="".join(f'{name}="{value}"\n' for name, value in values.items() if value),
            initramfs_tools=tools,
            driver=evidence_of(driver.packages, distro or "", driver.origin or "") if by_packages else [],
        ),
    )


def _hold(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["packages"]["installed"].update(dict.fromkeys(params["tools"], "1.0-1"))
    after["packages"]["held"] = sorted(set(after["packages"]["held"]) | set(params["packages"]))
    after["driver"]["held"] = list(after["packages"]["held"])


def _activate(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    if params["action"] == "reboot":
        after["base"]["boot_id"] = "b1"
        after["base"]["nouveau"].update(loaded=False, bound=[])
    disk = after["driver"]["on_disk"]
    after["driver"]["loaded"] = {"version": disk["version"], "flavour": disk["flavour"]}
    texts = sorted(after["driver"]["options"].items(), key=lambda item: item[0].rpartition("/")[2])
    given = [one for _, text in texts for one in parameters.assignments(text)]
    after["driver"].update(parameters=dict(after["driver"]["parameters"], **{one.name: one.value for one in given}))
    after["work"].update(processes=[])


def _parameters(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    options = {path: text for path, text in after["driver"]["options"].items() if path != params["path"]}
    after["driver"]["options"] = dict(options, **({params["path"]: params["content"]} if params["content"] else {}))


def _fabricmanager(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    version = after["driver"]["on_disk"]["version"]
    for name in params["remove"]:
        after["packages"]["installed"].pop(name, None)
    for package in params["packages"]:
        after["packages"]["installed"][package["name"]] = package_version(
            records.from_json(Facts, after), package["name"], version
        )
    after["packages"]["held"] = sorted({*after["packages"]["held"], *params["hold"]})
    after["driver"]["fabricmanager"] = True


def _imex(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for name in params["remove"]:
        after["packages"]["installed"].pop(name, None)
    for package in params["packages"]:
        after["packages"]["installed"][package["name"]] = after["driver"]["on_disk"]["version"] + "-1"
    after["packages"]["held"] = sorted({*after["packages"]["held"], *params["hold"]})
    after["driver"]["imex"]["running"] = params["start"]


def _persistenced(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for package in params["packages"]:
        after["packages"]["installed"][package["name"]] = after["driver"]["on_disk"]["version"] + "-1"
    after["packages"]["held"] = sorted({*after["packages"]["held"], *params["hold"]})
    after["driver"]["persistence"].update(running=True, off=False)


def _docker(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    known = catalog.distro(after["base"]["distro"])["docker"]
    names = [package["name"] for package in params["packages"]]
    state = after["packages"]
    for package in params["packages"]:
        number = "29.0.1-1" if package["version"] is None else package["version"].replace("*", "-1")
        state["installed"][package["name"]] = number
    for name in params["remove"]:
        state["installed"].pop(name)
    state["held"] = sorted({*state["held"], *params["hold"]} - ({*params["unhold"]} - {*params["hold"]}))
    entry = known.get("docker_ce" if "docker-ce" in names else "distro") or {}
    info: dict[str, Any] = {"version": "29.0.1", "runtimes": ["runc"], "default_runtime": "runc", "cdi_dirs": []}
    info.update(live_restore=False, running=0)
    asked = next((one["version"] for one in params["packages"] if one["name"] in entry.get("engine", [])), None)
    version = (asked or entry.get("version") or "29.0.1").split(":")[-1].replace("*", "").partition("-")[0]
    after["docker"].update(installed=True, active=True, enabled=True, version=version, pid=1, info=info)


def _daemon_json(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    found = after["docker"]["daemon_json"]
    found["text"] = daemon_json.merge(found["text"], params["daemon_json"]["set"], params["daemon_json"]["unset"]).after
    found["exists"] = True
    after["docker"]["restart_pending"] = False
    value = daemon_json.parse(found["text"]).value
    after["docker"]["info"]["runtimes"] = ["runc", *value.get("runtimes", {})]
    after["docker"]["info"]["default_runtime"] = value.get("default-runtime", "runc")
    after["docker"]["info"]["cdi_dirs"] = ["/etc/cdi"] if value.get("features", {}).get("cdi") else []
    after["runtime"]["hook_known"] = True


def _toolkit(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["runtime"].update(toolkit=True, hook_known=False)


def _specification(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    ours = params["path"] == cdi.NATIVE
    after["runtime"]["specs"] = [{"path": params["path"], "ours": ours, "devices": ["0", "all"], "stale": None}]
    _runtime_files(after, params)


def _cleanup(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    removed = {*params["paths"], *params["remains"]}
    after["runtime"]["specs"] = [spec for spec in after["runtime"]["specs"] if spec["path"] not in removed]
    if params["packages"]:
        programs = dict.fromkeys(after["runtime"]["programs"])
        after["runtime"].update(toolkit=False, hook_known=None, refresh=False, programs=programs)
        for name in params["packages"]:
            after["packages"]["installed"].pop(name, None)


def _containerd(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    engine = after["engines"]["containerd"]
    (step,) = [step for step in decided.steps if step.id == "nvidia_container_runtime.containerd"]
    texts = {file["path"]: file["text"] for file in engine["files"]}
    for change in step.diff:
        texts[change.path] = change.after
        if change.path == containerd_config.MAIN:
            engine["before"] = engine["before"] if engine["record"] else change.before
            engine["after"] = change.after
            engine["record"] = containerd_record(change.before, change.after, engine["record"])
    engine["files"] = [{"path": path, "text": text} for path, text in texts.items() if text is not None]
    engine.update(active=True, pending=False)
    if params["mode"] == containerd_config.NONE:
        engine.update(record=[], before=None, after=None)


def containerd_record(before: str, after: str, known: list[Any]) -> list[Any]:
    """The keys of config.toml that a change added, in the form of the manifest."""
    old = {key.path for key in toml.parse(before).keys}
    found = [[list(key.path), None] for key in toml.parse(after).keys if key.path not in old]
    return known + [one for one in found if one not in known]


def _runtime_files(after: dict[str, Any], params: dict[str, Any]) -> None:
    for file in params["files"]:
        if file["path"] == cdi.REFRESH_OLD:
            after["runtime"]["refresh_old"] = file["content"]
            continue
        if file["path"] in cdi.NODES:
            after["engines"]["nodes"][file["path"]] = file["content"]
            continue
        after["runtime"]["boot_nodes" if file["path"] == cdi.BOOT_NODES else "helper"] = file["content"]


def _volume(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    version = after["driver"]["on_disk"]["version"]
    after["runtime"]["volume"] = {"exists": True, "version": version, "stale": None}
    after["runtime"]["manifest"]["directories"].append(driver_volume.ROOT)
    _runtime_files(after, params)


def _toolkit_installed(after: dict[str, Any], version: str, release: str, origin: str) -> None:
    row = {"version": version, "path": f"/usr/local/cuda-{version}", "release": release, "origin": origin}
    after["cuda"]["toolkits"] = [one for one in after["cuda"]["toolkits"] if one["version"] != version] + [row]
    after["cudnn"].setdefault(version, {"version": None, "recorded": None, "complete": False, "missing": []})


def _cuda(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for version, package in zip(params["versions"], params["packages"], strict=True):
        release = (package["version"] or f"{version}.9-*").partition("-")[0]
        _toolkit_installed(after, version, release, "package")
        after["packages"]["installed"][package["name"]] = release + "-1"
    newest = max(params["versions"], key=versions.key)
    if after["cuda"]["default"]["mode"] != "manual":  # the packages' scripts replace the link
        target = f"/usr/local/cuda-{newest}"
        after["cuda"]["default"] = {"target": target, "kind": "alternatives", "mode": "auto"}


def _cuda_runfile(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for one in params["installers"]:
        _toolkit_installed(after, one["version"], one["release"] or one["version"] + ".9", "runfile")
    after["packages"]["installed"].update(dict.fromkeys(params["packages"], "1-1"))


def _cuda_remove(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    removed = [one["version"] for one in params["toolkits"]]
    after["cuda"]["toolkits"] = [one for one in after["cuda"]["toolkits"] if one["version"] not in removed]
    for name in params["packages"]:
        del after["packages"]["installed"][name]
    for version in removed:
        after["cudnn"].pop(version, None)
    if after["cuda"]["default"]["target"] in [one["path"] for one in params["toolkits"]]:
        after["cuda"]["default"] = {"target": None, "kind": "absent", "mode": None}


def _cuda_default(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["cuda"]["default"] = {"target": params["path"], "kind": "alternatives", "mode": "manual"}


def _profile(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["cuda"]["profile"].update({file["path"]: file.get("content") for file in params["files"]})


def _cudnn(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for install in params["installs"]:
        version = install["version"] or "6.0.21"
        row: dict[str, Any] = {
            "version": ".".join(version.split(".")[:3]),
            "recorded": version,
            "complete": True,
            "missing": [],
        }
        after["cudnn"][install["cuda"]] = {**row, "origin": install.get("origin") or ""}


def _cudnn_remove(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    for install in params["installs"]:
        after["cudnn"][install["cuda"]].update(version=None, recorded=None, complete=False, origin="")


def _cudnn_packages(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    """Do what a package manager does; a request that ends in a star installs one version."""
    removed = params["remove"]
    state = after.setdefault("cudnn_packages", {"installed": {}, "ours": [], "held_by_us": []})
    for package in params["packages"]:
        for present in (state["installed"], after["packages"]["installed"]):
            present[package["name"]] = package["version"].replace("*", "1")
        state["ours"] = sorted({*state["ours"], package["name"]})
    after["packages"]["installed"].update(dict.fromkeys(params.get("tools", []), "1.0-1"))
    held = (set(after["packages"]["held"]) - set(params["unhold"])) | set(params.get("hold", []))
    state["held_by_us"] = sorted({*state["held_by_us"], *params.get("hold", [])} - set(removed))
    after["packages"]["held"] = sorted(held - set(removed))
    for name in removed:
        state["installed"].pop(name, None)
        after["packages"]["installed"].pop(name, None)
    state["ours"] = [name for name in state["ours"] if name not in removed]


def _cudnn_packages_removed(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    _cudnn_packages(after, {"packages": [], "remove": params["packages"], "unhold": params["unhold"]}, decided)


def _verify(after: dict[str, Any], params: dict[str, Any], decided: Any) -> None:
    after["verified"] = {
        "ok": True,
        "boot_id": after["base"]["boot_id"],
        "digest": params["digest"],
        "driver": after["driver"]["loaded"]["version"],
        "userspace": after["driver"]["userspace"],
        "addresses": [gpu["address"] for gpu in after["base"]["gpus"]],
        "time": "2026-11-21T10:00:00Z",
    }


STEPS = {
    "gpu_plan.repair_packages": lambda after, params, decided: after["packages"].update(broken=[]),
    "kernel_headers.install": _headers,
    "kernel_headers.repository": _repository,
    "nvidia_driver.repository": _repository,
    "nvidia_driver.detect": lambda after, params, d: after["packages"]["installed"].update(
        dict.fromkeys(params["packages"], "1.0-1")
    ),
    "nvidia_driver.remove_packages": _remove_packages,
    "nvidia_driver.runfile": _runfile,
    "nvidia_driver.blacklist_nouveau": lambda after, params, d: after["base"]["nouveau"].update(blacklisted=True),
    "nvidia_driver.parameters": _parameters,
    "nvidia_driver.install": _install,
    "nvidia_driver.next_kernel": lambda after, params, d: after["driver"].update(kernel_without_module=None),
    "nvidia_driver.hold": _hold,
    "nvidia_driver.activate": _activate,
    "nvidia_driver.umad": lambda after, params, d: after["base"]["umad"].update(loaded=True, at_boot=True),
    "nvidia_driver.fabricmanager": _fabricmanager,
    "nvidia_driver.imex": _imex,
    "nvidia_driver.persistenced": _persistenced,
    "cuda_toolkit.repository": _repository,
    "cuda_toolkit.install": _cuda,
    "cuda_toolkit.runfile": _cuda_runfile,
    "cuda_toolkit.remove": _cuda_remove,
    "cuda_toolkit.default": _cuda_default,
    "cuda_toolkit.profile": _profile,
    "cudnn.install": _cudnn,
    "cudnn.remove": _cudnn_remove,
    "cudnn.repository": _repository,
    "cudnn.packages": _cudnn_packages,
    "cudnn.remove_packages": _cudnn_packages_removed,
    "docker_engine.repository": _repository,
    "docker_engine.install": _docker,
    "docker_engine.configure": _daemon_json,
    "nvidia_container_runtime.repository": _repository,
    "nvidia_container_runtime.install": _toolkit,
    "nvidia_container_runtime.configure": _daemon_json,
    "nvidia_container_runtime.cdi_spec": _specification,
    "nvidia_container_runtime.cleanup": _cleanup,
    "nvidia_container_runtime.containerd": _containerd,
    "nvidia_container_runtime.volume": _volume,
    "gpu_verify.verify": _verify,
}
