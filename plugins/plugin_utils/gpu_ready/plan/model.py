"""The records of a plan: what planners choose, the steps with their parameters, refusals and warnings."""

import json
from collections.abc import Sequence
from typing import Generic, NamedTuple, TypeVar

from ....module_utils.gpu_ready.base.disruptions import NONE
from ....module_utils.gpu_ready.base.records import Word
from ....module_utils.gpu_ready.verify.expectation import EnginesChoice, RuntimeChoice, VerifyExpectation

# ---- parameters of steps -------------------------------------------------------------------------------------------


class PackageTarget(NamedTuple):
    """A package to install; ``version`` as package managers match it, None for any."""

    name: str
    version: str | None = None


class PinRequest(NamedTuple):
    """Preferences of apt for the packages of a repository."""

    package: str | list[str]
    pin: str
    priority: int
    path: str


Words = list[str]


class RepositoryRequest(NamedTuple):
    """A package repository to add. ``kind`` is deb or rpm; ``keyring`` and ``list`` are paths.

    ``gpgcheck`` and ``repo_gpgcheck`` are of rpm; ``suites``, ``components`` and ``pin`` of deb.
    ``adopted``: the host's own entry that is used (a file of apt, a section of dnf): only the pin or the key is added.
    """

    id: str
    kind: str
    url: str
    key_url: str
    fingerprint: str | None
    keyring: str
    list: str
    suites: str | Words = ""
    components: str | Words = ""
    pin: PinRequest | None = None
    key_sha256: str | None = None
    gpgcheck: bool = True
    repo_gpgcheck: bool = False
    adopted: str | None = None

    @property
    def pinned_fingerprint(self) -> str:
        return "".join((self.fingerprint or "").split()).upper()


class ServingEntry(NamedTuple):
    """An enabled entry of the host's own sources that serves a repository. ``name``: a section of dnf, or the path.

    ``problem``: why it cannot be used, "" where it can. ``key_trusted``: dnf takes the pinned key from a file.
    """

    path: str
    name: str
    problem: str = ""
    key_trusted: bool = True


class RepositoryParams(NamedTuple):
    """``components`` of the distribution's archive and ``enable``, sections of its .repo files, are switched on."""

    repositories: list[RepositoryRequest] = []
    components: list[str] | None = None
    enable: list[str] | None = None


class FileDiff(NamedTuple):
    """What --diff shows of a file."""

    path: str
    before: str | None
    after: str | None


class NoParams(NamedTuple):
    """A step without parameters."""


# ---- choices -------------------------------------------------------------------------------------------------------


class InstallerFile(NamedTuple):
    """A .run installer. ``version`` is None where it is unknown; ``source``: a URL or a path on the control node."""

    version: str | None
    source: str
    sha256: Word = ""
    sha256_url: str = ""


class DriverChoice(NamedTuple):
    """The driver that a host gets. ``kind`` of kernel modules: dkms or precompiled. ``cuda``: newest that it supports.

    ``version`` is None where every version of the branch will do. ``satisfied``: it is installed completely.
    ``detected``: packages that the source's own detector may name. ``exact``: requested versions of packages by name.
    ``extends``: the installed driver stays, and only packages that are missing beside it are added in its version.
    ``moved``: ``version`` is a newer point release of the installed branch, which no variable names.
    """

    source: str
    kind: str | None
    branch: int | None
    flavour: str | None
    version: str | None
    profile: str | None
    packages: list[str]
    modules: list[str]
    satisfied: bool = False
    why: str = ""
    stream: str | None = None
    cuda: str | None = None
    runfile: InstallerFile | None = None
    detected: list[str] | None = None
    exact: dict[str, str] | None = None
    extends: bool = False
    moved: bool = False


class ActivationChoice(NamedTuple):
    """``action``: load, reload, reboot, none (left to the operator), or None where nothing has to be done."""

    action: str | None


class ServicesChoice(NamedTuple):
    """The packages of the driver's services that a step installs or starts; whether persistence mode must be on."""

    fabricmanager: str | None = None
    imex: str | None = None
    persistenced: str | None = None
    persistence: bool = False


class ToolkitChoice(NamedTuple):
    """A CUDA toolkit and its directory."""

    version: str
    path: str


class CudaChoice(NamedTuple):
    """The toolkits that a host has when the plan is done."""

    source: str
    toolkits: list[ToolkitChoice] = []
    default: str | None = None


class CudnnChoice(NamedTuple):
    """``versions``: of cuDNN by the version of the toolkit."""

    source: str
    versions: dict[str, str] = {}


class Choices(NamedTuple):
    """What the planners chose so far, in the order in which they run. ``parameters``: of the module, as requested."""

    driver: DriverChoice | None = None
    activation: ActivationChoice | None = None
    services: ServicesChoice | None = None
    cuda: CudaChoice | None = None
    cudnn: CudnnChoice | None = None
    runtime: RuntimeChoice | None = None
    engines: EnginesChoice | None = None
    parameters: dict[str, str] = {}


class VerifyParams(NamedTuple):
    """``digest``: of the desired state."""

    expect: VerifyExpectation
    digest: str


# ---- decisions -----------------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """One thing to do. ``id`` is ``<role>.<task file>``, ``params`` one of the records whose names end in Params.

    ``verify_after``: the verification has to follow; a step without it changes no GPU and no container.
    """

    id: str
    why: str
    disruption: str = NONE
    params: NamedTuple = NoParams()
    diff: Sequence[FileDiff] = ()
    verify_after: bool = True

    @property
    def role(self) -> str:
        return self.id.partition(".")[0]

    @property
    def action(self) -> str:
        return self.id.partition(".")[2]


class VariableChange(NamedTuple):
    """Variables to set, each to one of some values, the best one first, and variables to leave out.

    ``effect``: what a variable does whose name does not say it ("to have it replaced").
    """

    values: dict[str, list[object]]
    without: list[str] = []
    effect: str = ""

    @property
    def text(self) -> str:
        """Return it in words: set A to 1, 2 or 3 and B to 4, and leave C out."""
        parts = ["%s to %s" % (name, alternatives_text(values)) for name, values in self.values.items()]
        texts = ["set " + " and ".join(parts)] if parts else []
        texts += ["leave %s out" % " and ".join(self.without)] if self.without else []
        return ", and ".join(texts) + (self.effect and " " + self.effect)


def alternatives_text(values: Sequence[object]) -> str:
    """Return values as an operator writes them, the last one after an "or"."""
    words = [value if isinstance(value, str) else json.dumps(value) for value in values]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


class Refusal(NamedTuple):
    """Why nothing may be done on this host, and what to do about it.

    ``change``: the remedy as variables, where it is that: with them the planner refuses nothing, or something that no
    variable helps. ``run``: the remedy as a command on the host. The text of ``remedy`` is made from either.
    """

    code: Word
    message: str
    remedy: str
    change: VariableChange | None = None
    run: str = ""


def refuse(code: str, message: str, remedy: VariableChange | str, *others: str, run: str = "") -> Refusal:
    """Return a refusal whose remedy is a change of variables, a command, or words; ``others``: what else would do."""
    return Refusal(code, message, *remedy_form(remedy, others), run)


def remedy_form(remedy: VariableChange | str, others: Sequence[str]) -> tuple[str, VariableChange | None]:
    """Return the text of a remedy, and the variables that it sets."""
    change = remedy if isinstance(remedy, VariableChange) else None
    return ", or ".join([change.text if change else str(remedy), *others]), change


class Notice(NamedTuple):
    """What the operator should know although it stops nothing.

    ``change``: the remedy as variables: with them there is no such notice. ``run``: as a command on the host, which
    ``remedy`` contains.
    """

    code: Word
    message: str
    remedy: str
    change: VariableChange | None = None
    run: str = ""


def notify(code: str, message: str, remedy: VariableChange | str, *others: str, run: str = "") -> Notice:
    """Return a notice whose remedy is a change of variables, a command, or words; ``others``: what else would do."""
    return Notice(code, message, *remedy_form(remedy, others), run)


def not_held_reason(names: Sequence[str], together: str) -> str:
    """Return why packages are held: which are not, and what has one version only."""
    found = names[0] + " is" if len(names) == 1 else "%d packages are" % len(names)
    return "%s not held, so an unattended upgrade could leave %s at different versions" % (found, together)


C_co = TypeVar("C_co", covariant=True)


class Decision(Generic[C_co]):
    """What one planner decided: its choice for later planners, and what follows from it."""

    def __init__(
        self,
        choice: C_co | None = None,
        steps: Sequence[Step] = (),
        refusals: Sequence[Refusal] = (),
        warnings: Sequence[Notice] = (),
    ) -> None:
        self.choice = choice
        self.steps = list(steps)
        self.refusals = list(refusals)
        self.warnings = list(warnings)
