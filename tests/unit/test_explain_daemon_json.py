"""gpu-explain on daemon.json: the mistake, its position and docker's own message."""

import json
from pathlib import Path
from typing import Any

import pytest
from gpu_ready.explain import cli as explain
from gpu_ready.explain import daemon_json

from tests.unit.test_daemon_json import CORPUS, SAMPLES

FREE_TEXT = {"problem"}


@pytest.mark.skipif(not SAMPLES, reason="the corpus of samples is not on this machine")
@pytest.mark.parametrize("entry", SAMPLES, ids=lambda entry: Path(entry["file"]).stem)
def test_samples_are_read_as_their_index_states(entry: dict[str, Any]) -> None:
    answer = daemon_json.explain((CORPUS / entry["file"]).read_bytes())
    assert {key: answer.get(key) for key in entry["expected"] if key not in FREE_TEXT} == {
        key: value for key, value in entry["expected"].items() if key not in FREE_TEXT
    }


@pytest.mark.parametrize(
    ("data", "line", "column", "problem"),
    [
        (b'{\n  "a": 1,\n}', 3, 1, "trailing comma"),
        (b'{\n  # why\n  "a": 1}', 2, 3, "comment"),
        (b'{"a": 1} {"b": 2}', 1, 10, "two top-level objects"),
        (b'{"a": 1 "b": 2}', 1, 9, "comma is missing"),
        (b'{"a": NaN}', 1, 7, "NaN"),
        (b'{"a": -Infinity}', 1, 8, "no number"),
        (b'{"a": [1, 2', 1, 12, "ends too early"),
        (b'{"a": True}', 1, 7, "Python"),
        (b"{'a': 1}", 1, 2, "single quotes"),
        (b'{"a": "b\nc"}', 1, 9, "control character"),
        (b'{"a": "\xff"}', 1, 8, "not UTF-8"),
        (b'{"a": 01}', 1, 8, "comma is missing"),
        (b'\xff\xfe{\0}\0', 1, 1, "UTF-16"),
        (b'\xef\xbb\xbf{}', 1, 1, "byte order mark"),
        (b'"text"', 1, 1, "a string, not an object"),
        (b"[" * 100000, 1, 201, "nested deeper"),
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused_with_its_position(
    data: bytes, line: int, column: int, problem: str
) -> None:
    with pytest.raises(daemon_json.SyntaxProblem, match=problem) as caught:
        daemon_json.parse(data)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("data", "docker_error"),
    [
        (b'{"a": tru}', "invalid character '}' in literal true (expecting 'e')"),
        (b"{'a': 1}", "invalid character '\\'' looking for beginning of object key string"),
        (b'{"a" 1}', "invalid character '1' after object key"),
        (b'{"a": 1 "b": 2}', "invalid character '\"' after object key:value pair"),
        (b'{"a": [1 2]}', "invalid character '2' after array element"),
        (b'{"a": "x\ny"}', "invalid character '\\n' in string literal"),
        (b'{"a": "\\x"}', "invalid character 'x' in string escape code"),
        (b'{"a": "\\u12g4"}', "invalid character 'g' in \\u hexadecimal character escape"),
        (b'{"a": 1.}', "invalid character '}' after decimal point in numeric literal"),
        (b'{"a": [1, 2', "unexpected end of JSON input"),
        (b"true", "json: cannot unmarshal bool into Go value of type map[string]interface {}"),
        (b"\xef\xbb\xbf{,}", "invalid character ',' looking for beginning of object key string"),
        (b"\xef\xbb\xbf{}", None),
        ("{}".encode("utf-16"), None),
        ('{"a": 1}\u00a0'.encode(), None),
        ('{"a": \u00b2}'.encode(), "invalid character 'Â' looking for beginning of value"),
    ],
)
def test_position_agrees_with_dockers_own_message(data: bytes, docker_error: "str | None") -> None:
    answer = daemon_json.explain(data)
    assert (answer["valid_json"], answer["docker_starts"]) == (False, docker_error is None)
    assert answer.get("docker_error") == docker_error


def test_a_key_of_two_escapes_is_one_letter() -> None:
    assert daemon_json.explain(b'{"\\ud83d\\ude00": 1}')["keys"] == ["\U0001f600"]


def test_a_number_of_any_length_is_read() -> None:
    assert daemon_json.explain(b'{"a": ' + b"9" * 5000 + b"}")["keys"] == ["a"]


@pytest.mark.parametrize(
    ("text", "problem", "remedy"),
    [
        ('{\n "a": 1\n "b": 2\n}', "a comma is missing", "put a comma at the end of line 2"),
        ('{\n "a": 1,\n}', "trailing comma", "remove the comma at the end of line 2"),
        ('{\n "a": [1, 2,\n ]\n}', "trailing comma", "remove the comma at the end of line 2"),
        ("{\n \u201ca\u201d: 1\n}", "typographic quotes", "straight ones"),
        ('{\n "a": \u201cb\u201d\n}', "typographic quotes", "straight ones"),
        ('{\n "a\u201d: 1\n}', "typographic quotes", "straight ones"),
        ('{\n "a": \u201eb\u201c\n}', "typographic quotes", "straight ones"),
        ('{\n // why\n "a": 1\n}', "comment", "remove the comment"),
        ('{\n /* why */ "a": 1\n}', "comment", "remove the comment"),
        ('{"a": {"b": 1}', "ends too early", "add } at the end"),
        ('{"a": [1}', "} closes what [ opened", "write ]"),
        ('{"a" 1}', "colon is missing", "put a colon"),
        ('{"a": "b\n}', "line end", "closing quote"),
    ],
)
def test_the_remedy_names_the_change(text: str, problem: str, remedy: str) -> None:
    answer = daemon_json.explain(text.encode())
    assert problem in answer["problem"] and remedy in answer["remedy"]


def test_a_key_that_is_there_twice_is_named_with_its_line() -> None:
    answer = daemon_json.explain(b'{\n "runtimes": {},\n "runtimes": {"nvidia": {}}\n}')
    assert answer["repeated_keys"] == [{"key": "runtimes", "line": 3}] and answer["nvidia_runtime"]


WHOLE = json.dumps(
    {
        "default-runtime": "nvidia",
        "features": {"cdi": True},
        "runtimes": {"nvidia": {"args": [], "path": "/usr/bin/nvidia-container-runtime"}},
    },
    indent=2,
)


@pytest.mark.parametrize("text", [WHOLE, WHOLE.replace("\n", "")], ids=["lines", "one line"])
def test_a_file_that_is_cut_off_anywhere_is_read_as_what_it_is(text: str) -> None:
    for length in range(1, len(text)):
        answer = explain.KINDS["daemon-json"].read(text[:length].encode())
        assert "form" not in answer and not answer["valid_json"] and answer["remedy"], text[:length]


def test_a_log_of_json_records_is_no_daemon_json() -> None:
    records = b'{"MESSAGE": "NVRM: Xid (PCI:0000:3b:00): 79", "_TRANSPORT": "kernel"}\n' * 2
    assert explain.KINDS["daemon-json"].read(records)["form"] == "the kernel's log"
