"""Which kernel GRUB boots next, by its environment (grubenv) and the menu that it made of its settings (grub.cfg)."""

import re
from typing import Dict, List, Optional

from ..base import versions

SAVED = "${saved_entry}"
DEFAULT = r'(?m)^[ \t]*set default="([^"\n]*)"'
HEAD = r"(\s*)(?:menuentry|submenu)\s"
KERNEL = r"\s+linux(?:16|efi)?\s+\S*vmlinuz-(\S+)"


def find_default_kernel(environment: str, configuration: str, kernels: List[str]) -> Optional[str]:
    """Return which of the installed kernels is the default, None where these texts do not show it.

    An entry is named by its title or id, which hold the kernel's release (also where it has a file of its own, by the
    Boot Loader Specification: MACHINE_ID-RELEASE), or by its place in the menu: ``0``, and ``1>2`` in a submenu.
    """
    entry = find_default_entry(environment, configuration)
    named = [name for name in kernels if entry and name in entry]
    if named:
        return max(named, key=len)
    if entry and re.search(r"(?m)^[ \t]*blscfg[ \t]*$", configuration):
        ordered = dict(enumerate(sorted(kernels, key=versions.key, reverse=True)))
        return ordered.get(int(entry)) if entry.isdecimal() else None
    kernel = kernels_by_position(configuration).get(entry) if entry else None
    return kernel if kernel in kernels else None


def find_default_entry(environment: str, configuration: str) -> Optional[str]:
    """Return the name of the entry that boots next: that for one boot, else the saved or the set one.

    Without a menu at hand (EL 8 has it in the EFI system partition) the saved one counts, which is what EL sets.
    """
    values = dict(re.findall(r"(?m)^(next_entry|saved_entry)=(.+)$", environment))
    settings = [value for value in re.findall(DEFAULT, configuration) if value != "${next_entry}"]
    setting = settings[-1] if settings else SAVED
    last = values.get("saved_entry") or ("0" if settings else None)
    return values.get("next_entry") or (last if setting == SAVED else setting)


def kernels_by_position(configuration: str) -> Dict[str, str]:
    found: Dict[str, str] = {}
    top = inner = -1
    for line in configuration.splitlines():
        head = re.match(HEAD, line)
        if head:
            top, inner = (top, inner + 1) if head.group(1) else (top + 1, -1)
        kernel = re.match(KERNEL, line)
        if kernel:
            found.setdefault("%d" % top if inner < 0 else "%d>%d" % (top, inner), kernel.group(1))
    return found
