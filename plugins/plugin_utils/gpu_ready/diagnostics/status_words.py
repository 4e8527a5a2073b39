"""Words with which programs report a status (catalog/status_words.yml): NV_ERR_IN_USE, DeadlineExceeded, EBUSY, 802."""

import re
from re import Pattern
from typing import NamedTuple

from ..catalog import messages as data
from .message_table import literal

NONE = "none"
"""The action of words that mean nothing by themselves."""


class StatusWord(NamedTuple):
    """One word of a vocabulary, at its ``position`` in a line. ``action``: a key of the catalog's ``actions``."""

    vocabulary: str
    word: str
    means: str
    action: str
    position: int

    @property
    def shown(self) -> str:
        """The vocabulary and the word as people know it."""
        name = str(data.STATUS_WORDS["vocabularies"][self.vocabulary]["name"])
        prefix = {"nv_status": "NV_", "nvml": "NVML_ERROR_", "cuda": "CUDA_ERROR_", "dcgm": "DCGM_ST_"}
        return "%s %s%s" % (name, prefix.get(self.vocabulary, ""), self.word)


class Vocabulary(NamedTuple):
    """The compiled rows of one vocabulary."""

    name: str
    forms: tuple[Pattern[str], ...]
    texts: tuple[tuple[str, Pattern[str], str], ...]
    words: dict[str, tuple[str, str]]
    numbers: dict[int, str]
    only: tuple[str, ...]
    base: int


def _read(name: str, row: dict[str, object]) -> Vocabulary:
    words: dict[str, list[object]] = row["words"]  # type: ignore[assignment]
    texts = [(literal(str(one[3])), re.compile(str(one[3])), word) for word, one in words.items() if len(one) > 3]
    return Vocabulary(
        name,
        tuple(re.compile(str(form)) for form in row["forms"]),  # type: ignore[attr-defined]
        tuple(texts),
        {word: (str(one[1]), str(one[2])) for word, one in words.items()},
        {int(str(one[0])): word for word, one in words.items() if one[0] is not None},
        tuple(row.get("only", ())),  # type: ignore[arg-type]
        10 if row.get("hex") is False else 16,
    )


VOCABULARIES = [_read(name, row) for name, row in data.STATUS_WORDS["vocabularies"].items()]
"""The more special ones first."""


def find(line: str, program: str | None) -> list[StatusWord]:
    """Return the status words of a line, those of special vocabularies first, in one vocabulary the last word first.

    Programs put the cause of a failure behind its consequences.
    """
    found: list[StatusWord] = []
    small = line.lower()
    for one in VOCABULARIES:
        here: dict[str, int] = {}
        for form in one.forms:
            for match in form.finditer(line):
                groups = match.groupdict()
                if groups.get("word"):
                    here[groups["word"]] = match.start()
                elif groups.get("number") and (not one.only or program in one.only):
                    word = one.numbers.get(int(groups["number"], one.base))
                    if word:
                        here[word] = match.start()
        for words, pattern, word in one.texts:
            place = pattern.search(line) if words in small else None
            if place:
                here.setdefault(word, place.start())
        rows = [
            StatusWord(one.name, word, one.words[word][1], one.words[word][0], at)
            for word, at in here.items()
            if word in one.words
        ]
        found += sorted(rows, key=lambda row: -row.position)
    return [row for row in found if row.action != NONE]
