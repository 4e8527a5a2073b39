"""The recording of the demo in the README: drawn from what a terminal got, without anything from elsewhere."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET

from rich.text import Text

from tools import demo_recording

DRAWING = demo_recording.DRAWING.read_text(encoding="utf-8")
MOST = 300_000


def cast(*events: tuple[float, str]) -> str:
    return "\n".join(["{}", *(json.dumps([at, "o", text]) for at, text in events)])


def test_what_was_overwritten_does_not_stay() -> None:
    recorded = cast((0.5, "$ run\r\n"), (1.0, "\r\x1b[2K1 of 2\r"), (9.0, "\x1b[2Ktwo "), (9.5, "parts\r\n"))
    assert list(demo_recording.lines_of(recorded)) == [("$ run", 0.5), ("two parts", 9.5)]


def test_pauses_are_shortened_and_long_lines_are_broken_as_by_the_terminal() -> None:
    lines = [demo_recording.Line("first", 0.5), demo_recording.Line("x" * (demo_recording.COLUMNS + 3), 600.0)]
    rows = list(demo_recording.rows_of(lines))
    assert [(row.plain[:5], delay) for row, delay in rows] == [("first", 0.5), ("xxxxx", 1.5), ("xxx", 1.5)]
    assert all(isinstance(row, Text) for row, _ in rows)


def test_the_drawing_is_that_of_the_recording() -> None:
    assert demo_recording.draw(demo_recording.CAST.read_text(encoding="utf-8")) == DRAWING


def test_the_drawing_is_small_and_loads_and_runs_nothing() -> None:
    assert len(DRAWING.encode()) < MOST
    names = {element.tag.rpartition("}")[2] for element in ET.fromstring(DRAWING).iter()}
    assert names <= {"svg", "style", "defs", "clipPath", "rect", "text", "circle", "g"}
    addresses = re.findall(r"[a-z]+://[^\s\"'<]+", DRAWING)
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "https://www.textualize.io"}
    assert set(re.findall(r"url\(([^)]*)\)", DRAWING.replace("&quot;", '"'))) and not re.search(r"url\([^#]", DRAWING)
