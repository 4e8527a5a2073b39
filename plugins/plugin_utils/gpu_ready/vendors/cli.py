"""The command ``gpu-catalog``."""

import argparse
from pathlib import Path

from ..catalog import model as catalog
from . import check
from .indexes import Tree


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    parser = argparse.ArgumentParser(
        prog="gpu-catalog", description="Keep the catalog of drivers and repositories current."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser(
        "check",
        help="compare the catalog with the vendors' own indexes, and print what is right, changed or missing",
        epilog="Exit status: 0 everything is right, 1 something is changed or missing, 2 an index could not be read.",
    )
    one.add_argument("distributions", nargs="*", metavar="DISTRIBUTION", choices=[[], *catalog.distros()])
    one.add_argument("--tree", default="", help="directory or URL of a mirror, files as HOST/PATH below it")
    one.add_argument("--gpus", type=Path, help="a driver's supported-gpus.json; nothing else is compared")
    one.add_argument("--all", action="store_true", help="print also what is right")
    given = parser.parse_args(arguments)
    if given.gpus:
        rows = list(check.check_gpus(given.gpus))
    else:
        named = list(given.distributions)
        rows = list(check.check_all(check.Checker(Tree(given.tree)), named or catalog.distros(), not named))
    print(check.format_table(rows, given.all))
    return check.exit_status(rows)
