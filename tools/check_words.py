"""Find words that the project does not use, in names, comments, messages and documents, and print what to use instead.

usage: tools/check_words.py [--summary] [PATH]...     PATH: files or directories; default: everything that git tracks

The list is tools/words.yml. Exit status 1 if anything was found. --summary prints counts per directory and per word.
"""

import argparse
import ast
import fnmatch
import functools
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "tools/words.yml"
MARK = "third-party text"
BINARY = (".png", ".gz", ".xz", ".deb", ".rpm", ".asc", ".gpg", ".json")
"""Not read. JSON files are records that other tools write."""
MARGIN = r"(?:[ \t#*\"'>|]|\\n)*"
GAP = rf"(?=\W){MARGIN}\n?{MARGIN}"
"""What separates two words of a phrase: blanks, one line break with a comment mark, the seam of two string literals."""
START = r"(?<![\w-])"
FSTRING = re.compile(r"[rR]?[fF]")
"""Up to Python 3.11 an f-string is one token; what is between braces is code."""
READ = {tokenize.COMMENT, tokenize.STRING, tokenize.NEWLINE, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
"""Tokens with words, and the end of a statement."""


class Word(NamedTuple):
    """One entry of the list."""

    pattern: "re.Pattern[str]"
    use: str
    prose_only: bool


class Exemption(NamedTuple):
    """A path (glob) that is not checked; with `lines`, only the lines that match are not."""

    path: str
    lines: "re.Pattern[str] | None"


class Finding(NamedTuple):
    """A word in a file."""

    path: str
    line: int
    found: str
    use: str

    def __str__(self) -> str:
        return f'{self.path}:{self.line}: "{self.found}": use {self.use}'


class WordList(NamedTuple):
    """tools/words.yml."""

    words: list[Word]
    starts: "re.Pattern[str]"
    """An empty match wherever one of the words begins: one search in place of one per word."""
    function_names: set[str]
    variable_names: set[str]
    exemptions: list[Exemption]


@functools.cache
def project_list() -> WordList:
    """Return the list of this repository, read once per process."""
    return read_list(LIST.read_text(encoding="utf-8"))


def read_list(text: str) -> WordList:
    """Parse tools/words.yml; a wrong expression raises re.error."""
    data = yaml_load(text)
    words, bodies = [], []
    for entry in data["words"]:
        find = re.sub(r"(?<!\[) ", lambda _: GAP, entry["find"])
        body = rf"(?:{find})(?!\w)"
        bodies.append(body)
        words.append(Word(re.compile(rf"{START}{body}", re.IGNORECASE), entry["use"], entry.get("prose", False)))
    starts = re.compile(rf"{START}(?=[a-z])(?={'|'.join(bodies)})", re.IGNORECASE)
    exemptions = [
        Exemption(entry["path"], re.compile(entry["lines"]) if "lines" in entry else None) for entry in data["exempt"]
    ]
    return WordList(words, starts, set(data["function_names"]), set(data["variable_names"]), exemptions)


def check_text(path: str, text: str, known: WordList) -> list[Finding]:
    """Find words in one file. `path` is relative to the repository."""
    exempted = [entry for entry in known.exemptions if fnmatch.fnmatch(path, entry.path)]
    if any(entry.lines is None for entry in exempted):
        return []
    found = list(check_name(path, 1, Path(path).stem, known)) if "/" in path else []
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python"):
        prose, excluded = python_prose(text)
        found += [finding for finding in python_names(path, text, known) if finding.line not in excluded]
    else:
        lines = text.split("\n")
        skipped = [
            MARK in line or any(entry.lines and entry.lines.search(line) for entry in exempted) for line in lines
        ]
        prose = "\n".join("" if skip else line for line, skip in zip(lines, skipped, strict=True))
    # A name inside prose is read like one in code.
    prose = re.sub(r"(?<=[a-z])_(?=[a-z])", " ", prose)
    prose = re.sub(r"[ \t]+", " ", prose)
    for start in known.starts.finditer(prose):
        for word in known.words:
            match = word.pattern.match(prose, start.start())
            if match:
                line = prose.count("\n", 0, match.start()) + 1
                found.append(Finding(path, line, " ".join(re.findall(r"\w+", match.group())), word.use))
    return sorted(set(found))


def python_prose(text: str) -> tuple[str, set[int]]:
    """Comments and strings of a Python file at their places, everything else blank; and the lines that are exempt."""
    lines = [list(" " * len(line)) for line in text.split("\n")]
    source = text.split("\n")
    excluded: set[int] = set()
    first, marked = 1, False
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in READ:
            continue
        if token.type == tokenize.COMMENT and MARK in token.string:
            marked = True
        if token.type != tokenize.NEWLINE:
            for number in range(token.start[0], token.end[0] + 1):
                start = token.start[1] if number == token.start[0] else 0
                end = token.end[1] if number == token.end[0] else len(source[number - 1])
                part = source[number - 1][start:end]
                if token.type == tokenize.STRING and FSTRING.match(token.string):
                    part = re.sub(r"\{[^{}]*\}", lambda match: " " * len(match.group()), part)
                lines[number - 1][start:end] = part
        else:
            if marked:
                excluded.update(range(first, token.end[0] + 1))
            first, marked = token.end[0] + 1, False
    return "\n".join("" if number in excluded else "".join(line) for number, line in enumerate(lines, 1)), excluded


def python_names(path: str, text: str, known: WordList) -> Iterator[Finding]:
    """Find words in the names that a Python file defines. Uses of a name are not counted."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from check_name(path, node.lineno, node.name, known)
            if node.name in known.function_names:
                yield Finding(path, node.lineno, f"def {node.name}", "a verb and what it acts on")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield from check_name(path, node.lineno, node.id, known)
            if node.id in known.variable_names:
                yield Finding(path, node.lineno, node.id, "a noun")
        elif isinstance(node, ast.arg):
            yield from check_name(path, node.lineno, node.arg, known)


def check_name(path: str, line: int, name: str, known: WordList) -> Iterator[Finding]:
    """Find words in one identifier."""
    spelled = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ")
    for start in known.starts.finditer(spelled):
        for word in known.words:
            if not word.prose_only and word.pattern.match(spelled, start.start()):
                yield Finding(path, line, name, word.use)


def tracked(paths: Iterable[str]) -> list[str]:
    """Files that git tracks below these paths, without links and binary files."""
    listed = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--", *paths], stdout=subprocess.PIPE, check=True, text=True
    )
    names = [name for name in listed.stdout.split("\0") if name and not name.endswith(BINARY)]
    return [name for name in names if (ROOT / name).is_file() and not (ROOT / name).is_symlink()]


def summary(found: list[Finding]) -> str:
    """Count findings per directory and per word, the largest number first."""
    places = Counter("/".join(finding.path.split("/")[:-1][:3]) or "." for finding in found)
    words = Counter(finding.use for finding in found)
    lines = [f"{count:6} {place}" for place, count in places.most_common()]
    return "\n".join([*lines, "", *(f"{count:6} use {use}" for use, count in words.most_common())])


def check_file(name: str) -> list[Finding]:
    """Find words in one file of the repository. Runs in a process of the pool."""
    try:
        text = (ROOT / name).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return []
    return check_text(name, text, project_list())


def find(names: list[str]) -> list[Finding]:
    """Find words in these files, on all cores."""
    with ProcessPoolExecutor() as pool:
        return [finding for part in pool.map(check_file, names, chunksize=20) for finding in part]


def main() -> int:
    """Check files and print findings."""
    parser = argparse.ArgumentParser(description="Find words that tools/words.yml replaces.")
    parser.add_argument("--summary", action="store_true", help="print counts per directory and per word only")
    parser.add_argument("paths", nargs="*", help="files or directories of the repository")
    given = parser.parse_args()
    found = find(tracked(given.paths))
    if given.summary and found:
        print(summary(found))
    elif found:
        print("\n".join(map(str, found)))
    print(f"check_words: {len(found)} findings" if found else "check_words: clean")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
