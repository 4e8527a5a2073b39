#!/usr/bin/python
"""Merge keys into docker's daemon.json and leave everything else in it as it is."""

DOCUMENTATION = r"""
module: gpu_daemon_json
short_description: Merge keys into docker's daemon.json, byte for byte around them
description:
  - Edits the text of the file. Other keys, their order, indentation, line ends and escapes stay as they are; owner,
    mode and a symbolic link are kept. What already means the same (C(args) and C(runtimeArgs), a bare and an absolute
    path of one program) is no change.
  - A file that is not strict JSON is refused with line and column and never written. An empty one counts as an empty
    object.
  - Notes in the manifest on the node what was there before, keeps a copy below C(/var/lib/gpu-ready/backup), has the
    new text checked by C(dockerd --validate) where the engine has it (23.0 and newer), and replaces the file in one
    step.
  - Does not touch the service; RV(activation) says what it needs.
options:
  path:
    description: The file.
    type: path
    default: /etc/docker/daemon.json
  set:
    description:
      - Keys to set. Mappings are merged key by key, lists and single values replaced.
    type: dict
    default: {}
  unset:
    description: Keys to take out, from the top, joined with dots (V(features.cdi)).
    type: list
    elements: str
    default: []
  validate:
    description: Have C(dockerd --validate) check the new text first.
    type: bool
    default: true
attributes:
  check_mode: {support: full, description: Says what would change; writes nothing.}
  diff_mode: {support: full, description: Shows the file before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Register the nvidia runtime
  gpu_daemon_json:
    set:
      runtimes:
        nvidia:
          path: nvidia-container-runtime
  register: daemon_json

- name: Let docker take it over without a restart
  ansible.builtin.systemd_service:
    name: docker
    state: "{{ daemon_json.activation }}ed"
  when: daemon_json.activation == "reload"

- name: Turn on CDI beside the features that are there, and drop an old proxy
  gpu_daemon_json:
    set: {features: {cdi: true}}
    unset: [proxies.http-proxy]

- name: Edit the configuration of a rootless engine
  gpu_daemon_json:
    path: /home/ci/.config/docker/daemon.json
    set: {default-runtime: nvidia}
    validate: false
"""

RETURN = r"""
keys:
  description: Keys that changed, joined with dots.
  returned: always
  type: list
  elements: str
  sample: [runtimes.nvidia, default-runtime]
activation:
  description: What dockerd needs to take the change over; V(none), V(reload) (SIGHUP) or V(restart).
  returned: always
  type: str
  sample: reload
backup:
  description: Copy of the file as it was; null where there was none or nothing changed.
  returned: always
  type: str
  sample: /var/lib/gpu-ready/backup/daemon.json.20261121T024500
validated:
  description: Whether dockerd checked the new text.
  returned: always
  type: bool
  sample: true
"""

from ansible.module_utils.gpu_ready.base import validation
from ansible.module_utils.gpu_ready.base.errors import GpuReadyError
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from ansible.module_utils.gpu_ready.containers.daemon_json import write as daemon_json_file

ARGUMENT_SPEC = {
    "path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "set": {"type": "dict", "default": {}},
    "unset": {"type": "list", "elements": "str", "default": []},
    "validate": {"type": "bool", "default": True},
}


def run(host, params, check):
    path = params["path"]
    data = host.read_bytes(path)
    try:
        change = daemon_json.merge(data, params["set"], params["unset"])
    except daemon_json.DaemonJsonError as error:
        raise GpuReadyError(
            "%s is left as it is: %s. Correct it (test: python3 -m json.tool %s) and run again." % (path, error, path)
        ) from None
    validated, backup = False, None
    try:
        if change.changed and params["validate"]:
            validated = daemon_json_file.validate(host, change.after)
        if change.changed and not check:
            backup = daemon_json_file.write(path, data, change)
    except daemon_json_file.Refused as error:
        raise GpuReadyError(
            "%s is left as it is: with %s in it, dockerd says: %s" % (path, ", ".join(change.keys), error)
        ) from None
    header = {"before_header": path, "after_header": path}
    return {
        "changed": change.changed,
        "keys": change.keys,
        "activation": change.activation,
        "validated": validated,
        "backup": backup,
        "diff": dict(header, before=validation.masked(change.before or ""), after=validation.masked(change.after)),
    }


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
