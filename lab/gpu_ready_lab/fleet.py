"""Fleet files: which hosts a lab has, what hardware they simulate, and their expected results."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

from . import dress, pasts, paths, work
from .say import LabError

ARCHITECTURES = (
    "fermi", "kepler", "maxwell", "pascal", "volta", "turing", "ampere", "ada", "hopper", "grace_hopper", "blackwell",
)  # fmt: skip
KINDS = ("container", "vm")
NAMES, MIRROR = "names", "mirror"
STATES = paths.REPO / "lab/states.yml"
RESULTS = ("ready", "no_gpu", "refused")
NVSWITCHES = {"ampere": "1af1", "hopper": "22a3", "blackwell": "1021"}
"""PCI device ids. Those of Blackwell are no functions of the bus: 1021 is ConnectX-7, the bridge to them."""
MAX_GPUS = 16
MAX_GUEST_GPUS = 8
PLATFORM_PYTHON = "/usr/libexec/platform-python"
"""The Python of Enterprise Linux 8's own programs."""
NO_PYTHON = "none"
"""In place of a version: a host without Python 3, until a package installs it."""


@dataclass(frozen=True)
class Gpu:
    """A simulated GPU of a host."""

    device: str
    name: str
    architecture: str
    pci_class: str
    subsystem: str
    memory_mib: int
    compute: str
    address: str
    driver: str | None = None
    """A driver other than nvidia's that is bound to it from boot, such as vfio-pci."""


@dataclass(frozen=True)
class Host:
    """A host of a fleet."""

    name: str
    distribution: str
    kind: str = "container"
    """container, or vm: a QEMU guest with a kernel of its own."""
    prebuilt: tuple[str, ...] = ()
    """Packages of kernel modules that are built before the guest needs them, such as nvidia-kernel-dkms."""
    kernels: tuple[str, ...] = ()
    """Releases of kernels: a guest begins with the first, modules are built for all. Without any, the newest."""
    gpus: tuple[Gpu, ...] = ()
    nvswitches: tuple[tuple[str, str], ...] = ()
    """(PCI address, device id) of each."""
    nouveau: bool = False
    work: tuple[str, ...] = ()
    """What of lab/work is started on the host after it was made, in this order."""
    secure_boot: bool = False
    image: str | None = None
    """A docker image of the user, in place of the lab's own."""
    python: str | None = None
    """The version of the Python for modules, such as 3.6, copied from this machine; none: the host has no Python."""
    preinstalled: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    """Scripts of lab/pasts that set the host up before anybody uses it, in this order."""
    vars: Mapping[str, Any] = field(default_factory=dict)
    expect: Mapping[str, Any] = field(default_factory=dict)
    state: str | None = None
    """The state of lab/states.yml that the host starts from; None: its image."""
    extra: bool = False
    """`up --sample` omits the host: `make test` needs only the others, `make campaign` all."""


@dataclass(frozen=True)
class Fleet:
    """A fleet file's content."""

    name: str
    hosts: tuple[Host, ...]
    vars: Mapping[str, Any] = field(default_factory=dict)
    vendors: str = NAMES
    """How its hosts reach the vendors: by their own names, or at the mirror, by the variable gpu_ready_mirror."""


class _Where:
    """A place in a fleet file, for messages."""

    def __init__(self, file: str, path: str = "") -> None:
        self.file, self.path = file, path

    def __truediv__(self, key: object) -> "_Where":
        return _Where(self.file, f"{self.path}.{key}" if self.path else str(key))

    def error(self, message: str) -> LabError:
        return LabError(f"{self.file}: {self.path or 'the file'}: {message}")

    def mapping(self, value: object, known: tuple[str, ...] | None = None) -> dict[str, Any]:
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.error(f"expected keys and values, found {value!r}")
        for key in value:
            if known is not None and key not in known:
                raise self.error(f"unknown key {key!r}; known are {', '.join(known)}")
        return dict(value)

    def text(self, value: object, choices: tuple[str, ...] | None = None) -> str:
        if not isinstance(value, str):
            raise self.error(f"expected a text, found {value!r}; write it in quotes")
        if choices is not None and value not in choices:
            raise self.error(f"{value!r} is none of {', '.join(choices)}")
        return value

    def hex_id(self, value: object) -> str:
        if not isinstance(value, str) or not re.fullmatch(r"[0-9a-f]{4}", value):
            raise self.error(f'expected a PCI id of four hexadecimal digits in quotes, such as "1b38", found {value!r}')
        return value

    def flag(self, value: object) -> bool:
        if not isinstance(value, bool):
            raise self.error(f"expected true or false, found {value!r}")
        return value

    def number(self, value: object, low: int, high: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self.error(f"expected a number from {low} to {high}, found {value!r}")
        return value


@cache
def known_gpus() -> dict[str, dict[str, Any]]:
    """Return the GPUs that a fleet file may name by device id alone."""
    found: dict[str, dict[str, Any]] = yaml_load((paths.DATA / "gpus.yml").read_text())
    return found


def read(path: Path) -> Fleet:
    """Read a fleet file; raises a LabError that names the place of an error."""
    try:
        text = path.read_text()
    except OSError as error:
        raise LabError(f"{path}: {error.strerror}; the fleets that come with the lab are in lab/fleets/") from None
    return parse(text, str(path))


def parse(text: str, file: str = "fleet") -> Fleet:
    """Return the fleet that a fleet file's text describes."""
    where = _Where(file)
    try:
        data = yaml_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"{file}: not YAML: {error}") from None
    top = where.mapping(data, ("name", "hosts", "vars", "vendors"))
    name = (where / "name").text(top.get("name"))
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,30}", name):
        raise (where / "name").error(f"{name!r} is not a name of small letters, digits, _ and -")
    hosts = (where / "hosts").mapping(top.get("hosts"))
    if not hosts:
        raise (where / "hosts").error("no host")
    parsed = tuple(_host(where / "hosts" / host, str(host), value) for host, value in hosts.items())
    vendors = (where / "vendors").text(top.get("vendors", NAMES), (NAMES, MIRROR))
    return Fleet(name, parsed, (where / "vars").mapping(top.get("vars")), vendors)


def choose(fleet: Fleet, names: Sequence[str] | None, sample: bool) -> Fleet:
    """Return a fleet with the named hosts only, or all (None); a sample has none that is marked as extra."""
    known = [host.name for host in fleet.hosts]
    unknown = sorted({*(names or ())} - {*known})
    if unknown:
        raise LabError(f"{fleet.name} has no host {', '.join(unknown)}; it has {', '.join(known)}")
    chosen = [host for host in fleet.hosts if (names is None or host.name in names) and not (sample and host.extra)]
    return replace(fleet, hosts=tuple(chosen))


@cache
def states() -> dict[str, Host]:
    """Return the hosts of lab/states.yml by name."""
    where = _Where("lab/states.yml")
    data = where.mapping(yaml_load(STATES.read_text()))
    return {str(name): _host(where / name, str(name), value) for name, value in data.items()}


def _from_state(where: _Where, name: str, value: Mapping[str, Any]) -> Host:
    """A host like that of its state, except for its own GPUs, variables and expectations."""
    data = where.mapping(value, ("state", "gpus", "work", "vars", "expect", "extra"))
    made = states()[(where / "state").text(data["state"], tuple(states()))]
    gpus = _gpus(where / "gpus", data["gpus"], made.kind) if "gpus" in data else made.gpus
    if len(gpus) != len(made.gpus):  # their files replace those of the state's GPUs
        raise (where / "gpus").error(f"{len(gpus)} GPUs; the state {data['state']} has {len(made.gpus)}")
    variables = {**made.vars, **(where / "vars").mapping(data.get("vars"))}
    working = _texts(where / "work", data.get("work") or [], tuple(work.described()))
    expect = _expectations(where / "expect", data.get("expect"))
    extra = (where / "extra").flag(data.get("extra", False))
    return replace(
        made, name=name, state=data["state"], gpus=gpus, vars=variables, work=working, expect=expect, extra=extra
    )


def _expectations(where: _Where, value: object) -> dict[str, Any]:
    expect = where.mapping(value)
    if expect:
        (where / "result").text(expect.get("result"), RESULTS)
    return expect


def _host(where: _Where, name: str, value: object) -> Host:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise where.error("a host name has small letters, digits and hyphens")
    if isinstance(value, dict) and "state" in value:
        return _from_state(where, name, value)
    data = where.mapping(
        value,
        (
            "distribution", "kind", "prebuilt", "kernels", "image", "python", "gpus", "nvswitches", "nouveau", "work",
            "secure_boot", "preinstalled", "past", "vars", "expect", "extra",
        ),
    )  # fmt: skip
    distribution = (where / "distribution").text(data.get("distribution"), dress.names())
    kind = (where / "kind").text(data.get("kind", "container"), KINDS)
    gpus = _gpus(where / "gpus", data.get("gpus") or [], kind)
    prebuilt = _texts(where / "prebuilt", data.get("prebuilt") or [])
    kernels = _texts(where / "kernels", data.get("kernels") or [])
    if kind == "vm":
        _check_guest(where, data)
    elif kernels:
        raise (where / "kernels").error("only virtual machines have a kernel of their own")
    count = (where / "nvswitches").number(data.get("nvswitches", 0), 0, 6)
    switch = next((NVSWITCHES[gpu.architecture] for gpu in gpus if gpu.architecture in NVSWITCHES), None)
    if count and switch is None:
        raise (where / "nvswitches").error(
            f"only hosts with GPUs of the architectures {', '.join(NVSWITCHES)} have them in this lab"
        )
    image = None if data.get("image") is None else (where / "image").text(data["image"])
    python = None if data.get("python") is None else (where / "python").text(data["python"])
    variables = (where / "vars").mapping(data.get("vars"))
    if python is not None:
        if python != NO_PYTHON and not re.fullmatch(r"3\.\d+", python):
            raise (where / "python").error(f'expected a version such as "3.6" or {NO_PYTHON!r}, found {python!r}')
        if image is not None:
            raise (where / "python").error("an image of your own has its own Python: remove one of the two keys")
    if python not in (None, NO_PYTHON):
        variables = {"ansible_python_interpreter": PLATFORM_PYTHON, **variables}
    expect = _expectations(where / "expect", data.get("expect"))
    return Host(
        name=name,
        distribution=distribution,
        kind=kind,
        prebuilt=prebuilt,
        kernels=kernels,
        gpus=gpus,
        nvswitches=tuple((f"0000:{0xE5 + i:02x}:00.0", str(switch)) for i in range(count)),
        nouveau=(where / "nouveau").flag(data.get("nouveau", False)),
        work=_texts(where / "work", data.get("work") or [], tuple(work.described())),
        secure_boot=(where / "secure_boot").flag(data.get("secure_boot", False)),
        image=image,
        python=python,
        preinstalled=_texts(where / "preinstalled", data.get("preinstalled") or []),
        past=_texts(where / "past", data.get("past") or [], tuple(pasts.described())),
        vars=variables,
        expect=expect,
        extra=(where / "extra").flag(data.get("extra", False)),
    )


def _texts(where: _Where, value: object, choices: tuple[str, ...] | None = None) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise where.error(f"expected a list of names, found {value!r}")
    return tuple((where / index).text(entry, choices) for index, entry in enumerate(value))


def _check_guest(where: _Where, data: Mapping[str, Any]) -> None:
    for key in ("image", "python", "nvswitches", "secure_boot", "work", "past"):
        if data.get(key):
            raise (where / key).error("virtual machines have none in this lab")
    if sum(int(item.get("count", 1)) for item in data.get("gpus") or []) > MAX_GUEST_GPUS:
        raise (where / "gpus").error(f"a virtual machine has at most {MAX_GUEST_GPUS}")


def _gpus(where: _Where, value: object, kind: str) -> tuple[Gpu, ...]:
    if not isinstance(value, list):
        raise where.error(f"expected a list, found {value!r}")
    found: list[Gpu] = []
    for index, item in enumerate(value):
        here = where / index
        data = here.mapping(
            item, ("device", "count", "subsystem", "name", "architecture", "memory_mib", "class", "driver")
        )
        device = (here / "device").hex_id(data.get("device"))
        known = known_gpus().get(device, {})
        if not known and not {"name", "architecture"} <= set(data):
            raise here.error(
                f"the lab does not know the GPU {device}: add its name and architecture, or add it to data/gpus.yml"
            )
        driver = data.get("driver")
        for _ in range((here / "count").number(data.get("count", 1), 1, MAX_GPUS)):
            found.append(
                Gpu(
                    device=device,
                    name=(here / "name").text(data.get("name", known.get("name"))),
                    architecture=(here / "architecture").text(
                        data.get("architecture", known.get("architecture")), ARCHITECTURES
                    ),
                    pci_class=(here / "class").text(data.get("class", known.get("class", "0302")), ("0300", "0302")),
                    subsystem=(here / "subsystem").hex_id(data.get("subsystem", known.get("subsystem", "0001"))),
                    memory_mib=(here / "memory_mib").number(
                        data.get("memory_mib", known.get("memory_mib", 16384)), 1, 2**20
                    ),
                    compute=str(known.get("compute", "9.0")),
                    address=_address(len(found)) if kind == "container" else f"0001:00:{len(found):02x}.0",
                    driver=None if driver is None else (here / "driver").text(driver),
                )
            )
    if len(found) > MAX_GPUS:
        raise where.error(f"{len(found)} GPUs; a host has at most {MAX_GPUS}")
    return tuple(found)


def _address(index: int) -> str:
    """The PCI address of the n-th GPU, as in a usual two-socket server."""
    buses = (0x1B, 0x3B, 0x43, 0x52, 0x61, 0x9D, 0xB3, 0xC3, 0xD1, 0xD8, 0xDF, 0xE1, 0x89, 0x8A, 0x15, 0x16)
    return f"0000:{buses[index]:02x}:00.0"
