"""The matrix of `nvidia-smi topo -m`: how GPUs reach one another, and which of them have fewer NVLinks than others."""

import re
from typing import Any, NamedTuple

from . import message_table
from .message_table import NVIDIA_SMI, Explanation
from .text_lines import Line, lines_of

NAME = re.compile(r"^GPU\d{1,3}$")
CELL = re.compile(r"^(?:X|SYS|NODE|PHB|PXB|PIX|PSB|N/A|NV\d{1,3})$")
"""Cells of the connection matrix (legend of nvidia-smi 384 to 595). `topo -p2p` has other values (OK, NS, CNS ...)."""


class Topology(NamedTuple):
    """``links``: the NVLinks between two GPUs, by their names; 0 for none. ``others``: NICs and the like."""

    gpus: list[str]
    others: list[str]
    links: dict[tuple[str, str], int]
    ways: list[str]
    lines: dict[str, int]

    def most(self, gpu: str) -> int:
        """Return the NVLinks of a GPU to the GPU that it has most of them to."""
        return max([self.links[gpu, other] for other in self.gpus if other != gpu] or [0])

    def total(self, gpu: str) -> int:
        """Return the NVLinks of a GPU to all others."""
        return sum(self.links[gpu, other] for other in self.gpus if other != gpu)


def read(text: str) -> Topology | None:
    """Read the matrix; None where there is none, or not the whole one."""
    lines = lines_of(text)
    start = next((place for place, line in enumerate(lines) if is_head(line.text)), None)
    if start is None:
        return None
    words = re.split(r"\s(?:CPU|NUMA) |\sGPU NUMA ", lines[start].text + " ")[0].split()
    gpus = [word for word in words if NAME.match(word)]
    rows = dict(row for row in (cells(line, words) for line in lines[start + 1 :]) if row)
    if not gpus or any(gpu not in rows or rows[gpu][1][gpu] != "X" for gpu in gpus):
        return None
    found = {(one, other): rows[one][1][other] for one in gpus for other in gpus if one != other}
    if any(found[one, other] != found[other, one] for one, other in found):
        return None  # damaged, or several matrices
    links = {pair: int(cell[2:]) if cell.startswith("NV") else 0 for pair, cell in found.items()}
    ways = [cell for cell in dict.fromkeys(found.values()) if not cell.startswith("NV")]
    others = [word for word in words if word not in gpus]
    return Topology(gpus, others, links, ways, {gpu: rows[gpu][0].number for gpu in gpus})


def is_head(text: str) -> bool:
    """Return True for the line with the names of the columns: a row has a cell behind its name."""
    words = text[:2000].split()
    return bool(words) and NAME.match(words[0]) is not None and not any(CELL.match(word) for word in words[1:2])


def cells(line: Line, words: list[str]) -> tuple[str, tuple[Line, dict[str, str]]] | None:
    """Return a row of the matrix: its name, and its cells by the names of the columns."""
    parts = line.text.split()
    values = parts[1 : 1 + len(words)]
    if not parts or parts[0] not in words or len(values) < len(words) or not all(map(CELL.match, values)):
        return None
    return parts[0], (line, dict(zip(words, values)))  # noqa: B905 - Python 3.6


def find_fewer_links(found: Topology) -> list[str]:
    """Return the GPUs with fewer NVLinks than others.

    To the GPU that they have most to; where these are equal, to all.
    """
    most = {gpu: found.most(gpu) for gpu in found.gpus}
    if len(set(most.values())) > 1:
        return [gpu for gpu in found.gpus if most[gpu] < max(most.values())]
    totals = [found.total(gpu) for gpu in found.gpus]
    usual = max(totals, key=lambda number: (totals.count(number), number))
    return [gpu for gpu in found.gpus if found.total(gpu) < usual]


def problems(text: str) -> list[Explanation]:
    """Return GPUs without NVLinks that others have; nothing where no GPU has any.

    The text does not show that one should.
    """
    found = read(text)
    entry = next(entry for entry in message_table.table(NVIDIA_SMI) if entry.code == "nvlink_missing")
    if found is None or not any(found.links.values()):
        return []
    explained = []
    for gpu in find_fewer_links(found):
        cause = "%s: %s has %s" % (entry.cause, gpu, describe_links(found, gpu))
        line = found.lines[gpu]
        quote = next(" ".join(one.text.split()) for one in lines_of(text) if one.number == line)
        explained.append(
            Explanation(
                entry.code, cause, entry.remedy, gpu, quote, line, entry.severity, entry.confidence, entry.action
            )
        )
    return explained


def describe_links(found: Topology, gpu: str) -> str:
    """Compare the NVLinks of a GPU with the GPU that has the most."""
    best = max(found.gpus, key=lambda one: (found.most(one), found.total(one)))
    if found.most(gpu) < found.most(best):
        return "%d to another GPU, %s has %d" % (found.most(gpu), best, found.most(best))
    return "%d to all others together, %s has %d" % (found.total(gpu), best, found.total(best))


def as_dict(found: Topology) -> dict[str, Any]:
    """Return the matrix for JSON: by GPU its NVLinks to the other GPUs."""
    links = {one: {other: found.links[one, other] for other in found.gpus if other != one} for one in found.gpus}
    return {"gpus": found.gpus, "others": found.others, "nvlinks": links}


def describe(found: Topology) -> list[str]:
    """Return what the matrix shows."""
    count = "%d GPU%s" % (len(found.gpus), "" if len(found.gpus) == 1 else "s")
    numbers = set(found.links.values())
    if not numbers or numbers == {0}:
        ways = " (%s)" % ", ".join(found.ways) if found.ways else ""
        return [
            "nvidia-smi topo shows %s without NVLink between them%s. Whether they should have it, the text does not "
            "show: compare with the server's documents and with 'nvidia-smi nvlink -s'." % (count, ways)
        ]
    if 0 not in numbers:
        shown = " or ".join(str(number) for number in sorted(numbers))
        return ["nvidia-smi topo shows %s, every pair of them connected by NVLink (%s links)." % (count, shown)]
    pairs = len([number for number in found.links.values() if number]) // 2
    return ["nvidia-smi topo shows %s, %d pairs of them connected by NVLink." % (count, pairs)]
