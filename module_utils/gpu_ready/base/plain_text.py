"""Texts of hosts and of their users as a terminal and a report may show them."""

import re

CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
    "\ud800-\udfff]"
)
"""C0 except tab and newline, DEL, C1, separators of lines, what changes the direction of text or shows nothing (Unicode
15, general categories Cc, Cf, Zl, Zp), and halves of surrogate pairs, which no encoding writes.

A terminal obeys C0 and C1: ECMA-48, and OSC 52 of xterm's ctlseqs, which sets the clipboard.
"""


def plain_text(text: str) -> str:
    """The text with a question mark in place of each control character; tabs and newlines stay."""
    return CONTROLS.sub("?", text)
