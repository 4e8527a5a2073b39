"""The page of ``gpu-explain fleet --format html``: one file that needs no other, and runs no script."""

import base64
import hashlib
from pathlib import Path
from typing import Any

from ....module_utils.gpu_ready.base.plain_text import plain_text
from . import fleet, fleet_compare

TEMPLATES = Path(__file__).resolve().parents[2] / "fleet_report/templates"
TONES = {"ready": "good", "planned": "warn", "refused": "bad", "no_gpu": "none"}


def page(answer: fleet.Answer) -> str:
    """Return the page."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    style = (TEMPLATES / "page.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    environment: Any = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    shown = environment.get_template("fleet.html.j2").render(
        heading=fleet.heading(answer),
        totals=fleet.totals(answer),
        groups=answer.groups,
        outliers=answer.outliers,
        changes=answer.changes,
        unread=list(answer.planned.unread.values()),
        tones=TONES,
        names=fleet.names,
        steps_text=fleet_compare.steps_text,
        style=Markup(style),  # noqa: S704 a file of this package
        style_hash=Markup("'sha256-%s'" % digest),  # noqa: S704 a checksum
    )
    return plain_text(shown)
