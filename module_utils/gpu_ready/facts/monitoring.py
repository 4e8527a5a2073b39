"""The service that writes metrics, and the directory in which node_exporter reads them."""

import re
import sys
from typing import Dict, Sequence

from ..base.host import Host
from ..system import check_files
from ..system import monitoring_files as files
from .model import MonitoringFacts

OPTION = r"--collector\.textfile\.directory[= ]\"?(/[^\s\"']+)"
CONFIGURATIONS = (
    "/etc/default/prometheus-node-exporter",
    "/etc/default/node_exporter",
    "/etc/sysconfig/node_exporter",
    "/etc/systemd/system/prometheus-node-exporter.service",
    "/etc/systemd/system/node_exporter.service",
    "/lib/systemd/system/prometheus-node-exporter.service",
    "/usr/lib/systemd/system/node_exporter.service",
)
"""Where the options of node_exporter are set: packages of Debian and Ubuntu, Fedora and EPEL, and roles of Ansible."""
DEBIAN = ("/usr/bin/" + files.NODE_EXPORTER, files.NODE_EXPORTER_DIRECTORY)
"""Program of Debian's package, and the directory that is built into it."""
PORT = 9100
LISTENS = "0A"
"""State of a socket in /proc/net/tcp (TCP_LISTEN, include/net/tcp_states.h of Linux)."""


def collect(host: Host, exporters: Sequence[int] = ()) -> MonitoringFacts:
    """Collect what is known; ``exporters``: processes of node_exporter (work.find_daemons)."""
    texts = {path: host.read(path) for path in (files.UNIT, files.AT_BOOT, files.SETTINGS, files.MAIN)}
    python = files.unit_python(texts[files.UNIT])
    pid = (host.read(files.PID_FILE) or "").strip()
    names = files.list_program(files.PROGRAM, host.listdir)
    contents = {name: host.read_bytes(files.PROGRAM + "/" + name) for name in names}
    program = files.program_digest({name: data for name, data in contents.items() if data is not None})
    own = {path: host.read_bytes(path) for path in files.DCGM_FILES}
    dcgm = {path: files.short_digest(data) for path, data in own.items() if data is not None}
    return MonitoringFacts(
        files={path: text for path, text in texts.items() if text is not None},
        program=program if contents else "",
        running=pid.isdigit() and host.isdir("/proc/" + pid),
        python=python if python and host.exists(python) else sys.executable or "/usr/bin/python3",
        exporter=exporter_directory(host),
        dcgm=dcgm,
        dcgm_running=bool(dcgm) and dcgm_runs(host),
        check=installed_check(host),
        check_running=check_runs(host),
        exporter_runs=bool(exporters) or is_listening(host, PORT),
    )


def installed_check(host: Host) -> Dict[str, str]:
    """Return the files of gpu-ready-check by path, with the beginning of their digests."""
    paths = [path for path in check_files.FIXED if host.exists(path)]
    paths += [check_files.DIRECTORY + "/" + name for name in host.listdir(check_files.DIRECTORY)]
    names = files.list_program(check_files.PACKAGE, host.listdir)
    paths += [check_files.PACKAGE + "/" + name for name in names]
    found = {path: host.read_bytes(path) for path in paths if not host.isdir(path)}
    return {path: files.short_digest(data) for path, data in sorted(found.items()) if data is not None}


def check_runs(host: Host) -> bool:
    """Return whether its timer is active; asked only where there is one."""
    if not host.exists(check_files.UNITS + check_files.TIMER):
        return False
    return host.run(["systemctl", "is-active", "--quiet", check_files.TIMER], timeout=20.0).rc == 0


def is_listening(host: Host, port: int) -> bool:
    """Return whether a program of the host, or of a container with its network, listens on a TCP port."""
    end = ":%04X" % port
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        rows = [line.split()[:4] for line in (host.read(path) or "").splitlines()]
        if any(row[1].endswith(end) and row[3] == LISTENS for row in rows if len(row) == 4):
            return True
    return False


def dcgm_runs(host: Host) -> bool:
    answer = host.run(["systemctl", "is-active"] + list(files.DCGM_SERVICES), timeout=20.0)
    return answer.out.split() == ["active"] * len(files.DCGM_SERVICES)


def exporter_directory(host: Host) -> str:
    for path in CONFIGURATIONS:
        found = re.findall(OPTION, host.read(path) or "")
        if found:
            return str(found[-1])
    return DEBIAN[1] if host.exists(DEBIAN[0]) else ""
