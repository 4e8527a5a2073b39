"""docs/explain.md: every kind has a worked example, and each prints what the page shows."""

import re
from pathlib import Path

import pytest
from gpu_ready.explain import cli as explain

TEXT = (Path(__file__).resolve().parents[2] / "docs/explain.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```console\n\$ gpu-explain read (\S+) - <<'END'\n(.*?)END\n(.*?)```", TEXT, re.DOTALL)


def test_every_kind_has_an_example() -> None:
    assert sorted(kind for kind, _, _ in EXAMPLES) == sorted(explain.KINDS)


@pytest.mark.parametrize(("kind", "text", "output"), EXAMPLES, ids=[kind for kind, _, _ in EXAMPLES])
def test_an_example_prints_what_the_page_shows(kind: str, text: str, output: str) -> None:
    found = explain.KINDS[kind]
    assert "\n".join(found.describe(found.read(text.encode("utf-8")))) + "\n" == output
