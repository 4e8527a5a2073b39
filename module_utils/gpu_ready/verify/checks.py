"""One check of a verification: what must hold, what was found, and where it is red the cause and what helps."""

from typing import Any, List, NamedTuple, Optional

NOT_RUN = "not run"


class Check(NamedTuple):
    """One thing that must hold; ``ok`` is None where it was not looked at. A red one has cause and remedy."""

    name: str
    ok: Optional[bool]
    expected: str
    found: str
    cause: str = ""
    remedy: str = ""


def sentence(check: Check) -> str:
    """Return a red check in one sentence: thing, cause, remedy."""
    text = "%s: expected %s, found %s" % (check.name.replace("_", " "), check.expected, check.found)
    if check.cause:
        text += " (%s)" % check.cause
    return text + (": " + check.remedy if check.remedy else "")


def reasons(checks: List[Check]) -> List[str]:
    """Return one sentence for each red check."""
    return [sentence(check) for check in checks if check.ok is False]


def judge(name: str, good: bool, expected: str, found: str, cause: str = "", remedy: str = "") -> Check:
    """Return a check that explains itself only when it is red."""
    return Check(name, True, expected, found) if good else Check(name, False, expected, found, cause, remedy)


def count(items: List[Any]) -> str:
    """Return how many GPUs, as a person says it."""
    return "%d GPU%s" % (len(items), "" if len(items) == 1 else "s")
