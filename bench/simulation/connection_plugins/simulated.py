"""The way to a simulated host: module and options are sent to the program of simulated_hosts.py, its answer comes back as over ssh."""

from __future__ import annotations

import ast
import json
import re
import socket
from typing import Any

from ansible.errors import AnsibleConnectionFailure
from ansible.plugins.connection import ConnectionBase

DOCUMENTATION = """
name: simulated
short_description: hosts of bench/simulation
description: [Every call is sent to a program on the control node that answers for all hosts.]
options:
  host:
    description: name of the host
    vars: [{name: inventory_hostname}, {name: ansible_host}]
  socket:
    description: the socket on which the simulated hosts answer
    env: [{name: GPU_READY_SIMULATION}]
    required: true
  controller:
    description: name of this control node, for the record
    env: [{name: GPU_READY_CONTROLLER}]
    default: ""
extends_documentation_fragment: [connection_pipelining]
"""

# What ansible-core writes into the program that it sends (executor/module_common.py): since 2.19, and before.
NAMES = (re.compile(rb"^ansible_module=(.+),$", re.M), re.compile(rb"prefix='ansible_' \+ (.+) \+ '_payload_'"))
OPTIONS = (re.compile(rb"^params=(.+),$", re.M), re.compile(rb"^ +ANSIBALLZ_PARAMS = (.+)$", re.M))


def read_payload(payload: bytes) -> tuple[str, dict[str, Any]]:
    """Return the name and the options of the module in a program of Ansible."""
    found = []
    for expressions in (NAMES, OPTIONS):
        match = next(filter(None, (one.search(payload) for one in expressions)), None)
        if match is None:
            raise ValueError("Ansible sent a program whose module cannot be read")
        found.append(str(ast.literal_eval(match[1].decode())))
    return found[0].rpartition(".")[2], dict(json.loads(found[1])["ANSIBLE_MODULE_ARGS"])


class Connection(ConnectionBase):  # type: ignore[misc]
    """Sends a call, waits for the answer."""

    transport = "simulated"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a module or a command; AnsibleConnectionFailure where the host does not answer."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        module, options = read_payload(in_data) if in_data else ("", {})
        call = {"host": self.get_option("host"), "controller": self.get_option("controller"), "command": cmd}
        answer = ask(self.get_option("socket"), {**call, "module": module, "options": options})
        if "unreachable" in answer:
            raise AnsibleConnectionFailure(answer["unreachable"])
        return answer["rc"], answer["out"].encode(), b""

    def put_file(self, in_path: str, out_path: str) -> None:
        """Refuse: no call of the simulated plays sends files."""
        raise AnsibleConnectionFailure(f"a simulated host takes no file ({in_path})")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Refuse: no call of the simulated plays fetches files."""
        raise AnsibleConnectionFailure(f"a simulated host has no file ({in_path})")

    def close(self) -> None:
        """Nothing is kept open."""
        self._connected = False

    def reset(self) -> None:
        """Nothing is kept open."""


def ask(path: str, call: dict[str, Any]) -> dict[str, Any]:
    """Send a call to the program of the simulated hosts and return its answer."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stream:
        try:
            stream.connect(path)
            stream.sendall(json.dumps(call).encode() + b"\n")
            with stream.makefile("rb") as lines:
                line = lines.readline()
        except OSError as error:
            raise AnsibleConnectionFailure(f"the simulated hosts do not answer: {error}") from None
    if not line:
        raise AnsibleConnectionFailure("Connection closed by the host")
    return dict(json.loads(line))
