"""The final state of a host, file by file, and how two differ: kind, mode, owner, content or target, and packages."""

import json
from fnmatch import fnmatchcase
from typing import Any

from . import engine
from .hosts import Running

LIMIT = 600.0
# What differs between two hosts that are alike, by the reason.
PASSED_OVER = {
    "logs, caches, temporary files, files that a login creates": """
        /var/log/* /var/cache/* /var/backups/* /tmp/* /var/tmp/* /root/* /home/* *.pyc /etc/*- /etc/.pwd.lock""",
    "the lab's own, and what it writes at each start": """
        /etc/gpu-ready-lab/* /usr/lib/gpu-ready-lab/* /.dockerenv /etc/resolv.conf /etc/hosts /etc/hostname /etc/mtab
        /etc/systemd/network/10-lab.network""",
    "identity of the host and its cards, random keys": """
        /etc/ssh/ssh_host_* /etc/machine-id /var/lib/dbus/machine-id /etc/docker/key.json /var/lib/dkms/mok.*
        /var/lib/gpu-ready/verified.json#gpus /var/lib/systemd/*""",
    "compared as packages; these files have times and orders of operations": """
        /var/lib/dpkg/* /var/lib/apt/* /var/lib/rpm/* /usr/lib/sysimage/rpm/* /var/lib/dnf/*""",
    "the engines' own data, with random names": """
        /var/lib/docker/* /var/lib/containerd/* /var/lib/containers/* /opt/containerd/*""",
    "made from files that are compared": """
        /etc/ld.so.cache /lib/modules/*/modules.* /usr/lib/modules/*/modules.* /boot/initrd* /boot/initramfs*
        /var/lib/dkms/*/log/*""",
    "modules that a run loaded, and not the host itself at a boot": "/var/lib/gpu-ready/manifest.json#modules",
}
GLOBS = tuple(glob for globs in PASSED_OVER.values() for glob in globs.split())
TIMES = ("time", "boot_id", "at", "when", "verified_at", "started", "boot")
"""Keys of records in /var/lib/gpu-ready that hold times."""

ASK = r"""
import hashlib, json, lzma, os, stat, struct, subprocess, sys
SIGNED = b"~Module signature appended~\n"
MOCK = b"GRLNVML1"


def content(path):
    # Without the signature of a kernel module, whose key each host generates, and without the cards
    # appended to the lab's NVML, each with a UUID of its own.
    data = open(path, "rb").read()
    if path.endswith(".ko.xz") and data:
        data = lzma.decompress(data)
    if path.endswith((".ko", ".ko.xz")) and data.endswith(SIGNED):
        length, = struct.unpack(">I", data[-len(SIGNED) - 4:-len(SIGNED)])
        data = data[:-len(SIGNED) - 12 - length]
    if data.endswith(MOCK):
        data = data[:-len(MOCK) - 16 - int(data[-len(MOCK) - 16:-len(MOCK)], 16)]
    return data


found = {}
for top, directories, names in os.walk("/"):
    directories[:] = [f for f in directories if os.path.join(top, f) not in ("/proc", "/sys", "/dev", "/run")
                  and (os.path.islink(os.path.join(top, f)) or not os.path.ismount(os.path.join(top, f)))]
    for name in directories + names:
        path = os.path.join(top, name)
        try:
            info = os.lstat(path)
            text = "%o %d:%d " % (info.st_mode, info.st_uid, info.st_gid)
            if stat.S_ISLNK(info.st_mode):
                text = "link to " + os.readlink(path)
            elif path.startswith("/var/lib/gpu-ready/") and path.endswith(".json"):
                for key, value in json.load(open(path)).items():
                    found[path + "#" + key] = value
            elif path.endswith("/versionlock.list"):  # dnf writes the time of each lock as a comment
                text += " ".join(sorted(line for line in open(path).read().splitlines() if line and line[0] != "#"))
            elif stat.S_ISREG(info.st_mode):
                text += hashlib.sha256(content(path)).hexdigest()
        except OSError:
            continue
        found[path] = text.strip()
if os.path.exists("/var/lib/dpkg/status"):
    listed = subprocess.run(["dpkg-query", "-W", "-f",
        "${Package}:${Architecture} ${Version} ${db:Status-Want} ${db:Status-Status}\n"], stdout=subprocess.PIPE)
    auto = subprocess.run(["apt-mark", "showauto"], stdout=subprocess.PIPE).stdout.decode().split()
    for line in listed.stdout.decode().splitlines():
        name, rest = line.split(" ", 1)
        if not rest.endswith("not-installed"):
            found["package " + name] = rest + (" automatic" if name.split(":")[0] in auto or name in auto else "")
else:
    listed = subprocess.run(["rpm", "-qa", "--qf", "%{NAME}.%{ARCH} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\n"],
        stdout=subprocess.PIPE)
    for line in listed.stdout.decode().splitlines():
        found["package " + line] = "installed"
json.dump(found, sys.stdout)
"""  # noqa: Q001

Footprint = dict[str, Any]
"""What is at each path, and the sections of gpu-ready's records: PATH#SECTION."""


def take(running: Running) -> Footprint:
    """Read the state of each file and package of a host, except for those that are passed over."""
    argv = ("exec", "-i", running.container, "python3", "-")
    return read(engine.docker(*argv, stdin=ASK.encode(), limit=LIMIT, what=f"list {running.host}"))


def read(text: str) -> Footprint:
    """Parse the output of ASK, run by a host's Python."""
    return {path: _without_times(what) for path, what in json.loads(text).items() if not passed_over(path)}


def passed_over(path: str) -> bool:
    """True if a path may differ between two hosts that are alike."""
    return path.partition("#")[2] in TIMES or any(fnmatchcase(path, glob) for glob in GLOBS)


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in TIMES}
    if isinstance(value, list):
        return sorted((_without_times(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def differences(expected: Footprint, found: Footprint) -> list[str]:
    """What differs, one line per path, sorted; of the sections of a record only entries that differ."""
    lines = []
    for path in sorted(expected.keys() | found.keys()):
        before, after = expected.get(path, "absent"), found.get(path, "absent")
        if before != after and not passed_over(path):
            if isinstance(before, dict) and isinstance(after, dict):
                same = {key for key in before.keys() & after.keys() if before[key] == after[key]}
                before, after = ({k: v for k, v in each.items() if k not in same} for each in (before, after))
            lines.append(f"{path}: {_text(before)} became {_text(after)}")
    return lines


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)
