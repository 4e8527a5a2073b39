"""Write the begin and the end of every task of every host as one JSON line into the file that GPU_READY_TIMES names."""

import json
import os
import time
from pathlib import Path
from typing import Any

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: times
type: aggregate
short_description: record when tasks of hosts begin and end
description: [One JSON object a line - host, begin (true or false) and seconds since 1970.]
"""


class CallbackModule(CallbackBase):  # type: ignore[misc]
    """Records times; prints nothing."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "times"
    CALLBACK_NEEDS_ENABLED = True

    def _write(self, host: str, begin: bool) -> None:
        with Path(os.environ["GPU_READY_TIMES"]).open("a", encoding="utf-8") as handle:
            handle.write(json.dumps({"host": host, "begin": begin, "time": time.time()}) + "\n")

    def v2_runner_on_start(self, host: Any, task: Any) -> None:
        self._write(host.get_name(), True)

    def _end(self, result: Any) -> None:
        # The public attribute came with 2.19, the private one is removed in a later release.
        self._write((getattr(result, "host", None) or result._host).get_name(), False)

    def v2_runner_on_ok(self, result: Any) -> None:
        self._end(result)

    def v2_runner_on_failed(self, result: Any, ignore_errors: bool = False) -> None:
        self._end(result)

    def v2_runner_on_skipped(self, result: Any) -> None:
        self._end(result)

    def v2_runner_on_unreachable(self, result: Any) -> None:
        self._end(result)
