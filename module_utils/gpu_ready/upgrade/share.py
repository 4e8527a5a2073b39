"""Which host builds the modules of the coming driver for which others. Pure."""

import json
from typing import Any, Dict, List, NamedTuple


class Shares(NamedTuple):
    """The builder of each host that takes modules, itself among them; and why the others compile in their turn."""

    builders: Dict[str, str]
    alone: Dict[str, str]


OFF = "gpu_upgrade_build_once is off"
NOT = "not built beforehand (%s)"


def share(hosts: List[str], alike: Dict[str, Dict[str, Any]], wanted: Dict[str, bool]) -> Shares:
    """Return who builds for whom: of hosts that are alike, the first in the order of the rollout.

    ``alike`` is what two hosts have to share (upgrade_modules.alike), or only ``why``; ``wanted`` is
    gpu_upgrade_build_once.
    """
    builders = {}  # type: Dict[str, str]
    alone = {}
    first = {}  # type: Dict[str, str]
    for name in hosts:
        found = alike.get(name) or {"why": "nothing is fetched again in a run that goes on"}
        if not wanted.get(name, True):
            alone[name] = OFF
        elif "why" in found:
            alone[name] = str(found["why"])
        else:
            builders[name] = first.setdefault(json.dumps(found, sort_keys=True), name)
    return Shares(builders, alone)


def told(hosts: List[str], shares: Shares, failures: Dict[str, str]) -> Dict[str, str]:
    """Return in words where the modules of each host come from; ``failures``: why one could not build or take."""
    found = {}
    for name in hosts:
        builder = shares.builders.get(name)
        if builder is None:
            found[name] = NOT % shares.alone.get(name, "it takes no part")
        elif name in failures:
            found[name] = NOT % failures[name]
        elif builder in failures:
            found[name] = NOT % ("%s did not build for it" % builder)
        else:
            found[name] = "built beforehand" if builder == name else "built on %s" % builder
    return found


def table(hosts: List[str], words: Dict[str, str]) -> str:
    """Return the words as lines, hosts with the same ones together."""
    by_words = {}  # type: Dict[str, List[str]]
    for name in hosts:
        by_words.setdefault(words[name], []).append(name)
    return "\n".join("modules %s: %s" % (said, ", ".join(names)) for said, names in by_words.items())
