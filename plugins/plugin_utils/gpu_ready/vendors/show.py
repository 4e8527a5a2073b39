"""What the catalog has of a branch, a distribution, a GPU or a toolkit, with the operator's rows."""

from typing import Any

import yaml

from ....module_utils.gpu_ready.base import versions
from ..catalog import data as catalog_data
from ..catalog import driver_sources
from ..catalog import model as catalog

KINDS = ("branch", "distribution", "gpu", "toolkit")


def find(kind: str, name: str) -> dict[str, Any] | None:
    """Return what the catalog has, None where it has nothing of that name."""
    if kind == "branch":
        known = catalog_data.BRANCHES.get(int(name)) if name.isdigit() else None
        return known and {**known, "sources": sources_of(int(name))}
    if kind == "distribution":
        return catalog_data.DISTROS.get(name)
    if kind == "gpu":
        device = name.lower().removeprefix("10de:").removeprefix("0x")
        groups = [group for group in catalog_data.GPU_GROUPS if device in group["ids"]]
        return (
            {**{k: v for k, v in groups[-1].items() if k != "ids"}, "name": groups[-1]["ids"][device]}
            if groups
            else None
        )
    toolkit = catalog_data.TOOLKITS.get(name)
    if toolkit is None:
        return None
    same = [one for one in catalog_data.CUDA_INSTALLERS if one.startswith(name + ".")]
    cudnns = [one.version for one in catalog.cudnns() if name.split(".")[0] in one.cuda]
    return {**toolkit, "installers": sorted(same, key=versions.key), "cudnn": cudnns}


def sources_of(number: int) -> list[str]:
    """Return who has a branch: `el9 cuda_repo`, with the kind of module where it is not DKMS."""
    return [
        f"{name} {source}" + ("" if kind == driver_sources.DKMS else f" {kind}")
        for name in catalog.distros()
        for source in driver_sources.source_names(catalog.distro(name))
        for kind in driver_sources.module_kinds(catalog.distro(name), source)
        if driver_sources.carries(catalog.distro(name), source, kind, number)
    ]


class Plain(yaml.SafeDumper):
    """Writes what several rows share out in each of them."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def format_row(row: dict[str, Any]) -> str:
    return str(yaml.dump(row, Dumper=Plain, sort_keys=False, width=120)).rstrip()
