"""Generate everything that repeats a public variable from catalog/variables/*.yml (`make catalog`).

usage: tools/compile_variables.py [--check]      --check: write nothing, exit 1 if a file is not current.

Generated are the defaults and argument specs of the roles, the options of modules that take public variables, the tasks
that pass them, the typed record for the planner, docs/variables.md and the page of each role. Whole files, or the lines
between the markers `# BEGIN variables` and `# END variables`.
"""
# ruff: noqa: E402  the tools are no installed package

import json
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from plugins.plugin_utils.gpu_ready.diagnostics import check_rules
from tools.role_pages import role_page
from tools.variables import TYPES, Declaration, Task, all_variables, load_tasks

BEGIN = "# BEGIN variables: generated from catalog/variables by `make catalog`"
END = "# END variables"
WIDTH = 120
NESTED = 112
"""Longest line of a block before its indentation in the file."""
BOOTSTRAP = ("gpu_ready_vault", "gpu_ready_mirror", "gpu_ready_mirror_keys")
"""What the installation of Python needs, before any module can run on the host."""


# --- text and YAML -------------------------------------------------------------------------------------------------


def is_plain(text: str) -> bool:
    """True if a text can be written in YAML without quotes, in a block and in a flow; version numbers keep theirs."""
    if text[:1].isdigit():
        return False
    try:
        loaded = [yaml_load(f"k: {text}"), yaml_load(f"[{text}]"), yaml_load(f"{{k: {text}}}")]
    except yaml.YAMLError:
        return False
    return loaded == [{"k": text}, [text], {"k": text}]


def flow(value: Any) -> str:
    """Format a value as YAML on one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(flow, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow(key)}: {flow(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, str):
        return value if is_plain(value) else json.dumps(value, ensure_ascii=False)
    return str(value)


def wrap(text: str, indent: str, width: int = WIDTH, more: str = "") -> list[str]:
    """Break a text into lines, indented, from the second on by ``more`` too; words and names with hyphens are kept."""
    others = indent + more
    return textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=others, break_long_words=False, break_on_hyphens=False
    )


def prose(head: str, text: str, indent: str) -> list[str]:
    """Format a text behind a key or the dash of a list, on one line or folded."""
    try:
        plain = yaml_load(f"- {text}") == [text]
    except yaml.YAMLError:
        plain = False
    line = f"{indent}{head} {text if plain else json.dumps(text, ensure_ascii=False)}"
    return [line] if len(line) <= NESTED else [f"{indent}{head} >-", *wrap(text, indent + "  ", NESTED)]


def plain_text(text: str) -> str:
    """Remove the backticks."""
    return text.replace("`", "")


def ansible_markup(text: str) -> str:
    """Turn `code` into the markup of Ansible's documentation."""
    return re.sub("`([^`]*)`", lambda match: value_markup(match[1]), text)


def value_markup(value: str) -> str:
    """Return V(value); its parser needs backslashes before backslashes and closing brackets."""
    escaped = re.sub(r"([\\)])", r"\\\1", value)
    return f"V({escaped})"


# --- outputs -------------------------------------------------------------------------------------------------------


def role_defaults(variables: list[Declaration]) -> str:
    """Return defaults/main.yml of a role."""
    parts = ["---\n# Generated from catalog/variables by `make catalog`; do not edit.\n"]
    for variable in variables:
        lines = wrap(plain_text(variable.description), "# ")
        for choice, meaning in variable.choices.items():
            if meaning:
                lines += wrap(plain_text(f"{choice}: {meaning}"), "#   ", more="  ")
        if variable.example is not None:
            lines.append(f"# Example: {flow(variable.example)}")
        parts.append("\n".join([*lines, f"{variable.name}: {flow(variable.default)}"]) + "\n")
    return "\n".join(parts)


def role_options(variables: list[Declaration]) -> list[str]:
    """Return the options of an argument spec, without indentation."""
    if not variables:
        return ["options: {}"]
    lines = ["options:"]
    for variable in variables:
        lines += [f"  {variable.name}:", f"    type: {variable.ansible_type}"]
        if variable.elements:
            lines.append(f"    elements: {variable.elements}")
        lines.append(f"    default: {flow(variable.default)}")
        if variable.choices and variable.type != "list":  # the entries of a text with commas keep their spaces here
            lines += choices(variable, "    ")
        lines += description(variable, "    ", full=True)
    return lines


def description(variable: Declaration, indent: str, *, full: bool) -> list[str]:
    """Return the description of an option: with the meaning of each choice and the example, or the text alone."""
    texts = [ansible_markup(variable.description)]
    if full:
        texts += [
            f"{value_markup(choice)} - {ansible_markup(meaning)}."
            for choice, meaning in variable.choices.items()
            if meaning
        ]
        if variable.example is not None:
            texts.append(f"Example: {value_markup(flow(variable.example))}.")
    if len(texts) == 1:
        return prose("description:", texts[0], indent)
    return [f"{indent}description:", *(line for text in texts for line in prose("-", text, indent + "  "))]


def choices(variable: Declaration, indent: str) -> list[str]:
    """Return the choices of an option, on one line or one per line."""
    line = f"{indent}choices: {flow(list(variable.choices))}"
    if len(line) <= NESTED:
        return [line]
    return [f"{indent}choices:", *(f"{indent}  - {flow(choice)}" for choice in variable.choices)]


def module_options(variables: list[Declaration]) -> list[str]:
    """Return options of a module's documentation."""
    lines: list[str] = []
    for variable in variables:
        lines += [f"{variable.name}:", *description(variable, "  ", full=False), f"  type: {variable.ansible_type}"]
        if variable.elements:
            lines.append(f"  elements: {variable.elements}")
        lines.append(f"  default: {flow(variable.default)}")
        if variable.choices and variable.type != "list":
            lines += choices(variable, "  ")
    return lines


def passing(variables: list[Declaration]) -> list[str]:
    """Return the parameters of a task that passes variables to a module."""
    return [f'{one.name}: "{{{{ {one.name} | default(omit) }}}}"' for one in variables]


def settings_module(variables: list[Declaration]) -> str:
    """Return the module with the record of all settings, their defaults and the rules for their values."""
    policy = [one.name for one in variables if one.setting == "policy"]
    fields = "".join(f"    {one.name}: {TYPES[one.type]}\n" for one in variables)
    rules = {one.name: one.rule for one in variables}
    rows = ",\n".join(json.dumps({name: rule}, separators=(",", ":"))[1:-1] for name, rule in rules.items())
    quotes = "'" * 3
    return f'''"""The settings of the planner, generated from catalog/variables by `make catalog`; do not edit."""

import json
from typing import Any, NamedTuple

# fmt: off
# ruff: noqa: E501


class Settings(NamedTuple):
    """The value of each public variable that the planner reads (docs/variables.md)."""

{fields}

POLICY = {tuple(policy)!r}
"""Variables that say how a host gets to the desired state; they are not part of it."""
_ROWS = json.loads(r{quotes}{{
{rows}}}{quotes})  # JSON is read faster than literals are compiled
DEFAULTS: dict[str, Any] = {{name: row[0] for name, row in _ROWS.items()}}
RULES: dict[str, list[Any]] = {{name: row[1:] for name, row in _ROWS.items()}}
"""For each variable: type, choices, pattern of the text or range, what it must be, validator, example."""
'''


PAGE_HEAD = """# Variables

No variable is required: host names alone are enough. Set variables in the inventory, in group_vars or with `-e`.
A wrong value is refused with a message before anything is changed; a misspelt name is named in a warning.

Generated from `catalog/variables` by `make catalog`; do not edit. `ansible-doc -t role gpu_ready.nodes.nvidia_driver`
shows the variables of one role.
"""


FIRST = {
    "nvidia_driver_branch": ("Keep the fleet on one driver branch", "580"),
    "nvidia_driver_source": ("Install no driver, or that of another source", "none"),
    "cuda_toolkit_versions": ("Install certain CUDA toolkits, side by side", ["12.9", "13.0"]),
    "cuda_toolkit_source": ("Install no CUDA toolkit: containers have their own", "none"),
    "cudnn_source": ("Install no cuDNN", "none"),
    "nvidia_container_runtime_mode": ("Choose how containers get the GPUs", "cdi"),
    "docker_engine_daemon_options": ("Set other options of docker", {"data-root": "/data/docker"}),
    "gpu_ready_reboot_ok": ("Permit a reboot", True),
    "gpu_ready_disrupt": ("Permit to stop running work", ["docker_restart"]),
    "gpu_ready_mirror": ("Download from a mirror of yours", "https://mirror.example.org"),
}
"""The variables that most sites need: what for, and a value. A test validates the values."""


def first_table(variables: list[Declaration]) -> list[str]:
    """Return the table of the variables that most sites need."""
    known = {one.name: one for one in variables}
    lines = ["## The ten that matter first", "", "| to | set | type |", "|---|---|---|"]
    for name, (purpose, value) in FIRST.items():
        lines.append(f"| {purpose} | [`{name}: {flow(value)}`](#{name}) | {shown_type(known[name])} |")
    shown = ("nvidia_driver_branch", "cuda_toolkit_versions", "gpu_ready_reboot_ok")
    text = "\n".join(f"{name}: {flow(FIRST[name][1])}" for name in shown)
    return [*lines, "", "In `group_vars/gpu_nodes.yml`, beside the inventory:", "", "```yaml", text, "```", ""]


def documentation(tasks: list[Task]) -> str:
    """Return docs/variables.md."""
    lines = [PAGE_HEAD, *first_table(list(all_variables(tasks))), "## All, by task", ""]
    lines += [
        f"- [{task.title}](#{re.sub(r'[^a-z0-9 -]', '', task.title.lower()).replace(' ', '-')})" for task in tasks
    ]
    for task in tasks:
        lines += ["", f"## {task.title}", ""]
        if task.introduction:
            lines += [task.introduction, ""]
        lines += ["| variable | type | default | choices | description |", "|---|---|---|---|---|"]
        lines += map(table_row, task.variables)
    return "\n".join(lines) + "\n"


def shown_type(variable: Declaration) -> str:
    """Return the type of a variable for people."""
    kind = f"list of {variable.elements}" if variable.elements not in ("", "raw") else variable.type
    return "str or list" if kind in ("devices", "raw") else kind


def table_row(variable: Declaration) -> str:
    """Return the line of a variable in docs/variables.md."""
    kind = shown_type(variable)
    choices = ", ".join(f"`{choice}`" if choice else "empty" for choice in variable.choices)
    if variable.range:
        choices = "{} to {}".format(*variable.range)
    text = [variable.description]
    text += [f"`{choice}`: {meaning}." for choice, meaning in variable.choices.items() if meaning]
    if variable.example is not None:
        text.append(f"Example: `{flow(variable.example)}`")
    default = flow(variable.default)
    name = f'<a id="{variable.name}"></a>`{variable.name}`'
    cells = [name, kind, "empty" if default == '""' else f"`{default}`", choices, "<br>".join(text)]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# --- files ---------------------------------------------------------------------------------------------------------


def between_markers(text: str, lines: list[str]) -> str:
    """Return a text whose lines between the markers are replaced, in the indentation of the first marker."""
    match = re.search(rf"^([ ]*){re.escape(BEGIN)}\n(?:.*\n)*?[ ]*{re.escape(END)}\n", text, re.MULTILINE)
    if match is None:
        raise ValueError(f"the lines `{BEGIN}` and `{END}` are missing")
    block = "".join(f"{match[1]}{line}\n" if line else "\n" for line in [BEGIN, *lines, END])
    return text[: match.start()] + block + text[match.end() :]


def own_names(root: Path) -> set[str]:
    """Names that our roles and playbooks set: results of tasks, set_fact, vars."""
    found: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, list):
            for part in value:
                collect(part)
        elif isinstance(value, dict):
            for key, part in value.items():
                if key == "register":
                    found.add(part)
                elif str(key).rpartition(".")[2] in ("set_fact", "vars") and isinstance(part, dict):
                    found.update(part)
                collect(part)

    for directory in ("roles", "playbooks"):
        for path in sorted((root / directory).glob("**/*.yml")):
            if "meta" not in path.parts:
                collect(yaml_load(path.read_text(encoding="utf-8")))
    return {name for name in found if not name.startswith("_")}


def variable_names(variables: list[Declaration], foreign: list[dict[str, Any]], own: set[str]) -> str:
    """Return plugins/plugin_utils/variables/names.json."""
    known = {one.name for one in variables}
    messages = {
        name: f"The variable {name} of {one['project']} is not read by gpu-ready: {remedy.replace('`', '')}"
        f" (docs/migrating.md)."
        for one in foreign
        for name, remedy in one["variables"].items()
    }
    value = {
        "known": sorted(known),
        "own": sorted(own - known),
        "foreign": messages,
        "settings": sorted(one.name for one in variables if one.setting),
        "overridable": sorted(one.name for one in variables if one.overridable),
        "rules": {one.name: [one.role, *one.rule] for one in variables if not one.setting},
    }
    return json.dumps(value, indent=1) + "\n"


def migration(foreign: list[dict[str, Any]]) -> str:
    """Return docs/migrating.md."""
    lines = [
        "# Coming from another project",
        "",
        "Generated by `make catalog` from `catalog/foreign_variables.yml`; do not edit.",
        "",
        *textwrap.wrap(
            "`site.yml` changes nothing about a driver, a docker engine or a toolkit that another project installed and"
            " that fits: see [site.md](site.md). It does not read variables of other projects. `site.yml` and"
            " `playbooks/audit.yml` warn about those below that begin like ours, and about misspelt names.",
            WIDTH,
        ),
    ]
    for one in foreign:
        lines += [
            "",
            f"## {one['project']}",
            "",
            f"Its variables: <{one['page']}>.",
            *([one["also"]] if one["also"] else []),
        ]
        lines += ["", "| variable | with gpu-ready |", "|---|---|"]
        lines += [f"| `{name}` | {remedy} |" for name, remedy in one["variables"].items()]
    return "\n".join(lines) + "\n"


def outputs(root: Path = ROOT) -> dict[Path, str]:
    """Return every generated file and what it should be."""
    tasks = load_tasks(root)
    variables = list(all_variables(tasks))
    settings = sorted((one for one in variables if one.setting), key=lambda one: one.name)
    foreign = yaml_load((root / "catalog/foreign_variables.yml").read_text(encoding="utf-8"))
    found = {
        root / "plugins/plugin_utils/gpu_ready/catalog/settings.py": settings_module(settings),
        root / "docs/variables.md": documentation(tasks),
        root / "module_utils/gpu_ready/check/rules.py": check_rules.module_text(),
        root / "docs/migrating.md": migration(foreign),
        root / "plugins/plugin_utils/variables/names.json": variable_names(variables, foreign, own_names(root)),
    }
    bootstrap = [one for one in settings if one.name in BOOTSTRAP]
    blocks: dict[str, Callable[[], list[str]]] = {
        "library/gpu_node_plan.py": lambda: module_options(settings),
        "library/gpu_python.py": lambda: module_options(bootstrap),
        "roles/gpu_ready/tasks/bootstrap_python.yml": lambda: passing(bootstrap),
    }
    for path in sorted((root / "roles").iterdir()):
        own = [one for one in variables if one.role == path.name]
        # The others have no default of a role: who reads them has it (`| default`, the option of a module).
        prefixed = [one for one in own if one.name.startswith(f"{path.name}_")]
        if prefixed:
            found[path / "defaults/main.yml"] = role_defaults(prefixed)
        found[path / "README.md"] = role_page(path, own)
        blocks[f"roles/{path.name}/meta/argument_specs.yml"] = lambda own=own: role_options(own)  # type: ignore[misc]
    for name, lines in blocks.items():
        found[root / name] = between_markers((root / name).read_text(encoding="utf-8"), lines())
    return found


def main(root: Path = ROOT) -> int:
    """Write the files, or with --check report those that are not current. Returns the exit status."""
    stale = {
        path: text
        for path, text in outputs(root).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    }
    for path, text in stale.items():
        if "--check" in sys.argv[1:]:
            print(f"{path.relative_to(root)} is not current: run `make catalog`", file=sys.stderr)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.relative_to(root)}")
    return 1 if stale and "--check" in sys.argv[1:] else 0


if __name__ == "__main__":
    sys.exit(main())
