"""Catalogs for tests: the project's own, without what came later than the numbers of a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from plugins.plugin_utils.gpu_ready.catalog import data


@contextmanager
def until(newest: int) -> Iterator[None]:
    """Use the catalog without the branches after this one: a new branch changes no example of a rule."""
    rows = data.read_rows()
    branches = rows["branches"]
    branches["branches"] = {number: row for number, row in branches["branches"].items() if number <= newest}
    branches["archives"] = {
        name: [number for number in listed if number <= newest] for name, listed in branches["archives"].items()
    }
    data.use(rows)
    yield
    data.use(data.read_rows())


def newest_of_the_lab() -> int:
    """Return the newest branch that the lab's mirror has packages of."""
    from gpu_ready_lab import mirror

    return max(int(rpm.version.split(".")[0]) for rpm in mirror.declared()[1] if rpm.name == "nvidia-driver-cuda")
