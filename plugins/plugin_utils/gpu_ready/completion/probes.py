"""What hosts look for, by the catalog."""

from ....module_utils.gpu_ready.base import records
from ....module_utils.gpu_ready.facts.probes import ManagedHost, Probes
from ..catalog import model as catalog
from ..catalog.driver_packages import LIBRARIES, MODULES, PARTS, pattern_text
from .driver_origin import companion_patterns


def make_probes() -> Probes:
    """Return the probes for hosts of all systems of the catalog."""
    systems = [catalog.distro(key) for key in catalog.distros()]
    return Probes(
        libraries=pattern_text(LIBRARIES),
        modules=pattern_text(MODULES),
        parts=pattern_text(PARTS),
        companions=sorted(
            {one for data in systems if data["package_manager"] == "apt" for one in companion_patterns(data)}
        ),
        managed=[
            ManagedHost(key, list(row.get("paths") or []), dict(row.get("texts") or {}))
            for key, row in catalog.managed_hosts().items()
        ],
        cuda={str(branch.number): branch.cuda for branch in catalog.branches()},
    )


def probes_json() -> dict[str, object]:
    """Return the probes as the argument of a module."""
    found: dict[str, object] = records.to_json(make_probes())
    return found
