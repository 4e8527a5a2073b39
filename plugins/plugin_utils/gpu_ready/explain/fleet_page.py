"""The page of ``gpu-explain fleet --format html``: one file that needs no other, and runs no script."""

from ...fleet_report.html_page import render
from ..catalog import model as catalog
from ..completion import complete
from . import fleet, fleet_compare

TONES = {"ready": "good", "planned": "warn", "refused": "bad", "no_gpu": "none"}


def page(answer: fleet.Answer) -> str:
    """Return the page."""
    return render(
        "fleet.html.j2",
        heading=fleet.heading(answer),
        totals=fleet.totals(answer),
        catalog=catalog.age_text(complete.today()),
        groups=answer.groups,
        outliers=answer.outliers,
        changes=answer.changes,
        unread=list(answer.planned.unread.values()),
        tones=TONES,
        names=fleet.names,
        steps_text=fleet_compare.steps_text,
    )
