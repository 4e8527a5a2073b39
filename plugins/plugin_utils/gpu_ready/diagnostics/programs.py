"""Which program wrote a line of a pasted text (catalog/programs.yml), and which one called the others."""

import re
from re import Pattern
from typing import NamedTuple

from ..catalog import messages as data
from .text_lines import Line

TAG = re.compile(r"(?:^|[\s>|\"'])([A-Za-z][\w./@-]{1,60})(?:\[\d{1,10}\]|\(\d{1,10}\))?:(?=\s|$)")
"""A name before a colon, or before a process id and a colon: syslog, journald, and programs that name themselves."""
LONGEST = 2_000
"""Characters of a line in which the words of a program are looked for: some patterns try again at each of them."""
BEGINNING = 160
"""Characters of a line within which a tag may be."""
LOGGED = re.compile(
    r"\b[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+|\blevel=\w+|^\[?\d{4}[-/]\d\d[-/]\d\d[T ]|^\{\""
    r"|\[(?:ERROR|WARN\w*|FATAL|INFO)\]"
)
"""Forms of klog, logrus and others: a line of one names its program at times only."""
GENERAL = ("systemd", "kubelet", "engine", "kernel", "framework", "modprobe")
"""Programs that write about others: they do not decide whose the lines without a name are."""


class Program(NamedTuple):
    """A row of catalog/programs.yml. ``kind``: of `gpu-explain read`; None: rows of section ``service``."""

    key: str
    name: str
    kind: str | None
    about: str | None
    log: str
    check: str | None
    tags: Pattern[str] | None
    lines: tuple[Pattern[str], ...]

    @property
    def short(self) -> str:
        """The name without what it is."""
        return self.name.partition(" (")[0]


def _read(key: str, row: dict[str, str | list[str] | None]) -> Program:
    tags, lines = row.get("tags"), row.get("lines")
    named = re.compile("(?:%s)$" % "|".join(tags), re.IGNORECASE) if isinstance(tags, list) else None
    patterns = tuple(re.compile(one) for one in lines) if isinstance(lines, list) else ()
    kind, about, check = (str(row[name]) if row.get(name) else None for name in ("kind", "about", "check"))
    return Program(key, str(row["name"]), kind, about, str(row["log"]), check, named, patterns)


PROGRAMS: dict[str, Program] = {key: _read(key, row) for key, row in data.PROGRAMS.items()}


def program_of(line: str) -> str | None:
    """Return the program that a line names, by its tag first."""
    named, line = None, line[:LONGEST]
    for place in TAG.finditer(line[:BEGINNING]):  # the last one is the program whose words another one passes on
        tag = re.sub(r"\.(?:service|path|socket)$", "", place.group(1).rpartition("/")[2])
        named = next((one.key for one in PROGRAMS.values() if one.tags and one.tags.match(tag)), named)
    if named and named not in GENERAL:
        return named
    found = (one.key for one in PROGRAMS.values() if any(pattern.search(line) for pattern in one.lines))
    special = next((key for key in found if named is None or key not in GENERAL), None)
    return special if special and named != "kernel" else named


def tag_of(line: str) -> str | None:
    """Return the name with which an unknown program tags its line, None where there is none."""
    found = OWN_TAG.match(line)
    return None if found is None or LEVEL.match(found.group(1)) else found.group(1)


OWN_TAG = re.compile(
    r"(?:\w{3} [ \d]\d [\d:]{8} \S{1,80} |\d{4}-\d\d-\d\dT\S{1,40} \S{1,80} )?"
    r"([A-Za-z][\w./@-]{1,40})(?:\[\d{1,10}\])?: "
)
LEVEL = re.compile(
    r"(?:error|err|fatal|warn(?:ing)?|info|debug|crit(?:ical)?|alert|notice|note|panic|remedy|hint)$", re.IGNORECASE
)


SHORT = 400
"""Lines of a text up to which all of them are looked at closely; of longer ones only the marked ones are."""


def programs_of(lines: list[Line], marked: set[int]) -> dict[int, str | None]:
    """Return the program of each line, by its number; of a long text only of the marked lines.

    A line without a name has that of the line before it if it continues that one; a line of a log that of the last line
    before it which names a program that has a log, or of the first one behind it.
    """
    found: list[str | None] = []
    lines = lines if len(lines) <= SHORT else [line for line in lines if line.number in marked]
    for line in lines:
        # `systemctl status` indents what it says of a unit; that text names other programs.
        key = found[-1] if found and found[-1] and line.text[:4] == "    " else program_of(line.text)
        found.append(found[-1] if key is None and found and line.text[:1] in (" ", "\t") else key)
    keys = [key for key in found if key and key not in GENERAL]
    last = keys[0] if keys else None
    programs = {}
    for line, key in zip(lines, found, strict=True):
        last = key if key and key not in GENERAL else last
        programs[line.number] = last if key is None and LOGGED.search(line.text) else key
    return programs


CALLERS = (
    ("enroot", re.compile(r"\bpyxis: |/etc/enroot/|\benroot\b|^slurmstepd: ", re.MULTILINE)),
    ("incus", re.compile(r"\bincusd?\b|^lxc \S+ \d{14}|/lxc[/.]|\blxd\b|\bliblxc\b|src/lxc/", re.MULTILINE)),
    ("kata", re.compile(r"\bkata\b|nvidia\.com/pgpu|\bcold plug", re.IGNORECASE)),
    ("operator", re.compile(r"/usr/local/nvidia/toolkit|\bopenshift\b|gpu-operator", re.IGNORECASE)),
    ("crio", re.compile(r"\bcri-?o\b", re.IGNORECASE)),
    ("podman", re.compile(r"\bpodman\b|\blibpod\b|\bbuildah\b|Error: (?:crun|setting up CDI)", re.IGNORECASE)),
    ("k3s", re.compile(r"\bk3s\b|\brke2\b|/var/lib/rancher", re.IGNORECASE)),
    ("kubelet", re.compile(r"\bkubelet\b|FailedCreatePodSandBox|RunPodSandbox|containerd task", re.IGNORECASE)),
    ("docker", re.compile(r"\bdocker\b|Error response from daemon", re.IGNORECASE)),
)


def caller(text: str) -> str | None:
    """Return who called NVIDIA's container programs: remedies differ, as each has its own configuration."""
    return next((name for name, pattern in CALLERS if pattern.search(text)), None)
