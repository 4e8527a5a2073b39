"""Real outputs of the shared corpus, read in place: every field that its index expects."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready.diagnostics import messages, text_lines
from gpu_ready.explain import cli as explain

from tests.grid import CAMPAIGN

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FLAGS = {
    "powered_off", "sriov_vf", "tegra", "wsl", "vgpu_host", "well_formed", "smi_version", "gpu_elements", "error",
    "name_truncated",
}  # fmt: skip


def entries() -> list[Any]:
    index = CORPUS / "index.yaml"
    if not index.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{index} is absent"))]
    data = yaml_load(index.read_text())
    rows = data if isinstance(data, list) else data["samples"]
    return [pytest.param(row, id=row["file"]) for row in rows]


def differences(expected: Any, found: Any, path: str = "") -> list[str]:
    """Compare what is asked for; notes and free text are not part of a reading."""
    if isinstance(expected, dict):
        if not isinstance(found, dict):
            return [f"{path}: {found!r} is no mapping"]
        keys = set(expected) - {"note", "base", "problem", "docker_error", "docker_starts", "action"}
        wrong = [line for key in sorted(keys) for line in differences(expected[key], found.get(key), f"{path}.{key}")]
        return wrong + [f"{path}.{flag}: unasked" for flag in sorted(FLAGS & set(found) - set(expected))]
    if isinstance(expected, list):
        if not isinstance(found, list) or len(found) != len(expected):
            return [f"{path}: {found!r} instead of {expected!r}"]
        return [
            line
            for position, (one, other) in enumerate(zip(expected, found, strict=True))
            for line in differences(one, other, f"{path}[{position}]")
        ]
    return [] if expected == found else [f"{path}: {found!r} instead of {expected!r}"]


@pytest.mark.parametrize("entry", entries())
def test_the_reading_is_the_expected_one(entry: dict[str, Any]) -> None:
    kind = explain.KINDS[explain.kind_of(entry["kind"])]
    answer = kind.read((CORPUS / entry["file"]).read_bytes())
    assert differences(entry["expected"], answer) == []
    assert all(kind.describe(answer))
    json.dumps(answer)


def is_understandable(quote: str, before: str) -> bool:
    """True if a quote begins where a reader can begin: at a line, a clause, a program's message or with dots."""
    if quote.startswith("..."):
        return quote[3].isalnum()
    if quote[0] in ",;)]}" or re.match(r"[^\[({\"]{0,80}[)\]}]", quote):
        return False  # the end of a list that began before it
    at_line = not before.strip(" \t>|*+-") or before.endswith("\n")
    if quote[0].isdigit() and not at_line:
        return False
    return (
        at_line
        or re.search(r"(?:[:;.!?\]>)] |[=:(\[] ?\\*\"|[\u3002\uff01\uff1f\uff1b\uff1a>]) *$", before) is not None
    )


@pytest.mark.parametrize("entry", entries())
def test_a_quote_begins_where_a_reader_can_begin(entry: dict[str, Any]) -> None:
    """For every text as every kind, since people name the wrong one."""
    text = explain.text_of((CORPUS / entry["file"]).read_bytes())
    lines = "\n".join(" ".join(line.text.split()) for line in text_lines.lines_of(text))
    flat = lines.replace("\n", " ")
    for kind in messages.KINDS:
        for found in messages.explain(kind, text):
            quote = found.message or ""
            assert quote, found
            # A broken message is joined without the heads of its lines, so its beginning counts.
            place = next(
                (flat.find(quote.lstrip(".")[:size]) for size in (60, 25, 12) if quote.lstrip(".")[:size] in flat), -1
            )
            assert place >= 0, (kind, quote)
            assert is_understandable(quote, lines[:place]), (kind, lines[max(0, place - 40) : place], quote)


@pytest.mark.parametrize("entry", entries())
def test_a_sample_that_is_cut_anywhere_breaks_no_reader(entry: dict[str, Any]) -> None:
    kind = explain.KINDS[explain.kind_of(entry["kind"])]
    data = (CORPUS / entry["file"]).read_bytes()
    if data[:2] == b"\x1f\x8b":
        pytest.skip("an archive that is cut is refused with a sentence")
    for part in range(1, 8, 1 if CAMPAIGN else 3):
        answer = kind.read(data[: len(data) * part // 8])
        assert kind.describe(answer)
        assert kind.describe(kind.read(data[len(data) * part // 8 :]))
        json.dumps(answer)
