"""The versions that a host's own package sources have of packages that belong together."""

from collections.abc import Sequence

from ....module_utils.gpu_ready.base import versions
from ....module_utils.gpu_ready.facts.model import Facts
from ....module_utils.gpu_ready.packaging.index_record import FRESH


def common_versions(facts: Facts, names: Sequence[str]) -> list[str]:
    """Return the upstream versions that all of these packages have, newest first; [] unless the index is fresh."""
    index = facts.offered
    if index is None or index.state != FRESH or not names:
        return []
    found = [{versions.upstream(one) for one in index.versions.get(name, [])} for name in names]
    return sorted(set.intersection(*found), key=versions.key, reverse=True)
