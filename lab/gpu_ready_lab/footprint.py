"""The final state of a host, file by file, and how two differ: kind, mode, owner, content or target, and packages."""

import json
from fnmatch import fnmatchcase

from . import engine
from .hosts import Running

LIMIT = 600.0
# What differs between two hosts that are alike, and why.
PASSED_OVER = {
    "/var/log/*": "logs",
    "/var/cache/*": "caches",
    "/var/backups/*": "copies by date",
    "/tmp/*": "temporary files",
    "/var/tmp/*": "temporary files",
    "/root/*": "files that the login creates",
    "/home/*": "files that the login creates",
    "/etc/gpu-ready-lab/*": "the lab's own",
    "/usr/lib/gpu-ready-lab/*": "the lab's own",
    "/etc/ssh/ssh_host_*": "keys of the host",
    "/etc/machine-id": "identity of the host",
    "/etc/systemd/network/10-lab.network": "the address of a guest",
    "/var/lib/gpu-ready/verified.json#gpus": "UUIDs of the host's own cards",
    "/var/lib/dbus/machine-id": "identity of the host",
    "/var/lib/systemd/*": "random seed, timers, catalog",
    "/var/lib/dpkg/*": "compared as packages; the order of its paragraphs depends on the order of operations",
    "/var/lib/apt/*": "fetched lists; which packages are automatic is compared as packages",
    "/var/lib/rpm/*": "compared as packages; a database with times of installation",
    "/usr/lib/sysimage/rpm/*": "compared as packages",
    "/var/lib/dnf/*": "history of transactions",
    "/var/lib/docker/*": "the engine's own data, with random names",
    "/var/lib/containerd/*": "the engine's own",
    "/var/lib/containers/*": "the engine's own",
    "/etc/docker/key.json": "identity of the engine",
    "/opt/containerd/*": "the engine's own",
    "/etc/ld.so.cache": "made from the libraries, which are compared",
    "/lib/modules/*/modules.*": "made from the modules, which are compared",
    "/usr/lib/modules/*/modules.*": "made from the modules, which are compared",
    "/boot/initrd*": "a boot image with times in it",
    "/boot/initramfs*": "a boot image with times in it",
    "/var/lib/dkms/*/log/*": "logs of the compiler",
    "/var/lib/dkms/mok.*": "a random key",
    "*.pyc": "compiled from files that are compared",
    "/etc/*-": "the copy from before a change of users and groups",
    "/var/lib/gpu-ready/manifest.json#modules": "modules that a run loaded, and not the host itself at a boot",
    "/etc/.pwd.lock": "exists once a user was added",
    "/etc/resolv.conf": "written at each start",
    "/etc/hosts": "written at each start",
    "/etc/hostname": "written at each start",
    "/etc/mtab": "written at each start",
    "/.dockerenv": "the lab's engine",
}
# Keys of records in /var/lib/gpu-ready that hold times.
TIMES = ("time", "boot_id", "at", "when", "verified_at", "started", "boot")

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
    here = os.stat(top).st_dev
    directories[:] = [f for f in directories if os.path.join(top, f) not in ("/proc", "/sys", "/dev", "/run")
                  and (os.path.islink(os.path.join(top, f)) or not os.path.ismount(os.path.join(top, f)))]
    for name in directories + names:
        path = os.path.join(top, name)
        try:
            info = os.lstat(path)
            kind = stat.S_IFMT(info.st_mode)
            if kind == stat.S_IFLNK:
                text = "link to " + os.readlink(path)
            elif kind == stat.S_IFREG:
                text = "%o %d:%d " % (info.st_mode, info.st_uid, info.st_gid)
                if path.startswith("/var/lib/gpu-ready/") and path.endswith(".json"):
                    text += open(path).read()
                elif path.endswith("/versionlock.list"):  # dnf writes the time of each lock as a comment
                    lines = [line for line in open(path).read().splitlines() if line and line[0] != "#"]
                    text += " ".join(sorted(lines))
                elif sys.argv[1:] == ["quick"]:
                    text += "%d bytes of %d" % (info.st_size, info.st_mtime_ns)
                else:
                    text += hashlib.sha256(content(path)).hexdigest()
            else:
                text = "%o %d:%d" % (info.st_mode, info.st_uid, info.st_gid)
        except OSError:
            continue
        found[path] = text
if os.path.exists("/var/lib/dpkg/status"):
    listed = subprocess.run(["dpkg-query", "-W", "-f",
        "${Package}:${Architecture} ${Version} ${db:Status-Want} ${db:Status-Status}\n"], stdout=subprocess.PIPE)
    auto = subprocess.run(["apt-mark", "showauto"], stdout=subprocess.PIPE).stdout.decode().split()
    for line in listed.stdout.decode().splitlines():
        name, rest = line.split(" ", 1)
        short = name.split(":")[0]
        if not rest.endswith("not-installed"):
            found["package " + name] = rest + (" automatic" if short in auto or name in auto else "")
else:
    listed = subprocess.run(["rpm", "-qa", "--qf", "%{NAME}.%{ARCH} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\n"],
        stdout=subprocess.PIPE)
    for line in listed.stdout.decode().splitlines():
        found["package " + line] = "installed"
json.dump(found, sys.stdout)
"""  # noqa: Q001


def take(running: Running, quick: bool = False) -> dict[str, str]:
    """Read the state of each file and package of a host, except for those that are passed over.

    ``quick`` compares size and time of a file instead of its content: enough for one host at two times only.
    """
    text = engine.docker(
        "exec", "-i", running.container, "python3", "-", *(["quick"] if quick else []),
        stdin=ASK.encode(), limit=LIMIT, what=f"list {running.host}",
    )  # fmt: skip
    return read(text)


def read(text: str) -> dict[str, str]:
    """Parse the output of ASK, run by a host's Python."""
    found: dict[str, str] = json.loads(text)
    return {path: _timeless(what) for path, what in found.items() if not passed_over(path)}


def passed_over(path: str) -> bool:
    """True if a path may differ between two hosts that are alike."""
    return any(fnmatchcase(path, glob) for glob in PASSED_OVER)


def _timeless(text: str) -> str:
    """A record of gpu-ready without its times and sorted; anything else unchanged."""
    head, brace, rest = text.partition("{")
    if not brace:
        return text
    try:
        record = json.loads(brace + rest)
    except ValueError:
        return text
    return head + json.dumps(_without_times(record), sort_keys=True)


def _without_times(value: object) -> object:
    if isinstance(value, dict):
        return {key: _without_times(each) for key, each in value.items() if key not in TIMES}
    if isinstance(value, list):
        return sorted((_without_times(each) for each in value), key=lambda each: json.dumps(each, sort_keys=True))
    return value


def differences(expected: dict[str, str], found: dict[str, str]) -> list[str]:
    """What differs, one line per path, sorted; for a record of gpu-ready one line per section: PATH#SECTION."""
    expected, found = _by_section(expected), _by_section(found)
    lines = []
    for path in sorted(expected.keys() | found.keys()):
        before, after = expected.get(path), found.get(path)
        if before != after and not passed_over(path):
            before, after = _without_same(before or "absent", after or "absent")
            lines.append(f"{path}: {before} became {after}")
    return lines


def _without_same(before: str, after: str) -> tuple[str, str]:
    """Return two sections of a record without the entries that are the same in both."""
    try:
        old, new = json.loads(before), json.loads(after)
    except ValueError:
        return before, after
    if not isinstance(old, dict) or not isinstance(new, dict):
        return before, after
    same = {key for key in old.keys() & new.keys() if old[key] == new[key]}
    old, new = ({key: value for key, value in each.items() if key not in same} for each in (old, new))
    return json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True)


def _by_section(found: dict[str, str]) -> dict[str, str]:
    """Return each section of a record as a path of its own."""
    parts = {}
    for path, what in found.items():
        head, brace, rest = what.partition("{")
        try:
            record = json.loads(brace + rest)
        except ValueError:
            parts[path] = what
            continue
        parts[path] = head
        parts |= {f"{path}#{name}": json.dumps(value, sort_keys=True) for name, value in record.items()}
    return parts
