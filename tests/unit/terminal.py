"""What stays on a terminal of what a program wrote: carriage returns, erasures and the cursor up, which are all we use."""

from __future__ import annotations

import re

ESCAPE = re.compile(r"\x1b\[([0-9;]*)([A-Za-z])")


def on_screen(text: str) -> list[str]:
    """Return the lines of the terminal, without the blanks at their ends."""
    rows, row, column, index = [""], 0, 0, 0
    while index < len(text):
        found = ESCAPE.match(text, index)
        index = found.end() if found else index + 1
        if found and found[2] == "K":
            rows[row] = ""
        elif found and found[2] == "J":
            rows[row:] = [rows[row][:column]]
        elif found and found[2] == "A":
            row -= int(found[1])
            assert row >= 0, "above the first line"
        elif found:
            assert found[2] == "m", found[0]
        elif text[index - 1] == "\r":
            column = 0
        elif text[index - 1] == "\n":
            row, column = row + 1, 0
            rows += [""] * (row == len(rows))
        else:
            line = rows[row].ljust(column)
            rows[row] = line[:column] + text[index - 1] + line[column + 1 :]
            column += 1
    return [line.rstrip() for line in rows]
