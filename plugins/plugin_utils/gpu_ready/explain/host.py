"""``gpu-explain host``: which driver and what else a host would get, and why, without the host.

GPUs come from any form of ``lspci`` or as PCI ids, the system from an os-release file; everything else is taken for a
freshly installed machine.
"""

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base import records
from ....module_utils.gpu_ready.base.host import Host, Result
from ....module_utils.gpu_ready.base.json_file import parse_json
from ....module_utils.gpu_ready.base.plain_text import plain_text
from ....module_utils.gpu_ready.facts.model import BaseFacts, Facts, GpuFacts
from ....module_utils.gpu_ready.hardware import pci
from ....module_utils.gpu_ready.packaging import rpm
from ..catalog import model as catalog
from ..catalog.settings import Settings
from ..completion import complete, os_family
from ..plan import answer as decide
from ..plan import compose
from ..plan.driver import candidates, refusals
from ..plan.model import Notice, Refusal
from ..settings import variables
from . import lspci
from .cards import describe_unknown
from .paper_host import PaperHost


class DescribedHost(PaperHost):
    """A host of which only os-release and PCI functions are known. Nothing is installed on it."""

    def __init__(self, release: str, functions: list[Any]) -> None:
        self.files: dict[str, str] = {"/etc/os-release": release}
        self.links: dict[str, str] = {}
        for position, function in enumerate(functions):
            self.add(position, function)

    def add(self, position: int, function: Any) -> None:
        """Add a PCI function as sysfs shows it."""
        address = function.address or "0000:%02x:00.0" % position
        directory = "/sys/bus/pci/devices/%s/" % (address if address.count(":") == 2 else "0000:" + address)
        self.files[directory + "vendor"] = "0x%s\n" % function.vendor
        self.files[directory + "device"] = "0x%s\n" % function.device
        self.files[directory + "class"] = "0x%s\n" % (function.class_id + "00")[:6]
        driver = getattr(function, "driver", None)
        if driver:
            self.links[directory + "driver"] = "../../../bus/pci/drivers/" + driver

    def read_bytes(self, path: str) -> bytes | None:
        text = self.files.get(path)
        return None if text is None else text.encode("utf-8")

    def listdir(self, path: str) -> list[str]:
        prefix = path.rstrip("/") + "/"
        return sorted({name[len(prefix) :].split("/")[0] for name in self.files if name.startswith(prefix)})

    def readlink(self, path: str) -> str | None:
        return self.links.get(path)

    def which(self, program: str) -> str | None:
        """A system has rpm by its family; no other program exists."""
        family = os_family.read_os_release(self.files["/etc/os-release"]).family
        known = [data for data in map(catalog.distro, catalog.distros()) if data["family"] == family]
        has_rpm = any(data["package_manager"] != "apt" for data in known)
        return "/usr/bin/rpm" if program == "rpm" and has_rpm else None

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        """Rpm has one package, as on any host that it manages; no other program exists."""
        if argv == rpm.QUERY:
            return Result(0, "filesystem\t(none)\t0\t0\tx86_64\n", "")
        return super().run(argv, timeout, env)


def functions_of_ids(texts: list[str]) -> list[Any]:
    """Return functions for PCI ids as people write them: 1b38, 10de:1b38, 0x10de:0x1b38."""
    found = []
    for position, text in enumerate(texts):
        ids = text.lower().replace("0x", "").strip("[]").split(":")
        vendor = ids[-2] if len(ids) > 1 else "10de"
        found.append(pci.Function("0000:%02x:00.0" % (position + 1), vendor, ids[-1], "0302", None, None, None, False))
    return found


class PlannedHost(NamedTuple):
    """The facts of a host, the settings and the plan from both."""

    facts: Facts
    settings: Settings
    plan: compose.Plan


def plan_host(host: Host, given: Mapping[str, object]) -> PlannedHost:
    """Collect facts and plan, as site.yml does; ``given`` are the variables of gpu_node_plan."""
    settings, refusals = variables.settings_for_plan(given)
    facts = complete.collect_facts(host, settings.gpu_ready_treat_as or None, complete.today())
    plan = decide.refused_plan(refusals) if refusals else compose.plan(facts, settings)
    return PlannedHost(facts, settings, plan)


def explain(listing: str | None, ids: list[str], release: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the decision for a host on paper: GPUs, plan, todo, texts."""
    reading = lspci.parse_lspci(listing) if listing is not None else None
    if reading is not None and reading.unnamed:
        card = reading.unnamed[0]
        raise ValueError("%s (%s) is shown without its number; give the output of lspci -nn" % (card.slot, card.name))
    functions = list(reading.functions) if reading is not None else []
    host = DescribedHost(release, functions + functions_of_ids(ids))
    others = {name: value for name, value in given.items() if name in other_rules()}
    planned = plan_host(host, {name: value for name, value in given.items() if name not in others})
    refused = variables.wrong_values(other_rules(), others)
    planned = planned._replace(plan=planned.plan._replace(refusals=refused + planned.plan.refusals))
    base = planned.facts.base
    if base.distro is None and not release.strip():
        planned = planned._replace(plan=plan_of_cards(planned))
    found = answer(base, planned.plan)
    return dict(found, unverified=True, text="%s\n%s" % (UNVERIFIED, found["text"]))


OTHER_VARIABLES = Path(__file__).resolve().parents[2] / "variables/names.json"
"""Public variables that do not take part in a plan, with their rules: of reports, waits and upgrades."""


def other_rules() -> dict[str, list[Any]]:
    """Return the rules of public variables that the planner does not read."""
    names: dict[str, Any] = json.loads(OTHER_VARIABLES.read_text(encoding="utf-8"))
    return {name: fields for name, (_, *fields) in names["rules"].items()}


def plan_of_cards(planned: PlannedHost) -> compose.Plan:
    """Return the plan without a system: only whether one driver drives all GPUs. Sources and steps are the system's."""
    request = candidates.parse_request(planned.settings)
    gpus = planned.facts.base.served_gpus
    possible = candidates.pairs_of_host(gpus, request)
    found = [refusal for refusal in planned.plan.refusals if refusal.code != "unknown_distribution"]
    if gpus and not possible:
        found.append(no_common_driver(gpus, request))
    elif gpus and not candidates.matching_pairs(possible, request):
        limits = " and ".join("%s takes %s" % (label, limit) for label, limit in card_limits(gpus))
        message = "%s: that leaves nothing for the nvidia_driver_ variables that are set" % limits
        found.append(Refusal("no_driver_as_requested", message, "set a branch and a flavour within that, or neither"))
    notice = Notice(
        "no_system",
        "the system is not given, and sources of drivers and steps depend on it",
        "add --os-release FILE, the host's /etc/os-release",
    )
    return planned.plan._replace(refusals=found, warnings=[notice], steps=[])


def no_common_driver(gpus: list[GpuFacts], request: candidates.DriverRequest) -> Refusal:
    """Return why no driver drives all of these cards."""
    for gpu in gpus:
        if not candidates.requested_pairs(gpu.device, request) and catalog.gpu(gpu.device) is None:
            message, _, remedy = describe_unknown(gpu.device).partition(" Remedy: ")
            return Refusal("gpu_unknown", message.rstrip("."), remedy.rstrip("."))
    limits = " and ".join("%s takes %s" % limit for limit in card_limits(gpus))
    remedy = "move one kind of card to another host, or bind it to vfio-pci"
    return Refusal("no_driver_for_mixed_gpus", "one host runs one driver, but " + limits, remedy)


def card_limits(gpus: list[GpuFacts]) -> list[tuple[str, str]]:
    """Return a label and the drivers of each kind of card."""
    kinds = {gpu.device: gpu for gpu in gpus}.values()
    return [(refusals.gpu_label(gpu), refusals.supported_drivers(gpu.device)) for gpu in kinds]


def explain_capture(path: str, given: dict[str, Any]) -> dict[str, Any]:
    """Return the decision for a captured host, with these variables in place of those that it had."""
    from . import captures, fleet_plans

    capture = captures.read(path)
    facts = captures.facts_of(capture)._replace(today=complete.today())
    return answer(facts.base, fleet_plans.plan_of(facts, dict(capture.header.settings, **given)))


def answer(base: BaseFacts, decided: compose.Plan) -> dict[str, Any]:
    """Return a decision as data, and as ``text``."""
    return {
        "catalog": catalog.DATE,
        "catalog_age_days": max(0, catalog.age_in_days(catalog.DATE, complete.today())),
        "distribution": os_family.distribution_name(base),
        "gpus": [{"address": gpu.address, "device": gpu.device, "name": gpu.name} for gpu in base.gpus],
        "other_functions": records.to_json(base.other_functions),
        "plan": compose.plan_json(decided),
        "todo": compose.todo_json(decided),
        "text": text(base, decided),
    }


UNVERIFIED = (
    "unverified: no host was asked. Its kernel, Secure Boot, packages and what runs on it are taken to be those of a "
    "fresh system"
)
"""The first line about a host on paper."""


def text(base: BaseFacts, decided: compose.Plan) -> str:
    lines = ["%s, GPUs: %s" % (os_family.distribution_name(base), compose.gpus_text(base))]
    if base.distro is None:
        lines += ["%s: %s" % limit for limit in card_limits(base.gpus)]
    lines += ["not counted: %s (%s)" % (other.address, other.what) for other in base.other_functions]
    if not decided.gpu_host:
        return "\n".join(lines + [decided.summary])
    driver = decided.choices.driver
    if driver is not None and driver.why:
        lines.append("driver: " + driver.why)
    for refusal in decided.refusals:
        lines += ["refused: " + refusal.message, "  remedy: " + refusal.remedy]
    for warning in decided.warnings:
        lines += ["warning: " + warning.message, "  remedy: " + warning.remedy]
    lines += ["%2d. %s: %s" % (number, step.id, step.why) for number, step in enumerate(decided.steps, 1)]
    return "\n".join(lines)


def read_settings(words: list[str]) -> dict[str, Any]:
    """Return variables from ``name=value`` words; a value may be JSON (a list, a mapping) or plain text."""
    given: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign:
            raise ValueError("--set %s: write it as name=value" % word)
        try:
            given[name] = parse_json(value) if value[:1] in ("[", "{") else value
        except ValueError as error:
            raise ValueError("--set %s: the value is not valid JSON (%s)" % (name, error)) from None
    return given


def read_file(path: str) -> str:
    """Return the text of a file, of standard input for ``-``."""
    if path == "-":
        return sys.stdin.read()
    return Path(path).read_text(encoding="utf-8", errors="replace")


def parser() -> argparse.ArgumentParser:
    """Return the arguments of ``gpu-explain host``."""
    found = argparse.ArgumentParser(prog="gpu-explain host", description="Which driver a host would get, and why.")
    found.add_argument(
        "capture", metavar="CAPTURE", nargs="?", help="a file of playbooks/capture.yml, in place of the other options"
    )
    found.add_argument("--lspci", metavar="FILE", help="output of lspci, lspci -nn, -n, -mm, -vmm or -k ('-': stdin)")
    found.add_argument("--pci-id", metavar="ID", nargs="+", action="append", default=[], help="such as 10de:1b38")
    found.add_argument("--os-release", metavar="FILE", help="the host's /etc/os-release ('-': stdin)")
    setting = found.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help="a public variable")
    names = ["%s=" % name for name in Settings._fields]
    setting.completer = lambda **_: names  # type: ignore[attr-defined]  # argcomplete reads it
    found.add_argument("--json", action="store_true", help="everything as JSON")
    return found


def main(argv: list[str] | None = None) -> int:
    """Explain one host; exit status 0: it can be served (or needs nothing), 1: refused, 2: wrong usage."""
    arguments = parser().parse_args(argv)
    ids = [word for group in arguments.pci_id for word in group]
    described = arguments.lspci is not None or bool(ids) or bool(arguments.os_release)
    if arguments.capture is not None and described:
        parser().error("a capture has GPUs and system already: leave out --lspci, --pci-id and --os-release")
    if arguments.capture is None and arguments.lspci is None and not ids:
        parser().error("give the GPUs with --lspci FILE or --pci-id ID, or a capture")
    try:
        given = read_settings(arguments.set)
        if arguments.capture is not None:
            found = explain_capture(arguments.capture, given)
        else:
            listing = read_file(arguments.lspci) if arguments.lspci is not None else None
            release = read_file(arguments.os_release) if arguments.os_release else ""
            found = explain(listing, ids, release, given)
    except (OSError, ValueError) as error:
        sys.stderr.write(plain_text("gpu-explain host: %s\n" % error))
        return 2
    shown = found.pop("text") + "\n" + catalog.age_text(complete.today())
    sys.stdout.write(plain_text(json.dumps(found, indent=1, default=str) if arguments.json else shown) + "\n")
    return 1 if found["plan"]["refusals"] else 0


if __name__ == "__main__":
    sys.exit(main())
