# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The one place where answers of hosts enter the control node: the action plugin of every module that runs on hosts.

meta/runtime.yml (plugin_routing) sends every such module here, except gpu_node_plan: its own action plugin computes the
plan from what is accepted here. A host with an answer that the module cannot give is refused, and nothing of the answer
is used. Of the others only the values below reach variables, tasks, reports and the screen.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleConnectionFailure
from ansible.module_utils.json_utils import _filter_non_json_lines
from ansible.plugins.action.normal import ActionModule as Normal

from ..module_utils.gpu_ready.base.plain_text import plain_text
from ..module_utils.gpu_ready.lifecycle.variables import parse_settings, wrong_values
from ..plugin_utils.connection_failures import explain_connection
from ..plugin_utils.variables import settings as settings_of_hosts
from ..plugin_utils.variables.names import NAMES, unread_variables

MEMORY = 256 * 2**20
"""Bytes by which the process that asks a host may grow: connections hold an answer until it ends."""
CHECK_EVERY = 0.1
"""Seconds of processor time between two looks at the memory: reading takes processor time, waiting does not."""
OUTPUT = 16 * 2**20
"""Maximum number of characters that a module prints which collects facts: they may be megabytes."""
SMALL = 4 * 2**20
"""Of any other module: an uninstallation of 10,000 files prints 0.6 million."""
TEXT = 2**20
"""Maximum number of characters of one text."""
VALUES = 1_000_000
"""Maximum number of values and keys in an answer; the facts of a host with 3,000 packages have about 50,000."""
DEPTH = 32
"""Maximum number of lists and mappings in each other."""
NUMBER = 2**64
"""Maximum absolute value of a number; NVML and the kernel have counters of 64 bits, and -1 in them for "unknown"."""

ENTRIES = 10_000
"""Maximum number of entries of a list or a mapping in a named field: paths, packages, steps."""
MOST_WARNINGS = 10
"""Warnings, and deprecations, of one answer that are shown: honest ones have one or two."""

Shape = Any
"""str, int, float, bool, dict or list: the type. [s]: a list of s. (s, None): s or null. {"*": s}: a mapping of texts
to s. {"name": s, "name?": s}: a mapping with these keys, the second one optional; it may have more. Text(n): below."""


class Text:
    """A text that is cut after so many characters. Without ``lines`` it is one line: line breaks become blanks.

    A second line of what is one by contract could look like a line of another host.
    """

    def __init__(self, most: int, lines: bool = False) -> None:
        self.most, self.lines = most, lines

    def fit(self, text: str) -> str:
        fitting = text if self.lines else LINE_BREAK.sub(" ", text)
        return fitting if len(fitting) <= self.most else fitting[: self.most - len(CUT)] + CUT


class Few(list[Shape]):
    """A list like [s], of what people read."""

    most = 2000


LINE_BREAK = re.compile(r"\s*[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]\s*")
"""What ends a line for str.splitlines()."""
CUT = " ..."
WORD, LINE, MESSAGE = Text(200), Text(4096), Text(20_000, lines=True)
"""A state, name or version; a reason, command or path (PATH_MAX of Linux); what a program printed."""
TEXTS = [LINE]
OPTIONAL = (LINE, None)
CONTENT = (str, dict, None)
DIFFERENCE = {
    "before?": CONTENT,
    "after?": CONTENT,
    "before_header?": OPTIONAL,
    "after_header?": OPTIONAL,
    "prepared?": str,
}
JOURNAL = {
    "phase": WORD,
    "time?": int,
    "reason?": LINE,
    "touched?": bool,
    "from?": (dict, None),
    "to?": OPTIONAL,
    "since?": (int, None),
    "seconds?": (int, None),
    "rollout?": int,
    "fetched?": (dict, None),
}
INSTALLER = {"version": OPTIONAL, "source": LINE, "sha256?": WORD, "sha256_url?": LINE}
UPGRADE = {
    "state": WORD,
    "opened": bool,
    "touched": bool,
    "staged": bool,
    "from": OPTIONAL,
    "to": OPTIONAL,
    "way": WORD,
    "why": LINE,
    "refusal": LINE,
    "installed": ({"version": WORD, "branch": WORD, "source": LINE, "packages": TEXTS}, None),
    "journal": (JOURNAL, None),
    "back": ({"nvidia_driver_packages": TEXTS, "nvidia_driver_source": LINE, "nvidia_driver_version": LINE}, None),
    "installer": (INSTALLER, None),
    "drained": bool,
}
PLAN = {
    "gpu_host": bool,
    "converged": bool,
    "summary": LINE,
    "choice": {"*": dict},
    "refusals": Few([{"code?": WORD, "message": LINE, "remedy": LINE}]),
    "warnings": Few([{"code?": WORD, "message": LINE, "remedy": LINE}]),
    "steps": Few([{"id": WORD, "role": WORD, "action": WORD, "why": LINE, "disruption": WORD, "verify_after": bool}]),
    "digest": WORD,
}
ROW = {"*": OPTIONAL}
CHECK = {"name": WORD, "ok": (bool, None), "found": OPTIONAL}
AUDITED = {**CHECK, "desired?": OPTIONAL, "why?": LINE}
VERIFIED = {**CHECK, "expected?": LINE, "cause?": LINE, "remedy?": LINE}
HOLDER = {
    "pid": int,
    "name": WORD,
    "container?": OPTIONAL,
    "command?": LINE,
    "service?": bool,
    "job?": OPTIONAL,
}
AUDIT = {
    "state": WORD,
    "why": Few(TEXTS),
    "checks": Few([AUDITED]),
    "holders": Few([HOLDER]),
    "steps": Few(TEXTS),
    "warnings": Few(TEXTS),
    "summary": LINE,
    "row": ROW,
}
WAITING = {"done?": bool, "waiting?": LINE, "deadline?": float, "remaining_s?": int}
ANSWERS: dict[str, dict[str, Shape]] = {
    "gpu_audit": {"audit": AUDIT},
    "gpu_cdi_spec": {"devices?": TEXTS},
    "gpu_containerd_config": {"files?": TEXTS, "keys?": TEXTS},
    "gpu_cuda_runfile": {"missing?": TEXTS, "needs?": TEXTS, "releases?": {"*": OPTIONAL}},
    "gpu_cuda_toolkit_absent": {"removed?": TEXTS},
    "gpu_cuda_toolkit_default": {"target?": OPTIONAL, "kept_by?": OPTIONAL},
    "gpu_cudnn_archive": {"versions?": {"*": OPTIONAL}, "removed?": TEXTS},
    "gpu_daemon_json": {"keys?": TEXTS, "activation?": OPTIONAL, "backup?": OPTIONAL, "validated?": (bool, None)},
    "gpu_dkms": {"damaged?": TEXTS, "modules?": TEXTS},
    "gpu_drain_docker": {"containers?": TEXTS, **WAITING},
    "gpu_drain_journal": {"journal": {"*": dict}, "description": TEXTS},
    "gpu_drain_kubernetes": {"owned?": bool, "kept?": OPTIONAL, **WAITING},
    "gpu_drain_slurm": {"owned?": bool, "kept?": OPTIONAL, **WAITING},
    "gpu_driver_runfile": {"version?": OPTIONAL, "missing?": TEXTS, "needs_file?": bool, "removed?": TEXTS},
    "gpu_driver_volume": {"version?": OPTIONAL, "files?": TEXTS},
    "gpu_files": {"paths?": TEXTS, "rebuilt?": bool},
    "gpu_kernel_module": {
        "loaded_version?": OPTIONAL,
        "modules?": TEXTS,
        "held_by?": OPTIONAL,
        "reboot_required?": bool,
        "services?": TEXTS,
    },
    "gpu_kubernetes_labels": {"labels": {"*": LINE}, "gpus": TEXTS},
    "gpu_kubernetes_objects": {"objects?": TEXTS, "kept_for?": TEXTS},
    "gpu_kubernetes_operator": {"server?": LINE, "refused?": {"*": LINE}},
    "gpu_kubernetes_verify": {"nodes?": {"*": {"state": WORD, "message": LINE}}, **WAITING},
    "gpu_lease": {"held_by?": LINE, "before?": WORD},
    "gpu_monitoring": {"paths?": TEXTS},
    "gpu_node_facts": {"ansible_facts?": {"gpu_node": dict}},
    "gpu_node_plan": {
        "plan": PLAN,
        "todo": {"*": dict},
        "verification": (dict, None),
        "row": ROW,
        "lines": TEXTS,
        "upgrade": UPGRADE,
        "refusal": MESSAGE,
        "lease": WORD,
    },
    "gpu_nvidia_detect": {"packages?": TEXTS, "devices?": TEXTS},
    "gpu_packages": {
        "installed?": {"*": OPTIONAL},
        "removed?": TEXTS,
        "repaired?": TEXTS,
        "held?": TEXTS,
        "unheld?": TEXTS,
        "streams?": {"*": OPTIONAL},
        "versions?": {"*": OPTIONAL},
    },
    "gpu_repository": {"paths?": TEXTS},
    "gpu_revert": {"packages?": TEXTS, "paths?": TEXTS},
    "gpu_service": {},
    "gpu_service_failure": {},
    "gpu_uninstall": {
        "actions?": TEXTS,
        "stops?": TEXTS,
        "kept?": TEXTS,
        "reboot_required?": bool,
        "held_by?": OPTIONAL,
    },
    "gpu_upgrade_journal": {"journal": JOURNAL},
    "gpu_upgrade_stage": {
        "coming": TEXTS,
        "kept": TEXTS,
        "installers": TEXTS,
        "files": {"*": LINE},
    },
    "gpu_verify": {"verify": {"ok": (bool, None), "checks": Few([VERIFIED]), "not_run": TEXTS}, "row?": ROW},
}
"""What the answer of each module has if it did not fail. These values, and those of SHOWN, are all that is used."""

SHOWN: dict[str, Shape] = {
    "msg": MESSAGE,
    "warnings": TEXTS,
    "deprecations": [{"msg": LINE, "version": OPTIONAL}],
    "exception": (MESSAGE, None),
    "diff": (DIFFERENCE, Few([DIFFERENCE])),
    "module_stdout": MESSAGE,
    "module_stderr": MESSAGE,
    "stdout": MESSAGE,
    "stderr": MESSAGE,
    "rc": (int, None),
    "another_run": bool,
    "last_step_running": bool,
}
"""What any module may answer besides, most of it for Ansible to print: control characters in it are replaced."""
RECORD = {"event": {"msg": MESSAGE, "formatted_traceback?": (MESSAGE, None)}, "version?": OPTIONAL}
"""A warning, a deprecation or an exception as core 2.19 and newer serialize it
(ansible/module_utils/_internal/_messages.py). Only its texts are used: Ansible makes no object of an answer."""
SERIALIZED = "__ansible_"
"""How the keys begin by which Ansible makes objects of JSON."""
COLLECTING = ("gpu_node_plan", "gpu_node_facts")
LOOKING = ("gpu_node_plan", "gpu_audit")
"""Modules with which a run begins on a host."""
JUDGED = {
    "gpu_node_plan": frozenset(["gpu_drain", "gpu_ready", "gpu_report", "gpu_upgrade", "gpu_verify"]),
    "gpu_audit": frozenset(["gpu_audit", "gpu_report"]),
    "gpu_uninstall": frozenset(["gpu_ready", "gpu_report"]),
    "gpu_lease": frozenset(["gpu_drain"]),
    "gpu_kubernetes_labels": frozenset(["gpu_kubernetes"]),
    "gpu_kubernetes_objects": frozenset(["gpu_kubernetes"]),
}
"""The modules with which a playbook begins on a host, and the roles whose variables it will use: these are judged
first. Those that the planner reads (settings) are judged with the plan."""
WRONG = "the answer of this host to %s is not one that the module gives (%s), and nothing of it was used"
REMEDY = (
    "find out what changes the host's Python or its output (the login shell, /etc/profile, sitecustomize.py), repair or"
    " reinstall the host, then run this again"
)


class LimitExceeded(BaseException):
    """Raised by a signal, wherever the process is; no Exception, because connections try again after one."""


class WrongAnswer(Exception):
    """An answer that no module of gpu-ready gives; the text names the field and what is wrong with it."""


def accept(module: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a module's answer that may be used. Raises WrongAnswer."""
    return accept_shape(ANSWERS[module], answer)


def accept_shape(shape: dict[str, Shape], answer: dict[str, Any]) -> dict[str, Any]:
    """Return the values of an answer with a shape that may be used, and those of SHOWN. Raises WrongAnswer."""
    try:
        return accepted_values(shape, answer)
    except RecursionError:
        raise WrongAnswer("too many lists in each other") from None


def accepted_values(shape: dict[str, Shape], answer: dict[str, Any]) -> dict[str, Any]:
    """Like :func:`accept_shape`; may exceed the limit of recursion."""
    kept: dict[str, Any] = {name: answer.get(name, False) for name in ("changed", "failed")}
    kept |= {name: clean(without_records(name, answer[name])) for name in SHOWN if answer.get(name) is not None}
    check_bounds(kept)
    kept = fit({"changed": bool, "failed": bool, **{f"{name}?": shape for name, shape in SHOWN.items()}}, kept, "")
    if kept["failed"] and "exception" in kept:
        kept.setdefault("msg", kept["exception"].strip().rpartition("\n")[2].strip())
    optional = {f"{name.rstrip('?')}?": one for name, one in shape.items()}
    values = {name: answer[name] for name in (key[:-1] for key in optional) if name in answer}
    check_bounds(values)
    values = fit(optional if kept["failed"] else shape, values, "")
    if "ansible_facts" in values:
        values["ansible_facts"] = {"gpu_node": values["ansible_facts"]["gpu_node"]}
    return {**kept, **values}


def without_records(name: str, value: Any) -> Any:
    """Return what Ansible prints, with texts in the place of its own records, and not more than a person reads."""
    if name == "warnings" and isinstance(value, list):
        texts = [event_of(name, one)["msg"] if is_record(one) else one for one in value[:MOST_WARNINGS]]
        more = len(value) - len(texts)
        return [*texts, f"{more} more warnings of one host are not shown"] if more else texts
    if name == "deprecations" and isinstance(value, list):
        return [deprecation(one) for one in value[:MOST_WARNINGS]]
    if name == "exception" and is_record(value):
        event = event_of(name, value)
        return event.get("formatted_traceback") or event["msg"]
    return value


def is_record(value: Any) -> bool:
    """Return whether a value is one of Ansible's own records."""
    return isinstance(value, dict) and "event" in value


def event_of(name: str, record: dict[str, Any]) -> dict[str, Any]:
    """Return the texts of a record."""
    event: dict[str, Any] = fit(RECORD, record, name)["event"]
    return event


def deprecation(value: Any) -> Any:
    """Return a deprecation with the fields that every version of Ansible can print: others end the task."""
    if not isinstance(value, dict):
        return value
    text = event_of("deprecations", value)["msg"] if is_record(value) else value.get("msg")
    return {"msg": text, "version": value.get("version")}


def clean(value: Any, plain: Callable[[str], str] = plain_text) -> Any:
    """Return a value with a question mark for each control character, also in keys."""
    if isinstance(value, str):
        return plain(value)
    if isinstance(value, dict):
        return {plain(key): clean(one, plain) for key, one in value.items()}
    return [clean(one, plain) for one in value] if isinstance(value, list) else value


def check_bounds(answer: dict[str, Any]) -> None:
    """Raise WrongAnswer for a value that is no JSON, too long, too large or too deep."""
    level: list[Any] = [answer]
    number = 0
    for _ in range(DEPTH):
        below: list[Any] = []
        for value in level:
            check_value(value)
            if isinstance(value, dict):
                below += value
                below += value.values()
            elif isinstance(value, list):
                below += value
        number += len(below)
        if number > VALUES:
            raise WrongAnswer(f"more than {VALUES} values")
        level = below
    if level:
        raise WrongAnswer(f"more than {DEPTH} lists in each other")


def check_value(value: Any) -> None:
    """Raise WrongAnswer for a single value that is no JSON, too long or too large."""
    if isinstance(value, str):
        if len(value) > TEXT:
            raise WrongAnswer(f"a text of {len(value)} characters")
    elif isinstance(value, (int, float)):
        if not math.isfinite(value) or abs(value) > NUMBER:
            raise WrongAnswer("a number that is too large")
    elif isinstance(value, dict):
        if any(key.startswith(SERIALIZED) for key in value):
            raise WrongAnswer("a value in Ansible's own serialization")
    elif value is not None and not isinstance(value, list):
        raise WrongAnswer(f"a value of type {type(value).__name__}")


def fit(shape: Shape, value: Any, where: str) -> Any:
    """Return a value with its texts as its shape has them; ``where`` names its field. Raises WrongAnswer."""
    if isinstance(shape, dict):
        check_type(dict, value, where)
        return fit_mapping(shape, value, where)
    if isinstance(shape, list):
        check_type(list, value, where)
        check_number(value, getattr(shape, "most", ENTRIES), where)
        return [fit(shape[0], one, f"{where}[]") for one in value]
    if isinstance(shape, tuple):
        if value is None and None in shape:
            return None
        known = [one for one in shape if one is not None]
        fitting = [one for one in known if isinstance(value, type_of(one))]
        return fit((fitting or known)[0], value, where)
    if isinstance(shape, Text):
        check_type(str, value, where)
        return shape.fit(value)
    check_type(shape, value, where)
    return value


def type_of(shape: Shape) -> type:
    """Return the type of JSON that a shape describes."""
    if isinstance(shape, Text):
        return str
    if isinstance(shape, type):
        return shape
    return dict if isinstance(shape, dict) else list


def fit_mapping(shape: dict[str, Shape], value: dict[Any, Any], where: str) -> dict[str, Any]:
    """Return a mapping whose values have the shapes of their keys. Raises WrongAnswer."""
    for key in value:
        check_type(str, key, f"a key of {where or 'the answer'}")
    if "*" in shape:
        check_number(value, ENTRIES, where)
        return {LINE.fit(key): fit(shape["*"], one, f"{where}.*") for key, one in value.items()}
    fitting = dict(value)
    for name, expected in shape.items():
        key = name.rstrip("?")
        field = f"{where}.{key}".lstrip(".")
        if key in value:
            fitting[key] = fit(expected, value[key], field)
        elif key == name:
            raise WrongAnswer(f"no field {field}")
    return fitting


def check_number(value: list[Any] | dict[str, Any], most: int, where: str) -> None:
    """Raise WrongAnswer if a list or a mapping has more entries."""
    if len(value) > most:
        raise WrongAnswer(f"field {where}: {len(value)} entries, at most {most}")


def check_type(expected: type, value: Any, where: str) -> None:
    """Raise WrongAnswer unless a value has a type of JSON; an integer is a float too, and a bool is no number."""
    numbers: dict[type, tuple[type, ...]] = {float: (int, float), int: (int,)}
    fits = isinstance(value, numbers.get(expected, (expected,)))
    if not fits or (expected in numbers and isinstance(value, bool)):
        raise WrongAnswer(f"field {where}: {type(value).__name__} in place of {expected.__name__}")


@contextlib.contextmanager
def process_limits(memory: int = MEMORY, seconds: float = math.inf) -> Iterator[None]:
    """Raise LimitExceeded where this process grows by more bytes, or takes more processor time than this.

    A limit of the system (RLIMIT_AS) would hold for the processes that it starts too: with the connection ``local``
    those are compilers and CUDA. A timer of the processor time is this process's alone (setitimer(2)).
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread can have a handler
        return
    most, end = most_memory() + memory, time.process_time() + seconds

    def look(*_: object) -> None:
        if most_memory() > most or time.process_time() > end:
            signal.setitimer(signal.ITIMER_PROF, 0)
            large = f"more than {memory // 2**20} MiB of memory"
            raise LimitExceeded(large if most_memory() > most else f"more than {seconds:.0f} seconds of processor time")

    before = signal.signal(signal.SIGPROF, look)
    signal.setitimer(signal.ITIMER_PROF, CHECK_EVERY, CHECK_EVERY)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def most_memory() -> int:
    """Return the most memory that this process had at once, in bytes (getrusage(2): KiB on Linux, bytes on macOS)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def refuse_host(module: str, message: str, remedy: str) -> dict[str, Any]:
    """Return the result of a task without a usable answer; a host whose plan has refusals is refused in the report."""
    result: dict[str, Any] = {"failed": True, "changed": False, "msg": f"{message}. Remedy: {remedy}."}
    if module == "gpu_node_plan":
        result["plan"] = {"refusals": [{"code": "wrong_answer", "message": message, "remedy": remedy}]}
    return result


def first_line(text: str) -> str:
    """Return the beginning of the first line with text, "" where there is none."""
    return next((line.strip()[:60] for line in text.splitlines() if line.strip()), "")


def describe_login_output(host: str, printed: str) -> str:
    """Return a warning for a host whose login shell prints something for every command.

    Ansible answers each failed transfer of a file with "sftp transfer mechanism failed on [address]" and transfers it
    in another way (ssh connection plugin, option ssh_transfer_method), but says neither which host it is nor why.
    """
    return (
        f"{host}: the login shell prints {printed!r} for commands too, which makes transfers of files by sftp and scp "
        "fail. Let ~/.bashrc, ~/.profile or /etc/profile.d print it for interactive shells only"
    )


class ActionModule(Normal):  # type: ignore[misc]
    """Runs a module on a host as Ansible does, and accepts its answer or fails the host."""

    seconds = math.inf
    """Processor time that the process of a task may take; a module that waits for hours takes some too."""
    printed = ""
    """What the host printed before its answer."""

    def run(self, tmp: Any = None, task_vars: Any = None) -> dict[str, Any]:
        """Return what :func:`accept` leaves of the answer, and what Ansible adds."""
        module = self._task.action.rpartition(".")[2]
        accepted: dict[str, Any]
        if module in LOOKING:
            self.add_settings(module, task_vars or {})
        try:
            with process_limits(seconds=self.seconds):
                accepted = self.ask_host(tmp, task_vars)
        except AnsibleConnectionFailure as error:
            play = self._play_context
            host = (task_vars or {}).get("inventory_hostname", "")
            message = plain_text(explain_connection(error.message, host, play.remote_user, play.remote_addr))
            raise AnsibleConnectionFailure(message) from None
        except WrongAnswer as error:
            accepted = refuse_host(module, WRONG % (module, error), REMEDY)
        except LimitExceeded as error:
            accepted = refuse_host(module, WRONG % (module, f"it takes {error}"), REMEDY)
        if module in LOOKING:
            # Ansible prints a warning that many hosts have once.
            found = unread_variables(task_vars or {})
            if self.printed:
                found = [*found, describe_login_output(str((task_vars or {}).get("inventory_hostname")), self.printed)]
            accepted["warnings"] = [*(accepted.get("warnings") or []), *found]
        # Set by Ansible itself; without the interpreter each task would look for it again.
        if getattr(self, "_discovered_interpreter_key", None):
            facts = accepted.setdefault("ansible_facts", {})
            facts[self._discovered_interpreter_key] = self._discovered_interpreter
        return accepted

    def add_settings(self, module: str, variables: dict[str, Any]) -> None:
        """Give the module the public variables of the host; what the task itself sets has precedence.

        Raises AnsibleActionFail.
        """
        given = dict(self._task.args)
        overrides = given.pop("overrides", None) or {}
        if not isinstance(overrides, dict):
            raise AnsibleActionFail(f"overrides is no mapping: {overrides!r}")
        try:
            settings = settings_of_hosts.read_settings(variables, self._templar.template, overrides)
        except settings_of_hosts.VariableError as error:
            raise AnsibleActionFail(f"{error}. Remedy: define what it uses, or remove the variable.") from None
        if module == "gpu_audit":
            given["settings"] = {**settings, **(given.get("settings") or {})}
        else:
            given = {**settings, **given}
        self._task.args = given

    def wrong_values(self, variables: dict[str, Any]) -> list[Any]:
        """Return a refusal for each wrong value of a variable that is used later, before anything is changed."""
        module = self._task.action.rpartition(".")[2]
        roles = JUDGED.get(module)
        if not roles:
            return []
        given = settings_of_hosts.read_others(variables, self._templar.template, roles)
        found = list(wrong_values(settings_of_hosts.rules(), given)) if given else []
        if module == "gpu_node_plan":  # judges the settings with its plan
            return found
        arguments = self._task.args.get("settings") or {} if module == "gpu_audit" else self._task.args
        settings = {name: value for name, value in arguments.items() if name in NAMES.settings}
        return found + list(parse_settings(settings).refusals)

    def ask_host(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Run the module, unless a variable of the host has a wrong value. Raises WrongAnswer, AnsibleActionFail."""
        refusals = self.wrong_values(task_vars or {})
        if refusals:
            raise AnsibleActionFail("\n".join(f"{one.message}. Remedy: {one.remedy}." for one in refusals))
        return self.ask_module(tmp, task_vars)

    def ask_module(self, tmp: Any, task_vars: Any) -> dict[str, Any]:
        """Run the module. Raises WrongAnswer."""
        answer: dict[str, Any] = super().run(tmp, task_vars)
        return answer

    def accept(self, answer: dict[str, Any]) -> dict[str, Any]:
        """Return what may be used of what the module printed. Raises WrongAnswer."""
        return accept(self._task.action.rpartition(".")[2], answer)

    def _parse_returned_data(self, res: dict[str, Any], *more: Any) -> Any:
        """Let Ansible read what is accepted of the answer, if it is short enough.

        JSON needs no control characters. Of what is no JSON, Ansible makes a failure.
        """
        size = len(res.get("stdout", "")) + len(res.get("stderr", ""))
        if size > (OUTPUT if self._task.action.rpartition(".")[2] in COLLECTING else SMALL):
            raise WrongAnswer(f"it has {size} characters")
        res |= {name: plain_text(res[name].replace("\r\n", "\n")) for name in ("stdout", "stderr") if name in res}
        try:
            text, notes = _filter_non_json_lines(res.get("stdout", ""), objects_only=True)
            answer = json.loads(text)
            before, json_text, _ = res["stdout"].partition(text)
            self.printed = first_line(before) if json_text else ""
        except ValueError:
            res |= {name: MESSAGE.fit(res[name]) for name in ("stdout", "stderr") if name in res}
            return super()._parse_returned_data(res, *more)
        except RecursionError:
            raise WrongAnswer("too many lists in each other") from None
        for note in notes:
            self._display.warning(LINE.fit(note))
        accepted = self.accept(answer)
        return super()._parse_returned_data({**res, "stdout": json.dumps(accepted)}, *more)
