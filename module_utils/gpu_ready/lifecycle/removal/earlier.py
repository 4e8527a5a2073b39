"""Recognises files that a release without checksums in its manifest wrote. What is not recognised is kept."""

import re

from ...containers import cdi, driver_volume
from ...cuda import profile
from ...packaging import openpgp
from ...plan.driver import steps

HEADS = {
    "takes it away": "removes it",  # third-party text: of the first release
    "a change made here is taken back by the next run": "the next run reverts changes made here",  # third-party text
}
"""What the first release wrote in the first line of its files, and what this one writes."""
FORMS = (
    r"# Written by gpu-ready; playbooks/uninstall\.yml removes it\.\n"
    r"Types: deb\nURIs: .+\nSuites: .+\n(Components: .+\n)?Architectures: .+\nSigned-By: .+\n",
    r"# Written by gpu-ready; playbooks/uninstall\.yml removes it\.\n(\nPackage: .+\nPin: .+\nPin-Priority: .+\n)+",
    r"# Written by gpu-ready; uninstall\.yml removes it\.\n"
    r"\[.+\]\nname=gpu-ready: .+\nbaseurl=.+\nenabled=1\ngpgcheck=[01]\nrepo_gpgcheck=[01]\ngpgkey=file://.+\n",
    r"# Written by gpu-ready; playbooks/uninstall\.yml removes it\.\nversion = \d+\n(\n|\[plugins\..+\]\n|\w+ = .+\n)*",
)
"""Files whose values depend on variables of that run: package sources, preferences, containerd's drop-in."""
MANY_GPUS = 65
"""More GPUs than a host has: the number of device nodes is in some files."""


def is_written_by_earlier_release(path: str, data: bytes) -> bool:
    """Return True if a file is as the first release wrote it, without any other line."""
    if "/keyrings/" in path or path.endswith(".gpg"):
        return bool(openpgp.list_fingerprints(data))
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    if path.startswith(cdi.DIRECTORIES):
        return cdi.parse_spec(text) is not None  # generated from the driver's files, for programs to read
    first, line, rest = text.partition("\n")
    for before, now in HEADS.items():
        first = first.replace(before, now)
    text = first + line + rest
    return text in known_texts(path, text) or any(re.fullmatch(form, text) for form in FORMS)


def known_texts(path: str, text: str) -> "set[str]":
    """Return texts that gpu-ready writes to a path.

    ``text`` is the present one, which names the toolkit's directory.
    """
    if path in profile.PATHS:
        found = re.search(r"/(\S+?)/bin[:\s\"]", text)
        return {profile.files("/" + found.group(1))[path]} if found else set()
    counts = range(MANY_GPUS)
    texts = {
        steps.NOUVEAU_PATH: {steps.NOUVEAU_CONTENT},
        cdi.REFRESH_OLD: {cdi.REFRESH_OLD_TEXT},
        driver_volume.HELPER: {driver_volume.HELPER_TEXT},
        cdi.BOOT_NODES: {cdi.format_boot_nodes(count) for count in counts},
    }
    texts.update({one: {cdi.format_nodes_unit(count)[one] for count in counts} for one in cdi.NODES})
    return texts.get(path, set())
