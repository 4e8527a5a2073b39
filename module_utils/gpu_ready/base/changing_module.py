"""Modules that change the host on which they run: they hold the lease of their run meanwhile."""

from typing import Any, Dict, Type

from . import lease, module
from .host import Host


def run_changing_module(run: module.Run, argument_spec: Dict[str, Any], answer: Type[Any], **options: Any) -> None:
    """:func:`module.run_module` for a module that changes its host: refused while another run works on it."""

    def run_with_lease(host: Host, params: Dict[str, Any], check: bool) -> Any:
        work = lease.current_run()
        if check or work is None:
            return run(host, params, check)
        with lease.hold(host, work):
            return run(host, params, check)

    module.run_module(run_with_lease, argument_spec, answer, **options)
