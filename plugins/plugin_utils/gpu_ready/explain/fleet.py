"""``gpu-explain fleet``: what site.yml would do with captured hosts, with other variables, without the hosts."""

import argparse
import json
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import secret_values
from ....module_utils.gpu_ready.base.plain_text import plain_text
from ..catalog import model as catalog
from ..catalog.fleet import mixed_branches
from ..completion import complete
from ..report import layout
from . import extra_vars, fleet_compare, fleet_plans
from .fleet_compare import Group, PlanChange
from .fleet_plans import Planned

SCHEMA = 1
COLUMNS = (
    ("hosts", "hosts", 12),
    ("distribution", "distribution", 8),
    ("gpus", "GPUs", 12),
    ("installed", "installed", 9),
    ("desired", "desired", 9),
    ("plan", "plan", 20),
    ("disruptions", "disruption", 10),
)
CHANGE_COLUMNS = (
    ("hosts", "hosts", 12),
    ("kind", "system, GPUs", 12),
    ("before", "before", 20),
    ("after", "after", 20),
)
EVERYTHING = "--format json has all"
DESCRIPTION = """\
What site.yml would do with the hosts of DIRECTORY, into which playbooks/capture.yml wrote their facts: plans,
refusals with their remedies, restarts and reboots, hosts unlike the others with their GPUs and system. Nothing is
asked of the hosts. Each has the variables that inventory and command line set when it was captured; -e takes
precedence over them, for all hosts.
"""
EPILOG = """\
examples:
  gpu-explain fleet captures                                what site.yml would do now
  gpu-explain fleet captures -e nvidia_driver_branch=595    with another variable
  gpu-explain fleet captures -e @change.yml --against ''    only what the change would make different
  gpu-explain fleet captures --against last-week            what has changed since
  gpu-explain fleet captures --format html > fleet.html     a page that needs no other file

exit status:
  0  every host has a plan
  1  some hosts are refused
  2  wrong arguments, or a file that is no capture; the others are shown
"""


class Answer(NamedTuple):
    """What is shown. ``changes``: None without --against. ``given``: the variables of -e."""

    directory: str
    given: dict[str, Any]
    planned: Planned
    groups: list[Group]
    outliers: list[Any]
    against: str
    changes: list[PlanChange] | None


def parser() -> argparse.ArgumentParser:
    """Return the arguments of ``gpu-explain fleet``."""
    found = argparse.ArgumentParser(
        prog="gpu-explain fleet",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    found.add_argument("directory", metavar="DIRECTORY", help="captures, as playbooks/capture.yml writes them")
    extra = found.add_argument(
        "-e", "--extra-vars", metavar="NAME=VALUE", action="append", default=[],
        help="a public variable as ansible-playbook takes it: name=value, JSON, or @FILE with YAML",
    )  # fmt: skip
    extra.completer = lambda **_: ["%s=" % name for name in extra_vars.names()]  # type: ignore[attr-defined]
    found.add_argument(
        "--against", metavar="SETTINGS",
        help="show only what differs from other settings (NAME=VALUE, or '-e NAME=VALUE -e ...'; '': the"
        " inventory's) or from another directory of captures",
    )  # fmt: skip
    found.add_argument(
        "--format", choices=("table", "json", "html"), default="table", help="table (default), json or html"
    )
    return found


def compute(directory: str, options: Sequence[str], against: str | None) -> Answer:
    """Return what is shown. Raises ValueError, OSError."""
    given = extra_vars.read_variables(options)
    planned = fleet_plans.plan_directory(directory, given)
    if not planned.hosts and not planned.unread:
        raise ValueError("%s: it has no captures. Write them with playbooks/capture.yml" % directory)
    changed, text = None, ""
    if against is not None:
        if against and Path(against).is_dir():
            other, text = fleet_plans.plan_directory(against, given), "the captures in %s" % against
        else:
            before = extra_vars.read_variables(options_of(against))
            other, text = fleet_plans.plan_directory(directory, before), settings_text(before)
        planned.unread.update(other.unread)
        changed = fleet_compare.changes(other.hosts, planned.hosts)
    hosts = planned.hosts
    return Answer(
        directory, given, planned, fleet_compare.groups(hosts), fleet_compare.outliers(hosts), text, changed
    )  # fmt: skip


def joined(words: Sequence[str]) -> list[str]:
    """Return words with the value of --against in the same one: argparse takes one that begins with -e for options."""
    found: list[str] = []
    for word in words:
        if found[-1:] == ["--against"]:
            found[-1] += "=" + word
        else:
            found.append(word)
    return found


def options_of(text: str) -> list[str]:
    """Return the values of the options -e in a text, the text if it has none. Raises ValueError for others."""
    if text[:1] in ("@", "{") or (text[:1] != "-" and "=" in text):
        return [text]
    words = shlex.split(text)
    found = []
    while words:
        word = words.pop(0)
        if word in ("-e", "--extra-vars") and words:
            found.append(words.pop(0))
        elif word.startswith("-e") and len(word) > 2:
            found.append(word[2:])
        else:
            raise ValueError("--against %s: it is no directory, and not name=value" % text)
    return found


def settings_text(given: dict[str, Any]) -> str:
    """Return variables in words."""
    if not given:
        return "the variables of the inventory"
    hidden = secret_values.mask_values(given)
    pairs = ["%s=%s" % (name, value if isinstance(value, str) else json.dumps(value)) for name, value in hidden.items()]
    return "the variables of the inventory and " + ", ".join(pairs)


def as_text(answer: Answer, width: int) -> str:
    """Return the table, the refusals with their remedies, the unusual hosts and the differences."""
    lines = layout.wrapped(heading(answer), width) + [""]
    if answer.changes is None:
        lines += table_lines([(one.names, cells(one)) for one in answer.groups], COLUMNS, width)
        lines += layout.note_lines(
            "Unlike most hosts with the same GPUs and system:", answer.outliers, width, EVERYTHING
        )
    elif answer.changes:
        rows = [(one.names, [one.kind, one.before, one.after]) for one in answer.changes]
        lines += table_lines(rows, CHANGE_COLUMNS, width)
    else:
        lines.append("No host would be treated differently.")
    messages = [
        layout.Message(host.name, "refused", tuple(refusal_text(one) for one in host.plan.refusals))
        for host in answer.planned.hosts
        if host.plan.refusals
    ]
    lines += layout.message_lines(messages, width, EVERYTHING)
    mixed = mixed_branches(host.plan.desired for host in answer.planned.hosts)
    lines += ["", *([mixed] if mixed else []), totals(answer), catalog.age_text(complete.today())]
    return plain_text("\n".join(lines))


def table_lines(rows: Sequence[tuple[list[str], list[str]]], columns: layout.Columns, width: int) -> list[str]:
    """Return a table of (hosts, further cells): its first rows, and how many hosts the others have."""
    shown = [[names(hosts), *texts] for hosts, texts in rows[: layout.MOST_ROWS]]
    rest = sum(len(hosts) for hosts, _ in rows[layout.MOST_ROWS :])
    lines = layout.rows_text(shown, columns, width) if shown else []
    return lines + (["and %s; %s" % (layout.counted(rest, "more host"), EVERYTHING)] if rest else [])


def heading(answer: Answer) -> str:
    """Return of what this is, and how old."""
    times = sorted(host.captured for host in answer.planned.hosts)
    age = (
        " captured %s" % (times[0] if times[0] == times[-1] else "from %s to %s" % (times[0], times[-1]))
        if times
        else ""
    )
    count = layout.counted(len(answer.planned.hosts), "host")
    text = "%s%s, with %s." % (count, age, settings_text(answer.given))
    return text if answer.changes is None else "%s Before: %s." % (text, answer.against)


def totals(answer: Answer) -> str:
    """Return the last line: hosts by state, and what they would be disturbed by."""
    plans = [host.plan for host in answer.planned.hosts]
    counts: dict[str, int] = {}
    disturbed: dict[str, int] = {}
    for plan in plans:
        counts[plan.state] = counts.get(plan.state, 0) + 1
        for name in plan.disruptions:
            disturbed[name] = disturbed.get(name, 0) + 1
    parts = ["%s of %d" % (name.replace("_", " "), count) for name, count in sorted(disturbed.items())]
    return layout.counts_text(counts, len(plans)) + ("; " + ", ".join(parts) if parts else "")


def names(found: list[str]) -> str:
    return "%d: %s" % (len(found), layout.names_text(found, 2)) if len(found) > 1 else found[0]


def cells(group: Group) -> list[str]:
    plan = group.plan
    texts = [plan.distribution, plan.gpus, plan.installed, plan.desired]
    texts += [fleet_compare.steps_text(plan), ", ".join(plan.disruptions)]
    return [layout.one_line(text) or layout.NOTHING for text in texts]


def refusal_text(refusal: dict[str, str]) -> str:
    return "%s: %s. Remedy: %s." % (refusal["code"], refusal["message"], refusal["remedy"])


def as_json(answer: Answer) -> str:
    """Return everything as data."""
    unusual = dict(answer.outliers)
    hosts = {
        host.name: dict(
            host.plan._asdict(),
            captured=host.captured,
            reboots=host.plan.reboots,
            unlike_others=unusual.get(host.name, ""),
            steps=[{"id": step, "why": why, "disruption": stops} for step, why, stops in host.plan.steps],
        )
        for host in answer.planned.hosts
    }
    value = {
        "schema": SCHEMA,
        "catalog": catalog.DATE,
        "catalog_age_days": max(0, catalog.age_in_days(catalog.DATE, complete.today())),
        "settings": secret_values.mask_values(answer.given),
        "releases": answer.planned.releases,
        "unread": answer.planned.unread,
        "hosts": hosts,
        "groups": [one.names for one in answer.groups],
    }
    if answer.changes is not None:
        value.update(against=answer.against, changes=[one._asdict() for one in answer.changes])
    return json.dumps(value, indent=1)


def show(answer: Answer, form: str) -> str:
    if form == "json":
        return as_json(answer)
    if form == "html":
        from .fleet_page import page

        return page(answer)
    return as_text(answer, shutil.get_terminal_size((layout.WIDTH, 0)).columns)


def main(argv: list[str] | None = None) -> int:
    """Explain a fleet; exit status 0: every host has a plan, 1: some are refused, 2: wrong usage or files."""
    arguments = parser().parse_args(joined(sys.argv[1:] if argv is None else argv))
    try:
        answer = compute(arguments.directory, arguments.extra_vars, arguments.against)
        shown = show(answer, arguments.format)
    except ImportError as error:
        sys.stderr.write("gpu-explain fleet: %s. It needs ansible-core: activate .venv\n" % error)
        return 2
    except (OSError, ValueError) as error:
        sys.stderr.write(plain_text("gpu-explain fleet: %s\n" % error))
        return 2
    sys.stdout.write(shown + "\n")
    for text in answer.planned.unread.values():
        sys.stderr.write("gpu-explain fleet: %s\n" % plain_text(text))
    refused = any(host.plan.refusals for host in answer.planned.hosts)
    return 2 if answer.planned.unread else 1 if refused else 0
