"""The timeline of a rollout on its page: the phases of all runs within the chart."""

from __future__ import annotations

from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.fleet_report import (
    model,
    timeline,
)

from tests.unit import fleet_reports
from tests.unit.fleet_reports import site

# ---- the timeline ----------------------------------------------------------------------------------------------------


def test_the_timeline_has_the_phases_of_all_runs_within_the_chart() -> None:
    chart = timeline.timeline(fleet_reports.upgrade())
    assert chart is not None and len(chart["labels"]) == 21 and timeline.timeline(site()) is None
    assert all(bar["x"] >= timeline.LEFT and bar["x"] + bar["width"] <= timeline.WIDTH + 1 for bar in chart["bars"])
    assert chart["lost"] == ["gpu-node-0010"]
    assert [one["label"] for one in chart["runs"]] == ["run 2"] and chart["runs"][0]["operator"] == "bob@control"
    resumed = [bar["title"].partition(", ")[2] for bar in chart["bars"] if bar["title"].startswith("gpu-node-0011:")]
    assert len(resumed) == 8
    colours = [bar["colour"] for bar in chart["bars"] if bar["title"].startswith("gpu-node-0011:")]
    assert colours == ["drain", "wait", "drain", "drain", "switch", "verify", "return", "soak"]
    assert {colour for colour, _ in chart["legend"]} == {"drain", "switch", "verify", "return", "soak", "back", "wait"}


def test_the_bars_of_a_host_are_as_long_as_it_was_out_of_service() -> None:
    """A host whose turn was interrupted and resumed: both turns, and the wait between them."""
    turns = [
        model.Turn(1, 100, None, "", [("draining", 100), ("switching", 120)]),
        model.Turn(2, 300, 400, "upgraded", [("draining", 300), ("switching", 310), ("verified", 390)]),
    ]
    found = timeline.segments(turns, 400)
    assert [(one.colour, one.began, one.ended) for one in found] == [
        ("drain", 100, 120), ("wait", 120, 300), ("drain", 300, 310), ("switch", 310, 390), ("return", 390, 400),
    ]  # fmt: skip
    assert [one.colour for one in timeline.segments(turns[:1], 150)] == ["drain", "switch"], "it is still at work"


def test_a_weekend_between_two_runs_does_not_hide_the_turns() -> None:
    scale = timeline.Scale([(0, 100), (200_000, 200_100)])
    assert scale.x(0) == timeline.LEFT and scale.x(200_100) == timeline.WIDTH
    assert scale.x(100) - scale.x(0) > 390 and len(scale.breaks) == 1
    assert scale.x(100) < scale.breaks[0] < scale.x(200_000)
    assert timeline.Scale([(0, 100), (104, 200)]).breaks == []


def test_the_timeline_names_the_days_of_a_rollout_over_midnight() -> None:
    report = fleet_reports.upgrade()
    same_day = timeline.timeline(report)
    assert same_day is not None and same_day["ticks"][0]["label"] == "01:53:20"
    first = report.hosts[0]
    turn = first.turns[0]._replace(
        began=first.turns[0].began - 85800, ended=(first.turns[0].ended or 0) - 85800, phases=[]
    )
    chart = timeline.timeline(report._replace(hosts=[first._replace(turns=[turn]), *report.hosts[1:]]))
    assert chart is not None and chart["breaks"]
    assert chart["ticks"][0]["label"] == "2025-11-20 02:03"
    assert "2025-11-20 02:03 to 2025-11-20 02:05" in chart["bars"][0]["title"]
