"""What a verification compares a host with: records that the planner fills in."""

from typing import Dict, List, NamedTuple, Optional

from ..containers import engine as names


class DriverTarget(NamedTuple):
    """The driver that must be installed afterwards; None: any."""

    branch: Optional[int] = None
    version: Optional[str] = None
    flavour: Optional[str] = None


class RuntimeChoice(NamedTuple):
    """How docker's containers get the GPUs. ``args`` of ``docker run``, or the ``helper`` that prints them."""

    mode: str
    default: bool
    args: List[str]
    helper: Optional[str] = None


class EnginesChoice(NamedTuple):
    """How the containers of other engines get the GPUs."""

    mode: str
    names: List[str]


class VerifyExpectation(NamedTuple):
    """What a verification compares the host with; without a plan nothing. ``gpus``: PCI addresses.

    ``parameters``: of the kernel module, by names without NVreg_. ``persistence``: the mode must be on.
    """

    driver: DriverTarget = DriverTarget()
    gpus: List[str] = []
    runtime: Optional[RuntimeChoice] = None
    engines: Optional[EnginesChoice] = None
    parameters: Dict[str, str] = {}
    persistence: bool = False

    @property
    def mode(self) -> Optional[str]:
        choice = self.runtime or self.engines
        return choice.mode if choice else None

    @property
    def uses_gpus_option(self) -> bool:
        """Whether docker's container gets its GPUs by ``--gpus``."""
        return self.runtime is not None and "--gpus" in self.runtime.args

    @property
    def engine_names(self) -> List[str]:
        return self.engines.names if self.engines else [names.DOCKER]
