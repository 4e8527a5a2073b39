"""TOML: the same values and the same refusals as Python's own reader, and edits that change nothing else."""

import random
import tomllib
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.containers.containerd import toml

DEBIAN = """version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"  # Debian's
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
"""
CRI = ("plugins", "io.containerd.grpc.v1.cri")
EVERYTHING = (
    DEBIAN
    + '''
a = 1_000
b = [0x1F, 0o17, 0b11, -0, +5,]
c = [ # comment
  "text \\u00e9 \\U0001F600 \\t\\\\", 'literal \\n',
]
d = """
two
lines \\
   folded ""quoted\\""""
e = \'\'\'
'it''s\'\'\'\'\'
f = [1.5, 6.02e23, -1E-3, inf, -inf]
g = {x = 1, y.z = "w", list = [{}]}
h = 1979-05-27T07:32:00.5+01:30
i = [1979-05-27, 07:32:00, 1979-05-27 07:32:00Z]
"quoted key".'and literal' = true
[[rows]]
n = 1
[rows.sub]
x.y = 1
[rows.sub.x.z]
[[rows]]
'''
)


def same(text: str) -> Any:
    """Return what both readers say of a text, which must be the same; None where both refuse it."""
    try:
        expected = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        expected = None
    try:
        # CR LF counts as LF for Python's reader, before it looks for anything else.
        found = toml.parse(text).value
    except toml.TomlError as error:
        assert error.line >= 1 and error.column >= 1
        found = None
    assert found == expected, text
    return found


@pytest.mark.parametrize("text", [DEBIAN, EVERYTHING, EVERYTHING.replace("\n", "\r\n"), "", "# only this", "a=1"])
def test_whole_files(text: str) -> None:
    assert same(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "a", "a =", "a = 1 b = 2", "= 1", "a.=1", "a = 01", "a = 1__0", "a = 1_", "a = .5", "a = 5.", "a = 1e", "a=+0x1",
        "a = 'x", 'a = "x', 'a = "\\x"', 'a = "\\uD800"', 'a = "\\U00110000"', 'a = """x', "a = '''x", 'a = """"""""""',
        "a = tru", "a = [1", "a = [1 2]", "a = [,]", "a = {x=1,}", "a = {x=1\n}", "a = {x=1, x=2}", "a = {b={}, b.c=1}",
        "a=1\na=2", "[a]\n[a]", "[a]\nb=1\n[a.b]", "a=1\n[a]", "a={}\n[a]", "a={}\n[a.b]", "a={}\na.b=1", "[[a]]\n[a]",
        "[a]\n[[a]]", "a=[]\n[[a]]", "a=[{}]\n[a.b]", "a.b=1\n[a]", "[a.b]\n[a]\nb.c=1", "[a.b.c]\n[a]\nb.d=1",
        "[a.b]\nx=1\n[a]\nb.x=2", "[[a.b]]\n[a]\nb.c=1", "[a", "[a]]", "[[a]", "[]", "[a.]", "[a]x", "a = 1979-02-30",
        "a = 1979-05-27T25:00:00", "a = 24:00:00", "a = \x01", "# \x01", "a = '\x01'", 'a = "a\nb"', "a\n= 1", "a = 1\r",
        "\ufeffa = 1", "a = ٣", "a = '''''''''", "a.b = 1\na.b.c = 2", "a.b.c = 1\na.b = 2", "[a]\n[a.b]\n[[a.b]]",
    ],
)  # fmt: skip
def test_what_is_no_toml_is_refused(text: str) -> None:
    same(text)


def test_the_place_of_an_error() -> None:
    with pytest.raises(toml.TomlError, match=r"^line 6, column 33: expected the end of the line$"):
        toml.parse(DEBIAN.replace("# Debian's", "Debian's"))


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(toml.TomlError) as caught:
        toml.parse("a = 1\nb = 'é".encode() + b"\xff'\n")
    assert (caught.value.line, caught.value.column) == (2, 7)
    assert toml.parse(None).value == {} == toml.parse(b"").value


def test_random_texts_are_read_as_python_reads_them() -> None:
    """Properties: every damaged variant of a file that uses everything means the same to both readers."""
    chance = random.Random(20261121)
    pieces = [
        "[",
        "]",
        "[[",
        "{",
        "}",
        "=",
        ".",
        ",",
        '"',
        "'",
        '"""',
        "'''",
        "\\",
        "\n",
        "\r\n",
        "#",
        " ",
        "0",
        "1e5",
        "_",
    ]
    pieces += ["a", "a.b", "[a]\n", "[a.b]\n", "[[a]]\n", "a.b = 1\n", "a = {b = 1}\n", "true", "12:00:00", "\x00", "é"]
    read = 0
    for _ in range(4000):
        text = EVERYTHING
        for _ in range(chance.randint(1, 3)):
            at, length = chance.randrange(len(text)), chance.choice([0, 0, 1, 2, 8])
            text = text[:at] + chance.choice([*pieces, ""]) + text[at + length :]
        read += same(text) is not None
    for _ in range(4000):
        read += same("".join(chance.choice(pieces) for _ in range(chance.randint(1, 9)))) is not None
    assert read > 500


# ---- edits ----------------------------------------------------------------------------------------------------------


def test_a_table_comes_at_the_end_and_nothing_else_changes() -> None:
    after = toml.set_value(DEBIAN, (*CRI, "containerd", "runtimes", "nvidia", "runtime_type"), "io.containerd.runc.v2")
    assert after == DEBIAN + (
        '\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia]\nruntime_type = "io.containerd.runc.v2"\n'
    )
    assert toml.remove_key(after, (*CRI, "containerd", "runtimes", "nvidia", "runtime_type")) == DEBIAN


def test_a_key_comes_into_the_table_that_is_there() -> None:
    after = toml.set_value(DEBIAN, (*CRI, "cni", "max_conf_num"), 1)
    assert after == DEBIAN.replace('net.d"\n', 'net.d"\n      max_conf_num = 1\n')
    after = toml.set_value(DEBIAN, (*CRI, "enable_cdi"), True)
    assert after == DEBIAN.replace('.cri"]\n', '.cri"]\n    enable_cdi = true\n', 1)
    assert toml.remove_key(after, (*CRI, "enable_cdi")) == DEBIAN
    assert toml.set_value(DEBIAN, ("imports",), ["/etc/x/*.toml"]).startswith(
        'version = 2\nimports = ["/etc/x/*.toml"]\n\n'
    )


def test_a_value_is_replaced_where_it_stands() -> None:
    after = toml.set_value(DEBIAN, (*CRI, "cni", "bin_dir"), "/opt")
    assert after == DEBIAN.replace('"/usr/lib/cni"', '"/opt"')
    assert toml.set_value(after, (*CRI, "cni", "bin_dir"), "/opt") == after
    assert toml.set_value("a = 1\n", ("a",), True) == "a = true\n"


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        (None, ("a",), "a = 1\n"),
        ("", ("a", "b"), "[a]\nb = 1\n"),
        ("x = 1", ("a",), "x = 1\na = 1\n"),
        ("[x]\r\ny=1\r\n", ("x", "z"), "[x]\r\ny=1\r\nz = 1\r\n"),
        ("[x]", ("x", "z"), "[x]\nz = 1\n"),
        ("x.y.z = 1\n", ("x", "y", "a b"), 'x.y.z = 1\nx.y."a b" = 1\n'),
        ("[x]\n  y.z = 1\n[v]\n", ("x", "y", "a"), "[x]\n  y.z = 1\n  y.a = 1\n[v]\n"),
        ("x.y.z = 1\n", ("x", "y", "w", "a"), "x.y.z = 1\n\n[x.y.w]\na = 1\n"),
        ("[[r]]\n[x.y]\n", ("x", "a"), "[[r]]\n[x.y]\n\n[x]\na = 1\n"),
    ],
)  # fmt: skip
def test_where_a_key_comes(before: "str | None", path: tuple[str, ...], after: str) -> None:
    found = toml.set_value(before, path, 1)
    assert found == after
    assert toml.get_value(tomllib.loads(found), path) == 1
    assert toml.set_value(found, path, 1) == found


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        ("v = 1\nplugins = {x = {}}\n", ("plugins", "x", "y"), 2),
        ("[plugins]\nx = 1\n", ("plugins", "x", "y"), 2),
        ("\n[[plugins]]\n", ("plugins", "x"), 2),
        ("[plugins.x]\n", ("plugins",), 1),
    ],
)
def test_what_cannot_be_added_to_is_refused_with_its_line(text: str, path: tuple[str, ...], line: int) -> None:
    with pytest.raises(toml.TomlError) as caught:
        toml.set_value(text, path, 1)
    assert caught.value.line == line


def test_edits_of_random_places_keep_everything_else() -> None:
    chance = random.Random(1)
    keys = [key.path for key in toml.parse(DEBIAN).keys] + [(*CRI, "a"), ("b",), ("c", "d e", "f"), (*CRI, "cni", "g")]
    for _ in range(500):
        text, desired = chance.choice([DEBIAN, DEBIAN.replace("\n", "\r\n"), DEBIAN.rstrip()]), {}
        expected = tomllib.loads(text)
        for path in chance.sample(keys, chance.randint(1, 4)):
            desired[path] = chance.choice([True, 7, 'te"x\\t\n', ["a", "b"]])
            text = toml.set_value(text, path, desired[path])
            table = expected
            for name in path[:-1]:
                table = table.setdefault(name, {})
            table[path[-1]] = desired[path]
        assert tomllib.loads(text) == expected
        for path in desired:
            text = toml.remove_key(text, path)
        assert not [path for path in desired if toml.get_value(tomllib.loads(text), path) is not None]
