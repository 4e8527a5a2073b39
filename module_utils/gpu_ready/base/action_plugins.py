"""For modules whose action plugin gives them what only the control node has."""

from .errors import GpuReadyError


def missing_plugin(module: str) -> GpuReadyError:
    """Return the error of a module that runs without its action plugin."""
    return GpuReadyError(
        "Ansible did not find the action plugin of %s. Name the module gpu_ready.nodes.%s in the task."
        % (module, module)
    )
