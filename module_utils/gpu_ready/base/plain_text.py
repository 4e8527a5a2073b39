"""Texts of hosts and of their users as a terminal and a report may show them."""

import re

CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u115f\u1160\u17b4\u17b5"
    "\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
"""C0 except tab and newline, DEL, C1, separators of lines, and halves of surrogate pairs, which no encoding writes
(general categories Cc, Zl, Zp, Cs); and what shows nothing: the category Cf, the property Default_Ignorable_Code_Point
(DerivedCoreProperties.txt of Unicode 16), and letters and signs that are blank (U+2800, U+16FE4, U+1D159).

A terminal obeys C0 and C1: ECMA-48, and OSC 52 of xterm's ctlseqs, which sets the clipboard. The ranges are written
out, so that hosts with an older Unicode replace the same characters; a test computes them again.
"""


def plain_text(text: str) -> str:
    """Return the text with a question mark in place of each of these characters; tabs and newlines stay."""
    return CONTROLS.sub("?", text)
