"""daemon.json: all other keys and their order stay, and a file that docker would refuse is never edited."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.plugin_utils.gpu_ready.plan.containers import docker_options
from tests.corpus.samples import Sample, of_kind
from tests.unit import plans
from tests.unit.hosts import T4, bare, having

NVIDIA = {"runtimes": {"nvidia": {"path": "nvidia-container-runtime", "args": []}}}


SAMPLES = of_kind("daemon_json")


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_samples_keep_all_other_keys_and_are_reverted_byte_for_byte(sample: Sample) -> None:
    data = sample.path.read_bytes()
    requested = {**NVIDIA, "default-runtime": "nvidia", "features": {"cdi": True}}
    if not sample.expected["valid_json"] and data.strip():
        with pytest.raises(daemon_json.DaemonJsonError):
            daemon_json.merge(data, requested)
        return
    if "duplicate" in sample.name:
        with pytest.raises(daemon_json.DaemonJsonError, match=r"the key \S+ occurs twice"):
            daemon_json.merge(data, requested)
        return
    change = daemon_json.merge(data, requested)
    once = json.loads(change.after)
    assert once["default-runtime"] == "nvidia"
    assert once["features"]["cdi"] is True
    old = json.loads(data) if data.strip() else {}
    assert [key for key in once if key in old] == list(old)
    ours = {"runtimes", "default-runtime", "features"}
    assert {key: once[key] for key in old if key not in ours} == {key: old[key] for key in old if key not in ours}
    assert daemon_json.merge(change.after, requested).changed is False
    before = data.decode()
    record = {"before": before, "keys": change.record}
    assert daemon_json.revert(change.after, record) == before


VALID = [sample for sample in SAMPLES if sample.expected["valid_json"] and "duplicate" not in sample.name]


@pytest.mark.parametrize("sample", VALID, ids=lambda sample: sample.name)
def test_samples_accept_all_variables_of_the_engine_without_other_changes(sample: Sample) -> None:
    data = sample.path.read_bytes()
    requested = plans.settings(
        docker_engine_log_driver="json-file",
        docker_engine_log_options={"max-size": "7m", "max-file": 2},
        docker_engine_cgroup_driver="systemd",
        docker_engine_daemon_options={"live-restore": True},
    )
    facts = having(bare(T4), docker={"daemon_json": {"exists": True, "text": data.decode()}})
    options = docker_options.requested_options(facts, requested)
    change = daemon_json.merge(data, options)
    before, after = json.loads(data), json.loads(change.after)
    assert after["log-opts"] == {**(before.get("log-opts") or {}), "max-size": "7m", "max-file": "2"}
    assert (after["log-driver"], after["live-restore"]) == ("json-file", True)
    kept = [one for one in before.get("exec-opts") or [] if "cgroupdriver" not in one]
    assert [one for one in after["exec-opts"] if "cgroupdriver" not in one] == kept
    assert "native.cgroupdriver=systemd" in after["exec-opts"]
    ours = {"log-driver", "log-opts", "exec-opts", "live-restore"}
    assert [(key, after[key]) for key in after if key not in ours] == [(k, before[k]) for k in before if k not in ours]
    facts = having(facts, docker={"daemon_json": {"text": change.after}})
    second = docker_options.requested_options(facts, requested)
    assert not daemon_json.merge(change.after, second).changed
    assert daemon_json.revert(change.after, {"before": data.decode(), "keys": change.record}) == data.decode()


CASES = [
    ("absent file", None, {"a": {"b": []}}, '{\n    "a": {\n        "b": []\n    }\n}\n'),
    ("empty object", "{}", {"a": 1}, '{\n    "a": 1\n}'),
    ("blank lines", " \n", {"a": 1}, '{\n    "a": 1\n}\n'),
    ("two blanks", '{\n  "b": 2\n}\n', {"a": {"c": 1}}, '{\n  "b": 2,\n  "a": {\n    "c": 1\n  }\n}\n'),
    ("tabs", '{\n\t"b": 2\n}', {"a": {"c": 1}}, '{\n\t"b": 2,\n\t"a": {\n\t\t"c": 1\n\t}\n}'),
    ("no indentation", '{\n"b": 2\n}\n', {"a": {"c": 1}}, '{\n"b": 2,\n"a": {\n"c": 1\n}\n}\n'),
    ("one line", '{"b":2,"d":[]}', {"a": {"c": [1, 2]}}, '{"b":2,"d":[],"a":{"c":[1,2]}}'),
    ("one line with blanks", '{ "b": 2 }\n', {"a": True}, '{"b": 2, "a": true}\n'),
    ("Windows line ends", '{\r\n  "b": 2\r\n}\r\n', {"a": 1}, '{\r\n  "b": 2,\r\n  "a": 1\r\n}\r\n'),
    ("value replaced in place", '{"a": 1, "b": 2}', {"a": 3}, '{"a": 3, "b": 2}'),
    ("escapes stay", '{"l": "\\u00e9", "a": 1}', {"a": 2}, '{"l": "\\u00e9", "a": 2}'),
    ("letters stay", '{"l": "\u00e9", "a": 1}', {"a": 2}, '{"l": "\u00e9", "a": 2}'),
    ("half a character stays", '{"l": "\u00e9\\ud800", "a": 1}', {"a": 2}, '{"l": "\u00e9\\ud800", "a": 2}'),
    ("numbers stay", '{"l": [12345678901234567890, 1.5, -0.25], "a": 1}', {"a": 2}, '{"l": [12345678901234567890, 1.5, -0.25], "a": 2}'),
    ("others stay", '{"features": {"x": true}}', {"features": {"cdi": True}}, '{"features": {"x": true, "cdi": true}}'),
    ("null is no object", '{"features": null}', {"features": {"cdi": True}}, '{"features": {"cdi": true}}'),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "requested", "after"), CASES, ids=[case[0] for case in CASES])
def test_the_style_of_the_file_is_kept(name: str, text: "str | None", requested: dict[str, Any], after: str) -> None:
    change = daemon_json.merge(text, requested)
    assert change.after == after
    assert change.changed
    assert daemon_json.merge(after, requested) == (after, after, False, [], {})


@pytest.mark.parametrize(
    "text",
    [
        '{"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime", "runtimeArgs": []}}}',
        '{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}',
        '{"runtimes": {"runc2": {}, "nvidia": {"args": [], "path": "nvidia-container-runtime"}}}',
    ],
)
def test_equal_meaning_is_no_change(text: str) -> None:
    assert not daemon_json.merge(text, NVIDIA).changed


def test_arguments_of_the_user_are_kept_under_the_key_they_have() -> None:
    text = '{"runtimes": {"nvidia": {"path": "/old/place", "runtimeArgs": ["--debug"]}}}'
    want = {"runtimes": {"nvidia": {"path": "/usr/bin/nvidia-container-runtime"}}}
    after = daemon_json.merge(text, want).after
    assert json.loads(after)["runtimes"]["nvidia"] == {
        "path": "/usr/bin/nvidia-container-runtime",
        "runtimeArgs": ["--debug"],
    }


def test_a_wrong_type_on_the_path_is_refused_not_replaced() -> None:
    with pytest.raises(daemon_json.DaemonJsonError, match="runtimes is a list"):
        daemon_json.merge('{"runtimes": []}', NVIDIA)


@pytest.mark.parametrize(
    ("data", "line", "column"),
    [
        (b'{\n  # why\n  "a": 1}', 2, 3),
        (b'{"a": 1} {"b": 2}', 1, 10),
        (b'{"a": 1 "b": 2}', 1, 9),
        (b'{"a": NaN}', 1, 7),
        (b'{"NaN": "NaN\\"NaN",\n "a": NaN}', 2, 7),
        (b'{"a": -Infinity}', 1, 7),
        (b'{"a": 1e400}', 1, 7),
        (b'{"a": 1' + b"0" * 5000 + b"}", 1, 7),
        (b'{"a": [1, 2', 1, 12),
        (b'{"a": True}', 1, 7),
        (b"{'a': 1}", 1, 2),
        (b'{"a": "b\nc"}', 1, 9),
        (b'{"a":\n "\xff"}', 2, 3),
        (b'{"a": 01}', 1, 8),
        (b'\xff\xfe{\0}\0', 0, 0),
        (b'\xef\xbb\xbf{}', 0, 0),
        (b'"text"', 0, 0),
        (b"null", 0, 0),
        (b"[" * 100000, 0, 0),
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused_with_its_position(data: bytes, line: int, column: int) -> None:
    with pytest.raises(daemon_json.DaemonJsonError) as caught:
        daemon_json.parse(data)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value) == (f"line {line}, column {column}: " if line else "") + caught.value.problem


def test_a_trailing_comma_is_refused_on_its_line_or_the_next() -> None:
    with pytest.raises(daemon_json.DaemonJsonError) as caught:  # Python 3.13 reports the comma, older ones the brace
        daemon_json.parse(b'{\n  "a": 1,\n}')
    assert (caught.value.line, caught.value.column) in ((2, 9), (3, 1))


def test_a_repeated_key_is_read_as_docker_reads_it_and_never_edited() -> None:
    text = '{"a": 1, "b": {"c": 1, "c": 2}, "a": 2}'
    assert daemon_json.parse(text).value == {"a": 2, "b": {"c": 2}}
    assert not daemon_json.merge(text, {"a": 2}).changed
    with pytest.raises(daemon_json.DaemonJsonError, match="^the key c occurs twice in one object$"):
        daemon_json.merge(text, {"a": 3})


@pytest.mark.parametrize(
    ("keys", "need"),
    [
        ([], "none"),
        (["runtimes.nvidia", "default-runtime"], "reload"),
        (["runtimes.nvidia", "features.cdi"], "restart"),
        (["data-root"], "restart"),
    ],
)
def test_activation(keys: list[str], need: str) -> None:
    assert daemon_json.activation(keys) == need


def test_unset_takes_only_the_named_key() -> None:
    text = '{\n  "a": 1,\n  "features": {"cdi": true, "x": false},\n  "z": 0\n}\n'
    change = daemon_json.merge(text, {}, ["features.cdi", "nothing.here"])
    assert change.after == '{\n  "a": 1,\n  "features": {\n    "x": false\n  },\n  "z": 0\n}\n'
    assert change.keys == ["features.cdi"]
    assert daemon_json.merge(text, {}, ["a", ["z"], "features"]).after == "{}\n".replace("\n", "") + "\n"


def test_revert_leaves_what_somebody_else_changed() -> None:
    change = daemon_json.merge("{}", {**NVIDIA, "default-runtime": "nvidia"})
    theirs = daemon_json.merge(change.after, {"default-runtime": "runc", "mtu": 1400}).after
    back = daemon_json.revert(theirs, {"before": "{}", "keys": change.record})
    assert back is not None
    assert json.loads(back) == {"default-runtime": "runc", "mtu": 1400}


def test_revert_removes_a_file_with_own_keys_only() -> None:
    change = daemon_json.merge(None, NVIDIA)
    assert daemon_json.revert(change.after, {"before": None, "keys": change.record}) is None


UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # two cores with a high load
KEYS = st.sampled_from(["runtimes", "features", "default-runtime", "mtu", "log-opts", "läbel", 'q"uote'])
SCALARS = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)
OBJECTS = st.dictionaries(
    st.sampled_from(["mtu", "log-opts", "läbel", 'q"uote', "dns"]), VALUES, max_size=5
)  # fmt: skip
STYLES = st.sampled_from([None, 0, 2, 7, "\t"])


@UNHURRIED
@given(
    have=OBJECTS, indent=STYLES, crlf=st.booleans(), ascii_only=st.booleans(), end=st.sampled_from(["", "\n", " \n"])
)
def test_own_keys_are_set_and_nothing_else_changes(
    have: dict[str, Any], indent: Any, crlf: bool, ascii_only: bool, end: str
) -> None:
    text = json.dumps(have, indent=indent, ensure_ascii=ascii_only) + end
    if crlf:
        text = text.replace("\n", "\r\n")
    requested = {"runtimes": {"nvidia": {"path": "x", "runtimeArgs": ["a"]}}, "features": {"cdi": True}}
    change = daemon_json.merge(text, requested)
    assert json.loads(change.after) == {**have, **requested}
    assert list(json.loads(change.after)) == [*have, *requested]
    if have:
        assert change.after.startswith(text.rstrip().rstrip("}").rstrip())
        assert change.after.endswith(text[len(text.rstrip()) - 1 :])
    assert ("\r" in change.after) == ("\r" in text)
    assert not daemon_json.merge(change.after, requested).changed
    back = daemon_json.revert(change.after, {"before": text, "keys": change.record})
    assert back == text
    edited = daemon_json.merge(change.after, {"zz": 1}).after
    assert json.loads(str(daemon_json.revert(edited, {"before": text, "keys": change.record}))) == {**have, "zz": 1}


@st.composite
def hand_written(draw: Any, value: Any) -> str:
    """JSON text of a value as a person types it: blanks anywhere, repeated keys, escaped letters."""
    gap = st.sampled_from(["", " ", "  ", "\n", "\r\n", "\n\t", "\t "])
    if isinstance(value, dict):
        rows = list(value.items())
        if rows and draw(st.booleans()):
            rows.insert(0, (rows[-1][0], draw(SCALARS)))  # the last one counts
        parts = [
            draw(gap) + json.dumps(key, ensure_ascii=draw(st.booleans())) + draw(gap) + ":" + draw(gap)
            + draw(hand_written(one)) + draw(gap)
            for key, one in rows
        ]  # fmt: skip
        return "{" + (",".join(parts) or draw(gap)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(draw(gap) + draw(hand_written(one)) + draw(gap) for one in value) + "]"
    return json.dumps(value, ensure_ascii=draw(st.booleans()))


@UNHURRIED
@given(
    data=st.data(),
    have=st.dictionaries(KEYS, VALUES, max_size=4),
    requested=st.dictionaries(st.sampled_from(["mtu", "features", "exec-opts", "läbel"]), SCALARS | st.lists(SCALARS, max_size=2), max_size=3),
)  # fmt: skip
def test_a_hand_written_file_keeps_all_other_keys_and_is_reverted_byte_for_byte(
    data: st.DataObject, have: dict[str, Any], requested: dict[str, Any]
) -> None:
    text = data.draw(hand_written(have))
    try:
        change = daemon_json.merge(text, requested)
    except daemon_json.DaemonJsonError:
        assert daemon_json.parse(text).repeated
        return
    assert json.loads(change.after) == {**have, **requested}
    assert list(json.loads(change.after))[: len(have)] == list(json.loads(text))
    assert not daemon_json.merge(change.after, requested).changed
    assert daemon_json.revert(change.after, {"before": text, "keys": change.record}) == text
    if not change.changed:
        assert change.after == text


@UNHURRIED
@given(
    have=st.dictionaries(KEYS, VALUES, max_size=5), requested=st.dictionaries(KEYS, SCALARS, max_size=3), indent=STYLES
)
def test_single_values_are_replaced_in_place(have: dict[str, Any], requested: dict[str, Any], indent: Any) -> None:
    change = daemon_json.merge(json.dumps(have, indent=indent), requested)
    assert json.loads(change.after) == {**have, **requested}
    assert list(json.loads(change.after))[: len(have)] == list(have)


@UNHURRIED
@given(st.binary(max_size=60) | st.text(alphabet='{}[]",:\\ntrue1-.eE \t\r', max_size=30).map(str.encode))
def test_the_parser_accepts_exactly_pythons_strict_objects(data: bytes) -> None:
    def refuse(word: str) -> None:
        raise ValueError(word)

    def finite(literal: str) -> Any:
        return float(literal) if abs(float(literal)) < float("inf") else refuse(literal)

    try:
        blank = not data.strip(b" \t\r\n")
        expected = {} if blank else json.loads(data.decode("utf-8"), parse_constant=refuse, parse_float=finite)
    except ValueError:
        expected = None
    try:
        value: Any = daemon_json.parse(data).value
    except daemon_json.DaemonJsonError:
        value = None
    assert value == (expected if isinstance(expected, dict) else None)
