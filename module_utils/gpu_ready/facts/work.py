"""The work of a host that a change could stop: processes that hold a GPU, running containers, jobs of Slurm.

Collecting starts nothing: docker is asked only where dockerd runs, because systemd may start it for a request to its
socket (docker.socket). Other people chose these names, so they are shortened and cleaned.
"""

import posixpath
import re
from typing import Dict, List, NamedTuple, Optional

from ..base.host import Host, process_user
from ..base.json_file import parse_json
from ..containers import docker
from ..driver import gpu_services
from ..driver.gpu_processes import ROOTLESS, container_id, describe_commands, gpu_process_ids
from ..system.process_identity import unit_of
from .docker import objects, query
from .model import ContainerFacts, DockerFacts, GpuProcess, WorkFacts

LONGEST_NAME = 64
LONGEST_COMMAND = 200
MOST_CONTAINERS = 256
"""Containers of an engine that are described; each costs a request or a file. Of more, only the number is known."""
MOST_PROCESSES = 256
TASKS = {
    "/run/containerd/io.containerd.runtime.v2.task": "containerd",
    "/run/k3s/containerd/io.containerd.runtime.v2.task": "k3s",
}
"""Where containerd has a directory for each namespace with one for each running container, by engine."""
DOCKERS_NAMESPACE = "moby"
SLURM_STEP = r"slurmstepd: \[(\d+)"
"""The process title of a job's step: ``slurmstepd: [4711.batch]`` (slurm.schedmd.com/cgroup_v2.html)."""
SLURM_CGROUP = r"(?m)^(?!.*/user@).*/job_(\d+)(?:/|$)"
"""Not below user@UID.service: there users name cgroups as they like."""
NODE_EXPORTERS = ("node_exporter", "prometheus-node")
"""Names of its processes; the second is the name in packages, as the kernel truncates it."""
EXPORTER_UNIT = r".*node[_-]exporter.*\.service$"


class Daemons(NamedTuple):
    """Processes by what they stand for: ``slurmstepd`` for a job's step, ``conmon`` for a container of podman or CRI-O.

    ``exporters``: node_exporter, of the host or of a container.
    """

    steps: List[int]
    monitors: List[int]
    exporters: List[int]


class ListedContainers(NamedTuple):
    """Docker's running containers, and how many more of them are not described."""

    containers: List[ContainerFacts]
    unlisted: int


def collect(host: Host, engine: DockerFacts, daemons: Optional[Daemons] = None) -> WorkFacts:
    """Collect the work of a host; ``daemons``: of find_daemons, where they were searched already.

    The driver counts its open nodes, so the open files of all processes are not searched where that count is zero.
    """
    found = docker_containers(host, engine)
    daemons = daemons or find_daemons(host)
    containers = found.containers + containerd_containers(host) + monitored_containers(host, daemons.monitors)
    processes = sorted(gpu_processes(host))[:MOST_PROCESSES] if may_be_in_use(host) else []
    inside = {process.container for process in processes}
    containers = [one._replace(gpu=one.gpu or "GPU") if one.id in inside else one for one in containers]
    names = {one.id: one.name for one in containers}
    commands = describe_commands(host, [process.pid for process in processes], LONGEST_COMMAND)
    return WorkFacts(
        processes=[describe_process(host, process, names, commands[process.pid]) for process in processes],
        containers=containers,
        unlisted=found.unlisted,
        jobs=slurm_jobs(host, daemons.steps),
    )


def may_be_in_use(host: Host) -> bool:
    """Return False if the driver is not loaded, or nothing but its own modules holds one of its modules.

    A kernel that cannot unload modules counts no users: it has no file refcnt (CONFIG_MODULE_UNLOAD,
    kernel/module/main.c). Such are kernels of microVMs.
    """
    for name in host.listdir("/sys/module"):
        if name == "nvidia" or name.startswith("nvidia_"):
            directory = "/sys/module/" + name
            count = re.match(r"\s*([0-9]{1,9})\s*$", host.read(directory + "/refcnt") or "")
            if count is None or int(count.group(1)) > len(host.listdir(directory + "/holders")):
                return True
    return False


def gpu_processes(host: Host) -> List[GpuProcess]:
    """Return the processes with a device node of the driver open; ``container`` is an id."""
    found = []
    for pid in gpu_process_ids(host):
        name = (host.read("/proc/%d/comm" % pid) or "").strip()
        found.append(GpuProcess(pid, name, container_id(host, pid)))
    return found


def clean(text: str, longest: int = LONGEST_NAME) -> str:
    """Return a name of the host without control characters and of limited length."""
    plain = "".join(character if character.isprintable() else "?" for character in text[: longest + 1])
    return plain if len(plain) <= longest else plain[: longest - 3] + "..."


# ---- processes -----------------------------------------------------------------------------------------------------


def describe_process(host: Host, process: GpuProcess, names: Dict[str, str], command: str) -> GpuProcess:
    cgroup = host.read("/proc/%d/cgroup" % process.pid) or ""
    job = re.search(SLURM_CGROUP, cgroup)
    identity = process.container
    return process._replace(
        name=clean(process.name),
        command=clean(command, LONGEST_COMMAND),
        container=names.get(identity, identity[:12]) if identity else None,
        service=gpu_services.is_gpu_service(host, process.pid, cgroup),
        job=job.group(1) if job else None,
    )


def find_daemons(host: Host) -> Daemons:
    """Find daemons by name, without the processes of users who gave theirs such a name.

    slurmstepd stays root's while it works for a user. A conmon may be any user's (monitored_containers).
    """
    found: Dict[str, List[int]] = {}
    for name in host.listdir("/proc"):
        if name.isdigit():
            found.setdefault((host.read("/proc/%s/comm" % name) or "").strip(), []).append(int(name))
    exporters = [pid for name in NODE_EXPORTERS for pid in found.get(name, [])]
    return Daemons(
        [pid for pid in found.get("slurmstepd", []) if process_user(host, pid) == 0],
        found.get("conmon", []),
        [pid for pid in exporters if is_node_exporter(host, pid)],
    )


def is_node_exporter(host: Host, pid: int) -> bool:
    """Return True if such a process is root's, belongs to a unit of node_exporter, or runs in a container."""
    unit = unit_of(host.read("/proc/%d/cgroup" % pid) or "")
    return (
        process_user(host, pid) == 0
        or bool(re.match(EXPORTER_UNIT, unit))
        or container_id(host, pid) not in (None, ROOTLESS)
    )


def slurm_jobs(host: Host, steps: List[int]) -> List[str]:
    """Return the ids of the Slurm jobs whose steps run here. ``slurmstepd infinity`` belongs to no job.

    A step whose title cannot be read in time is a job too, by its cgroup or by its process.
    """
    titles = host.command_lines(steps)
    found = {match.group(1) for match in (re.match(SLURM_STEP, words[0]) for words in titles.values()) if match}
    for pid in steps:
        if pid not in titles and host.isdir("/proc/%d" % pid):
            match = re.search(SLURM_CGROUP, host.read("/proc/%d/cgroup" % pid) or "")
            found.add(match.group(1) if match else "of process %d" % pid)
    return sorted(found, key=lambda job: (len(job), job))


# ---- containers ----------------------------------------------------------------------------------------------------


def docker_containers(host: Host, engine: DockerFacts) -> ListedContainers:
    """Return docker's running containers, also paused ones.

    Asked without ``limit``, which means "this number of most recently created containers, including non-running ones"
    (docs.docker.com, Docker Engine API 1.57, ContainerList; the default is the running ones).
    """
    if engine.info is None or engine.socket is None:
        return ListedContainers([], 0)
    rows = query(host, engine.socket, "/containers/json")
    if not isinstance(rows, list):
        return ListedContainers([], engine.info.running)
    listed = objects(rows)
    found = []
    for row in listed[:MOST_CONTAINERS]:
        answer = query(host, engine.socket, "/containers/%s/json" % row.get("Id"))
        found.append(describe_container(row, answer))
    return ListedContainers(found, len(listed) - len(found))


def describe_container(row: Dict[str, object], answer: object) -> ContainerFacts:
    """Return a container of docker by its row in the list and, where docker described it, its details."""
    identity, names = str(row.get("Id") or ""), row.get("Names")
    name = str(names[0] if isinstance(names, list) and names else identity[:12]).lstrip("/")
    labels = row.get("Labels")
    pod = pod_name(labels, "io.kubernetes.pod.namespace", "io.kubernetes.pod.name")
    gpu = docker.gpu_access(answer) if isinstance(answer, dict) else "not described by docker"
    return ContainerFacts("docker", identity, clean(pod or name), gpu, bool(pod))


def pod_name(labels: object, namespace: str, name: str) -> str:
    """Return "namespace/name" of a container's pod, "" where it belongs to none."""
    if not isinstance(labels, dict) or not labels.get(name):
        return ""
    return "%s/%s" % (labels.get(namespace) or "default", labels[name])


def containerd_containers(host: Host) -> List[ContainerFacts]:
    bundles = [
        (engine, root, space, name)
        for root, engine in sorted(TASKS.items())
        for space in host.listdir(root)
        if space != DOCKERS_NAMESPACE
        for name in host.listdir(posixpath.join(root, space))
    ]
    return [
        bundled_container(host, engine, posixpath.join(root, space, name), "%s/%s" % (space, name))
        for engine, root, space, name in bundles[:MOST_CONTAINERS]
    ]


def bundled_container(host: Host, engine: str, bundle: str, name: str) -> ContainerFacts:
    """Return a container by its bundle (the OCI runtime's config.json)."""
    text = host.read_foreign(bundle + "/config.json") or ""
    try:
        spec = parse_json(text or "{}")
        access = docker.oci_access(text, spec)
    except (ValueError, AttributeError, TypeError):
        return ContainerFacts(engine, posixpath.basename(bundle), clean(name), "not readable")
    annotations = spec.get("annotations")
    pod = pod_name(annotations, "io.kubernetes.cri.sandbox-namespace", "io.kubernetes.cri.sandbox-name")
    pod = pod or pod_name(annotations, "io.kubernetes.pod.namespace", "io.kubernetes.pod.name")
    return ContainerFacts(engine, posixpath.basename(bundle), clean(pod or name), access, bool(pod))


def monitored_containers(host: Host, monitors: List[int]) -> List[ContainerFacts]:
    """Return the running containers of podman and CRI-O, by the arguments of their conmon.

    Any user can start a program of this name. So what it says counts if root started it; for another user, who may have
    rootless containers, if the bundle is his, and neither as a pod nor under a name without his number.
    """
    found = []  # conmon -c ID -n NAME -b BUNDLE
    lines = host.command_lines(monitors[:MOST_CONTAINERS])
    for pid in monitors[:MOST_CONTAINERS]:
        user = process_user(host, pid)
        if user is None:
            continue
        if pid not in lines and host.isdir("/proc/%d" % pid):
            name = name_of_container("of process %d" % pid, user)
            found.append(ContainerFacts("podman", "", name, "not readable"))
        words = lines.get(pid, [])
        options = {word: words[index + 1] for index, word in enumerate(words[:-1]) if word in ("-c", "-n", "-b")}
        if {"-c", "-b"} <= set(options) and (user == 0 or host.owner(options["-b"]) == user):
            name = options.get("-n") or options["-c"][:12]
            container = bundled_container(host, "podman", options["-b"], name)._replace(id=options["-c"])
            if user != 0:  # neither may belong to somebody else's container
                identity = "%d:%s" % (user, clean(options["-c"]))
                container = container._replace(id=identity, name=name_of_container(name, user), pod=False)
            found.append(container)
    return found


def name_of_container(name: str, user: int) -> str:
    return "%s (rootless, of user %d)" % (clean(name), user) if user else name
