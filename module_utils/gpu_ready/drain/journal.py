"""The journal of what gpu-ready drained on a host, ``/var/lib/gpu-ready/drain.json``.

Each drain hook records its entry before it acts. Only entries are undrained. A run that was killed between record and
act finds the entry and acts.
"""

from typing import Dict, List, NamedTuple, Optional

from ..base import files, json_file, manifest, records
from ..base.errors import GpuReadyError
from ..base.host import Host

PATH = manifest.DRAIN
SCHEMA = 1


class DrainError(GpuReadyError):
    """A host cannot be drained or undrained."""


class StoppedContainer(NamedTuple):
    """A container that ran and was stopped."""

    name: str
    paused: bool = False


class DockerDrain(NamedTuple):
    """Stopped containers by their id."""

    containers: Dict[str, StoppedContainer] = {}


class SlurmDrain(NamedTuple):
    """``controller``: the host on which scontrol runs."""

    node: str
    controller: str
    reason: str


class KubernetesDrain(NamedTuple):
    """``host``: the host on which kubectl runs. ``kubeconfig`` and ``context``: "" for kubectl's defaults."""

    node: str
    host: str
    kubeconfig: str = ""
    context: str = ""
    reason: str = ""


class TasksDrain(NamedTuple):
    """Task files of the operator, in the order in which they ran: the sha256 of the path of each.

    Whoever can write the journal must not select a file of the control node: the paths come from gpu_upgrade_drain.
    """

    hooks: List[str] = []


class DrainJournal(NamedTuple):
    """One entry for each hook that drained the host."""

    docker: Optional[DockerDrain] = None
    slurm: Optional[SlurmDrain] = None
    kubernetes: Optional[KubernetesDrain] = None
    tasks: Optional[TasksDrain] = None


def from_json(value: Dict[str, object]) -> DrainJournal:
    """Raises records.RecordError where an entry has another form."""
    return records.from_json(DrainJournal, value)


def to_json(journal: DrainJournal) -> Dict[str, object]:
    return {hook: records.to_json(entry) for hook, entry in journal._asdict().items() if entry is not None}


def read(host: Host, path: str = PATH) -> DrainJournal:
    """Return the journal; without entries if there is no file. DrainError if it is damaged or of a newer gpu-ready."""
    try:
        value = json_file.read_json_file(host, path)
        if value is None:
            return DrainJournal()
        return from_json(records.without_schema(value, SCHEMA, path))
    except (json_file.DamagedFileError, records.RecordError) as error:
        raise DrainError(
            "%s: it cannot be read, so what was drained here is unknown (%s). Undrain this host by hand "
            "(docker start, scontrol, kubectl uncordon), then delete that file." % (path, error)
        ) from None


def merge(journal: DrainJournal, entries: DrainJournal) -> DrainJournal:
    return journal._replace(**{hook: entry for hook, entry in entries._asdict().items() if entry is not None})


def without(journal: DrainJournal, hooks: List[str]) -> DrainJournal:
    return journal._replace(**dict.fromkeys(hooks))


def record_entries(host: Host, entries: DrainJournal, path: str = PATH) -> bool:
    """Add or replace entries, before what they describe is done; True if the journal changed."""
    before = read(host, path)
    return _write(before, merge(before, entries), path)


def remove_entries(host: Host, hooks: List[str], path: str = PATH) -> bool:
    """Remove entries after they were undrained, and the file with the last one; True if the journal changed."""
    before = read(host, path)
    return _write(before, without(before, hooks), path)


def _write(before: DrainJournal, after: DrainJournal, path: str) -> bool:
    if after == before:
        return False
    value = to_json(after)
    if value:
        files.write_json_file(path, dict(value, schema=SCHEMA))
    else:
        files.delete_file(path)
    return True


def describe(journal: DrainJournal) -> List[str]:
    """Return what is drained, one phrase per entry."""
    found = []
    if journal.docker:
        names = sorted(container.name for container in journal.docker.containers.values())
        found.append("docker's containers %s are stopped" % ", ".join(names))
    if journal.slurm:
        found.append("slurm's node %s is drained" % journal.slurm.node)
    if journal.kubernetes:
        found.append("the Kubernetes node %s is cordoned" % journal.kubernetes.node)
    if journal.tasks:
        found.append("task files of gpu_upgrade_drain drained it: %d" % len(journal.tasks.hooks))
    return found
