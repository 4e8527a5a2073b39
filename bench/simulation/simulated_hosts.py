"""Simulated hosts: they answer the modules of site.yml and upgrade_drivers.yml, with delays and failures from a seed.

What decides is the product's own code: the control node plans from the facts of a host, and the modules that keep the
journals run as on a host, with files in memory. A module that changes the system answers in the form of the real one;
its effect on the facts is what the step declares. A call of a module that is not known here fails the bench.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hashlib
import json
import os
import random
import re
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
for place in (ROOT, ROOT / "tests/unit"):
    if str(place) not in sys.path:
        sys.path.append(str(place))

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from plugins.module_utils.gpu_ready.base import files, manifest, manifest_notes, records
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.facts import collected
from plugins.module_utils.gpu_ready.facts.model import Facts, VerifiedFacts
from plugins.module_utils.gpu_ready.upgrade import journal, model, phases
from plugins.plugin_utils.gpu_ready.plan import compose, upgrade
from plugins.plugin_utils.gpu_ready.plan.driver.model import DriverInstallParams
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import T4, after_step, as_collected, carried_out, having, installed
from tests.unit.recorded import RecordedHost
from tests.unit.verify_answers import collected_evidence, collected_verification

OLD, NEW = "580.95.05", "595.91.07"
VARIABLES = {"nvidia_driver_source": "cuda_repo", "nvidia_driver_version": OLD, "gpu_ready_index": "none"}
REAL = tuple(
    name
    for name in ("gpu_node_plan", "gpu_upgrade_journal", "gpu_drain_journal", "gpu_lease")
    if (ROOT / "library" / f"{name}.py").exists()
)
"""Modules of library/ that run for a simulated host: they read facts and write only gpu-ready's own files."""
ENVIRONMENT = re.compile(r"""\b(GPU_READY_\w+)=(?:['"]+([^'"]+)['"]|([^'"\s]+))""")
"""Variables that a task gives its module."""
SECONDS = {
    "gpu_node_plan": 1.0, "gpu_upgrade_stage": 60.0, "gpu_packages": 10.0, "NVIDIA driver": 90.0, "gpu_kernel_module": 15.0,
    "gpu_verify": 10.0, "boot": 300.0, "silence": 120.0,
}  # fmt: skip
"""Seconds of a call on a real host; others take half a second. Multiplied by the scale of a run and a random factor."""
KINDS = {
    "install": 0.004,
    "verify": 0.002,
    "stuck": 0.001,
    "undrain": 0.001,
    "silent": 0.002,
    "reboot": 0.02,
    "unreachable": 0.0,
}
"""Shares of hosts with a fault, each of its own kind."""
FAILING = ("install", "verify", "stuck", "undrain", "silent")
"""Faults that make the turn of a host fail."""
LOST = "ssh: connect to host %s port 22: No route to host"


class Call(NamedTuple):
    """One call as a host saw it, seconds since the start. ``end``: ok, failed, unreachable, cut (the caller ended)."""

    host: str
    controller: str
    module: str
    began: float
    ended: float
    end: str


class Turn:
    """One turn of a host: from the drain to the end that its journal records, or to the loss of the host or the run."""

    def __init__(self, host: str, controller: str, began: float) -> None:
        self.host, self.controller, self.began = host, controller, began
        self.ended: float | None = None
        self.end = ""

    def finish(self, now: float, end: str) -> None:
        """Record the end, the first one counts."""
        if self.ended is None:
            self.ended, self.end = now, end


class SimulatedHost(RecordedHost):
    """A host: its facts, its own files in memory, its fault."""

    def __init__(self, name: str, facts: Facts, fault: str) -> None:
        super().__init__()
        self.name, self.facts, self.fault = name, facts, fault
        self.collected = facts
        self.drained = self.silent = False
        self.down_until = 0.0
        self.boots = 0
        self.installs: list[str] = []
        self.phases: list[str] = []
        """What its journal of upgrades recorded, run after run."""
        self.lock = asyncio.Lock()

    def read_bytes(self, path: str) -> bytes | None:
        """Return a file of gpu-ready's own, or what the kernel says of this boot."""
        if path == "/proc/sys/kernel/random/boot_id":
            return b"boot %d\n" % self.boots
        if path == "/proc/uptime":
            return b"%.2f 0.00\n" % time.monotonic()
        content = self.files.get(path)
        return content.encode() if isinstance(content, str) else content

    def plan(self) -> compose.Plan:
        """Return the plan that the control node has of this host: of the facts that it collected last.

        The journal says for which driver, which the modules themselves need not know.
        """
        given: dict[str, object] = {**VARIABLES, "gpu_ready_reboot_ok": True}
        found = journal.read(self)
        if found and found.phase == model.GOING_BACK and found.from_:
            given |= upgrade.rollback_settings(found.from_)._asdict()
        elif found and found.to and found.phase != model.BACK:
            given["nvidia_driver_version"] = found.to
        return compose.plan(self.collected, variables.parse_settings(given).settings)

    @property
    def loaded(self) -> str:
        """Version of the loaded driver."""
        module = self.facts.driver.loaded
        return module.version or "" if module else ""

    @property
    def phase(self) -> str:
        """Phase of the upgrade's journal."""
        found = journal.read(self)
        return found.phase if found else ""


@functools.cache
def converged() -> Facts:
    """Return the facts of a host in the desired state with the old driver."""
    facts = installed("debian12", T4, "cuda_repo", OLD, "open")
    facts = having(facts, base={"kernel": {"headers": {facts.base.kernel.running: True}}, "compiler": "/usr/bin/gcc"})
    settings = variables.parse_settings(dict(VARIABLES)).settings
    facts = carried_out(facts, compose.plan(facts, settings))
    assert not compose.plan(facts, settings).steps
    return facts


@functools.cache
def library(name: str) -> types.ModuleType:
    """Return a module of library/ with the same gpu_ready as this program."""
    text = (ROOT / "library" / f"{name}.py").read_text(encoding="utf-8")
    loaded = types.ModuleType(name)
    exec(
        compile(text.replace("..module_utils.gpu_ready", "plugins.module_utils.gpu_ready"), name, "exec"),
        loaded.__dict__,
    )
    return loaded


class Fleet:
    """All simulated hosts and what happened to them. ``scale``: how much of a real host's seconds a call takes."""

    def __init__(self, count: int, seed: int, scale: float, shares: dict[str, float] | None = None) -> None:
        self.random = random.Random(seed)
        self.seed, self.scale, self.start = seed, scale, time.monotonic()
        names = [f"gpu{number:04}" for number in range(1, count + 1)]
        faults = dict.fromkeys(names, "")
        free = list(names)
        self.random.shuffle(free)
        for kind, share in (KINDS if shares is None else shares).items():
            for _ in range(round(count * share)):
                faults[free.pop()] = kind
        self.hosts = {name: SimulatedHost(name, converged(), faults[name]) for name in names}
        self.calls: list[Call] = []
        self.turns: list[Turn] = []
        self.errors: list[str] = []
        self.answered = threading.Condition()

    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self.start

    def seconds(self, host: SimulatedHost, what: str) -> float:
        """Return how long something takes: the same on every run of a seed, whatever the order of calls."""
        key = f"{self.seed} {host.name} {what} {len(host.installs)}"
        factor = 0.5 + int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**32
        return SECONDS.get(what, 0.5) * factor * self.scale

    def open_turn(self, name: str) -> Turn | None:
        """Return the turn of a host that has not ended."""
        return next((turn for turn in reversed(self.turns) if turn.host == name and turn.ended is None), None)

    def end_turns(self, controller: str) -> None:
        """Record that a run was interrupted."""
        for turn in self.turns:
            if turn.controller == controller:
                turn.finish(self.now(), "interrupted")

    # ---- calls

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one call."""
        call = json.loads(await reader.readline())
        host, began = self.hosts[call["host"]], self.now()
        left = asyncio.ensure_future(reader.read())  # ends when the caller ends
        try:
            answer, end = await self.answer(host, call, left)
        except Exception as error:
            self.errors.append(f"{call['module'] or call['command']} on {host.name}: {type(error).__name__}: {error}")
            answer, end = {"rc": 1, "out": json.dumps({"failed": True, "msg": self.errors[-1]})}, "failed"
        end = "cut" if left.done() else end
        with self.answered:
            self.calls.append(Call(host.name, call["controller"], call["module"] or "raw", began, self.now(), end))
            self.answered.notify_all()
        if not left.done():
            writer.write(json.dumps(answer).encode() + b"\n")
            with contextlib.suppress(ConnectionError):  # a caller that is killed now
                await writer.drain()
        left.cancel()
        writer.close()

    async def answer(
        self, host: SimulatedHost, call: dict[str, Any], left: asyncio.Future[bytes]
    ) -> tuple[dict[str, Any], str]:
        """Return the answer to a call and how it ended."""
        module, options = call["module"], call["options"]
        purpose = options.get("purpose", "")
        if host.fault == "silent" and purpose == "NVIDIA driver":
            host.silent = True
            await asyncio.sleep(self.seconds(host, "silence"))
        if host.silent or host.fault == "unreachable" or self.now() < host.down_until:
            if host.silent and (turn := self.open_turn(host.name)):
                turn.finish(self.now(), "unreachable")
            return {"unreachable": LOST % host.name}, "unreachable"
        if not module:
            return {"rc": 0, "out": self.command(host, call["command"])}, "ok"
        delay = self.seconds(host, purpose if purpose in SECONDS else module)
        if module in REAL or module in ("ping", "setup", "find"):
            await asyncio.sleep(delay)
            value = self.module(host, call)
        else:
            # One change at a time, as the locks of package managers see to. A module whose caller ended runs on,
            # or dies with its connection: half of them each.
            async with host.lock:
                await asyncio.wait([left], timeout=delay)
                if left.done() and self.random.random() < 0.5:
                    return {}, "cut"
                value = self.module(host, call)
        failed = bool(value.get("failed"))
        return {"rc": int(failed), "out": json.dumps(value)}, "failed" if failed else "ok"

    def command(self, host: SimulatedHost, command: str) -> str:
        """Run a command of Ansible's own, which are those of its action plugin reboot."""
        if "boot_id" in command:
            return f"boot {host.boots}\n"
        if "whoami" in command:
            return "root\n"
        if "shutdown" in command:
            host.boots += 1
            host.down_until = self.now() + self.seconds(host, "boot")
            self.step(host, "nvidia_driver.activate", host.plan())
            return ""
        raise ValueError("the simulation has no answer")

    def module(self, host: SimulatedHost, call: dict[str, Any]) -> dict[str, Any]:
        """Run a module and return its values."""
        name = call["module"]
        given = {key: value for key, value in call["options"].items() if not key.startswith("_ansible")}
        check = bool(call["options"].get("_ansible_check_mode"))
        if name in REAL or name.startswith("gpu_"):
            checked = ArgumentSpecValidator(library(name).ARGUMENT_SPEC).validate(given)
            if checked.error_messages:
                return {"failed": True, "msg": "; ".join(checked.error_messages)}
            given = checked.validated_parameters
        if name in REAL:
            with environment(call["command"]):
                value = self.run_real(host, call["controller"], name, given, check)
        else:
            value = getattr(self, "answer_" + name)(host, given)
        return {**value, "invocation": {"module_args": given}}

    def run_real(
        self, host: SimulatedHost, controller: str, name: str, given: dict[str, Any], check: bool
    ) -> dict[str, Any]:
        """Run a module of library/ with the files of a host."""
        ACTING.host = host
        try:
            value = records.answer_values(library(name).run(host, given, check))
        except GpuReadyError as error:
            return {"failed": True, "msg": str(error), **error.result}
        finally:
            host.opened.clear()
        if name == "gpu_upgrade_journal":
            self.follow(host, controller, given["phase"])
        return value

    def follow(self, host: SimulatedHost, controller: str, phase: str) -> None:
        """Note a phase of a turn."""
        host.phases.append(phase)
        if phase == model.DRAINING:
            if (turn := self.open_turn(host.name)) and turn.controller == controller:
                turn.finish(self.now(), "interrupted")  # by a kill, before which the host answered
            self.turns.append(Turn(host.name, controller, self.now()))
        elif phase in (*model.ENDS, "stuck") and (turn := self.open_turn(host.name)):
            turn.finish(self.now(), phase)

    # ---- modules that change the system, in the form of the real ones

    def step(self, host: SimulatedHost, name: str, decided: compose.Plan) -> None:
        """Change the facts of a host as a step of its plan does."""
        if name in [one.id for one in decided.steps]:
            host.facts = after_step(host.facts, decided, name)

    def answer_ping(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        return {"ping": "pong", "changed": False}

    def answer_setup(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        names = {"distribution": "Debian", "distribution_version": "12.9", "os_family": "Debian"}
        return {"ansible_facts": {f"ansible_{name}": value for name, value in names.items()}, "changed": False}

    def answer_find(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        return {"files": [{"path": "/sbin/shutdown"}], "matched": 1, "examined": 1, "changed": False}

    def answer_command(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        program, action = given["argv"]
        assert program == "site-service", program
        failed = host.fault == "undrain" and action == "undrain"
        if not failed:
            host.drained = action == "drain"
        elif turn := self.open_turn(host.name):
            turn.finish(self.now(), "still drained")
        message = "non-zero return code" if failed else ""
        texts = dict.fromkeys(("stdout", "stderr", "start", "end", "delta"), "")
        return {**texts, "cmd": given["argv"], "rc": int(failed), "failed": failed, "msg": message, "changed": True}

    def answer_gpu_service(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        return {"changed": False}

    def answer_gpu_packages(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        steps = {
            "NVIDIA driver": "install",
            "the hold of the NVIDIA driver": "hold",
            "NVIDIA persistence daemon": "persistenced",
        }
        purpose, decided = given["purpose"], host.plan()
        if purpose in steps:
            target = decided.choices.driver.version if decided.choices.driver else ""
            if purpose == "NVIDIA driver" and host.fault in ("install", "stuck") and target == NEW:
                return {
                    "failed": True,
                    "msg": f"apt-get: the installation of {NEW} failed (100): Sub-process /usr/bin/dpkg returned an error code (1)",
                }
            before = host.facts.driver.on_disk
            self.step(host, "nvidia_driver." + steps[purpose], decided)
            after = host.facts.driver.on_disk
            if after and after != before:
                host.installs.append(after.version or "")
        elif not purpose.startswith(("headers of", "the pin of")):
            raise ValueError(f"the simulation has no answer for packages: {purpose}")
        names = [one if isinstance(one, str) else one["name"] for one in given["names"]]
        done = {"installed": dict.fromkeys(names, NEW), "versions": dict.fromkeys(names, NEW), "changed": True}
        return {**done, "removed": [], "repaired": [], "held": given["hold"], "unheld": given["unhold"], "streams": {}}

    def answer_gpu_upgrade_stage(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        coming = [
            f"{one.name}={NEW}-1"
            for step in host.plan().steps
            if isinstance(step.params, DriverInstallParams)
            for one in step.params.packages
        ]
        recorded = journal.read(host)
        if recorded:
            ACTING.host = host
            phases.write(phases.record_fetched(recorded, given["target"], int(time.time())))
        return {"changed": bool(coming), "coming": coming, "kept": [], "installers": [], "files": {}}

    def answer_gpu_kernel_module(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        blocked = host.fault == "reboot"
        if not blocked:
            self.step(host, "nvidia_driver.activate", host.plan())
        held = "Xorg" if blocked else ""
        return {
            "changed": True,
            "loaded_version": host.loaded,
            "modules": given["modules"],
            "held_by": held,
            "reboot_required": blocked,
            "services": given["later"],
        }

    def answer_gpu_verify(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        bad = (host.fault == "verify" and host.loaded == NEW) or host.fault == "stuck"
        evidence = collected_evidence(host.facts)._replace(time=int(time.time()))
        if bad:
            evidence = evidence._replace(containers={"docker": Result(6, "No devices were found\n", "")})
        return collected_verification(host.facts, evidence)

    def answer_gpu_verified(self, host: SimulatedHost, given: dict[str, Any]) -> dict[str, Any]:
        host.facts = host.facts._replace(verified=records.from_json(VerifiedFacts, given["record"]))
        return {"changed": True}


# ---- the product's code with the hosts' files ------------------------------------------------------------------------

ACTING = types.SimpleNamespace(host=None)
"""The host whose module runs; only one runs at a time."""


@contextmanager
def environment(command: str) -> Iterator[None]:
    """Give a module the variables of its task, which Ansible writes before the interpreter."""
    given = {name: quoted or plain for name, quoted, plain in ENVIRONMENT.findall(command)}
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            del os.environ[name]


def write_own_file(path: str, value: object, mode: int = 0o600) -> None:
    """Write a file of gpu-ready's own on the host whose module runs."""
    assert path.startswith(manifest.DIRECTORY), path
    ACTING.host.files[path] = json.dumps(value)


def delete_own_file(path: str) -> None:
    """Delete such a file."""
    ACTING.host.files.pop(path, None)


def collect(host: SimulatedHost, probes: object) -> Facts:
    """Return the facts of a simulated host and keep them: the modules that follow carry out their plan."""
    host.collected = host.facts._replace(upgrade=journal.read(host))
    return as_collected(host.collected)


@contextmanager
def files_in_memory() -> Iterator[None]:
    """Let the product's modules of this process work on simulated hosts."""
    for name in REAL:
        library(name)  # their imports, which are replaced too
    replaced: list[tuple[Any, str, Any]] = [
        (loaded, name, new)
        for old, new in ((files.write_json_file, write_own_file), (files.delete_file, delete_own_file))
        for loaded in list(sys.modules.values())
        for name in ("write_json_file", "delete_file")
        if getattr(loaded, "__name__", "").startswith("plugins.") and getattr(loaded, name, None) is old
    ]
    # One module runs at a time here, and the lock is a directory of the real machine.
    replaced.append((manifest_notes, "lock_manifest", nullcontext))
    replaced.append((collected, "collect", types.SimpleNamespace(collect=collect)))
    before = [(loaded, name, getattr(loaded, name)) for loaded, name, _ in replaced]
    for loaded, name, new in replaced:
        setattr(loaded, name, new)
    try:
        yield
    finally:
        for loaded, name, old in before:
            setattr(loaded, name, old)


@contextmanager
def serving(fleet: Fleet, path: Path) -> Iterator[None]:
    """Answer for the hosts of a fleet on a socket, in a thread of this process."""
    loop = asyncio.new_event_loop()
    started = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_unix_server(fleet.serve, path=str(path), limit=1 << 26, backlog=1000)
        started.set()
        async with server:
            await server.serve_forever()

    def run() -> None:
        asyncio.set_event_loop(loop)
        task = loop.create_task(serve())
        stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.close()

    stop: list[Callable[[], Any]] = []
    with files_in_memory():
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        started.wait()
        try:
            yield
        finally:
            stop[0]()
            thread.join()
