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
    """Run an Ansible module that supports check mode; ``options`` are further arguments of AnsibleModule.

    It ends with the record that ``run`` returns, or with the message of its error; other exceptions are defects.
    ``warnings`` among the values are printed, with the host's name: Ansible does not say which host warns.
    """
    module = basic.AnsibleModule(argument_spec=argument_spec, supports_check_mode=True, **options)
    try:
        returned = run(Host(), module.params, module.check_mode)
    except GpuReadyError as error:
        module.fail_json(msg=str(error), **records.to_json(error.result))
    except OSError as error:
        module.fail_json(msg=errors.describe_os_error(error))
    else:
        if not isinstance(returned, answer):
            raise TypeError("not a %s: %r" % (answer.__name__, returned))
        values = records.answer_values(returned)
        for warning in values.pop("warnings", ()):
            module.warn("%s: %s" % (os.uname()[1], warning))
        module.exit_json(**values)
