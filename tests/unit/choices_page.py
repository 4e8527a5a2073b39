"""docs/dev/driver_choices.md: which driver each card gets on each distribution, and which source has which branch."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan.compose import Plan

PAGE = Path(__file__).resolve().parents[2] / "docs/dev/driver_choices.md"
HEAD = """\
# Which driver each card gets

Written by `.venv/bin/python -m tests.unit.goldens` from the planner's own answers; do not edit. Read its difference
after a change of the catalog or of the planner: this page is the part of the golden plans that a person checks. The
complete plans are in `tests/unit/golden/plans.txt`.

## With `nvidia_driver_source: auto`

The source, the branch and the flavour of the kernel module for a fresh host. "unknown" is a card that is newer than the
catalog. A cell in italics is the code of a refusal.

"""
BRANCHES = """
## Branches

Which sources have a branch: `d` the distribution (`distro`), `c` NVIDIA's repository (`cuda_repo`), `e` `elrepo`, `r`
NVIDIA's installer (`runfile`). A capital letter: also with precompiled modules; ELRepo has no others. With an asterisk:
no public source confirms that the repository has the branch.

"""


def page(plan: Callable[[str, str], Plan], sets: Sequence[str]) -> str:
    """Return the page; `plan` returns the plan for a set of GPUs on a distribution."""
    distros = catalog.distros()
    choices = [[names, *(choice(plan(names, distro)) for distro in distros)] for names in sets if names != "none"]
    carried = [[str(one.number), *(sources(distro, one.number) for distro in distros)] for one in catalog.branches()]
    tables = [table([head, *distros], rows) for head, rows in (("GPUs", choices), ("branch", carried))]
    return HEAD + tables[0] + BRANCHES + tables[1]


def choice(decided: Plan) -> str:
    """Return source, branch and flavour of the driver, or the code of the refusal."""
    if decided.refusals:
        return ", ".join(f"*{one.code}*" for one in decided.refusals)
    driver = decided.choices.driver
    if not decided.gpu_host or not driver:
        return "-"
    return f"{driver.source} {driver.branch} {driver.flavour}" + (" precompiled" if driver.kind != "dkms" else "")


def sources(distro: str, branch: int) -> str:
    """Return the letters of the sources that have a branch."""
    return " ".join(letters(distro, branch)) or "-"


def letters(distro: str, branch: int) -> Iterator[str]:
    """Yield a letter for each source that has a branch."""
    data = catalog.distro(distro)
    for source in driver_sources.source_names(data):
        if branch in driver_sources.all_branches(data, source):
            kinds = driver_sources.module_kinds(data, source)
            precompiled = driver_sources.PRECOMPILED in kinds and branch in driver_sources.branches(
                data, source, driver_sources.PRECOMPILED
            )
            doubtful = driver_sources.is_unverified(data, source, "branches", branch)
            yield (source[0].upper() if precompiled and len(kinds) > 1 else source[0]) + ("\\*" if doubtful else "")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table with columns of equal width, so that a difference shows only the cells that changed."""
    lines = [head, head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    padded[1] = ["-" * width for width in widths]
    return "".join(f"| {' | '.join(line)} |\n" for line in padded)
