# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""What is printed when a run ends before its report, by Ctrl-C or an error: which host is in which state, what next."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from ..gpu_ready.report.layout import natural_order
from .lines import BAD, GOOD, NAMES, Progress, count, span

WORKING = "What runs there at this moment may still come to its end, such as a package manager."


class Interruption(NamedTuple):
    """The hosts of a run by their state. ``middle``: what was begun on each of them last."""

    seconds: float
    middle: Mapping[str, str]
    done: Sequence[str]
    failed: Sequence[str]
    untouched: Sequence[str]


class NextSteps(NamedTuple):
    """``undo``: the command that restores what was before, "" if no host was changed. ``report``: of this run."""

    undo: str = ""
    report: str = ""


def interruption(progress: Progress, earlier: Mapping[str, str], targets: Mapping[str, str]) -> Interruption:
    """Return the states of all hosts; ``earlier``: hosts that an earlier run left in the middle, with what it did.

    ``targets``: the change of each host, such as the versions of the old and the new driver.
    """
    results = dict(progress.results)
    middle = {name: text for name, text in {**earlier, **progress.changing}.items() if name not in results}
    shown = {name: f"{text}, {targets[name]}" if targets.get(name) else text for name, text in middle.items()}
    failing = [name for name in progress.failing if name not in results and name not in middle]
    rest = progress.everyone - set(results) - set(middle) - set(failing)
    return Interruption(
        progress.now() - progress.start,
        {name: shown[name] for name in ordered(shown)},
        ordered(name for name, how in results.items() if how == GOOD),
        ordered([*(name for name, how in results.items() if how == BAD), *failing]),
        ordered(rest),
    )


def ordered(names: Iterable[str]) -> list[str]:
    """Return names in their natural order."""
    return sorted(names, key=natural_order)


def interruption_lines(found: Interruption, steps: NextSteps, by_user: bool, changes: bool) -> list[str]:
    """Return the lines to print. ``by_user``: Ctrl-C ended the run, not an error; ``changes``: it may change hosts."""
    what = "Interrupted" if by_user else "Ended early by the error above,"
    lines = [f"{what} after {span(found.seconds)}. Nothing more is begun." + (f" {WORKING}" if found.middle else "")]
    if found.middle:
        lines.append("  in the middle:")
        lines += [f"    {name}: {text}" for name, text in found.middle.items()]
    rest = "not begun, unchanged" if changes else "not asked yet"
    for words, hosts in (("done", found.done), ("failed", found.failed), (rest, found.untouched)):
        if hosts:
            lines.append(f"  {words}: {', '.join(hosts) if len(hosts) <= 2 * NAMES else count(len(hosts))}")
    if not changes:
        return [*lines, "No host was changed. Repeat: the same command."]
    lines.append("Resume: the same command.")
    lines.append(f"Undo: {steps.undo or 'not needed, no host was changed.'}")
    return lines + ([f"Report: {steps.report}"] if steps.report else [])
