"""Run nvidia-detect, ELRepo's program or Debian's, and parse its output."""

import re
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..base.host import TIMED_OUT, Host

DEVICE = re.compile(r"\[([0-9a-f]{4}):([0-9a-f]{4})\]\s*(.*)$", re.IGNORECASE)
ANSWER = re.compile(
    r"requires\s+the\s+(current|legacy)\s+(\S+)\s+NVIDIA\s+driver(?:[ \t]+(kmod-\S+|nvidia-\S+))?", re.IGNORECASE
)
OLD_ANSWER = re.compile(
    r"requires\s+the\s+(current|legacy)\s+NVIDIA\s+(\S+?)\s+driver(?:[ \t]+(kmod-\S+))?", re.IGNORECASE
)
PACKAGE = re.compile(r"^\W{0,40}(?:[\w.-]{1,253}:\s+)?(kmod-nvidia(?:-open|-latest|-\d+xx)?(?:-dkms)?)\W*$")
ELREPO = re.compile(
    r"Probing for supported NVIDIA|requires the (?:current|legacy)|No NVIDIA devices were found|"
    r"does not appear to be supported at present"
)
DEBIAN = re.compile(
    r"Detected NVIDIA GPUs|Checking driver support for PCI ID|Checking card:|No NVIDIA GPU detected|Your card is|"
    r"It is recommended to install|Error parsing PCI ID|Failed to identify your Debian suite"
)
CARD = re.compile(
    r"((?:[0-9a-f]{4,8}:)?[0-9a-f]{1,2}:[0-9a-f]{2}\.[0-7])\s+.{0,80}?\[(03[0-9a-f]{2})\]:\s+(.{0,200}?)\s{0,8}"
    r"\[(?:10de|12d2):([0-9a-f]{4})\]",
    re.IGNORECASE,
)
ASKED = re.compile(r"Checking driver support for PCI ID \[10de:([0-9a-f]{4})\]", re.IGNORECASE)
REMARK = re.compile(r"\s{2,}#.*$")
VENDOR = re.compile(r"^NVIDIA(?: Corporation)?(?=\s|$)\s*", re.IGNORECASE)


class DetectOutput(NamedTuple):
    """``tool`` is "elrepo", "debian", or None for a text of neither program."""

    tool: Optional[str]
    nvidia: List[Dict[str, Any]]
    branch: Optional[str] = None
    driver_version: Optional[str] = None
    package: Optional[str] = None
    other_display: Optional[List[str]] = None
    support: Optional[List[str]] = None
    newest_checked: Optional[str] = None

    def as_dict(self) -> Dict[str, Any]:
        """Return the fields that this tool prints."""
        if self.tool == "debian":
            found = {"tool": "debian", "nvidia": self.nvidia, "support": self.support, "package": self.package}
            return dict(found, newest_checked=self.newest_checked) if self.newest_checked else found
        return {
            "tool": self.tool,
            "nvidia": self.nvidia,
            "branch": self.branch,
            "driver_version": self.driver_version,
            "package": self.package,
            "other_display": self.other_display or [],
        }


def parse(text: str) -> DetectOutput:
    """Parse the output of either tool."""
    text = clean(text)
    if DEBIAN.search(text) and not ELREPO.search(text):
        return parse_debian(text)
    if ELREPO.search(text) or any(PACKAGE.match(line) for line in text.splitlines()) or DEVICE.search(text):
        return parse_elrepo(text)
    return DetectOutput(None, [])


def clean(text: str) -> str:
    """Remove traces of encodings, terminals, Markdown, comments, results, and host names."""
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|[\ufeff\x00\u200b`]|\*\*", "", text).replace("\u00a0", " ")
    if re.search(r"\\n\s*(?:\[[0-9a-f]{4}:|This device|Checking|Your card)", text):
        text = text.replace("\\n", "\n").replace("\\t", "\t")
    lines = [re.sub(r"^\s*(?:[>#|]+\s?)+|^\s*[\"']|[\"'],?$", "", line.rstrip()) for line in text.splitlines()]
    first = next((line.split(":")[0] + ":" for line in lines if re.match(r"^[\w.-]+:\s", line)), "\n")
    if all(line.startswith(first) for line in lines if line.strip()):
        lines = [line[len(first) :] for line in lines]
    return "\n".join(lines)


# --- ELRepo ------------------------------------------------------------------------------------------------------


def parse_elrepo(text: str) -> DetectOutput:
    """Return one answer per card, with -v below the card's line; without -v package names only."""
    cards: List[Dict[str, Any]] = []
    answers: List[Optional[Dict[str, Any]]] = []
    others: List[str] = []
    terse: List[str] = []
    for line in join_lines(text):
        device = DEVICE.search(line)
        answer = ANSWER.search(line) or OLD_ANSWER.search(line)
        package = PACKAGE.match(line)
        if answer:
            found = make_answer(answer.group(1), answer.group(2), answer.group(3))
            if answers and answers[-1] is None:
                answers[-1] = found
            else:
                answers.append(found)
        elif device and device.group(1).lower() == "10de":
            cards.append(
                {
                    "device_id": device.group(2).lower(),
                    "name": VENDOR.sub("", REMARK.sub("", device.group(3)).strip()).strip(),
                }
            )
            answers.append(None)
        elif device:
            others.append("%s:%s" % (device.group(1).lower(), device.group(2).lower()))
        elif package:
            terse.append(package.group(1))
    if not cards and terse and not any(answers):
        answers = [answer_of_package(name) for name in terse]
    distinct = {tuple(sorted((answer or NOTHING).items(), key=str)) for answer in answers}
    if len(distinct) == 1:
        same = answers[0] or NOTHING
        return DetectOutput("elrepo", cards, same["branch"], same["driver_version"], same["package"], others)
    if len(cards) == len(answers):
        pairs = zip(cards, answers)  # noqa: B905 - Python 3.6 has no strict=
        cards = [dict(card, **(answer or NOTHING)) for card, answer in pairs]
    return DetectOutput("elrepo", cards, None, None, None, others)


NOTHING: Dict[str, Optional[str]] = {"branch": None, "driver_version": None, "package": None}


def join_lines(text: str) -> List[str]:
    """Return the lines; those that a mail program wrapped are joined."""
    found: List[str] = []
    for line in text.splitlines():
        line = line.strip(" \t\"',>")
        starts = re.match(
            r"^(\S+:\s+)?(\[[0-9a-f]{4}:|This device|Probing|An Intel|No NVIDIA|Please|Version|\$)", line, re.I
        )
        last = found[-1] if found else ""
        unfinished = (
            (re.search(r"This device\s+(requires|does)", last) and not re.search(r"\bdriver\b|present", last))
            or re.search(r"This device$", last)
            or last.count("[") > last.count("]")
        )
        if found and line and not starts and unfinished:
            found[-1] = last + " " + line
        else:
            found.append(line)
    return found


def make_answer(kind: str, version: str, package: Optional[str]) -> Dict[str, Optional[str]]:
    return {"branch": branch_name(kind, version), "driver_version": version, "package": package}


def branch_name(kind: str, version: str) -> str:
    """current, 580xx, 96xx ..."""
    return "current" if kind.lower() == "current" else version.split(".")[0].lower().replace("xx", "") + "xx"


def answer_of_package(name: str) -> Dict[str, Optional[str]]:
    match = re.match(r"^kmod-nvidia-(\d+xx)$", name)
    return {"branch": match.group(1) if match else "current", "driver_version": None, "package": name}


# --- Debian ------------------------------------------------------------------------------------------------------

SERIES = re.compile(r"the Tesla (\d+) drivers? series", re.IGNORECASE)
LEGACY = re.compile(
    r"the (?:legacy )?([\d.]+)(?:xx)? legacy drivers? series|the legacy ([\d.]+)(?:xx)? drivers? series|"
    r"legacy drivers? series ([\d.]*\d)",
    re.IGNORECASE,
)
RECOMMENDED = re.compile(r"It is recommended to install the\s+([\w.+/:-]+)\s+package", re.IGNORECASE)
CHECKED = re.compile(r"Checking card:\s+(.*?)\s*(?:\(rev \w+\)|Your card|Uh oh|$)")
UNSERVED = re.compile(r"only available up to|not in any current|not supported by any")
NEWEST = re.compile(r"any driver version up to ([\d.]*\d)")


def parse_debian(text: str) -> DetectOutput:
    """Debian's program repeats the last package for a card without one; such a repetition does not count."""
    flat = re.sub(r"\s+", " ", text)
    cards = [
        {"slot": slot, "class": kind.lower(), "device_id": device.lower(), "name": VENDOR.sub("", name).strip()}
        for slot, kind, name, device in CARD.findall(flat)
    ]
    asked = [{"slot": None, "class": None, "device_id": one.lower(), "name": None} for one in ASKED.findall(flat)]
    newest = NEWEST.search(flat)
    parts = re.split(r"(?=Checking (?:card:|driver support for))", flat)
    cards = cards or asked or [unlisted_card(match.group(1)) for match in map(CHECKED.search, parts) if match]
    support: List[str] = []
    packages: List[str] = []
    for part in parts:
        words = support_words(part)
        support += [word for word in words if word not in support]
        recommended = RECOMMENDED.search(part)
        if recommended and words and not UNSERVED.search(part):
            packages.append(recommended.group(1))
    distinct = sorted(set(packages))
    package = distinct[0] if len(distinct) == 1 else None
    return DetectOutput(
        "debian", cards, package=package, support=support, newest_checked=newest.group(1) if newest else None
    )


def unlisted_card(name: str) -> Dict[str, Any]:
    """Return a card that is checked in a text without the list of cards."""
    return {"slot": None, "class": None, "device_id": None, "name": VENDOR.sub("", name).strip()}


def support_words(text: str) -> List[str]:
    """Return support levels in one card's part of the text."""
    found: List[str] = []
    for line in re.findall(r"Your card is (.*?)(?=Your card is|It is recommended|Uh oh|Checking |$)", text):
        only = "-only" if re.match(r"(?:also )?only\b", line) else ""
        if "not supported by any" in line:
            continue
        if "all driver versions" in line:
            found.append("all")
        elif "default driver" in line:
            found.append("default")
        if "Open GPU Kernel Module" in line:
            found.append("open")
        if "backports" in line and "may be available" not in line:
            found.append("backports")
        found += ["tesla-%s%s" % (number, only) for number in SERIES.findall(line)]
        found += ["legacy-%s%s" % ("".join(numbers), only) for numbers in LEGACY.findall(line)]
        if not SERIES.search(line) and re.search(r"the Tesla drivers?\b", line):
            found.append("tesla")
    return found


# --- running the program -----------------------------------------------------------------------------------------

PROGRAM = "nvidia-detect"
LIMIT = 60.0
"""Seconds for one run of the program."""


class DetectResult(NamedTuple):
    """(description, package or None) of each device. ``problem`` is a message if nvidia-detect could not be run."""

    devices: List[Tuple[str, Optional[str]]]
    problem: str = ""

    @property
    def packages(self) -> List[str]:
        """All packages that it names, each once."""
        return sorted({package for _device, package in self.devices if package})

    def lines(self) -> List[str]:
        """Return one line per device, for messages."""
        return ["%s: %s" % (device, package or "no package") for device, package in self.devices]


def run_nvidia_detect(host: Host) -> DetectResult:
    """Only standard output counts.

    ELRepo's exit status is an enum of branches, renumbered in March 2025, of the last device only. Its program lists
    devices with -v, which Debian's takes for a PCI ID, so the first run has no -v.
    """
    if host.which(PROGRAM) is None:
        return DetectResult([], "nvidia-detect is not installed. Install it from the repository of the driver")
    terse = host.run([PROGRAM], LIMIT)
    if terse.rc == TIMED_OUT:
        return DetectResult([], "nvidia-detect did not end within %g s. Run it on the host to see why" % LIMIT)
    if parse(terse.out).tool == "debian":
        return DetectResult(debian_devices(terse.out))
    verbose = elrepo_devices(host.run([PROGRAM, "-v"], LIMIT).out)
    return DetectResult(verbose or terse_devices(terse.out))


def elrepo_devices(text: str) -> List[Tuple[str, Optional[str]]]:
    """Return the output of ELRepo's program with -v; a blank or missing package (EL10, old cards) is None."""
    found = parse(text)
    return [
        ("10de:%s %s" % (card["device_id"], card["name"]), card.get("package", found.package)) for card in found.nvidia
    ]


def terse_devices(text: str) -> List[Tuple[str, Optional[str]]]:
    """Return the output of ELRepo's program without -v; a blank line is a device without package."""
    found = [(PACKAGE.match(line), line.strip()) for line in text.splitlines()]
    return [
        ("device %d" % number, match.group(1) if match else None)
        for number, (match, line) in enumerate(found, 1)
        if match or not line
    ]


def debian_devices(text: str) -> List[Tuple[str, Optional[str]]]:
    """Return the output of Debian's program; the repeated package of an unsupported card does not count."""
    flat = re.sub(r"\s+", " ", clean(text))
    found: List[Tuple[str, Optional[str]]] = []
    for part in re.split(r"(?=Checking (?:card:|driver support for))", flat)[1:]:
        card, asked = CHECKED.search(part), ASKED.search(part)
        name = VENDOR.sub("", card.group(1)) if card else "10de:" + asked.group(1).lower() if asked else "a device"
        recommended = None if UNSERVED.search(part) else RECOMMENDED.search(part)
        found.append((name, recommended.group(1) if recommended else None))
    return found


def find_disagreement(result: DetectResult, expect: List[str], gpus: List[str]) -> str:
    """Return the message with both choices if nvidia-detect names another package than ``expect``, else ""."""
    ours = "the catalog would install %s%s" % (" or ".join(expect), " for " + ", ".join(gpus) if gpus else "")
    remedy = "Nothing was changed. Set nvidia_driver_branch or nvidia_driver_source for this host"
    if result.problem:
        return "%s (%s)" % (result.problem, ours)
    if not result.devices:
        return "nvidia-detect finds no NVIDIA device, but %s. %s" % (ours, remedy)
    if all(package in expect for _device, package in result.devices):
        return ""
    return "nvidia-detect and the catalog disagree: nvidia-detect names %s; %s. %s" % (
        "; ".join(result.lines()), ours, remedy,
    )  # fmt: skip
