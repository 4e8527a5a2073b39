"""Which work of a host a disruption stops, by its names for messages.

Services of the driver that gpu-ready itself stops and starts (driver/gpu_services.py) are no work.
"""

from typing import Dict, List, NamedTuple

from ..base.disruptions import CONTAINERD_RESTART, DOCKER_RESTART, DRIVER_RELOAD, KUBERNETES_RESTART, REBOOT
from ..containers import names as engines
from .model import ContainerFacts, GpuProcess, WorkFacts

MOST_NAMES = 4
CONSEQUENCES = {
    DOCKER_RESTART: "docker would restart (%s), which stops %s",
    CONTAINERD_RESTART: "containerd would restart (%s), which stops %s",
    KUBERNETES_RESTART: "Kubernetes would restart on this host (%s), which stops %s",
    DRIVER_RELOAD: "the driver would be replaced (%s) while it is used by %s",
    REBOOT: "the host would reboot (%s), which stops %s",
}


class AffectedWork(NamedTuple):
    """The work that a disruption stops: names for messages, and the number of containers without a name here."""

    names: List[str]
    unlisted: int = 0

    @property
    def is_empty(self) -> bool:
        return not self.names and not self.unlisted

    def text(self) -> str:
        rest = len(self.names[MOST_NAMES:]) + self.unlisted
        shown = ", ".join(self.names[:MOST_NAMES]) or "running containers"
        return "%s and %d more" % (shown, rest) if rest else shown


def users_of_gpus(work: WorkFacts) -> AffectedWork:
    """Return what uses a GPU or may use one at any time: processes, Slurm jobs, containers that can reach a GPU."""
    names = holders(work) + job_names(work) + container_names([one for one in work.containers if one.gpu])
    return AffectedWork(unique(names), work.unlisted)


def everything(work: WorkFacts) -> AffectedWork:
    return AffectedWork(unique(holders(work) + job_names(work) + container_names(work.containers)), work.unlisted)


def containers_of_engines(work: WorkFacts, *names: str) -> AffectedWork:
    listed = [one for one in work.containers if one.engine in names]
    return AffectedWork(unique(container_names(listed)), work.unlisted if engines.DOCKER in names else 0)


def holders(work: WorkFacts) -> List[str]:
    """Return what holds a GPU open, by the name of its container or Slurm job, else as a process."""
    names = {one.name: container_name(one) for one in work.containers if one.gpu}
    return unique([holder_name(process, names) for process in work.processes if is_work(process)])


def job_names(work: WorkFacts) -> List[str]:
    return ["Slurm job %s" % job for job in work.jobs]


def is_work(process: GpuProcess) -> bool:
    """Return True if a process is none of the driver's own services.

    The same program in a container is no unit of systemd.
    """
    return bool(process.container or not process.service)


def holder_name(process: GpuProcess, names: Dict[str, str]) -> str:
    if process.job:
        return "Slurm job %s" % process.job
    if process.container:
        return names.get(process.container, "container %s" % process.container)
    return "process %d (%s)" % (process.pid, process.name)


def container_names(containers: List[ContainerFacts]) -> List[str]:
    """Return the names for messages, those with a GPU first; a pod of several containers has one name."""
    found: Dict[str, str] = {}
    for one in sorted(containers, key=lambda one: (not one.gpu, one.name)):
        found.setdefault(one.name, container_name(one))
    return list(found.values())


def container_name(container: ContainerFacts) -> str:
    kind = "pod" if container.pod else "container"
    return "%s %s%s" % (kind, container.name, " (%s)" % container.gpu if container.gpu else "")


def unique(names: List[str]) -> List[str]:
    return list(dict.fromkeys(names))
