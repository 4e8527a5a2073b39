# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The output of a run: a terminal with a live line at the bottom, or plain lines."""

from __future__ import annotations

import functools
import os
import re
import shutil
import sys
import threading
from collections.abc import Callable
from typing import Any

from ansible import constants as C

from ...module_utils.gpu_ready.base.plain_text import CONTROLS, plain_text
from .lines import Line

TICK = 1.0
"""Seconds between updates of the live line while no event arrives."""
SILENCE = 60
"""Seconds without output after which a line says what runs, where there is no live line: a log, a CI job."""
NEXT = "\r\n"
"""A terminal is in no mode of ours, so both are written."""
COLOURS = re.compile(rf"(\x1b\[(?:{'|'.join(re.escape(code) for code in ['0', *C.COLOR_CODES.values()])})m)")
"""What Ansible writes around its coloured texts (ansible.utils.color.stringc)."""


class Screen:
    """The output: a terminal with a live line at the bottom, or plain lines."""

    def __init__(self, show: Callable[..., None], terminal: bool, now: Callable[[], float]) -> None:
        self.show = show
        self.terminal = terminal
        self.now = now
        self.shown = now()
        self.drawn: tuple[str, ...] = ()
        self.apart = False
        """Whether everything is written to stderr, because stdout has data for a program."""
        self.lock = threading.RLock()

    def show_lines(self, lines: list[Line], color: str | None = None) -> None:
        """Show lines; a live line only on a terminal."""
        with self.lock:
            for line in lines:
                if line.stays:
                    self.clear()
                    self.show(line.rendered(), color=color, stderr=self.apart)
                    self.shown = self.now()
                elif self.terminal:
                    self.draw(line)

    def tick(self, lines: list[Line]) -> None:
        """Draw the live line again; without a terminal, print it after a minute without output."""
        if self.terminal:
            self.redraw(lines)
        elif lines and self.now() - self.shown >= SILENCE:
            self.shown = self.now()
            self.write(f"  {plain_text(lines[-1].text)}\n")

    def redraw(self, lines: list[Line]) -> None:
        """Draw the live line again if one is on the screen and no other thread is writing."""
        if self.lock.acquire(blocking=False):
            try:
                if self.drawn and lines:
                    self.draw(lines[-1])
            finally:
                self.lock.release()

    def draw(self, line: Line) -> None:
        """Draw the live line, or the lines in place of it, and move the cursor to its start.

        Each is cut at the width of the terminal. A line that does not fit would leave a part of itself on the screen.
        """
        size = shutil.get_terminal_size()
        rows = line.block if 0 < len(line.block) < size.lines else (line.text,)
        rows = tuple(plain_text(row)[: size.columns - 1] for row in rows)
        if rows != self.drawn:
            up = f"\x1b[{len(rows) - 1}A" if len(rows) > 1 else ""
            self.write(f"{self.erasing()}{NEXT.join(rows)}{up}\r")
            self.drawn = rows

    def erasing(self) -> str:
        """Return what erases the live line, and the lines below it."""
        return "\r\x1b[J" if len(self.drawn) > 1 else "\r\x1b[2K"

    def clear(self) -> None:
        """Erase the live line."""
        with self.lock:
            if self.drawn:
                self.write(self.erasing())
                self.drawn = ()

    def write(self, text: str) -> None:
        """Write at once, past Python's buffer: its lock must not be held by the clock's thread when Ansible forks.

        Nothing waits in the buffer, since Ansible empties it after every line.
        """
        stream = sys.stderr if self.apart else sys.stdout
        os.write(stream.fileno(), text.encode(stream.encoding or "utf-8", "replace"))


def plain_but_colours(text: str) -> str:
    """Like :func:`plain_text`, without a change to the colours that Ansible put into the text."""
    if not CONTROLS.search(text):
        return text
    return "".join(part if COLOURS.fullmatch(part) else plain_text(part) for part in COLOURS.split(text))


def strip_controls(display: Any) -> None:
    """Let Ansible's one way to the terminal and the log show no control characters of hosts: warnings, differences too.

    Ansible itself escapes them in the results that it dumps, and nowhere else (2.16 to 2.21).
    """
    show = display.display
    if getattr(show, "strips_controls", False):
        return

    @functools.wraps(show)
    def show_plain(msg: str, *arguments: Any, **options: Any) -> Any:
        return show(plain_but_colours(msg), *arguments, **options)

    show_plain.strips_controls = True  # type: ignore[attr-defined]
    display.display = show_plain


class Ticker(threading.Thread):
    """Updates the time in the live line while no event arrives."""

    def __init__(self, tick: Callable[[], None]) -> None:
        super().__init__(name="gpu-ready-progress", daemon=True)
        self.tick = tick
        self.over = threading.Event()

    def run(self) -> None:
        """Tick until the run is over."""
        while not self.over.wait(TICK):
            self.tick()


def live_possible() -> bool:
    """True if the output is a terminal that can erase a line."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
