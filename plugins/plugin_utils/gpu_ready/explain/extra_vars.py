"""The option -e of gpu-explain: variables as ansible-playbook reads them, and only those that gpu-ready has."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ....module_utils.gpu_ready.base.nearest import nearest
from ..catalog.settings import RULES
from .host import other_rules

COLLECTING = "gpu_ready_treat_as"
"""Decides what the facts are, so a capture cannot answer for another value."""


def read_variables(requested: Iterable[str]) -> dict[str, Any]:
    """Return the variables of options -e: name=value, @FILE or JSON; later ones win. Raises ValueError, OSError."""
    found: dict[str, Any] = {}
    for one in requested:
        if one.strip():
            found.update(read_option(one.strip()))
    for name in found:
        check_name(name)
    return found


def read_option(variable: str) -> dict[str, Any]:
    """Return the variables of one option, as ansible/utils/vars.py (load_extra_vars) reads it."""
    import yaml
    from ansible.parsing.splitter import parse_kv

    if variable[0] in "/.":
        raise ValueError("-e %s: write @ before the name of a file" % variable)
    if variable[0] not in "@[{":
        found: Any = parse_kv(variable)
        rest = found.pop("_raw_params", "")
        if rest or not found:
            raise ValueError("-e %s: write it as name=value" % variable)
        return {str(name): str(value) for name, value in found.items()}
    content = Path(variable[1:]).read_text(encoding="utf-8") if variable[0] == "@" else variable
    try:
        found = yaml.safe_load(content)  # in Python: the loader in C crashes where lists nest too deeply
    except Exception as error:  # of PyYAML, and RecursionError
        raise ValueError("-e %s: it is no YAML (%s)" % (variable, " ".join(str(error).split()))) from None
    if not isinstance(found, dict):
        raise ValueError("-e %s: it must be a mapping of variables" % variable)
    return {str(name): value for name, value in found.items()}


def names() -> list[str]:
    """Return the public variables."""
    return sorted({*RULES, *other_rules()})


def check_name(name: str) -> None:
    """Raise ValueError for a variable that gpu-ready does not have, or that a capture cannot answer for."""
    known = names()
    if name == COLLECTING:
        raise ValueError("-e %s: it decides how facts are read. Set it in the inventory and capture again" % name)
    if name not in known:
        guess = nearest(name, known)
        remedy = "Did you mean %s?" % guess if guess else "docs/variables.md has all variables."
        raise ValueError("-e %s: gpu-ready has no variable of this name. %s" % (name, remedy))
