"""gpu-ready-monitoring: writes the metrics of this host's GPUs for the textfile collector of node_exporter.

Runs from its own directory on the host, without other packages: `python3 -m gpu_ready_node.monitor.service SETTINGS`.
SETTINGS is a file of JSON, written by gpu-ready: file (path to write), interval (seconds), old_names, branch_ends. With
--print the metrics go to the screen, once.
"""

import json
import os
import sys
import time
from typing import Any, Dict, List

from ..check import node, reading, worker
from ..check.judge import judge
from ..check.rules import make_rules
from . import containers, kernel_log, metrics, textfile

PID_FILE = "/run/gpu-ready-monitoring/pid"
CHECK = "/usr/local/lib/gpu-ready-check/settings.json"
"""Of gpu-ready-check, if it is installed: which checks are off, and limits."""
NAME = "gpu-ready-monitor"
"""Of the processes (cut to 15 characters): others, gpu-ready itself too, see that the GPUs are open for no work."""


class Monitor:
    def __init__(self, settings: Dict[str, Any]) -> None:
        self.file = str(settings["file"])
        self.interval = float(settings["interval"])
        self.old_names = bool(settings["old_names"])
        self.ends: Dict[str, str] = settings["branch_ends"]
        self.worker = worker.Worker()
        self.log = kernel_log.KernelLog()
        self.directory = containers.Directory()

    def text(self) -> str:
        """Sample everything once."""
        start, now = time.monotonic(), time.time()
        answer = self.worker.sample()
        gpus = [gpu for gpu in answer.get("gpus", []) if not gpu["error"]]
        pids = sorted({int(pid) for gpu in gpus for pid, _ in gpu["processes"]})
        found = [(pid, containers.place_of_process(pid)) for pid in pids]
        places = {pid: place for pid, place in found if place is not None}
        names = self.directory.names(list(places.values()))
        self.log.read()
        xids = self.log.xids if self.log.available else None
        uuids = None if answer.get("error") else [str(gpu["uuid"]) for gpu in gpus]
        now_read = reading.read(answer, reading.read_log())
        expected = reading.read_expected(node.read_object(node.RECORD))
        rows = judge(now_read, expected, make_rules(reading.read_settings(CHECK))).rows
        known = node.read_node(self.ends, uuids, any(one.renews for one in rows))
        seconds = time.monotonic() - start
        sample = metrics.Sample(now, seconds, answer, xids, places, names, known, rows)
        return metrics.build(sample, self.old_names)

    def run(self) -> None:
        """Write the file for ever; systemd ends this process."""
        while True:
            start = time.monotonic()
            textfile.write(self.file, self.text())
            time.sleep(max(1.0, self.interval - (time.monotonic() - start)))


def main(arguments: List[str]) -> int:
    if not arguments or arguments[1:] not in ([], ["--print"]):
        sys.stderr.write("usage: python3 -m gpu_ready_node.monitor.service SETTINGS [--print]\n")
        return 2
    with open(arguments[0], encoding="utf-8") as stream:
        monitor = Monitor(json.load(stream))
    if arguments[1:]:
        sys.stdout.write(monitor.text())
        return 0
    with open("/proc/self/comm", "w") as stream:
        stream.write(NAME)
    with open(PID_FILE, "w") as stream:
        stream.write("%d\n" % os.getpid())
    monitor.run()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
