"""Who runs a process, by what a user cannot choose. His are its name, its title, and cgroups below a delegated unit."""

import re

CGROUP = r"(?m)^(?:0::|\d+:name=systemd:)/((?:[^/\n]+\.slice/)*)([^/\n]+\.(?:service|scope))(?:/|$)"
OF_OTHERS = ("user.slice/", "machine.slice/")


def unit_of(cgroup: str) -> str:
    """Return the unit of the host's systemd in /proc/PID/cgroup; "" for a process of a user or a container.

    Only root can move a process into the cgroup of such a unit. Units of users are below user.slice, units of virtual
    machines and containers below machine.slice (systemd.special(7)).
    """
    for slices, unit in re.findall(CGROUP, cgroup):
        if not slices.startswith(OF_OTHERS):
            return str(unit)
    return ""
