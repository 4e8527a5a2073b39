"""The one way in which files of library/ run as Ansible modules."""

import os
from typing import Any, Callable, Dict, Type

from ansible.module_utils import basic

from . import errors, records
from .errors import GpuReadyError
from .host import Host

Run = Callable[[Host, Dict[str, Any], bool], Any]
"""Host, options and check mode in; a record of ``answers/`` out."""


def run_module(run: Run, argument_spec: Dict[str, Any], answer: Type[Any], **options: Any) -> None:
    """Run an Ansible module that supports check mode; ``options`` are further arguments of AnsibleModule."""
    module = basic.AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **options)
    exit_module(module, lambda: run(Host(), module.params, module.check_mode), answer)


def exit_module(module: Any, run: Callable[[], Any], answer: Type[Any]) -> None:
    """End a module with the record that ``run`` returns, or with the message of its error. Others are defects.

    ``warnings`` among the values are printed, with the host's name: Ansible does not say which host warns.
    """
    try:
        returned = run()
    except GpuReadyError as error:
        module.fail_json(msg=str(error), **records.to_json(error.result))
    except OSError as error:
        module.fail_json(msg=errors.describe_os_error(error))
    else:
        if not isinstance(returned, answer):
            raise TypeError("not a %s: %r" % (answer.__name__, returned))
        values = answer_values(returned)
        for warning in values.pop("warnings", ()):
            module.warn("%s: %s" % (os.uname()[1], warning))
        module.exit_json(**values)


def answer_values(answer: Any) -> Dict[str, Any]:
    """Return the values of an answer as JSON, without those that are None by default and stayed so."""
    values: Dict[str, Any] = records.to_json(answer)
    unset = [name for name, default in answer._field_defaults.items() if default is None and values[name] is None]
    return {name: value for name, value in values.items() if name not in unset}
