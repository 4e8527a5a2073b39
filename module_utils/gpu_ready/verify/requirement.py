"""What an image asks of the driver (NVIDIA_REQUIRE_*), judged before NVIDIA's hook would refuse to start it.

An expression is alternatives with blanks between, each of conditions with commas between: ``cuda>=12.4 brand=tesla,
driver>=535,driver<536``. What cannot be known here (``brand``, ``arch``) leaves an alternative open.
"""

import json
import re
from typing import Any, Dict, List, Optional

from ..base import versions
from ..base.host import Host
from ..catalog import model as catalog
from ..containers import engine as engines
from .checks import Check, judge
from .devices import mode_of

CONDITION = re.compile(r"^(\w+)(>=|<=|!=|=|>|<)([\w.-]+)$")
HINT = "install a newer driver, use an image of an older CUDA, or set NVIDIA_DISABLE_REQUIRE=1 where you know better"


def look(host: Host, engine: str, image: str) -> Dict[str, str]:
    """Return the variables of an image that is there; none where the engine does not tell (``ctr`` does not)."""
    if engine == engines.CONTAINERD:
        return {}
    name = engines.name(engine, image)
    result = host.run([engine, "image", "inspect", "--format", "{{json .Config.Env}}", name], timeout=60.0)
    return read(result.out) if result.rc == 0 else {}


def read(text: str) -> Dict[str, str]:
    """Read an engine's JSON list of NAME=VALUE."""
    try:
        rows = json.loads(text.strip() or "null")
    except ValueError:
        return {}
    return dict(row.split("=", 1) for row in rows or [] if isinstance(row, str) and "=" in row)


def asked(variables: Dict[str, str]) -> List[str]:
    """Return the expressions that have to hold, all of them; older images of CUDA say their version only."""
    if variables.get("NVIDIA_DISABLE_REQUIRE", "").lower() in ("1", "true", "t"):
        return []
    found = [value for name, value in sorted(variables.items()) if name.startswith("NVIDIA_REQUIRE_") and value.strip()]
    if not found and re.match(r"\d+\.\d+", variables.get("CUDA_VERSION", "")) and "NVIDIA_VISIBLE_DEVICES" in variables:
        found = ["cuda>=" + ".".join(variables["CUDA_VERSION"].split(".")[:2])]
    return found


def holds(condition: str, known: Dict[str, str]) -> Optional[bool]:
    """Return whether a condition holds, None where its subject is not known here."""
    match = CONDITION.match(condition.strip())
    if match is None or match.group(1) not in known:
        return None
    order = versions.compare(known[match.group(1)], match.group(3))
    return {">=": order >= 0, "<=": order <= 0, ">": order > 0, "<": order < 0, "=": order == 0, "!=": order != 0}[
        match.group(2)
    ]


def met(expression: str, known: Dict[str, str]) -> Optional[bool]:
    """Return whether an expression is met: one alternative holds; None where an open one may."""
    answers = []
    for alternative in expression.split():
        parts = [holds(condition, known) for condition in alternative.split(",")]
        answers.append(False if False in parts else None if None in parts else True)
    return True if True in answers else None if None in answers else False


def driver_cuda(driver: str) -> Optional[str]:
    """Return the CUDA version that a driver's libcuda brings, by its branch."""
    branch = catalog.branch(int(driver.split(".")[0])) if driver.split(".")[0].isdigit() else None
    return branch.cuda if branch else None


def check(world: Dict[str, Any], engine: str) -> List[Check]:
    """Check that the image's conditions are met; nothing is said of an image without any."""
    variables = (world.get("requirements") or {}).get(engine) or {}
    driver = (world["observed"]["driver"].get("loaded") or {}).get("version")
    expressions = asked(variables)
    if not expressions or not driver:
        return []
    computed = world.get("compute")
    known = {"driver": driver}
    cuda = (computed.cuda if computed else None) or driver_cuda(driver)
    if cuda:
        known["cuda"] = cuda
    has = "driver %s%s" % (driver, ", CUDA %s" % cuda if cuda else "")
    unmet = [text for text in expressions if met(text, known) is False]
    if not unmet:
        return [judge("image_requirement", True, " and ".join(expressions), has)]
    if mode_of(world["expect"]) != "toolkit":
        found = "%s; the mode %s does not enforce it, programs of the image may fail" % (has, mode_of(world["expect"]))
        return [Check("image_requirement", None, " and ".join(unmet), found)]
    return [judge("image_requirement", False, " and ".join(unmet), has, "the image is made for a newer driver", HINT)]
