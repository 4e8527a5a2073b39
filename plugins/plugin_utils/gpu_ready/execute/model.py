# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What the functions of the steps work with: one part of a host's plan, carried out by modules on the host."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Protocol

from ....module_utils.gpu_ready.base.manifest import DIRECTORY as DIRECTORY

SHORT, INSTALL, COPY = 1800, 7200, 14400
"""Seconds until the control node gives a module up: what neither installs nor copies much; package managers and builds;
gigabytes over a slow line."""
ATTEMPTS, DELAY = 16, 2
"""How often a service is asked whether it answers, and the seconds between two questions."""
ANSWERS_WITHIN = 300
"""Seconds after which a service is not asked again, however long each question took."""
Parameters = Mapping[str, Any]
Answer = dict[str, Any]


class StepFailed(Exception):
    """A step that ends the plan of its host; ``result``: what the failed module answered, with its message."""

    def __init__(self, result: Answer) -> None:
        super().__init__(result["msg"])
        self.result = result


class Caller(Protocol):
    """What a host is changed by."""

    check: bool

    def run(self, module: str, arguments: Mapping[str, Any], seconds: int, check: bool) -> Answer:
        """Return the answer of a module. Raises StepFailed."""

    def setting(self, name: str) -> Any:
        """Return a public variable of the host, None if it is not set."""

    def now(self) -> float:
        """Return seconds of a clock that is never set back."""

    def sleep(self, seconds: float) -> None:
        """Wait."""

    def warn(self, text: str) -> None:
        """Show a warning with the result."""


class Execution:
    """The steps of one role on one host, and what later ones need of earlier ones."""

    def __init__(self, modules: Caller, drained: bool = False) -> None:
        self.modules = modules
        self.drained = drained
        """Whether an upgrade has drained the host, so that nobody expects to keep a GPU."""
        self.reboot_required = False
        self.held_by = ""
        """What uses a GPU, so that the loaded module of the driver cannot be replaced."""
        self.reboot_refused = ""
        """Why a reboot that is required is not made."""
        self.verified: Answer = {}
        """The answer of the verification."""

    def run(self, module: str, arguments: Mapping[str, Any], seconds: int = SHORT, check: bool = False) -> Answer:
        """Return the answer of a module; ``check``: it only says what it would do. Raises StepFailed."""
        name = module if "." in module else f"gpu_ready.nodes.{module}"
        return self.modules.run(name, arguments, seconds, check or self.modules.check)

    def command(self, *words: str) -> Answer:
        """Return the answer of a program. Raises StepFailed where it fails."""
        return self.run("ansible.builtin.command", {"argv": list(words)})

    def wait(self, ask: Callable[[], Answer], attempts: int = ATTEMPTS, within: float = ANSWERS_WITHIN) -> Answer:
        """Return the first answer without a failure, raises the last StepFailed: a service needs its time to begin."""
        end = self.modules.now() + within
        while True:
            attempts -= 1
            try:
                return ask()
            except StepFailed:
                if attempts <= 0 or self.modules.now() > end:
                    raise
            self.modules.sleep(DELAY)

    @contextlib.contextmanager
    def explains_service(self, name: str) -> Iterator[None]:
        """Let the host say why a service does not run, if that is what failed."""
        try:
            yield
        except StepFailed as error:
            self.run("gpu_service_failure", {"name": name, "message": error.result["msg"]})
            raise

    @contextlib.contextmanager
    def deletes(self, paths: Iterable[str]) -> Iterator[None]:
        """Delete files of the host at the end, also after a failed step."""
        try:
            yield
        except StepFailed:
            try:
                self.delete(paths)
            except StepFailed as error:
                self.modules.warn(f"{error.result['msg']}; delete the file yourself")
            raise
        self.delete(paths)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete files of the host."""
        for path in paths:
            self.run("ansible.builtin.file", {"path": path, "state": "absent"})


Step = Callable[[Parameters, Execution], None]


def fail(message: str, step: str = "") -> StepFailed:
    """Return the failure of a step that the control node itself finds."""
    return StepFailed({"failed": True, "msg": message, **({"step": step} if step else {})})


def given(step: Parameters, *names: str) -> Answer:
    """Return the parameters of these names that are not empty: the module has its defaults for the others."""
    return {name: step[name] for name in names if step.get(name)}
