#!/usr/bin/python
"""Merge keys into docker's daemon.json; all other keys stay."""

DOCUMENTATION = r"""
module: gpu_daemon_json
short_description: Merge keys into docker's daemon.json
description:
  - Sets keys in the file. Other keys and their order stay; indentation and line ends follow the file; owner, mode and
    a symbolic link are kept. A value that means the same already (C(args) and C(runtimeArgs), the bare name and the
    absolute path of a program) is no change, and a file without changes is not written.
  - A file that is not valid JSON is refused with line and column and never written, and one in which a key occurs
    twice. An empty file counts as an empty object.
  - Records the previous content in the manifest on the node, keeps a copy below C(/var/lib/gpu-ready/backup),
    validates the new file with C(dockerd --validate) if the engine has it (23.0 and newer), and replaces the file
    atomically.
  - Does not touch the service; RV(activation) is what the service needs.
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
    description: Keys to remove, from the top, joined with dots (V(features.cdi)).
    type: list
    elements: str
    default: []
attributes:
  check_mode: {support: full, description: Reports what would change; writes nothing.}
  diff_mode: {support: full, description: Shows the file before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Register the nvidia runtime
  gpu_ready.nodes.gpu_daemon_json:
    set:
      runtimes:
        nvidia:
          path: nvidia-container-runtime
  register: daemon_json

- name: Reload docker without a restart
  ansible.builtin.systemd_service:
    name: docker
    state: "{{ daemon_json.activation }}ed"
  when: daemon_json.activation == "reload"

- name: Enable CDI beside other features, and remove an old proxy
  gpu_ready.nodes.gpu_daemon_json:
    set: {features: {cdi: true}}
    unset: [proxies.http-proxy]

- name: Edit the configuration of a rootless engine
  gpu_ready.nodes.gpu_daemon_json:
    path: /home/ci/.config/docker/daemon.json
    set: {default-runtime: nvidia}
"""

RETURN = r"""
keys:
  description: Keys that changed, joined with dots.
  returned: always
  type: list
  elements: str
  sample: [runtimes.nvidia, default-runtime]
activation:
  description: What dockerd needs to apply the change; V(none), V(reload) (SIGHUP) or V(restart).
  returned: always
  type: str
  sample: reload
backup:
  description: Copy of the previous file; null if there was none or nothing changed.
  returned: always
  type: str
  sample: /var/lib/gpu-ready/backup/daemon.json.20261121T024500
validated:
  description: Whether dockerd validated the new file.
  returned: always
  type: bool
  sample: true
"""

from ..module_utils.gpu_ready.answers.containers import DaemonJsonAnswer
from ..module_utils.gpu_ready.base import secret_values
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.base.errors import GpuReadyError
from ..module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from ..module_utils.gpu_ready.containers.daemon_json import write as daemon_json_file

ANSWER = DaemonJsonAnswer
ARGUMENT_SPEC = {
    "path": {"type": "path", "default": "/etc/docker/daemon.json"},
    "set": {"type": "dict", "default": {}},
    "unset": {"type": "list", "elements": "str", "default": []},
}


def run(host, params, check):
    path = params["path"]
    data = host.read_bytes(path)
    try:
        change = daemon_json.merge(data, params["set"], params["unset"])
    except daemon_json.DaemonJsonError as error:
        raise GpuReadyError(
            "%s: %s. The file was not changed. Correct it (test: python3 -m json.tool %s) and run again."
            % (path, error, path)
        ) from None
    validated, backup = False, None
    try:
        if change.changed:
            validated = daemon_json_file.validate(host, change.after)
        if change.changed and not check:
            backup = daemon_json_file.write(path, data, change)
    except daemon_json_file.DaemonJsonRejected as error:
        raise GpuReadyError(
            "%s: dockerd refuses the new value of %s: %s. The file was not changed."
            % (path, ", ".join(change.keys), error)
        ) from None
    header = {"before_header": path, "after_header": path}
    return DaemonJsonAnswer(
        changed=change.changed,
        keys=change.keys,
        activation=change.activation,
        validated=validated,
        backup=backup,
        diff=dict(
            header,
            before=secret_values.mask_options(change.before or ""),
            after=secret_values.mask_options(change.after),
        ),
    )


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
