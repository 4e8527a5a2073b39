"""Why podman cannot run GPU containers. It has no daemon and needs no configuration: it reads CDI specifications."""

from .....module_utils.gpu_ready.facts.model import PodmanFacts
from ..model import Refusal

FIRST_CDI = [4, 1]


def refusals(engine: PodmanFacts) -> list[Refusal]:
    if not engine.installed:
        return [
            Refusal(
                "podman_missing",
                "podman is not installed, and nvidia_container_runtime_engines names it",
                "install the package podman (4.1 or newer), or take podman out of nvidia_container_runtime_engines",
            )
        ]
    version = engine.version
    if version and version[:2] < FIRST_CDI:
        return [
            Refusal(
                "engine_without_cdi",
                "podman %s has no CDI, the one way to GPUs that gpu-ready sets up for it (4.1 is the first that has it)"
                % ".".join(str(part) for part in version),
                "install podman 4.1 or newer, or take podman out of nvidia_container_runtime_engines",
            )
        ]
    return []
