"""Real outputs of programs: every field that the index of the samples expects."""

import json
import re
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import messages, text_lines
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from tests.corpus.samples import OWN, SAMPLES, Sample
from tests.grid import CAMPAIGN

FLAGS = {
    "powered_off", "sriov_vf", "tegra", "wsl", "vgpu_host", "well_formed", "smi_version", "gpu_elements", "error",
    "name_truncated",
}  # fmt: skip


every_sample = pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)


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


@every_sample
def test_the_reading_is_the_expected_one(sample: Sample) -> None:
    kind = explain.KINDS[explain.kind_of(sample.kind)]
    answer = kind.read(sample.path.read_bytes())
    assert differences(sample.expected, answer) == []
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
        or re.search(r"(?:[:;.!?\]>)] |\\n|[=:(\[] ?\\*\"|[\u3002\uff01\uff1f\uff1b\uff1a>]) *$", before) is not None
    )


@every_sample
def test_a_quote_begins_where_a_reader_can_begin(sample: Sample) -> None:
    """For every text as every kind, since people name the wrong one."""
    text = explain.text_of(sample.path.read_bytes())
    lines = "\n".join(" ".join(line.text.split()) for line in text_lines.lines_of(text))
    flat = lines.replace("\n", " ")
    for kind in messages.KINDS:
        for found in messages.explain(kind, text):
            quote = found.message or ""
            assert quote, found
            field = re.fullmatch(r"[a-z_0-9/]+=([^;]+).*", quote)
            if field:  # a value of nvidia-smi, in one spelling for all its forms
                assert field.group(1) in text.splitlines()[(found.line or 0) - 1]
                continue
            # A broken message is joined without the heads of its lines, so its beginning counts.
            place = next(
                (flat.find(quote.lstrip(".")[:size]) for size in (60, 25, 12) if quote.lstrip(".")[:size] in flat), -1
            )
            assert place >= 0, (kind, quote)
            assert is_understandable(quote, lines[:place]), (kind, lines[max(0, place - 40) : place], quote)


@every_sample
def test_a_sample_that_is_cut_anywhere_breaks_no_reader(sample: Sample) -> None:
    kind = explain.KINDS[explain.kind_of(sample.kind)]
    data = sample.path.read_bytes()
    if data[:2] == b"\x1f\x8b":
        with pytest.raises(ValueError, match="the archive cannot be read"):
            kind.read(data[: len(data) // 2])
        return
    for part in range(1, 8, 1 if CAMPAIGN else 3):
        answer = kind.read(data[: len(data) * part // 8])
        assert kind.describe(answer)
        assert kind.describe(kind.read(data[len(data) * part // 8 :]))
        json.dumps(answer)


OWN_SAMPLES = [sample for sample in SAMPLES if sample.path.parent.parent == OWN]


def test_every_file_is_in_the_index() -> None:
    assert {sample.path for sample in OWN_SAMPLES} == set(OWN.glob("[a-z]*/*"))


@pytest.mark.parametrize("kind", [kind for kind in explain.KINDS if kind != "auto"])
def test_every_kind_has_samples_with_and_without_a_fault(kind: str) -> None:
    own = [sample for sample in OWN_SAMPLES if explain.kind_of(sample.kind) == kind]
    faulty = [
        sample
        for sample in own
        if sample.fault or sample.expected.get("problems") or sample.expected.get("installer_failed")
    ]
    assert 3 <= len(faulty) < len(own)
