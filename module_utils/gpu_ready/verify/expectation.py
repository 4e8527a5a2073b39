"""What the plan expects of a node, from the parameters of its step ``gpu_verify.verify``."""

from typing import List, Mapping, NamedTuple, Optional, Tuple

from ..containers import engine as engines


class ExpectedDriver(NamedTuple):
    """None: any."""

    branch: Optional[int] = None
    version: Optional[str] = None
    flavour: Optional[str] = None


class ExpectedRuntime(NamedTuple):
    """How docker gives GPUs to containers. ``helper``: the program that prints docker's arguments."""

    mode: Optional[str] = None
    args: Tuple[str, ...] = ()
    helper: Optional[str] = None


class ExpectedEngines(NamedTuple):
    """Container engines on which GPU containers run."""

    mode: Optional[str] = None
    names: Tuple[str, ...] = ()


class Expectation(NamedTuple):
    """``gpus``: PCI addresses."""

    driver: ExpectedDriver = ExpectedDriver()
    gpus: Tuple[str, ...] = ()
    runtime: ExpectedRuntime = ExpectedRuntime()
    engines: ExpectedEngines = ExpectedEngines()

    @property
    def mode(self) -> Optional[str]:
        """The mode of the container runtime; None where the plan names none."""
        return self.runtime.mode or self.engines.mode

    @property
    def engine_names(self) -> List[str]:
        return list(self.engines.names) or [engines.DOCKER]


def from_json(value: Mapping[str, object]) -> Expectation:
    """Read the parameters of the step; absent parts expect nothing."""
    driver, runtime, containers = (part(value, name) for name in ("driver", "runtime", "engines"))
    branch = driver.get("branch")
    return Expectation(
        ExpectedDriver(int(str(branch)) if branch else None, text(driver, "version"), text(driver, "flavour")),
        texts(value, "gpus"),
        ExpectedRuntime(text(runtime, "mode"), texts(runtime, "args"), text(runtime, "helper")),
        ExpectedEngines(text(containers, "mode"), texts(containers, "names")),
    )


def part(value: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def text(value: Mapping[str, object], name: str) -> Optional[str]:
    found = value.get(name)
    return str(found) if found else None


def texts(value: Mapping[str, object], name: str) -> Tuple[str, ...]:
    found = value.get(name)
    return tuple(str(one) for one in found) if isinstance(found, (list, tuple)) else ()
