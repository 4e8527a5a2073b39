"""Fleet files: which hosts a lab has, what hardware they simulate, and their expected results."""

import re
from collections.abc import Callable, Mapping, Sequence
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
    """Return the fleet that a fleet file's text describes; without a name it has that of the file."""
    where = _Where(file)
    try:
        data = yaml_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"{file}: not YAML: {error}") from None
    top = where.mapping(data, ("name", "hosts", "vars", "vendors"))
    name = (where / "name").text(top.get("name", Path(file).stem))
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]{0,30}", name):
        raise (where / "name").error(f"{name!r} is not a name of small letters, digits, _ and -")
    hosts = _with_ranges((where / "hosts").mapping(top.get("hosts")))
    if not hosts:
        raise (where / "hosts").error("no host")
    parsed = tuple(_host(where / "hosts" / host, str(host), value) for host, value in hosts.items())
    vendors = (where / "vendors").text(top.get("vendors", NAMES), (NAMES, MIRROR))
    return Fleet(name, parsed, (where / "vars").mapping(top.get("vars")), vendors)


def _with_ranges(hosts: Mapping[str, Any]) -> dict[str, Any]:
    """The hosts, with those of ranges as Ansible's inventories have them, node-[01:24:6], at their places by name."""
    found: dict[str, Any] = {}
    ranges = False
    for name, value in hosts.items():
        range_ = re.fullmatch(r"(.*)\[(\d+):(\d+)(?::(\d+))?\]", str(name))
        ranges = ranges or range_ is not None
        numbers = range(int(range_[2]), int(range_[3]) + 1, int(range_[4] or 1)) if range_ else ()
        found |= {f"{range_[1]}{number:0{len(range_[2])}}": value for number in numbers} if range_ else {name: value}
    return dict(sorted(found.items())) if ranges else found


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


Reader = Callable[[_Where, Any], Any]


def _texts(where: _Where, value: object, choices: tuple[str, ...] | None = None) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise where.error(f"expected a list of names, found {value!r}")
    return tuple((where / index).text(entry, choices) for index, entry in enumerate(value))


def _python(where: _Where, value: object) -> str:
    python = where.text(value)
    if python != NO_PYTHON and not re.fullmatch(r"3\.\d+", python):
        raise where.error(f'expected a version such as "3.6" or {NO_PYTHON!r}, found {python!r}')
    return python


def _expectations(where: _Where, value: object) -> dict[str, Any]:
    expect = where.mapping(value)
    if expect:
        (where / "result").text(expect.get("result"), RESULTS)
    return expect


READERS: dict[str, Reader] = {
    "distribution": lambda where, value: where.text(value, dress.names()),
    "kind": lambda where, value: where.text(value, KINDS),
    "prebuilt": _texts,
    "kernels": _texts,
    "python": _python,
    "nouveau": _Where.flag,
    "secure_boot": _Where.flag,
    "preinstalled": _texts,
    "past": lambda where, value: _texts(where, value, tuple(pasts.described())),
    "work": lambda where, value: _texts(where, value, tuple(work.described())),
    "vars": _Where.mapping,
    "expect": _expectations,
    "extra": _Where.flag,
}
OF_STATES = ("work", "vars", "expect", "extra")
"""Keys of a host that starts from a state, besides its GPUs."""


def _host(where: _Where, name: str, value: object) -> Host:
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,40}", name):
        raise where.error("a host name has small letters, digits and hyphens")
    from_state = isinstance(value, dict) and "state" in value
    data = where.mapping(value, ("state", "gpus", *OF_STATES) if from_state else ("gpus", "nvswitches", *READERS))
    read = {key: READERS[key](where / key, given) for key, given in data.items() if key in READERS}
    if from_state:
        made = states()[(where / "state").text(data["state"], tuple(states()))]
        gpus = _gpus(where / "gpus", data["gpus"], made.kind) if "gpus" in data else made.gpus
        if len(gpus) != len(made.gpus):  # their files replace those of the state's GPUs
            raise (where / "gpus").error(f"{len(gpus)} GPUs; the state {data['state']} has {len(made.gpus)}")
        variables = {**made.vars, **read.pop("vars", {})}
        return replace(made, name=name, state=data["state"], gpus=gpus, vars=variables, **read)
    if "distribution" not in read:
        raise (where / "distribution").error(f"missing; there are {', '.join(dress.names())}")
    host = Host(name=name, **read)
    host = replace(host, gpus=_gpus(where / "gpus", data.get("gpus") or [], host.kind))
    if host.kind == "vm":
        _check_guest(where, data)
    elif host.kernels:
        raise (where / "kernels").error("only virtual machines have a kernel of their own")
    if host.python not in (None, NO_PYTHON):
        host = replace(host, vars={"ansible_python_interpreter": PLATFORM_PYTHON, **host.vars})
    count = (where / "nvswitches").number(data.get("nvswitches", 0), 0, 6)
    switch = next((NVSWITCHES[gpu.architecture] for gpu in host.gpus if gpu.architecture in NVSWITCHES), None)
    if count and switch is None:
        known = ", ".join(NVSWITCHES)
        raise (where / "nvswitches").error(f"only hosts with GPUs of the architectures {known} have them in this lab")
    return replace(host, nvswitches=tuple((f"0000:{0xE5 + i:02x}:00.0", str(switch)) for i in range(count)))


def _check_guest(where: _Where, data: Mapping[str, Any]) -> None:
    for key in ("python", "nvswitches", "secure_boot", "work", "past"):
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
        data = here.mapping(item, ("device", "count", "name", "architecture", "memory_mib", "class", "driver"))
        device = (here / "device").hex_id(data.get("device"))
        known: dict[str, Any] = {
            "class": "0302",
            "subsystem": "0001",
            "memory_mib": 16384,
            "compute": "9.0",
            "driver": None,
        }
        known |= known_gpus().get(device, {}) | data
        if not {"name", "architecture"} <= set(known):
            raise here.error(
                f"the lab does not know the GPU {device}: add its name and architecture, or add it to data/gpus.yml"
            )
        (here / "architecture").text(known["architecture"], ARCHITECTURES)
        for _ in range((here / "count").number(data.get("count", 1), 1, MAX_GPUS)):
            address = _address(len(found)) if kind == "container" else f"0001:00:{len(found):02x}.0"
            found.append(
                Gpu(
                    device,
                    known["name"],
                    known["architecture"],
                    known["class"],
                    known["subsystem"],
                    known["memory_mib"],
                    str(known["compute"]),
                    address,
                    known["driver"],
                )  # fmt: skip
            )
    if len(found) > MAX_GPUS:
        raise where.error(f"{len(found)} GPUs; a host has at most {MAX_GPUS}")
    return tuple(found)


def _address(index: int) -> str:
    """The PCI address of the n-th GPU, as in a usual two-socket server."""
    buses = (0x1B, 0x3B, 0x43, 0x52, 0x61, 0x9D, 0xB3, 0xC3, 0xD1, 0xD8, 0xDF, 0xE1, 0x89, 0x8A, 0x15, 0x16)
    return f"0000:{buses[index]:02x}:00.0"
