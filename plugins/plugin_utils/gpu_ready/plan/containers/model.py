"""Parameters of the steps of docker_engine and nvidia_container_runtime: one record per step."""

from typing import Any, NamedTuple

from ..model import PackageTarget

DaemonOptions = dict[str, Any]
"""Keys of daemon.json, nested as in the file, with any JSON value."""


class DockerInstallParams(NamedTuple):
    """docker_engine.install: packages, their holds, and the ``state`` that the service gets."""

    packages: list[PackageTarget]
    optional: list[str]
    remove: list[str]
    hold: list[str]
    unhold: list[str]
    service: str
    state: str


class DaemonJsonEdit(NamedTuple):
    """Keys of daemon.json to set (nested as in the file) and to remove (dotted)."""

    path: str
    set_: DaemonOptions
    unset: list[str]


class DaemonJsonParams(NamedTuple):
    """docker_engine.configure, nvidia_container_runtime.configure; ``activation``: "none", "reload" or "restart"."""

    daemon_json: DaemonJsonEdit
    activation: str


class RuntimeInstallParams(NamedTuple):
    """nvidia_container_runtime.install."""

    packages: list[PackageTarget]


class SupportFile(NamedTuple):
    """A small file that gpu-ready adds for containers, such as a unit that makes device nodes."""

    path: str
    content: str
    mode: str
    state: str = "present"


class CdiSpecParams(NamedTuple):
    """nvidia_container_runtime.cdi_spec: ``generator`` is "nvidia-ctk" or "native".

    ``unrefreshed``: where the specification is written instead by a toolkit that does not refresh it ("": at ``path``).
    """

    path: str
    generator: str
    remove: list[str]
    files: list[SupportFile]
    feature_flags: list[str]
    unrefreshed: str = ""


class DriverVolumeParams(NamedTuple):
    """nvidia_container_runtime.volume."""

    files: list[SupportFile]


class CleanupParams(NamedTuple):
    """nvidia_container_runtime.cleanup: what gpu-ready added and no engine uses any more.

    ``remains``: files that the removed packages leave behind. ``containers`` are stopped first.
    """

    packages: list[str]
    containers: list[str]
    paths: list[str]
    remains: list[str]


class ContainerdParams(NamedTuple):
    """nvidia_container_runtime.containerd; ``state`` of the service, "" to leave it as it is."""

    mode: str
    default: bool
    state: str


class CrioParams(NamedTuple):
    """nvidia_container_runtime.crio; ``state`` of the service, "" to leave it as it is."""

    files: list[SupportFile]
    state: str


class KubernetesParams(NamedTuple):
    """nvidia_container_runtime.kubernetes: ``unit`` of k3s or RKE2, its ``state``, and the file that it writes then."""

    unit: str
    file: str
    state: str


class MigrationParams(NamedTuple):
    """nvidia_container_runtime.migrate: the removal of nvidia-docker 1.0 or nvidia-docker2.

    ``keep``: packages to mark as installed by hand, so that apt does not remove them as no longer needed.
    """

    packages: list[str]
    containers: list[str]
    volumes: list[str]
    services: list[str]
    left: list[str]
    keep: list[str]
    daemon_json: str
