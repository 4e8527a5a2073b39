"""What a fleet has in common: its driver branches."""

from collections import Counter
from collections.abc import Iterable

from ....module_utils.gpu_ready.base import versions


def mixed_branches(drivers: Iterable[str | None]) -> str:
    """Return the branches of a fleet with more than one and the variable that settles it, "" for one or none.

    ``drivers``: the version or the branch that each host is to have. Which branch it is, is the operator's choice: no
    host gets another driver because the others have it.
    """
    counts = Counter(versions.branch(driver) for driver in drivers if driver and versions.branch(driver))
    if len(counts) < 2:
        return ""
    found = ", ".join("%d x %d" % (count, branch) for branch, count in sorted(counts.items()))
    return "fleet_mixed: %s; nvidia_driver_branch settles it" % found
