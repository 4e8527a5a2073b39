"""What the types of facts do not say. The facts of a host are checked before anything is planned from them."""

import re
from collections.abc import Iterator

from ....module_utils.gpu_ready.base.records import RecordError
from ....module_utils.gpu_ready.facts.model import Facts
from ..catalog import model as catalog


def check_form(facts: Facts) -> None:
    """Raise RecordError for a value that has the type of its field, but no meaning; it names the field."""
    for field, what, value, right in _rules(facts):
        if not right:
            raise RecordError("Facts.%s must be %s, not %r" % (field, what, value))


def _rules(facts: Facts) -> Iterator[tuple[str, str, object, bool]]:
    """Yield the field, what it must be, its value, and whether it is that."""
    base, containerd = facts.base, facts.engines.containerd
    distro = base.distro
    yield "base.distro", "a distribution of the catalog", distro, distro is None or distro in catalog.distros()
    for number, gpu in enumerate(base.gpus):
        right = re.match(r"[0-9a-f]{4}\Z", gpu.device) is not None
        yield "base.gpus[%d].device" % number, "four hexadecimal digits", gpu.device, right
    main = bool(containerd.files) or not containerd.record
    yield "engines.containerd.files", "the files that the recorded keys are in", containerd.files, main
    old = facts.upgrade.from_ if facts.upgrade else None
    branch = old.branch if old else ""
    yield "upgrade.from.branch", "a number", branch, re.match(r"\d{0,5}\Z", branch) is not None
