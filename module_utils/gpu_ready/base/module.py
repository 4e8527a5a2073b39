"""The one way in which files of library/ run as Ansible modules."""

import os
from typing import Any, Callable, Dict

from ansible.module_utils import basic

from . import errors
from .errors import GpuReadyError
from .host import Host

Run = Callable[[Host, Dict[str, Any], bool], Dict[str, Any]]
"""Host, options and check mode in; return values out, with ``changed``."""


def run_module(run: Run, argument_spec: Dict[str, Any], **options: Any) -> None:
    """Run an Ansible module that supports check mode; ``options`` are further arguments of AnsibleModule."""
    module = basic.AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **options)
    exit_module(module, lambda: run(Host(), module.params, module.check_mode))


def exit_module(module: Any, run: Callable[[], Dict[str, Any]]) -> None:
    """End a module with what ``run`` returns, or with the message of its error. Other exceptions are defects.

    ``warnings`` among the values are printed, with the host's name: Ansible does not say which host warns.
    """
    try:
        result = run()
    except GpuReadyError as error:
        module.fail_json(msg=str(error), **error.result)
    except OSError as error:
        module.fail_json(msg=errors.describe_os_error(error))
    else:
        for warning in result.pop("warnings", ()):
            module.warn("%s: %s" % (os.uname()[1], warning))
        module.exit_json(**result)
