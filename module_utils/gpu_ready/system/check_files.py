"""gpu-ready-check: its files on a host, and what wires it to systemd, Slurm and node-problem-detector."""

import json
from typing import Any, Dict, List, NamedTuple

from . import monitoring_files

NAME = "gpu-ready-check"
COMMAND = "/usr/local/sbin/" + NAME
DIRECTORY = "/usr/local/lib/" + NAME
PACKAGE = DIRECTORY + "/gpu_ready_node"
PROGRAMS = (DIRECTORY, monitoring_files.DIRECTORY)
"""Directories that Python runs as the check: its own, and the metrics service's."""
SETTINGS = DIRECTORY + "/settings.json"
MAIN = DIRECTORY + "/__main__.py"
PROLOG, HEALTH_PROGRAM = DIRECTORY + "/slurm-prolog", DIRECTORY + "/slurm-health"
NPD, NPD_CONFIG = DIRECTORY + "/npd", DIRECTORY + "/npd.json"
UNITS = "/etc/systemd/system/"
SERVICE, TIMER, AT_BOOT = NAME + ".service", NAME + ".timer", "gpu-ready-verify.service"
STARTED_AT_BOOT = UNITS + "multi-user.target.d/%s.conf" % NAME
"""Starts the units at boot, without links that systemd would have to read all units for (monitoring_files.AT_BOOT)."""
FIXED = (COMMAND, STARTED_AT_BOOT) + tuple(UNITS + unit for unit in (SERVICE, TIMER, AT_BOOT))
"""Files outside DIRECTORY."""
SLURM, SYSTEMD, DETECTOR = "slurm", "systemd", "npd"
HEAD = "# Written by gpu-ready; playbooks/uninstall.yml removes it.\n"
SANDBOX = """NoNewPrivileges=yes
PrivateTmp=yes
PrivateNetwork=yes
ProtectHome=yes
ProtectSystem=strict
ReadWritePaths=-/var/lib/gpu-ready
RuntimeDirectory=gpu-ready
RuntimeDirectoryMode=0700
RuntimeDirectoryPreserve=yes
LockPersonality=yes
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
"""
"""Like the unit of the metrics service (monitoring_files.SERVICE), which says what is missing and why. The mode is
that of base/locks.py."""
ONCE = """[Unit]
Description=%(about)s
After=%(after)s
[Service]
Type=oneshot
ExecStart=%(command)s
SuccessExitStatus=%(good)s
TimeoutStartSec=%(limit)s
KillMode=process
"""
"""KillMode: a process that waits in a hanging driver cannot be ended, and systemd would wait for it."""
CLOCK = """[Unit]
Description=Checks the GPUs every minute
[Timer]
OnBootSec=2min
OnUnitInactiveSec=60s
AccuracySec=5s
"""
SHELL = "#!/bin/sh\n" + HEAD + "exec %s -E -s -B %s %s\n"


class CheckParams(NamedTuple):
    """How the check is installed, the options of gpu_monitoring.check. ``python``: its interpreter."""

    python: str
    wirings: List[str]
    off: List[str] = []
    limits: Dict[str, int] = {}


def format_files(params: CheckParams) -> Dict[str, str]:
    """Return what is written beside the program, by path."""
    given = {"off": sorted(params.off), "limits": params.limits}
    boot = {
        "about": "Verifies the GPUs after a boot",
        "after": "nvidia-persistenced.service nvidia-fabricmanager.service systemd-modules-load.service",
        "command": COMMAND + " --renew",
        "good": "1 2 3",
        "limit": "5min",
    }
    found = {
        MAIN: monitoring_files.START % SETTINGS,
        SETTINGS: json.dumps(given, indent=1, sort_keys=True) + "\n",
        COMMAND: SHELL % (params.python, DIRECTORY, '"$@"'),
        UNITS + AT_BOOT: HEAD + ONCE % boot + SANDBOX,
    }
    started = [AT_BOOT]
    if SYSTEMD in params.wirings:
        regular = dict(boot, about="Checks the GPUs", command=COMMAND, good="1 3", limit="60s", after=AT_BOOT)
        found[UNITS + SERVICE] = HEAD + ONCE % regular + SANDBOX
        found[UNITS + TIMER] = HEAD + CLOCK
        started.append(TIMER)
    if SLURM in params.wirings:
        found[PROLOG] = SHELL % (params.python, DIRECTORY, "--slurm-prolog")
        found[HEALTH_PROGRAM] = SHELL % (params.python, DIRECTORY, "--slurm-health")
    if DETECTOR in params.wirings:
        found[NPD] = SHELL % (params.python, DIRECTORY, "--npd")
        found[NPD_CONFIG] = json.dumps(detector_config(), indent=1) + "\n"
    found[STARTED_AT_BOOT] = HEAD + "[Unit]\nWants=%s\n" % " ".join(started)
    return found


def mode(path: str) -> str:
    """Return the permissions of a file of format_files."""
    return "0755" if path in (COMMAND, PROLOG, HEALTH_PROGRAM, NPD) else "0644"


def detector_config() -> Dict[str, Any]:
    """Return a custom plugin monitor of node-problem-detector (docs/custom_plugin_monitor.md of its repository)."""
    kind, healthy, broken = "GpuUnhealthy", "GpusHealthy", "GpuReadyCheckCritical"
    return {
        "plugin": "custom",
        "pluginConfig": {"invoke_interval": "60s", "timeout": "20s", "max_output_length": 80, "concurrency": 1},
        "source": NAME,
        "conditions": [{"type": kind, "reason": healthy, "message": "gpu-ready-check finds nothing critical"}],
        "rules": [{"type": "permanent", "condition": kind, "reason": broken, "path": NPD, "timeout": "20s"}],
    }
