"""Files of the lab for Ansible and ssh: an inventory, host keys and an ssh configuration."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from . import paths
from .fleet import Fleet
from .say import LabError

KEX_ALGORITHM = "curve25519-sha256"
"""The default of OpenSSH 9 is post-quantum, and costs 0.1 seconds of a processor for each connection."""
KEX_OPTION = f" -o KexAlgorithms={KEX_ALGORITHM}"


def inventory_text(addresses: Mapping[str, str], directory: Path) -> str:
    """Return the inventory: hosts with their addresses, and how to reach them with host keys checked."""
    hosts = "".join(f"{name} ansible_host={address}\n" for name, address in addresses.items())
    return f"""\
# Written by the lab; variables of hosts are in host_vars/ and group_vars/ beside this file.
[gpu_hosts]
{hosts}
[gpu_hosts:vars]
ansible_user=root
ansible_ssh_private_key_file={directory / "id_ed25519"}
ansible_ssh_common_args=-o UserKnownHostsFile={directory / "known_hosts"} -o StrictHostKeyChecking=yes{KEX_OPTION}
ansible_python_interpreter=/usr/bin/python3
"""


def ssh_config_text(addresses: Mapping[str, str], directory: Path) -> str:
    """Return a configuration for `ssh -F`."""
    hosts = "".join(f"Host {name}\n  HostName {address}\n" for name, address in addresses.items())
    return f"""\
Host *
  User root
  IdentityFile {directory / "id_ed25519"}
  IdentitiesOnly yes
  UserKnownHostsFile {directory / "known_hosts"}
  GlobalKnownHostsFile /dev/null
  StrictHostKeyChecking yes
  KexAlgorithms {KEX_ALGORITHM}
  LogLevel ERROR
  ConnectTimeout 10
{hosts}"""


def known_hosts_text(addresses: Mapping[str, str], keys: Mapping[str, str]) -> str:
    """Return known_hosts lines: each host by address and name."""
    return "".join(f"{address},{name} {' '.join(keys[name].split()[:2])}\n" for name, address in addresses.items())


def write(fleet: Fleet, addresses: Mapping[str, str], keys: Mapping[str, str], lab_vars: Mapping[str, Any]) -> Path:
    """Write everything into the fleet's directory and return the inventory's path."""
    if any(char.isspace() for char in str(paths.REPO)):
        raise LabError(f"{paths.REPO}: ssh options cannot hold a path with blanks; move the checkout")
    directory = paths.fleet_directory(fleet.name)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "known_hosts").write_text(known_hosts_text(addresses, keys))
    (directory / "ssh_config").write_text(ssh_config_text(addresses, directory))
    for name in ("host_vars", "group_vars"):
        (directory / name).mkdir(exist_ok=True)
        for old in (directory / name).glob("*.yml"):
            old.unlink()
    (directory / "group_vars/gpu_hosts.yml").write_text(_yaml({**lab_vars, **fleet.vars}))
    for host in fleet.hosts:
        if host.vars:
            (directory / f"host_vars/{host.name}.yml").write_text(_yaml(host.vars))
    target = directory / "gpu_hosts"
    target.write_text(inventory_text(addresses, directory))
    return target


def _yaml(values: Mapping[str, Any]) -> str:
    text: str = yaml.safe_dump(dict(values), sort_keys=True, default_flow_style=False)
    return "---\n" + text
