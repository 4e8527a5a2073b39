"""tools/check_words.py: what is found, where, and what is left alone."""

import pytest

from tools import check_words

KNOWN = check_words.project_list()


def found(path: str, text: str) -> list[str]:
    return [f"{finding.line} {finding.found}" for finding in check_words.check_text(path, text, KNOWN)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The wishes of a host.", ["1 wishes"]),
        ("first\nthe driver is taken\nback later", ["2 taken back"]),
        ("the host has no leave to restart", ["1 leave to restart", "1 no leave"]),
        ("One call a host, and an URL.", ["1 call a host", "1 an URL"]),
        ("The driver is not whole.", ["1 not whole"]),
        ("nvidia-smi is there but libnvidia-ml is not", ["1 is there"]),
        ("gpu_wish_of_host", ["1 wish"]),
        ("Where the way back fails, it says so.", ["1 way back"]),
    ],
)
def test_a_word_of_the_list_is_found_in_a_document(text: str, expected: list[str]) -> None:
    assert sorted(found("docs/page.md", text)) == sorted(expected)


@pytest.mark.parametrize(
    "text",
    [
        "There is a driver, and if there is none, the plan says so.",
        "Read the whole file; as a whole it is valid.",
        "You can leave the variable empty.",
        "The mushroom, to improve and to approve.",
        "WantedBy=multi-user.target",
        "It is looked up in the table.",
        "## One remote call\n\nA host is read once.",
        "Use a tool to tell the two hosts apart.",
    ],
)
def test_standard_english_is_left_alone(text: str) -> None:
    assert found("docs/page.md", text) == []


def test_names_comments_and_strings_of_python_are_read() -> None:
    text = "# the way\n# back\nclass WayBack:\n    pass\n\ndef take_back(wanted):\n    said = f'{wanted} is gone'\n    return wanted\n"
    assert found("tools/x.py", text) == [
        "1 way back",
        "3 WayBack",
        "6 take_back",
        "6 wanted",
        "7 gone",
        "7 said",
        "7 said",
    ]


def test_functions_and_variables_need_names_that_can_be_searched_for() -> None:
    assert found("tools/x.py", "def put():\n    there = 1\n") == ["1 def put", "2 there"]


def test_the_name_of_a_file_is_read() -> None:
    assert found("module_utils/gpu_ready/wishes.py", "") == ["1 wishes"]


def test_texts_of_other_programs_are_exempt() -> None:
    text = 'ONE = (\n    "the folder is gone"  # third-party text\n)\nTWO = "it is gone"\n'
    assert found("tests/unit/test_x.py", text) == ["4 gone"]
    assert found("docs/page.md", "a folder <!-- third-party text -->\na folder\n") == ["2 folder"]
    assert found("catalog/messages.yml", "      - told in a pattern\n    cause: told\n") == ["2 told"]
    assert found("docs/dev/faults.md", "a folder") == []


def test_the_command_prints_place_word_and_replacement(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = check_words.Finding("docs/page.md", 3, "folder", "directory")
    monkeypatch.setattr(check_words, "find", lambda _: [finding])
    monkeypatch.setattr("sys.argv", ["check_words.py"])
    assert check_words.main() == 1
    assert 'docs/page.md:3: "folder": use directory' in capsys.readouterr().out


def test_the_summary_counts_per_directory() -> None:
    finding = check_words.Finding("docs/page.md", 3, "folder", "directory")
    assert check_words.summary([finding, finding]).split() == ["2", "docs", "2", "use", "directory"]
