"""A host that Ansible's modules cannot run on: which Python it has, whether that one will do, or how to install one.

Decided on the control node from what a shell on the host printed, since without Python nothing else works there.
"""

import re
import shlex
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base.errors import GpuReadyError
from ..catalog import model as catalog
from ..catalog.settings import Settings
from ..plan import repository
from ..system import os_release
from . import variables

VARIABLES = ("gpu_ready_vault", "gpu_ready_mirror", "gpu_ready_mirror_keys")
NEEDS = {(2, 16): (3, 6), (2, 17): (3, 7), (2, 18): (3, 8), (2, 19): (3, 8)}
"""The oldest Python on a host by ansible-core, its _PY_MIN in module_utils/basic.py; newer ones need 3.9."""
NEWER_NEED = (3, 9)
BLANK = re.compile(r"\s*$|Shared connection to \S+ closed")
"""Lines that tell nothing; the second kind is ssh's own."""
MANAGERS = ("apt-get", "dnf", "yum")
FIND = r"""
for path in /usr/bin/python3 /usr/libexec/platform-python /usr/local/bin/python3 /usr/bin/python3.[0-9]*[0-9]; do
    [ -x "$path" ] || continue
    version=$("$path" -c 'import sys; print("%%d.%%d" %% sys.version_info[:2])' 2>&1) &&
        echo "python $version $path" || echo "broken $? $path $(echo "$version" | tail -n 1)"
done
for program in %s; do
    if command -v "$program" >/dev/null; then echo "manager $program"; fi
done
echo "system"
cat /etc/os-release
""" % " ".join(MANAGERS)
"""What a shell on the host is asked."""
# dnf and yum wait for another package manager without end; the limit is for that, and for a mirror that crawls.
LIMIT = 1200
BOUND = "timeout -k 30 %d " % LIMIT
LATE = ' || { [ $? -ne 124 ] || echo "it did not end within %d minutes" >&2; exit 1; }\n' % (LIMIT // 60)
APT = (
    BOUND + "apt-get -q update && export DEBIAN_FRONTEND=noninteractive && "
    + BOUND + "apt-get -q -y -o DPkg::Lock::Timeout=120 --no-install-recommends install python3" + LATE
)  # fmt: skip
LATE_FORM = LATE.replace("{", "{{").replace("}", "}}")
RPM = BOUND + "{manager} -y install python3" + LATE_FORM
# The key counts by its fingerprint, wherever it was fetched from; gpg is part of every system that has yum.
VAULT = r"""
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf '[main]\nreposdir=/dev/null\ngpgcheck=1\nplugins=0\ncachedir=%s/cache\n' "$folder" >"$folder/yum.conf"
add() {{
    curl -fsSL --max-time 60 -o "$folder/$1.key" "$3"
    gpg --homedir "$folder" --batch --with-fingerprint --with-colons "$folder/$1.key" 2>/dev/null |
        grep -q "^fpr:*$4:" ||
        {{ echo "the key $3 has not the fingerprint $4" >&2; return 1; }}
    printf '[%s]\nname=%s\nbaseurl=%s\ngpgkey=file://%s\n' "$1" "$1" "$2" "$folder/$1.key" >>"$folder/yum.conf"
}}
{adds}
""" + BOUND + '{manager} -y -c "$folder/yum.conf" install python3' + LATE_FORM  # fmt: skip


class BootstrapError(GpuReadyError):
    """Ansible cannot run on the host; one sentence with cause and remedy."""


class Found(NamedTuple):
    """What a shell on the host printed: each Python with its version, package managers, and the system."""

    pythons: List[Tuple[Tuple[int, int], str]]
    broken: List[Tuple[int, str, str]]
    """Those that do not start: exit status, path, the last line that they printed."""
    managers: List[str]
    release: os_release.OsRelease


class Way(NamedTuple):
    """How modules will run: with the Python at ``interpreter``, or after the shell script ``install`` was run."""

    interpreter: Optional[str]
    install: Optional[str]


def read(text: str) -> Found:
    """Read what FIND printed, however the terminal ended its lines."""
    head, _, system = text.replace("\r", "").partition("system\n")
    pythons = [
        ((int(major), int(minor)), path)
        for major, minor, path in re.findall(r"^python (\d+)\.(\d+) (\S+)$", head, re.MULTILINE)
    ]
    broken = [
        (int(status), path, said.strip())
        for status, path, said in re.findall(r"^broken (\d+) (\S+) ?(.*)$", head, re.MULTILINE)
    ]
    managers = re.findall(r"^manager (\S+)$", head, re.MULTILINE)
    return Found(pythons, broken, managers, os_release.read_os_release(system))


def needed(core: str) -> Tuple[int, int]:
    """Return the oldest Python that an ansible-core ("2.19.14") takes on a host."""
    match = re.match(r"(\d+)\.(\d+)", core)
    return NEEDS.get((int(match.group(1)), int(match.group(2))), NEWER_NEED) if match else NEWER_NEED


def way(found: Found, core: str, wanted: Dict[str, Any], tried: Optional[str] = None, check: bool = False) -> Way:
    """Return how modules will run; BootstrapError where they cannot. ``tried``: what an installation printed."""
    settings, wrong = variables.parse_settings({name: wanted[name] for name in VARIABLES if name in wanted})
    if wrong:
        raise BootstrapError("; ".join(wrong))
    least = needed(core)
    for version, path in found.pythons:
        if version >= least:
            return Way(path, None)
    name = found.release.pretty or found.release.id or "this system"
    if found.pythons:
        version, path = max(found.pythons)
        raise BootstrapError(too_old("Python %d.%d of %s (%s)" % (version + (name, path)), least, core))
    if found.broken:
        raise BootstrapError(not_starting(name, found))
    if tried is not None:
        raise BootstrapError(not_installed(name, found, tried, settings))
    if enterprise_7(found) and least > (3, 6):
        raise BootstrapError(too_old("Python 3.6, the newest that %s has," % name, least, core))
    manager = next((one for one in MANAGERS if one in found.managers), None)
    if manager is None:
        raise BootstrapError(
            "%s has no Python 3, which Ansible's modules need, and no package manager that gpu-ready knows (%s): "
            "install python3 there, or name its path in ansible_python_interpreter" % (name, ", ".join(MANAGERS))
        )
    if check:
        raise BootstrapError(
            "%s has no Python 3, which Ansible's modules need, and a check installs none: run without --check, which "
            "installs the package python3 first" % name
        )
    return Way(None, script(found, manager, settings))


def script(found: Found, manager: str, settings: Settings) -> str:
    """Return the shell script that installs python3: from the system's archives where the operator asked for them."""
    if manager == "apt-get":
        return APT
    key = os_release.resolve(found.release)
    vaults = list(catalog.distro(key).get("vault") or []) if key and settings.gpu_ready_vault else []
    adds = []
    for identity in vaults:
        one = repository.parameters(identity, settings)
        words = (identity, one.url, one.key_url, "".join((one.fingerprint or "").split()).upper())
        adds.append("add " + " ".join(shlex.quote(word) for word in words))
    return VAULT.format(manager=manager, adds="\n".join(adds)) if adds else RPM.format(manager=manager)


def enterprise_7(found: Found) -> bool:
    """Return whether a system's own newest Python 3 is 3.6 for ever."""
    return "yum" in found.managers and (found.release.version_id or "").split(".")[0] == "7"


def too_old(what: str, least: Tuple[int, int], core: str) -> str:
    """Return the sentence for a Python that this ansible-core does not take."""
    fitting = [known for known, oldest in sorted(NEEDS.items()) if oldest < least]
    remedy = "install a newer one beside it and name it in ansible_python_interpreter"
    if fitting:
        remedy += ", or run this with ansible-core %d.%d" % fitting[0]
    return "%s is too old for ansible-core %s, which needs %d.%d on hosts: %s" % ((what, core) + least + (remedy,))


def not_starting(name: str, found: Found) -> str:
    """Return the sentence for a Python that is there and does not run: to install it would do nothing."""
    status, path, said = found.broken[0]
    if "apt-get" in found.managers:
        remedy = '`apt-get install --reinstall` the packages that `dpkg -S "$(readlink -f %s)"` names' % path
    else:  # yum and dnf are written in Python
        remedy = "put its package back with `rpm -Uvh --replacepkgs` of the file that its mirror has"
    return "Python 3 of %s (%s) does not start (exit status %d%s): %s, or name one that works in %s" % (
        name, path, status, ": " + said[:300] if said else "", remedy, "ansible_python_interpreter",
    )  # fmt: skip


def not_installed(name: str, found: Found, tried: str, settings: Settings) -> str:
    """Return the sentence for an installation that brought no Python."""
    lines = [line.strip() for line in tried.replace("\r", "").splitlines() if not BLANK.match(line)]
    remedy = "see to its package sources, then run again"
    if enterprise_7(found) and not settings.gpu_ready_vault:
        remedy = "its mirrors have ended, so set gpu_ready_vault to true for the archive, or see to its package sources"
    cause = "; ".join(lines[-3:])[-400:] or "nothing was printed"
    return "%s has no Python 3, and its package manager could not install it (%s): %s" % (name, cause, remedy)
