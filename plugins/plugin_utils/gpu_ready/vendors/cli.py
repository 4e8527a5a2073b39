"""The command ``gpu-catalog``."""

import argparse
import datetime
import sys
from pathlib import Path

from ....module_utils.gpu_ready.base.plain_text import plain_text
from ..catalog import model as catalog
from ..catalog import overlay
from . import check, news, overlay_file, show
from .indexes import Tree

STATUS = (
    "Exit status: 0 all is well, 1 something is not in the catalog (diff, update: with --check) or not as it says "
    "(check), 2 an index could not be read."
)


def main(arguments: list[str] | None = None) -> int:
    """Run the command; return its exit status."""
    given = parse(arguments)
    try:
        overlay.use(given.overlay if Path(given.overlay).exists() or given.command != "update" else "")
        unknown = sorted(set(getattr(given, "distributions", [])) - set(catalog.distros()))
        if unknown:
            remedy = "use %s" % ", ".join(catalog.distros())
            raise overlay.OverlayError(f"{unknown[0]} is no distribution of the catalog", remedy)
        return int(given.run(given))
    except overlay.OverlayError as error:
        print(f"gpu-catalog: {error}. Remedy: {error.remedy}.", file=sys.stderr)
        return 2


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="gpu-catalog", description="Keep the catalog of drivers and repositories current.", epilog=STATUS
    )
    commands = parser.add_subparsers(dest="command", required=True)
    reading = argparse.ArgumentParser(add_help=False)
    reading.add_argument("distributions", nargs="*", metavar="DISTRIBUTION", help="compare only these, as el9")
    reading.add_argument("--tree", default="", help="directory or URL of a mirror, files as HOST/PATH below it")
    reading.add_argument(
        "--mirror-key", default="", metavar="FINGERPRINT", help="the key with which a mirror signs everything itself"
    )
    own = argparse.ArgumentParser(add_help=False)
    own.add_argument(
        "--overlay", default="", metavar="FILE", help="your own rows, as gpu_ready_catalog_overlay has them"
    )
    failing = argparse.ArgumentParser(add_help=False)
    failing.add_argument(
        "--check", action="store_true", help="end with 1 where something is not in the catalog, for CI"
    )
    one = commands.add_parser(
        "check", parents=[reading, own], epilog=STATUS,
        help="compare what the catalog says with the vendors' indexes: right, changed or missing",
    )  # fmt: skip
    one.add_argument("--gpus", type=Path, help="a driver's supported-gpus.json; nothing else is compared")
    one.add_argument("--all", action="store_true", help="print also what is right")
    one.set_defaults(run=run_check)
    one = commands.add_parser(
        "diff",
        parents=[reading, own, failing],
        epilog=STATUS,
        help="print what the vendors have and the catalog has not",
    )
    one.set_defaults(run=run_diff)
    one = commands.add_parser(
        "update", parents=[reading, failing], epilog=STATUS,
        help="the same, and add it to a file for gpu_ready_catalog_overlay",
    )  # fmt: skip
    one.add_argument("--overlay", required=True, metavar="FILE", help="the file to write; the rows that it has stay")
    one.set_defaults(run=run_update)
    one = commands.add_parser("show", parents=[own], help="print what the catalog has of something, with your own rows")
    one.add_argument("kind", choices=show.KINDS)
    one.add_argument("name", help="620, el9, 2330, 13.5")
    one.set_defaults(run=run_show)
    return parser.parse_args(arguments)


def run_check(given: argparse.Namespace) -> int:
    if given.gpus:
        rows = list(check.check_gpus(given.gpus))
    else:
        named, checker = list(given.distributions), check.Checker(Tree(given.tree), given.mirror_key)
        rows = list(check.check_all(checker, named or catalog.distros(), not named))
    print(plain_text(check.format_table(rows, given.all)))
    return check.exit_status(rows)


def run_diff(given: argparse.Namespace) -> int:
    found = find(given, given.overlay)
    print(plain_text(format_news(found)))
    return exit_status(found, given.check)


def run_update(given: argparse.Namespace) -> int:
    path = Path(given.overlay)
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    own = overlay.read(given.overlay) if before else {}
    found = find(given, given.overlay if before else "")
    print(plain_text(format_news(found)))
    if found.rows:
        with overlay.extended("", overlay_file.merge_rows(own, found.rows)):
            pass  # what plans refuse is not written
        try:
            overlay_file.write(path, overlay_file.format_file(own, found.rows, before, today()))
        except OSError as error:
            remedy = "name a file in a directory that this user can write"
            raise overlay.OverlayError(f"{path} cannot be written: {error.strerror}", remedy) from None
        print(f"written: {path}. Read its rows, then set gpu_ready_catalog_overlay to {path.resolve()}")
    return exit_status(found, given.check)


def run_show(given: argparse.Namespace) -> int:
    found = show.find(given.kind, given.name)
    print(catalog.age_text(today()) + (f", with the rows of {given.overlay}" if given.overlay else ""))
    if found is None:
        print(f"{given.kind} {given.name}: not in the catalog")
        return 1
    print(show.format_row(found))
    return 0


def today() -> str:
    return datetime.date.today().isoformat()


def find(given: argparse.Namespace, path: str) -> news.News:
    checker = check.Checker(Tree(given.tree), given.mirror_key)
    vendors = news.Vendors(checker, list(given.distributions) or catalog.distros())
    vendors.read()
    return news.find_news(vendors, path, today())


def format_news(found: news.News) -> str:
    """Return a line for each row, what could not be read, what needs no row, and the counts."""
    lines = [f"{'changed' if row.old else 'new'}  {row.section} {row.key}: {describe(row)}" for row in found.rows]
    lines += [f"unread  {text}" for text in dict.fromkeys(found.unread)]
    lines += [f"absent  {text}" for text in dict.fromkeys(found.absent)]
    lines += [f"note    {text}" for text in found.notes]
    new = sum(not row.old for row in found.rows)
    counts = (f"{new} new", f"{len(found.rows) - new} changed", f"{len(set(found.unread))} unread")
    return "\n".join([*lines, ", ".join([*counts, f"{len(set(found.absent))} absent", catalog.age_text(today())])])


def describe(row: news.CatalogRow) -> str:
    text = overlay_file.format_value(row.values)
    text += f", was {overlay_file.format_value(row.old)}" if row.old else ""
    return text + (f"  review: {', '.join(row.review)}" if row.review else "")


def exit_status(found: news.News, checking: bool) -> int:
    """Return 2 if an index could not be read, 1 if something is new (with --check), else 0.

    A mirror need not have everything: what is absent is no error, except where nothing is there.
    """
    if found.unread:
        return 2
    return 1 if found.rows and checking else 0
