"""Real outputs of the shared corpus, read in place: every field that its index expects."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpu_ready.explain import cli as explain

CORPUS = Path(__file__).resolve().parents[3] / "shared" / "corpus"
FLAGS = {
    "powered_off", "sriov_vf", "tegra", "wsl", "vgpu_host", "well_formed", "smi_version", "gpu_elements", "error",
    "name_truncated",
}  # fmt: skip


def entries() -> list[Any]:
    index = CORPUS / "index.yaml"
    if not index.exists():
        return [pytest.param(None, marks=pytest.mark.skip(reason=f"{index} is absent"))]
    data = yaml.safe_load(index.read_text())
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


@pytest.mark.parametrize("entry", entries())
def test_a_sample_that_is_cut_anywhere_breaks_no_reader(entry: dict[str, Any]) -> None:
    kind = explain.KINDS[explain.kind_of(entry["kind"])]
    data = (CORPUS / entry["file"]).read_bytes()
    if data[:2] == b"\x1f\x8b":
        pytest.skip("an archive that is cut is refused with a sentence")
    for part in range(1, 8):
        answer = kind.read(data[: len(data) * part // 8])
        assert kind.describe(answer)
        assert kind.describe(kind.read(data[len(data) * part // 8 :]))
        json.dumps(answer)
