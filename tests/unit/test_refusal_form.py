"""Every refusal and warning of the planner has one form, which is printed as "MESSAGE. Remedy: REMEDY."."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *sorted((ROOT / "plugins/plugin_utils/gpu_ready/plan").rglob("*.py")),
    ROOT / "module_utils/gpu_ready/containers/containerd/config.py",
]
WORDS = ("Refusal", "Notice", "ConfigError", "refuse", "notify")


def literals(node: ast.expr) -> list[str]:
    """The texts that an expression may result in: those of each branch, before values are filled in."""
    if isinstance(node, ast.Constant):
        return [str(node.value)]
    if isinstance(node, ast.BinOp):
        return literals(node.left if isinstance(node.op, ast.Mod) else node.right)
    if isinstance(node, ast.IfExp):
        return literals(node.body) + literals(node.orelse)
    return []


def all_messages() -> list[tuple[str, str, str]]:
    """Return (place, part, text) of every text of a refusal or warning."""
    found = []
    for file in FILES:
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in WORDS and len(node.args) >= 3:
                for part, argument in zip(("message", "remedy"), node.args[1:3], strict=True):
                    found += [(f"{file.name}:{node.lineno}", part, text) for text in literals(argument)]
    return found


MESSAGES = all_messages()


def test_messages_are_found() -> None:
    assert len(MESSAGES) > 120 and {part for _, part, _ in MESSAGES} == {"message", "remedy"}


@pytest.mark.parametrize(("place", "part", "text"), MESSAGES, ids=lambda value: value[:40] if value else "empty")
def test_no_full_stop_no_line_break_and_a_remedy_that_continues_after_a_colon(place: str, part: str, text: str) -> None:
    assert text.strip() == text and not text.endswith((".", "!", ":", ",", ";")), place
    assert "\n" not in text and "  " not in text, place
    assert part == "message" or not text[:1].isupper(), place
    assert len(text.split()) > 2 or text == "%s: %s", place  # a path, and what is wrong with it
