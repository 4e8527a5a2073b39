"""A headless Chromium through its own protocol, over a pipe: no driver, no port, no package from a registry.

https://chromedevtools.github.io/devtools-protocol/; with --remote-debugging-pipe the browser reads messages from file
descriptor 3 and writes them to 4, each ended by a NUL byte.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT = 600


def find_browser() -> str | None:
    """Return the path of the browser that this machine has."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """One page of a browser. ``console``: errors and warnings; ``requests``: every address that was asked for."""

    def __init__(self, directory: Path) -> None:
        program = find_browser()
        assert program is not None
        read_commands, self.write = os.pipe()
        self.read, write_answers = os.pipe()
        os.set_inheritable(read_commands, True)
        os.set_inheritable(write_answers, True)
        flags = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
        ]
        # The descriptors must be 3 and 4 in the browser.
        shell = f'exec 3<&{read_commands} 4>&{write_answers}; exec "$@"'
        self.process = subprocess.Popen(
            ["bash", "-c", shell, "sh", program, "--remote-debugging-pipe", f"--user-data-dir={directory}", *flags],
            pass_fds=[read_commands, write_answers],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_commands)
        os.close(write_answers)
        self.buffer = b""
        self.number = 0
        self.session = ""
        self.console: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:  # fmt: skip
        os.close(self.write)
        os.close(self.read)
        self.process.terminate()
        self.process.wait(30)

    def receive(self) -> dict[str, Any]:
        """Return the next message, and record what the page reports."""
        while b"\0" not in self.buffer:
            data = os.read(self.read, 1 << 20)
            assert data, "the browser ended"
            self.buffer += data
        text, _, self.buffer = self.buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        params, method = message.get("params", {}), message.get("method")
        if method == "Runtime.consoleAPICalled":
            self.console.append(str(params["args"]))
        elif method == "Runtime.exceptionThrown":
            self.console.append(str(params["exceptionDetails"]))
        elif method == "Log.entryAdded":
            self.console.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Page.loadEventFired":
            self.loaded = True
        return message

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and return its result."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            answer = self.receive()
            if answer.get("id") == self.number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result
        raise AssertionError(f"no answer to {method}")

    def open(self, path: Path) -> None:
        self.open_url(path.as_uri())

    def open_url(self, url: str) -> None:
        self.loaded = False
        self.call("Page.navigate", url=url)
        while not self.loaded:
            self.receive()

    def evaluate(self, expression: str) -> Any:
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def scheme(self, name: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def size(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"]))
