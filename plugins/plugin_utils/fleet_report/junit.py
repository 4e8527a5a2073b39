# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""A run as JUnit XML: one testsuite per host, one testcase per step and check, and one for the host's result.

The structure is that of https://github.com/windyroad/JUnit-Schema (JUnit.xsd), which CI systems read.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET  # only writes here

from .model import NO_ANSWER, TITLES, Fleet, Host

FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 cannot contain, not even escaped (section 2.2)."""


def safe(value: str) -> str:
    return FORBIDDEN.sub("?", value)


def junit(fleet: Fleet) -> str:
    """Return the content of the file."""
    root = ET.Element("testsuites")
    for index, host in enumerate(fleet.hosts):
        root.append(suite(fleet, host, index))
    ET.indent(root, " ")
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def suite(fleet: Fleet, host: Host, index: int) -> ET.Element:
    """Return the testsuite of a host."""
    name = safe(host.name) or "-"
    package = f"gpu_ready.{fleet.kind}"
    cases = [case(package, name, "result", host)]
    for step in host.steps:
        one = case(package, name, f"step {step.name}")
        if step.progress == "failed":
            problem(one, "failure", "failed", host.why.message, details(host))
        elif step.progress != "done":
            ET.SubElement(one, "skipped")
        cases.append(one)
    for check in host.checks:
        one = case(package, name, f"check {check.name}")
        if check.ok is False:
            message = check.why or f"expected {check.expected}, found {check.found}"
            problem(one, "failure", "check", message, f"{message}\n{check.remedy}".strip())
        elif check.ok is None:
            ET.SubElement(one, "skipped")
        cases.append(one)
    counts = {tag: str(sum(one.find(tag) is not None for one in cases)) for tag in ("failure", "error", "skipped")}
    made = ET.Element(
        "testsuite",
        {
            "name": name,
            "package": package,
            "id": str(index),
            "timestamp": fleet.time.removesuffix("Z"),
            "hostname": name,
            "tests": str(len(cases)),
            "failures": counts["failure"],
            "errors": counts["error"],
            "skipped": counts["skipped"],
            "time": "0",
        },
    )
    properties = ET.SubElement(made, "properties")
    for key, value in (("run", TITLES[fleet.kind]), ("state", host.state), *host.cells.items()):
        if value:
            ET.SubElement(properties, "property", {"name": key, "value": safe(value)})
    made.extend(cases)
    ET.SubElement(made, "system-out").text = safe(
        "\n".join(f"{one.message} {one.remedy}".strip() for one in host.warnings)
    )
    ET.SubElement(made, "system-err").text = ""
    return made


def case(package: str, name: str, what: str, host: Host | None = None) -> ET.Element:
    """Return a testcase; with ``host`` that of its result."""
    # CI systems split a classname at its dots.
    one = ET.Element("testcase", {"name": safe(what), "classname": f"{package}.{name.replace('.', '_')}", "time": "0"})
    if host is not None and not host.good:
        tag = "error" if host.state in NO_ANSWER else "failure"
        problem(one, tag, host.state, host.why.message, details(host))
    return one


def details(host: Host) -> str:
    """Return the reasons and remedies of a host that failed."""
    texts = [host.why, *host.refusals]
    lines = [f"task: {host.failed_task}"] if host.failed_task else []
    for one in dict.fromkeys(texts):
        lines += [one.message] + ([f"Remedy: {one.remedy}"] if one.remedy else [])
    return "\n".join(lines)


def problem(one: ET.Element, tag: str, kind: str, message: str, text: str) -> None:
    """Add a failure or an error to a testcase."""
    ET.SubElement(one, tag, {"type": safe(kind), "message": safe(message)}).text = safe(text)
