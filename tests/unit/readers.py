"""The functions that read text, found by their signatures, and texts on which a slow one shows."""

import ast
import collections.abc
import contextlib
import importlib
import inspect
import itertools
import pkgutil
import re
import re._constants as ops  # type: ignore[import-not-found]
import re._parser as patterns  # type: ignore[import-not-found]
import typing
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from plugins.module_utils import gpu_ready as on_hosts
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.plugin_utils import gpu_ready as on_the_control_node
from tests.grid import CAMPAIGN

PACKAGES = (
    "base", "cluster", "completion", "containers", "cuda", "diagnostics", "drain", "driver", "explain", "facts", "hardware", "monitor", "packaging",
    "system", "verdict", "verify",
)  # fmt: skip
"""Who reads texts of hosts, programs and users. The others get records and settings whose texts are limited."""
FILES = {
    "path", "path_of_file", "directory", "root", "store", "state_dir", "file", "target", "cuda_path", "without", "parent", "proc", "library", "installed",
}  # fmt: skip
"""Parameters of functions that work on files; the texts of files are given to others."""
NO_TEXTS = {
    "a setting, or a name of the catalog or of gpu-ready": (
        "algorithm", "architecture", "codename", "engine", "flavour", "framework", "kind", "key", "mode", "pattern", "patterns", "prefix",
        "release", "section", "separator", "shell", "source", "specification", "version", "cuda", "variant", "platform", "toolkit", "unit",
        "suite", "components", "requested", "pinned", "fingerprint", "sha256", "profile", "form", "expected", "plugin", "variable", "core", "states", "literal", "cause",
    ),
    "a path or address of at most 4096 characters": ("url", "location", "archive", "image", "archive_url", "link", "device", "devices"),
    "words of a message of gpu-ready": ("what", "where", "remedy", "problem", "reason", "why", "how", "heading", "good"),
}  # fmt: skip
"""Parameters whose texts no program, host or user determines, or whose length is limited, by reason."""
NAMED = {name for names in NO_TEXTS.values() for name in names}
EXCEPTIONS = {
    ("packaging.apt_components.without", "names"): "components that the catalog names",
    ("packaging.dnf_errors.explain_failed_repository", "name"): "a repository, as its file names it",
    ("packaging.apt_policy.find_providers", "name"): "a package that a plan names",
    ("packaging.package_index.is_asked", "names"): "packages and patterns that a plan names",
    ("diagnostics.text_lines.is_complete", "text"): "at most 100 characters before a match",
    ("diagnostics.smi_forms.line_value", "name"): "a field of a form, which the table of forms names",
    ("diagnostics.smi_forms.tag", "name"): "an element of a form, which the table of forms names",
}
"""Single parameters that are no texts, though others of their name are, by reason."""
TEXTS = (str, str | None, typing.Optional[str], bytes, typing.Optional[bytes])  # noqa: UP045 - as typing sees them
LISTS = (list[str], tuple[str, ...], *(one[str] for one in (typing.List, typing.Sequence, typing.Iterable)))  # noqa: UP006
TOKENS = (
    " ", "\n", "\t", "\r", "x", "1", "0", "%", "#", "é", "[", "]", "(", "<", ">", "{", "}", '"', "'", "/", "\\", ":", ".", ",", "-", "=", "_",
    "@", "|", "&", "a ", "a\n", " \n", "\n ", "a.", "a:", "a=", "a/", "a,", "1.", "1,", " 1", "0 ", "[[", "[a", "[a]", '"a', '"a"', "((", "{}",
    "a@", "a://", "://", "- ", "- a\n", "x: y\n", "x=y\n", "[x]\n", "\x1b[", "\x1b]", "\\n", "\\", "#012", "\r\n", "<a>", "</", "&amp;",
    '{"a":', "[1,", "00:00.0 ", "[10de:", "NVRM: ", "Xid ", "Error: ", "ERROR: ", "E: ", "GPU 0: ", "nvidia-", "deb ", "http://",
)  # fmt: skip
"""80 tokens that make patterns try again. Each module's own patterns add theirs (:func:`tokens_of`)."""


USUAL = (" ", "\n", "x", "0", "[a", "a.", "/", "-", " \n")
"""Those with which most slow patterns were found: tried for every reader."""


class Reader(NamedTuple):
    """A function with the parameter that gets the text, and values for the other ones."""

    name: str
    function: Callable[..., object]
    parameter: str
    convert: Callable[[str], object]
    others: dict[str, object]
    tokens: list[str]

    def read(self, text: str) -> None:
        """Any answer and any error is right here."""
        with contextlib.suppress(Exception):
            answer = self.function(**self.others, **{self.parameter: self.convert(text)})
            if inspect.isgenerator(answer):
                collections.deque(answer, 0)


def converter(hint: object) -> Callable[[str], object] | None:
    """How a text becomes a value of a type, None for a type that is no text."""
    if hint in LISTS:
        return lambda text: text.split("\n")
    if hint is Result:
        return lambda text: Result(1, text, text)
    if hint in TEXTS:
        return str.encode if "bytes" in str(hint) else str
    return None


def filler(hint: object) -> object:
    """A value for another parameter; LookupError for a type of which there is none here, such as a Host."""
    convert = converter(hint)
    if convert:
        return convert("x")
    simple = {int: 1, float: 1.0, bool: False, type(None): None}
    for one in (hint, *typing.get_args(hint)) if type(None) in typing.get_args(hint) else (hint,):
        if one in simple:
            return simple[one]
    origin = typing.get_origin(hint)
    if type(None) in typing.get_args(hint):
        return None
    for kind in (list, dict, tuple, set):
        if isinstance(origin, type) and issubclass(kind, origin):
            return kind()
    raise LookupError(hint)


def short_name(module: str) -> str:
    """The name of a module below gpu_ready."""
    return module.partition(".gpu_ready.")[2]


def find_readers() -> Iterator[Reader]:
    """One for each function and parameter."""
    sides = [pkgutil.walk_packages(one.__path__, f"{one.__name__}.") for one in (on_hosts, on_the_control_node)]
    for info in itertools.chain(*sides):
        if info.ispkg or short_name(info.name).partition(".")[0] not in PACKAGES:
            continue
        module = importlib.import_module(info.name)
        own = [one for one in vars(module).values() if callable(one) and getattr(one, "__module__", None) == info.name]
        functions = [one for one in own if inspect.isfunction(inspect.unwrap(one))]
        own_tokens = sorted(tokens_of(module)) if functions else []
        for function in functions:
            yield from readers_of(function, own_tokens)


def readers_of(function: Callable[..., object], own_tokens: list[str]) -> Iterator[Reader]:
    """``make campaign`` tries all tokens, other runs a part of them, which differs from function to function."""
    hints = typing.get_type_hints(function)
    name = f"{short_name(function.__module__)}.{function.__name__}"
    required = [one.name for one in inspect.signature(function).parameters.values() if one.default is one.empty]
    texts = [
        one
        for one in hints
        if one != "return" and converter(hints[one]) and one not in NAMED and (name, one) not in EXCEPTIONS
    ]
    if FILES & set(hints):
        return
    for text in texts:
        with contextlib.suppress(LookupError):
            others = {one: filler(hints[one]) for one in required if one != text}
            first = 0 if CAMPAIGN else zlib.crc32(f"{name} {text}".encode()) % 4
            some = [one for given in (TOKENS, own_tokens) for one in given[first :: 1 if CAMPAIGN else 4]]
            tokens = [*USUAL, *(one for one in some if one not in USUAL)]
            yield Reader(name, function, text, typing.cast(Any, converter(hints[text])), others, tokens)


# --- what a module's patterns read again and again -----------------------------------------------------------------


def tokens_of(module: ModuleType) -> set[str]:
    """For each unbounded repetition in a pattern: what it repeats, and what is before it."""
    found: set[str] = set()
    for pattern in patterns_of(module):
        with contextlib.suppress(re.error, RecursionError, OverflowError):
            found.add(shortest(patterns.parse(pattern), "", found))
    return {one for one in found if 0 < len(one) <= 200}


def patterns_of(module: ModuleType) -> set[str]:
    """The patterns that a module compiles, and its texts that look like one."""
    compiled = [one.pattern for one in vars(module).values() if isinstance(one, re.Pattern)]
    source = ast.walk(ast.parse(Path(str(module.__file__)).read_text()))
    texts = [node.value for node in source if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    written = [
        text.replace("%s", "x").replace("%%", "%") for text in texts if re.search(r"\\[sSdDwWb]|\[\^|\(\?|\.[*+]", text)
    ]
    return {one for one in [*compiled, *written] if isinstance(one, str)}


def shortest(parts: Any, before: str, found: set[str]) -> str:
    """A short text that a pattern matches; adds tokens to ``found``."""
    text = ""
    for kind, value in parts:
        if kind is ops.LITERAL:
            text += chr(value)
        elif kind in (ops.NOT_LITERAL, ops.ANY):
            text += "x" if value != ord("x") else "y"
        elif kind is ops.IN:
            text += next((one for one in " x1a.-/[\"'\tA_(:=\n," if re.match(charset(value), one)), "")
        elif kind is ops.SUBPATTERN:
            text += shortest(value[3], before + text, found)
        elif kind in (ops.MAX_REPEAT, ops.MIN_REPEAT):
            least, most, repeated = value
            one = shortest(repeated, before + text, found)
            if most is ops.MAXREPEAT or most >= 64:
                found |= {one, before + text, before + text + one}
            text += one * least
        elif kind is ops.BRANCH:
            branches = [shortest(branch, before + text, found) for branch in value[1]]
            found |= {before + text + branch for branch in branches}
            text += min(branches, key=len)
    return text


def charset(items: Any) -> str:
    """The pattern of a set of characters."""
    categories = {
        "DIGIT": "\\d",
        "NOT_DIGIT": "\\D",
        "SPACE": "\\s",
        "NOT_SPACE": "\\S",
        "WORD": "\\w",
        "NOT_WORD": "\\W",
    }
    found = ""
    for kind, value in items:
        if kind is ops.NEGATE:
            found += "^"
        elif kind is ops.LITERAL:
            found += re.escape(chr(value))
        elif kind is ops.RANGE:
            found += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        elif kind is ops.CATEGORY:
            found += categories[str(value).removeprefix("CATEGORY_")]
    return f"[{found}]"
