# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Why a host cannot be reached: the words of OpenSSH that say so, the cause and a remedy for exactly that cause."""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST = 200


class Cause(NamedTuple):
    """``pattern``: words of ssh(1) or Ansible; ``remedy`` may contain {user}, {address} and {login}."""

    pattern: str
    cause: str
    remedy: str


CAUSES = (
    Cause(
        r"REMOTE HOST IDENTIFICATION HAS CHANGED",
        "its SSH host key is not the known one: the host was reinstalled, or another one answers",
        "if it was reinstalled, run 'ssh-keygen -R {address}', connect once by hand and compare the fingerprint",
    ),
    Cause(
        r"Host key verification failed|No \S+ host key is known for",
        "its SSH host key is not known",
        "connect once with 'ssh {login}' and compare the fingerprint, or add the key to known_hosts",
    ),
    Cause(
        r"Permission denied|Too many authentication failures|Invalid/incorrect password|No supported authentication",
        "the login of {user} was refused",
        "correct ansible_user and the key (ansible_ssh_private_key_file, ssh-agent) until 'ssh {login} true' works, or "
        "use --ask-pass",
    ),
    Cause(
        r"Could not resolve hostname|Name or service not known|nodename nor servname",
        "the control node cannot resolve its name {address}",
        "correct the name in the inventory, or set ansible_host to an address that works",
    ),
    Cause(
        r"Connection refused",
        "{address} answers, but no SSH server listens on that port",
        "start sshd on the host, or set ansible_port",
    ),
    Cause(
        r"No route to host|Network is unreachable|(?:Connection|Operation) timed out|timed out during banner|"
        r"Timeout \(\d+s\)|Connection reset",
        "{address} does not answer",
        "check that the host is up, its address, and firewalls on the way",
    ),
    Cause(
        r"kex_exchange_identification|Connection closed|closed by remote host|"  # third-party text
        r"Broken pipe|mux_client|Control socket connect",
        "its SSH server closed the connection",
        "read 'journalctl -u ssh -u sshd' on the host (MaxStartups, MaxSessions, a full disk); fewer --forks help "
        "against the limits",
    ),
)
"""The first one that fits counts. The words come from OpenSSH's sshconnect.c, sshconnect2.c and ssh.c, of
getaddrinfo(3) and strerror(3), and of Ansible's connection plugins."""
NOISE = re.compile(
    r"^(?:Task failed: )?(?:Failed to connect to the host via ssh: |"
    r"Data could not be sent to remote host \"[^\"]*\"\. Make sure this host can be reached over ssh: )*"
)


def explain_connection(message: str, host: str, user: str | None, address: str | None) -> str:
    """Return what to show of a failed connection: host, cause, ssh's own words, remedy.

    ``user``, ``address``: what Ansible connects as and to, where the inventory names them.
    """
    words = {
        "user": user or "the user that ssh chooses",
        "address": address or host,
        "login": f"{user}@{address or host}" if user else address or host,
    }
    quoted = NOISE.sub("", message.strip()).strip()
    for one in CAUSES:
        match = re.search(one.pattern, quoted)
        if match:
            line = next(line for line in quoted.splitlines() if match.group().splitlines()[0] in line)
            cause, remedy = one.cause.format(**words), one.remedy.format(**words)
            return f"The host cannot be reached: {cause} ({shortened(line)}). Remedy: {remedy}."
    tried = f"make 'ssh {words['login']} true' work, then run this again"
    return f"The host cannot be reached: {shortened(' '.join(quoted.split())) or 'no answer'}. Remedy: {tried}."


def shortened(line: str) -> str:
    """Return a line without its end, for a message of one line."""
    text = line.strip().rstrip(".")
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
