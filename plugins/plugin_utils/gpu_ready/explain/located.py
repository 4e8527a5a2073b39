"""Lines of `gpu-explain read`: each names the line of the text that it is from."""

import re
from typing import Any

from ..diagnostics.text_lines import lines_of


def capitalized(message: str) -> str:
    """Names of programs at the beginning (nvidia-smi) stay as they are."""
    return message if "-" in message.split()[0] else message[:1].upper() + message[1:]


def at(line: int | None, message: str, *marks: str) -> str:
    """Return a line of output with the line of the text and marks such as "warning"; without either as it is."""
    where = "Line %d" % line if line else ""
    shown = " ".join(part for part in (where, "(%s)" % ", ".join(marks) if marks else "") if part)
    return "%s: %s" % (shown, capitalized(message)) if shown else capitalized(message)


class Locator:
    """Finds the lines of a text that values of a reading stand on."""

    def __init__(self, text: str) -> None:
        self.lines = lines_of(text)

    def find(self, word: str | None, after: int = 0) -> int | None:
        """Return the first line behind ``after`` that contains a value as a whole word, else within one.

        None for none.
        """
        small = (word or "").lower()
        lines = [line for line in self.lines if small and line.number > after and small in line.text.lower()]
        pattern = re.compile(r"(?<!\w)%s(?!\w)" % re.escape(small), re.IGNORECASE)
        return next((line.number for line in lines if pattern.search(line.text)), lines[0].number if lines else None)

    def values(self, answer: dict[str, Any], keys: list[str]) -> dict[str, int]:
        """Return the lines of an answer's values, by key; a value that is composed or absent has none."""
        found = {key: self.find(answer[key]) for key in keys if isinstance(answer.get(key), str)}
        return {key: line for key, line in found.items() if line is not None}

    def rows(self, rows: list[dict[str, Any]], keys: list[str]) -> list[dict[str, Any]]:
        """Return rows with the line of the first of their values that is found, in the order of the text."""
        located, last = [], 0
        for row in rows:
            words = [row[key] for key in keys if isinstance(row.get(key), str) and row[key]]
            lines = [self.find(word, last) or self.find(word) for word in words]
            line = next((line for line in lines if line), None)
            last = line or last
            located.append(dict(row, line=line))
        return located
