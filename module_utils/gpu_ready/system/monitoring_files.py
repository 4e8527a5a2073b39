"""The service that writes metrics of the GPUs (monitor/): its files on a host."""

import hashlib
import json
import posixpath
import re
from typing import Callable, Dict, List, Mapping, NamedTuple, Optional

NAME = "gpu-ready-monitoring"
UNIT = "/etc/systemd/system/%s.service" % NAME
AT_BOOT = "/etc/systemd/system/multi-user.target.d/%s.conf" % NAME
"""Starts the unit at boot. To enable it, systemd would read all units again, and with its cgroups containers that got
their GPUs by a hook would lose them (plan/driver/services.py, must_wait)."""
DIRECTORY = "/usr/local/lib/gpu-ready"
PACKAGE = "gpu_ready_node"
PROGRAM = DIRECTORY + "/" + PACKAGE
SETTINGS = DIRECTORY + "/monitoring.json"
PID_FILE = "/run/%s/pid" % NAME
FILE = "gpu_ready.prom"
HEAD = "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n"
SERVICE = """[Unit]
Description=Metrics of the GPUs for node_exporter
[Service]
ExecStart=%(python)s -E -s -B -m %(package)s.monitor.service %(settings)s
ExecStopPost=-/bin/rm -f %(file)s
WorkingDirectory=%(root)s
RuntimeDirectory=%(name)s
Restart=always
RestartSec=30
TimeoutStopSec=15
Nice=10
CPUQuota=10%%
MemoryMax=256M
TasksMax=16
NoNewPrivileges=yes
PrivateTmp=yes
PrivateNetwork=yes
ProtectHome=yes
ProtectSystem=strict
ReadWritePaths=%(directory)s
ProtectControlGroups=yes
ProtectKernelTunables=yes
LockPersonality=yes
RestrictAddressFamilies=AF_UNIX
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
"""
"""Without PrivateDevices, ProtectClock and DeviceAllow, which hide the nodes of the driver, whose numbers differ
between releases; without ProtectKernelModules, because NVML may have the module loaded. Older systemd ignores what it
does not know. The metrics go when the service stops: old values look like new ones."""
COUNTERS = "/etc/dcgm-exporter/gpu-ready-counters.csv"
EXPORTER_UNIT = "/etc/systemd/system/nvidia-dcgm-exporter.service.d/gpu-ready.conf"
DCGM_FILES = (COUNTERS, EXPORTER_UNIT)
"""What gpu-ready writes beside NVIDIA's packages: which metrics, and where the exporter gets them."""
DCGM_SERVICES = ("nvidia-dcgm", "nvidia-dcgm-exporter")
NODE_EXPORTER = "prometheus-node-exporter"
"""Unit and program of node_exporter in the packages of all distributions (catalog/monitoring.yml)."""
NODE_EXPORTER_DIRECTORY = "/var/lib/prometheus/node-exporter"
"""The directory for textfiles that is built into their program; node_exporter itself has none."""
PYTHON = r"(?m)^ExecStart=(/\S+) -E -s -B -m %s[.]monitor" % PACKAGE


MAIN = DIRECTORY + "/__main__.py"
CHECK_SETTINGS = "/usr/local/lib/gpu-ready-check/settings.json"
"""Of gpu-ready-check, if it is installed: which checks are off, and limits."""
START = '''"""Runs gpu-ready-check."""

import sys

sys.dont_write_bytecode = True
from gpu_ready_node.check.program import main

sys.exit(main(sys.argv[1:], "%s"))
'''
"""What Python runs that is given the directory: facts are read so on hosts that have the metrics only."""
SUBJECTS = ("check", "monitor")
"""Packages of the program."""


class MonitoringParams(NamedTuple):
    """What the service is run with, the options of gpu_monitoring.

    ``directory``: what node_exporter reads. ``reload``: systemd has to read the changed unit, and no container would
    suffer.
    """

    python: str
    directory: str
    interval: int
    old_names: bool
    branch_ends: Dict[str, str]
    reload: bool = False


def list_program(root: str, listdir: Callable[[str], List[str]]) -> List[str]:
    """Return the names of the files of a program on a host, by the directory above its packages."""
    found = [name for name in listdir(root) if name not in SUBJECTS]
    for subject in SUBJECTS:
        found += ["%s/%s" % (subject, name) for name in listdir("%s/%s" % (root, subject))]
    return sorted(found)


def program_digest(files: Mapping[str, bytes]) -> str:
    total = hashlib.sha256()
    for name, data in sorted(files.items()):
        total.update(("%s %d\n" % (name, len(data))).encode("utf-8") + data)
    return total.hexdigest()


def short_digest(data: bytes) -> str:
    """Return the beginning of the SHA-256 of a file of ours."""
    return hashlib.sha256(data).hexdigest()[:16]


def unit_python(unit: Optional[str]) -> Optional[str]:
    found = re.search(PYTHON, unit or "")
    return found.group(1) if found else None


def format_files(params: MonitoringParams) -> Dict[str, str]:
    file = posixpath.join(params.directory, FILE)
    values = {"python": params.python, "package": PACKAGE, "settings": SETTINGS, "file": file, "root": DIRECTORY}
    settings = {
        "file": file,
        "interval": params.interval,
        "old_names": params.old_names,
        "branch_ends": params.branch_ends,
    }
    return {
        MAIN: START % CHECK_SETTINGS,
        UNIT: HEAD + SERVICE % dict(values, name=NAME, directory=params.directory),
        AT_BOOT: HEAD + "[Unit]\nWants=%s.service\n" % NAME,
        SETTINGS: json.dumps(settings, indent=1, sort_keys=True) + "\n",
    }
