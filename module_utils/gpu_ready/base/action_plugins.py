"""For modules whose action plugin does all of the work, or gives the module what only the control node has."""

from typing import Any, Dict, NoReturn, Type

from .errors import GpuReadyError


def missing_plugin(module: str) -> GpuReadyError:
    """Return the error of a module that runs without its action plugin."""
    return GpuReadyError(
        "Ansible did not find the action plugin of %s. Name the module gpu_ready.nodes.%s in the task."
        % (module, module)
    )


def run_without_plugin(module: str, argument_spec: Dict[str, Any], answer: Type[Any]) -> None:
    """Run a module that only documents its action plugin: it can only say that Ansible did not find that."""
    from .module import run_module  # the action plugin imports the module too, for its options, and runs none

    def fail(*_: object) -> NoReturn:
        raise missing_plugin(module)

    run_module(fail, argument_spec, answer)
