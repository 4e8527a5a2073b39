"""Fill catalog/translations.yml with the words of the programs' own translations (.po files).

A maintainer unpacks the source packages that the file names (`apt-get source apt dpkg dnf libdnf rpm glibc`) and gives
their directory. Messages without a translation stay without.
"""

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from ansible.module_utils.common.yaml import yaml_load

FILE = Path(__file__).resolve().parent.parent / "catalog/translations.yml"
LANGUAGES = ("de", "es", "fr", "ja", "zh_CN")
FIELD = re.compile(r'(msgid_plural|msgid|msgstr(?:\[\d\])?) (".*")$')


def parse_po(text: str) -> dict[str, str]:
    """Return the translations of a .po file by their English message.

    A fuzzy translation is that of the message before it was changed, which older releases print; the file names it.
    """
    found: dict[str, str] = {}
    for block in re.split(r"\n\s*\n", text):
        fuzzy = re.search(r"(?m)^#,.*\bfuzzy\b", block) is not None
        lines = [line[3:] for line in block.splitlines() if line.startswith("#| ")] if fuzzy else []
        original = fields_of(lines).get("msgid") if fuzzy else None
        fields = fields_of([line for line in block.splitlines() if not line.startswith("#")])
        message = original if fuzzy else fields.get("msgid")
        if message:
            found.setdefault(message, fields.get("msgstr") or fields.get("msgstr[0]") or "")
    return found


def fields_of(lines: list[str]) -> dict[str, str]:
    """Return the fields of an entry."""
    fields: dict[str, str] = {}
    name = ""
    for line in lines:
        match = FIELD.match(line)
        if match:
            name = match.group(1)
            fields[name] = ast.literal_eval(match.group(2))
        elif line.startswith('"') and name:
            fields[name] += ast.literal_eval(line)
    return fields


def translations(sources: Path, program: str, language: str) -> dict[str, str]:
    """Return the translations of a program into a language."""
    files = sorted(sources.glob(f"{program}-[0-9]*/po/{language}.po"))
    if len(files) != 1:
        sys.exit(
            f"translations: {program}: expected one {program}-*/po/{language}.po under {sources}, found {len(files)}"
        )
    return parse_po(files[0].read_text(encoding="utf-8"))


def head(text: str) -> str:
    """Return the comments at the top of the file."""
    return text[: text.index("\nprograms:") + 1]


def main() -> int:
    """Rewrite the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sources", type=Path, help="directory with the unpacked source packages")
    sources = parser.parse_args().sources
    text = FILE.read_text(encoding="utf-8")
    data: dict[str, Any] = yaml_load(text)
    missing = 0
    for program in data["programs"]:
        known = {language: translations(sources, program, language) for language in LANGUAGES}
        for row in (row for row in data["messages"] if row["program"] == program):
            originals = [one for one in known["de"] if one.rstrip("\n ") == row["message"] or one == row["message"]]
            for language in LANGUAGES:
                found = next((known[language].get(one) for one in originals or [row["message"]]), None)
                row.pop(language, None)
                if found:
                    row[language] = found.split("\n")[0].rstrip() or found.strip()
                else:
                    missing += 1
                    print(f"translations: {program}: no {language} for {row['message']!r}")
    body = yaml.safe_dump(data, allow_unicode=True, sort_keys=False, width=117, default_flow_style=False)
    FILE.write_text(head(text) + body, encoding="utf-8")
    print(f"translations: {len(data['messages'])} messages, {missing} without a translation into one language")
    return 0


if __name__ == "__main__":
    sys.exit(main())
