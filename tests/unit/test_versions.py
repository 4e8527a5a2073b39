"""Comparing versions of drivers, toolkits, packages and kernels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import versions


@pytest.mark.parametrize(
    ("left", "right", "answer"),
    [
        ("580.95.05", "580.178.04", -1),
        ("9.1", "10.0", -1),
        ("580.95", "580.95.0", 0),
        ("1:580.95.05-1", "580.95.05", 0),
        ("12.10", "12.9", 1),
        ("", "1", -1),
    ],
)
def test_numbers_are_compared_by_value(left: str, right: str, answer: int) -> None:
    assert (versions.compare(left, right), versions.compare(right, left)) == (answer, -answer)


@pytest.mark.parametrize(
    ("text", "upstream", "branch"),
    [
        ("580.178.04", "580.178.04", 580),
        ("1:580.178.04-1", "580.178.04", 580),
        ("535.261.03-1~deb12u1", "535.261.03", 535),
        ("3:470.256.02-1.el9", "470.256.02", 470),
        ("390.157", "390.157", 390),
        ("nothing", "nothing", 0),
    ],
)
def test_packages_have_an_upstream_and_a_branch(text: str, upstream: str, branch: int) -> None:
    assert (versions.upstream(text), versions.branch(text)) == (upstream, branch)


@pytest.mark.parametrize(
    "ascending",
    [
        ["6.1.0-9-amd64", "6.1.0-10-amd64", "6.1.0-50-amd64", "6.12.1-1-amd64"],
        ["9.1", "9.10", "10"],
        ["5.14.0-427.el9", "5.14.0-687.5.1.el9_8"],
        ["1.0~rc1", "1.0", "1.0.1"],
    ],
)
def test_keys_sort_as_people_do(ascending: list[str]) -> None:
    assert sorted(reversed(ascending), key=versions.key) == ascending


@given(st.text(max_size=30), st.text(max_size=30))
def test_any_text_has_an_order(left: str, right: str) -> None:
    assert versions.compare(left, right) == -versions.compare(right, left)
    assert sorted([left, right], key=versions.key)
