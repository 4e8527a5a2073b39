"""Whether modprobe loads NVIDIA's module: now by its name, and when the host boots. Files are read, nothing is started.

What loads it at boot: udev, by the alias of the GPU; systemd-modules-load, by the names in modules-load.d; units that
run modprobe. The first two respect a blacklist (module_load_and_warn in systemd's module-util.c), but only of the
module that they name: a list with nvidia-uvm loads nvidia too, although that is blacklisted.
"""

import re
from typing import Callable, Dict, List, Optional

from ..base.host import Host
from ..hardware import pci
from ..system import modprobe_files
from ..system.modprobe_files import Config, ModprobeLine
from .model import BaseFacts, BlockedModule

LISTS = ("/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib")
"""Above modules-load.d. Of files with one name, the first counts."""
UNITS = "/etc/systemd/system"
COMMAND = r"(?m)^Exec(?:StartPre|Start|StartPost)\s*=.*(?:nvidia-modprobe|modprobe\s(?!.*-r\b).*nvidia|/nvidia\S*load)"
"""The line of a unit that loads the module by name: our unit for device nodes, a site's own, Amazon EKS's."""
MOST_LINES = 20


def collect(host: Host, system: BaseFacts) -> Optional[BlockedModule]:
    """Return the lines that keep the module from being loaded, None where nothing does."""
    files, command_line = modprobe_files.read_files(host), host.read(modprobe_files.COMMAND_LINE) or ""
    if not system.served_gpus or not is_concerned(modprobe_files.parse(files, command_line)):
        return None
    from ..system import modprobe  # here, since few hosts have such a line

    def config_of(kernel: str) -> Config:
        softdeps = "/lib/modules/%s/modules.softdep" % kernel
        return modprobe_files.parse(dict(files, **{softdeps: host.read(softdeps) or ""}), command_line)

    def modules_of(kernel: str) -> modprobe.Modules:
        texts = [host.read("/lib/modules/%s/modules.%s" % (kernel, name)) or "" for name in ("dep", "builtin")]
        return modprobe.Modules(*texts)

    running, following = system.kernel.running, system.kernel.next_boot
    modules = {kernel: modules_of(kernel) for kernel in {running, following}}
    aliases = [(host.read("%s/%s/modalias" % (pci.SYSFS, gpu.address)) or "").strip() for gpu in system.served_gpus]

    def at_boot(config: Config) -> Optional[ModprobeLine]:
        loader = modprobe.Loader(config, modules[following], modprobe.MAIN, aliases)
        answers = [loader.request(alias, blacklist=True) for alias in aliases]
        loaded = (
            any(answer.loaded for answer in answers)
            or any(loader.request(name, blacklist=True).loaded for name in listed_modules(host))
            or (loader.request("nvidia", blacklist=False).loaded and is_loaded_by_unit(host))
        )
        return None if loaded else next((answer.line for answer in answers if answer.line), None)

    def by_name(config: Config) -> Optional[ModprobeLine]:
        for name, goal in (("nvidia", modprobe.MAIN), ("nvidia-uvm", modprobe.UVM)):
            answer = modprobe.Loader(config, modules[running], goal).request(name, blacklist=False)
            if not answer.loaded and answer.line:
                return answer.line
        return None

    boot, now = preventing_lines(config_of(following), at_boot), preventing_lines(config_of(running), by_name)
    return BlockedModule(sorted({*boot, *now}), bool(boot), bool(now)) if boot or now else None


def is_concerned(config: Config) -> bool:
    """Return True if a line could be about NVIDIA's module, or keep away one that it needs.

    Distributions have lines of each kind that are not (blacklist nvidiafb, alias net-pf-3 off).
    """
    return bool(
        config.forbidden
        or any(re.match("nvidia(_|$)", name) for name, _ in config.blacklist)
        or any(is_related(pattern) for pattern, _, _ in config.aliases)
        or any(is_related(one[0]) or first_program(one[1]) in modprobe_files.DOES_NOTHING for one in config.installs)
    )


def first_program(command: str) -> str:
    return command.split()[0].rpartition("/")[2] if command.strip() else ""


def is_related(pattern: str) -> bool:
    """Return True if a pattern could be one for NVIDIA's modules or GPUs, by what it has before a wildcard."""
    start = re.split(r"[*?[]", pattern)[0]
    return any(name.startswith(start) or start.startswith(name) for name in ("nvidia", "pci:v000010DE"))


def preventing_lines(config: Config, ask: Callable[[Config], Optional[ModprobeLine]]) -> List[ModprobeLine]:
    """Return all lines that have to go. ``ask`` returns one that prevents the loading, None if it is loaded."""
    lines: List[ModprobeLine] = []
    line = ask(config)
    while line and len(lines) < MOST_LINES:
        lines.append(line)
        config = config.without(line)
        line = ask(config)
    return lines


def listed_modules(host: Host) -> List[str]:
    """Return the modules that systemd-modules-load loads (modules-load.d(5): one a line, # and ; comment)."""
    names = {name: top for top in reversed(LISTS) for name in host.listdir(top + "/modules-load.d")}
    paths = ["%s/modules-load.d/%s" % (top, name) for name, top in names.items() if name.endswith(".conf")]
    lines = [line.strip() for path in ["/etc/modules"] + paths for line in (host.read(path) or "").splitlines()]
    return [line for line in lines if line and line[0] not in "#;"]


def is_loaded_by_unit(host: Host) -> bool:
    """Return True if a command of a unit that is enabled, or required by a target, loads the module by its name."""
    enabled: Dict[str, str] = {}
    for directory in host.listdir(UNITS):
        for name in host.listdir("%s/%s" % (UNITS, directory)):
            path = "%s/%s/%s" % (UNITS, directory, name)
            if directory.endswith((".wants", ".requires")):
                enabled[name] = path
            elif directory.endswith(".target.d"):
                required = re.findall(r"(?m)^(?:Wants|Requires)\s*=(.*)", host.read(path) or "")
                enabled.update({unit: "%s/%s" % (UNITS, unit) for unit in " ".join(required).split()})
    added = {"%s/%s.d/%s" % (UNITS, unit, name) for unit in enabled for name in host.listdir("%s/%s.d" % (UNITS, unit))}
    return any(re.search(COMMAND, host.read(path) or "") for path in sorted({*enabled.values(), *added}))
