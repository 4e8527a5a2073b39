"""One check of a verification."""

from typing import List, NamedTuple, Optional, Sequence

NOT_RUN = "not run"


class Check(NamedTuple):
    """``ok`` is None for a check that was not run. A failed one has a cause and a remedy."""

    name: str
    ok: Optional[bool]
    expected: str
    found: str
    cause: str = ""
    remedy: str = ""


def judge(name: str, ok: bool, expected: str, found: str, cause: str = "", remedy: str = "") -> Check:
    """A check that keeps cause and remedy only if it failed."""
    return Check(name, True, expected, found) if ok else Check(name, False, expected, found, cause, remedy)


def describe_check(check: Check) -> str:
    """The message for a failed check: name, expected and found value, cause, remedy."""
    text = "%s: expected %s, found %s" % (check.name.replace("_", " "), check.expected, check.found)
    if check.cause:
        text += " (%s)" % check.cause
    return text + (". %s%s" % (check.remedy[0].upper(), check.remedy[1:]) if check.remedy else "")


def failure_messages(checks: List[Check]) -> List[str]:
    return [describe_check(check) for check in checks if check.ok is False]


def gpu_count(gpus: Sequence[object]) -> str:
    return "%d GPU%s" % (len(gpus), "" if len(gpus) == 1 else "s")
