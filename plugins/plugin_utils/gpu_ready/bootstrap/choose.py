"""Finds a Python for Ansible's modules on a host, or the script that installs one.

Runs on the control node, on the output of a shell script, since without Python no module runs on the host.
"""

import re
import shlex
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base.errors import GpuReadyError
from ....module_utils.gpu_ready.system.model import OsRelease
from ..catalog import model as catalog
from ..catalog.settings import Settings
from ..completion import os_family
from ..plan import repository
from ..settings import variables
from .python_scripts import APT, MANAGERS, RPM, VAULT

VARIABLES = ("gpu_ready_vault", "gpu_ready_mirror", "gpu_ready_mirror_keys")
NEEDS = {(2, 16): (3, 6), (2, 17): (3, 7), (2, 18): (3, 8), (2, 19): (3, 8)}
"""The oldest Python on a host by ansible-core, its _PY_MIN in module_utils/basic.py; newer ones need 3.9."""
NEWER_NEED = (3, 9)
BLANK = re.compile(r"\s*$|Shared connection to \S+ closed")
"""Lines without information; the second kind is printed by ssh."""


class BootstrapError(GpuReadyError):
    """Ansible cannot run on the host."""


class FoundPythons(NamedTuple):
    """What a shell on the host printed: each Python with its version, package managers, and the system."""

    pythons: list[tuple[tuple[int, int], str]]
    broken: list[tuple[int, str, str]]
    """Pythons that do not start: exit status, path, last printed line."""
    managers: list[str]
    release: OsRelease


class PythonChoice(NamedTuple):
    """How modules will run: with the Python at ``interpreter``, or after the shell script ``install`` was run."""

    interpreter: str | None
    install: str | None


def parse_found(text: str) -> FoundPythons:
    """Parse the output of python_scripts.FIND, with any line ends."""
    head, _, system = text.replace("\r", "").partition("system\n")
    pythons = [
        ((int(major), int(minor)), path)
        for major, minor, path in re.findall(r"^python (\d+)\.(\d+) (\S+)$", head, re.MULTILINE)
    ]
    broken = [
        (int(status), path, printed.strip())
        for status, path, printed in re.findall(r"^broken (\d+) (\S+) ?(.*)$", head, re.MULTILINE)
    ]
    managers = re.findall(r"^manager (\S+)$", head, re.MULTILINE)
    return FoundPythons(pythons, broken, managers, os_family.read_os_release(system))


def oldest_python(core: str) -> tuple[int, int]:
    """Return oldest Python on hosts that an ansible-core ("2.19.14") supports."""
    match = re.match(r"(\d+)\.(\d+)", core)
    return NEEDS.get((int(match.group(1)), int(match.group(2))), NEWER_NEED) if match else NEWER_NEED


def choose_python(
    found: FoundPythons, core: str, given: dict[str, Any], tried: str | None = None, check: bool = False
) -> PythonChoice:
    """Return how modules will run; BootstrapError where they cannot. ``tried``: what an installation printed."""
    settings, refusals = variables.parse_settings({name: given[name] for name in VARIABLES if name in given})
    if refusals:
        raise BootstrapError("; ".join("%s: %s" % (one.message, one.remedy) for one in refusals))
    least = oldest_python(core)
    for version, path in found.pythons:
        if version >= least:
            return PythonChoice(path, None)
    name = found.release.pretty or found.release.id or "this system"
    if found.pythons:
        version, path = max(found.pythons)
        raise BootstrapError(describe_old_python("Python %d.%d of %s (%s)" % (version + (name, path)), least, core))
    if found.broken:
        raise BootstrapError(describe_broken_python(name, found))
    if tried is not None:
        raise BootstrapError(describe_failed_install(name, found, tried, settings))
    if is_enterprise_7(found) and least > (3, 6):
        raise BootstrapError(describe_old_python("Python 3.6, the newest that %s has," % name, least, core))
    manager = next((one for one in MANAGERS if one in found.managers), None)
    if manager is None:
        raise BootstrapError(
            "%s has no Python 3, which Ansible's modules need, and no supported package manager (%s). Install python3 "
            "there, or set its path in ansible_python_interpreter" % (name, ", ".join(MANAGERS))
        )
    if check:
        raise BootstrapError(
            "%s has no Python 3, which Ansible's modules need, and a check installs none. Run without --check: that "
            "installs the package python3 first" % name
        )
    return PythonChoice(None, install_script(found, manager, settings))


def install_script(found: FoundPythons, manager: str, settings: Settings) -> str:
    """Return a shell script that installs python3, from the vault of an ended release if gpu_ready_vault permits it."""
    if manager == "apt-get":
        return APT
    key = os_family.resolve(found.release)
    vaults = list(catalog.distro(key).get("vault") or []) if key and settings.gpu_ready_vault else []
    adds = []
    for identity in vaults:
        one = repository.parameters(identity, settings)
        words = (identity, one.url, one.key_url, "".join((one.fingerprint or "").split()).upper())
        adds.append("add " + " ".join(shlex.quote(word) for word in words))
    return VAULT.format(manager=manager, adds="\n".join(adds)) if adds else RPM.format(manager=manager)


def is_enterprise_7(found: FoundPythons) -> bool:
    """Return True for Enterprise Linux 7, whose newest Python 3 is 3.6."""
    return "yum" in found.managers and (found.release.version_id or "").split(".")[0] == "7"


def describe_old_python(what: str, least: tuple[int, int], core: str) -> str:
    fitting = [known for known, oldest in sorted(NEEDS.items()) if oldest < least]
    remedy = "Install a newer one beside it and set its path in ansible_python_interpreter"
    if fitting:
        remedy += ", or use ansible-core %d.%d" % fitting[0]
    return "%s is too old for ansible-core %s, which needs %d.%d on hosts. %s" % ((what, core) + least + (remedy,))


def describe_broken_python(name: str, found: FoundPythons) -> str:
    """Return the message for an installed Python that does not run: installing it again would do nothing."""
    status, path, printed = found.broken[0]
    if "apt-get" in found.managers:
        remedy = 'Run `apt-get install --reinstall` for the packages that `dpkg -S "$(readlink -f %s)"` names' % path
    else:  # yum and dnf are written in Python
        remedy = "Restore its package with `rpm -Uvh --replacepkgs` and the file from its mirror"
    return "Python 3 of %s (%s) does not start (exit status %d%s). %s, or set the path of another one in %s" % (
        name, path, status, ": " + printed[:300] if printed else "", remedy, "ansible_python_interpreter",
    )  # fmt: skip


def describe_failed_install(name: str, found: FoundPythons, tried: str, settings: Settings) -> str:
    lines = [line.strip() for line in tried.replace("\r", "").splitlines() if not BLANK.match(line)]
    remedy = "Check its package sources, then run again"
    if is_enterprise_7(found) and not settings.gpu_ready_vault:
        remedy = "Its mirrors have ended: set gpu_ready_vault to true for the archive, or check its package sources"
    cause = "; ".join(lines[-3:])[-400:] or "nothing was printed"
    return "%s has no Python 3, and its package manager could not install it (%s). %s" % (name, cause, remedy)
