"""The command of a run, as a report shows it: whoever reads the report may not see its secrets."""

import json
import re
import shlex
from collections.abc import Collection, Sequence

from ...module_utils.gpu_ready.base.secret_values import mask_text, mask_values
from ...module_utils.gpu_ready.base.validation import HIDDEN, mask_command
from .texts import line

SHORT = re.compile(r"(-[hvkKbCD]*e)(.*)", re.DOTALL)
"""-e of ansible-playbook, behind flags without a value of their own, and what is written together with it."""


def command_text(words: Sequence[str], public: Collection[str]) -> str:
    """Return a command with what its -e options say of variables of gpu-ready, ``public``; other values are hidden."""
    found: list[str] = []
    follows = False
    for word in words[1:]:
        option, equals, value = word.partition("=")
        long = option.startswith("--e") and "--extra-vars".startswith(option)  # argparse accepts it shortened
        short = None if word.startswith("--") else SHORT.fullmatch(word)
        if follows:
            word, follows = variables_text(word, public), False
        elif long and equals:
            word = f"{option}={variables_text(value, public)}"
        elif short and short[2]:
            word = short[1] + variables_text(short[2], public)
        else:
            follows = long or short is not None
        found.append(word)
    name = words[0].rpartition("/")[2] if words else ""
    return line(" ".join(shlex.quote(word) for word in [name, *mask_command(found)] if word))


def variables_text(given: str, public: Collection[str]) -> str:
    """Return the argument of -e. It is the name of a file, JSON or YAML, or pairs of name and value."""
    if given.startswith("@"):
        return given
    if given.lstrip().startswith(("{", "[")):
        try:
            value = json.loads(given)
        except ValueError:
            return HIDDEN
        if not isinstance(value, dict):
            return HIDDEN
        return json.dumps(
            {key: one if key in public else HIDDEN for key, one in mask_values(value).items()}, ensure_ascii=False
        )
    try:
        pairs = shlex.split(given)
    except ValueError:
        return HIDDEN
    shown = []
    for pair in pairs:
        name, equals, _ = pair.partition("=")
        shown.append(mask_text(pair) if name in public and equals else f"{name}={HIDDEN}" if equals else HIDDEN)
    return " ".join(shown)
