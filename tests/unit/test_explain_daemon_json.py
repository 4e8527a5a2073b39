"""gpu-explain on daemon.json: the mistake, its place and the remedy."""

import json

import pytest

from plugins.plugin_utils.gpu_ready.explain import cli as explain
from plugins.plugin_utils.gpu_ready.explain import daemon_json
from tests.corpus.samples import Sample, of_kind

FREE_TEXT = {"problem", "action", "docker_error"}


@pytest.mark.parametrize("sample", of_kind("daemon_json"), ids=lambda sample: sample.name)
def test_samples_are_read_as_their_index_states(sample: Sample) -> None:
    answer = daemon_json.explain(sample.path.read_bytes())
    expected = {key: value for key, value in sample.expected.items() if key not in FREE_TEXT}
    assert {key: answer.get(key) for key in expected} == expected


@pytest.mark.parametrize(
    ("data", "line", "column", "problem", "remedy"),
    [
        (b'{\n "a": 1\n "b": 2\n}', 3, 2, "a comma is missing", "put a comma at the end of line 2"),
        (b'{"a": [1 2]}', 1, 10, "a comma is missing", "put a comma at the end of line 1"),
        ("{\n \u201ca\u201d: 1\n}".encode(), 2, 2, "typographic quotes", "straight ones"),
        ('{\n "a": \u201cb\u201d\n}'.encode(), 2, 7, "typographic quotes", "straight ones"),
        ('{\n "a\u201d: 1\n}'.encode(), 2, 8, "typographic quotes", "straight ones"),
        ("{\"\u201ca\u201d\": 'b'}".encode(), 1, 9, "single quotes", "write double quotes"),
        (b'{\n // why\n "a": 1\n}', 2, 2, "a comment", "remove the comment"),
        (b'{\n  # why\n  "a": 1}', 2, 3, "a comment", "remove the comment"),
        (b'{\n /* why */ "a": 1\n}', 2, 2, "a comment", "remove the comment"),
        (b"{'a': 1}", 1, 2, "single quotes", "write double quotes"),
        (b'{"a": True}', 1, 7, "a word of Python", "write true"),
        (b"{% if x %}\n{}", 1, 2, "a Jinja2 template", "render the template"),
        (b'{"a": {{ x }}}', 1, 8, "a Jinja2 template", "render the template"),
        (b'{"a": 1} {"b": 2}', 1, 10, "text after the end", "one object"),
        (b'{"a": 1}}', 1, 9, "text after the end", "one object"),
        (b'{"a": {"b": 1}', 1, 15, "the text ends too early", "at the end of the file"),
        (b'{"a": "b\nc"}', 1, 9, "a line end", "closing quote"),
        (b'{"a": "b', 1, 7, "a closing quote is missing", "add it"),
        (b'{"a" 1}', 1, 6, "expecting ':' delimiter", "dockerd --validate"),
        (b'{"a": [1}', 1, 9, "expecting ',' delimiter", "dockerd --validate"),
        (b'{"a": 01}', 1, 8, "a comma is missing", "put a comma"),
        (b'{"a": NaN}', 1, 7, "NaN is not a JSON number", "dockerd --validate"),
        (b'{"a": -Infinity}', 1, 7, "-Infinity is not a JSON number", "dockerd --validate"),
        (b'{"a": ' + b"9" * 5000 + b"}", 1, 7, "is not a JSON number", "dockerd --validate"),
        (b'{"a": "\xff"}', 1, 8, "byte 0xff is not UTF-8", "save the file as UTF-8"),
        (b"\xff\xfe{\0}\0", 1, 1, "UTF-16", "save the file as UTF-8"),
        (b"\xef\xbb\xbf{}", 1, 1, "byte order mark", "save the file as UTF-8"),
        (b'"text"', 1, 1, "a string, not an object", "write one object"),
        (b"[" * 100000, 1, 1, "nested too deeply", "write one object"),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy(
    data: bytes, line: int, column: int, problem: str, remedy: str
) -> None:
    answer = daemon_json.explain(data)
    assert not answer["valid_json"] and problem in answer["problem"] and remedy in answer["remedy"], answer
    assert (answer["line"], answer["column"]) == (line, column)


@pytest.mark.parametrize("data", [b'{"a": 1,}', b'{"a": [1, 2,\n ]}', b'{"a": 1,\n}', b'{"a": 1\n,\n}'])
def test_a_trailing_comma_is_named_wherever_the_parser_stops(data: bytes) -> None:
    answer = daemon_json.explain(data)
    comma = data[: data.rindex(b",")].count(b"\n") + 1
    assert answer["problem"] == "a trailing comma"
    assert answer["remedy"] == f"remove the comma at the end of line {comma}"


@pytest.mark.parametrize(
    ("data", "starts"),
    [
        (b'{"a": 1,}', False),
        (b"true", False),
        (b"\xef\xbb\xbf{,}", False),
        (b"\xef\xbb\xbf{}", True),
        ("{}".encode("utf-16"), True),
        ('{"a": 1}\u00a0'.encode(), True),
        (b'{"a": "\xff"}', True),
    ],
)
def test_whether_docker_starts_with_it_nevertheless(data: bytes, starts: bool) -> None:
    assert daemon_json.explain(data)["docker_starts"] is starts


def test_a_key_that_is_there_twice_is_named_with_its_line() -> None:
    answer = daemon_json.explain(b'{\n "runtimes": {},\n "runtimes": {"nvidia": {}}\n}')
    assert answer["repeated_keys"] == ["runtimes"] and answer["nvidia_runtime"]


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
