"""Each statement of the pages that says that something was tested, tried or measured has a test that shows it.

claims.yml has a row for each: its page, a part of the statement, and the tests. Statements that say that something was
not tested, and the rows of tables, are no claims of this kind.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md")), *sorted(ROOT.glob("deploy/**/*.md"))]
CLAIMS: list[dict[str, Any]] = yaml_load((ROOT / "tests/unit/claims.yml").read_text(encoding="utf-8"))
CLAIM = re.compile(
    r"\b(?:tested|measured|tried|verified on a|(?:was|were) (?:shown|run) (?:for|on|with))\b", re.IGNORECASE
)
NO_CLAIM = re.compile(r"\b(?:not|never|are|is|can be|be) (?:tested|tried)\b|\btried (?:again|once)\b", re.IGNORECASE)


def statements(page: Path) -> list[str]:
    """Return the statements of a page on one line each, without code, headings and tables."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    lines = [line.removeprefix("> ") for line in text.splitlines() if not line.lstrip().startswith(("|", "#"))]
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:-|\d+\.) )", "\n".join(lines))
    return [one for block in blocks for one in re.split(r"(?<=[.!?]) (?=[A-Z*\[`(])", " ".join(block.split())) if one]


def claims(page: Path) -> list[str]:
    """Return the statements of a page that need a row."""
    return [one for one in statements(page) if CLAIM.search(NO_CLAIM.sub("", one))]


def rows(page: Path) -> list[str]:
    """Return the texts of the rows about a page."""
    return [row["text"] for row in CLAIMS if ROOT / row["page"] == page]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_claim_has_a_row_and_every_row_is_a_claim_of_its_page(page: Path) -> None:
    found, known = claims(page), rows(page)
    assert [one for one in found if not any(text in one for text in known)] == []
    assert [text for text in known if not any(text in one for one in found)] == []


@pytest.mark.parametrize("row", CLAIMS, ids=lambda row: row["text"][:40])
def test_the_tests_of_a_claim_exist(row: dict[str, Any]) -> None:
    assert row["tests"] and (ROOT / row["page"]) in PAGES
    for test in row["tests"]:
        path, _, function = test.partition("::")
        assert re.fullmatch(r"tests/(?:unit|integration|corpus)/test_\w+\.py", path), test
        names = [one.name for one in ast.walk(ast.parse((ROOT / path).read_text())) if isinstance(one, ast.FunctionDef)]
        assert function in names if function else any(name.startswith("test_") for name in names), test


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Tested with two\nversions. It works.\n\n- Not tested: a third.\n", ["Tested with two versions."]),
        ("| tested | on this |\n\nThis was measured with 150 hosts.", ["This was measured with 150 hosts."]),
        ("A host is tried again. It is not tested.\n```\ntested\n```\n", []),
    ],
)
def test_claims_are_found(tmp_path: Path, text: str, found: list[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(text)
    assert claims(page) == found
