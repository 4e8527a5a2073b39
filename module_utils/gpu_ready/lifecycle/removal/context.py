"""What all subjects of an uninstallation share: the host, the manifest, what runs there, and the list of actions."""

import os
from typing import Callable, List, NamedTuple, Optional, Sequence

from ...base import manifest
from ...base import pending as rebuilds
from ...base.host import Host
from ...facts import affected
from ...facts import docker as docker_facts
from ...facts import work as work_facts
from ...facts.model import DockerFacts, WorkFacts
from ...packaging import manager as packages
from ...packaging import select
from ...upgrade import journal
from .errors import UninstallError
from .package_plan import PackagePlan, plan_packages

LIMIT = 1200.0


class Action(NamedTuple):
    """One change to revert: its description, and the function that does it."""

    words: str
    act: Callable[[], object]


class Removal:
    """The changes to revert on this host. The list is made first, so check mode shows what a real run does.

    ``permitted``: disruptions that may stop work (gpu_ready_disrupt). ``driver_packages``: a regular expression that
    the names of packages of a driver match. ``stops``: what the permitted disruptions stop. ``kept``: what gpu-ready
    added and does not remove, each with the reason.
    """

    def __init__(
        self,
        host: Host,
        directory: str = manifest.DIRECTORY,
        permitted: Sequence[str] = (),
        driver_packages: str = "",
    ) -> None:
        self.host = host
        self.directory = directory
        self.permitted = permitted
        self.driver_packages = driver_packages
        self.stops: List[str] = []
        self.kept: List[str] = []
        self.path = directory + "/manifest.json"
        self.mark = directory + "/" + os.path.basename(rebuilds.PATH)
        self.manager = select.choose_manager(host, journal.is_open(host))
        self.recorded = manifest.read(self.path)
        self.held_by = ""
        self._engine: Optional[DockerFacts] = None
        self._work: Optional[WorkFacts] = None
        self._packages: Optional[PackagePlan] = None

    @property
    def engine(self) -> DockerFacts:
        """What docker answers, collected once."""
        if self._engine is None:
            self._engine = docker_facts.collect_engine(self.host)
        return self._engine

    @property
    def work(self) -> WorkFacts:
        """What runs on the host, collected once."""
        if self._work is None:
            self._work = work_facts.collect(self.host, self.engine)
        return self._work

    def refuse_work(self, disruption: str, text: str, work: affected.AffectedWork) -> None:
        """Raise UninstallError for work that would be stopped without permission; remember what may be stopped.

        ``text`` has a %s for the work.
        """
        if work.is_empty:
            return
        if disruption not in self.permitted:
            raise UninstallError(
                "%s; nothing was removed: let it end or stop it, or permit it with gpu_ready_disrupt: [%s]"
                % (text % work.text(), disruption)
            )
        self.stops.append(text % work.text())

    def run(self, argv: List[str]) -> None:
        """Run a program that changes the host; UninstallError when it fails."""
        answer = self.host.run(argv, LIMIT)
        if answer.rc != 0:
            raise UninstallError(
                "`%s` ended with %d (%s): repair the cause on the host, then run again"
                % (" ".join(argv), answer.rc, (answer.err or answer.out).strip()[-300:])
            )

    @property
    def packages(self) -> PackagePlan:
        """Which packages are removed and which are kept, asked once."""
        if self._packages is None:
            self._packages = plan_packages(self.manager, self.recorded)
        return self._packages

    def docker_stays(self) -> bool:
        """Return True if gpu-ready does not remove docker."""
        return not set(packages.GROUPS["docker"]) & set(self.packages.remove)

    def delete(self, path: str) -> None:
        """Delete a file that may be deleted already, and its directory if that is empty."""
        if os.path.lexists(path):
            os.unlink(path)
        directory = os.path.dirname(path)
        if os.path.isdir(directory) and not os.listdir(directory):
            os.rmdir(directory)
