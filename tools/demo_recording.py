"""Record runs on lab hosts in a terminal, and draw the recording for the README.

usage: tools/demo_recording.py record     start the hosts, run COMMANDS on them, keep text and times in docs/demo.cast
       tools/demo_recording.py draw       draw docs/demo.svg from docs/demo.cast

The recording is an asciicast of version 2 (https://docs.asciinema.org/manual/asciicast/v2/); `asciinema play` shows it
at its real speed. Recording needs root, as every use of the lab. rich, which molecule needs, draws.
"""

import fcntl
import io
import json
import os
import pty
import re
import shlex
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / ".venv/bin"
CAST = ROOT / "docs/demo.cast"
DRAWING = ROOT / "docs/demo.svg"
FLEET = "demo"
COMMANDS = (f"ansible-playbook site.yml -i .lab/{FLEET}/gpu_hosts",) * 2
"""The second run shows what hosts in the desired state cost."""
CHECKOUT = "/home/admin/gpu-ready"
"""In place of the directory in which the recording was made."""
COLUMNS, ROWS = 150, 40
TITLE = "gpu-ready on five simulated hosts"
LONGEST_PAUSE = 1.0
"""Seconds in the drawing for a longer time in which the screen gained no line: drivers compile for minutes."""
FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
APPEAR = """
    @keyframes appear { from { visibility: hidden } to { visibility: visible } }
    .demo-matrix text { animation: appear 1ms backwards }
    @media (prefers-reduced-motion: reduce) { .demo-matrix text { animation: none } }
"""
"""Every line is visible where nothing is animated, for instance in print."""


class Line(NamedTuple):
    """A line that stays on the screen."""

    text: str
    """With the codes of its colours."""
    at: float
    """Seconds since the start at which it was complete."""


def run_in_terminal(argv: list[str]) -> Iterator[str]:
    """Run a program in a terminal of COLUMNS and ROWS and yield what it writes there."""
    terminal, program_end = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    program = subprocess.Popen(
        argv, stdin=program_end, stdout=program_end, stderr=program_end, cwd=ROOT, start_new_session=True
    )
    os.close(program_end)
    try:
        while data := os.read(terminal, 65536):
            yield data.decode(errors="replace")
    except OSError:  # EIO: nobody has the other end open any more (man 4 pts)
        pass
    finally:
        os.close(terminal)
        program.wait()


def record() -> None:
    """Write the recording of COMMANDS on the fleet, which is started before."""
    os.environ |= {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "TERM": "xterm-256color"}
    lab = [str(PROGRAMS / "python"), "-m", "gpu_ready_lab", "up", f"lab/fleets/{FLEET}.yml"]
    subprocess.run(lab, check=True, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT / "lab")})
    header = {"version": 2, "width": COLUMNS, "height": ROWS, "env": {"TERM": os.environ["TERM"]}}
    events: list[object] = [header]
    begun = time.monotonic()

    def write(text: str) -> None:
        events.append([round(time.monotonic() - begun, 2), "o", text])
        sys.stdout.write(text)
        sys.stdout.flush()

    for command in COMMANDS:
        write(f"$ {command}\r\n")
        for text in run_in_terminal(shlex.split(command)):
            write(text)
        write("\r\n")
    recorded = "".join(json.dumps(event) + "\n" for event in events)
    CAST.write_text(recorded.replace(str(ROOT), CHECKOUT), encoding="utf-8")


def lines_of(cast: str) -> Iterator[Line]:
    """Yield the lines that stay on the screen; what a carriage return or an erased line overwrote does not."""
    pending = ""
    for event in cast.splitlines()[1:]:
        at, _, text = json.loads(event)
        *complete, pending = (pending + text).split("\n")
        for line in complete:
            yield Line(re.split(r"\r|\x1b\[2K", line.rstrip("\r"))[-1].rstrip(), at)


def delays(lines: list[Line]) -> Iterator[float]:
    """Yield the seconds after which each line appears in the drawing."""
    before = now = 0.0
    for line in lines:
        now += min(line.at - before, LONGEST_PAUSE)
        before = line.at
        yield round(now, 2)


def rows_of(lines: list[Line]) -> Iterator[tuple[Text, float]]:
    """Yield the rows of the terminal, which breaks a long line at its edge, with their times in the drawing."""
    for line, delay in zip(lines, delays(lines), strict=True):
        text = Text.from_ansi(line.text)
        for row in text.divide(range(COLUMNS, len(text), COLUMNS)):
            yield row, delay


def draw(cast: str) -> str:
    """Return the recording as one SVG without links or scripts, in which every line appears when it did."""
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, color_system="256")
    style = APPEAR
    for number, (row, delay) in enumerate(rows_of(list(lines_of(cast)))):
        console.print(row, no_wrap=True)
        style += f'    [clip-path="url(#demo-line-{number})"] {{ animation-delay: {delay}s }}\n'
    drawn = console.export_svg(title=TITLE, theme=DIMMED_MONOKAI, unique_id="demo")
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)  # would load fonts from another server
    drawn = drawn.replace("Fira Code, monospace", FONT).replace("</style>", f"{style}</style>", 1)
    return "".join(line.rstrip() + "\n" for line in drawn.splitlines() if line.strip())


def main() -> int:
    if sys.argv[1:] == ["record"]:
        record()
    elif sys.argv[1:] == ["draw"]:
        DRAWING.write_text(draw(CAST.read_text(encoding="utf-8")), encoding="utf-8")
    else:
        print(__doc__, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
