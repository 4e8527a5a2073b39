"""Removes packages that gpu-ready installed, and what belongs to them: holds, streams, keys, accounts, leftovers."""

import functools
import re
from typing import List, Sequence

from ...base import manifest
from ...base.disruptions import DOCKER_RESTART
from ...containers import engine as engines
from ...facts import affected
from ...facts.model import WorkFacts
from ...packaging import manager as packages
from ...packaging import rpm
from .context import Action, Removal
from .package_plan import plan_packages
from .purge import purge_packages


def find_holds(removal: Removal) -> List[Action]:
    """Release the packages that gpu-ready holds."""
    installed = removal.manager.installed() if removal.recorded.get("holds") else {}
    names = [name for name in sorted(removal.recorded.get("holds", {})) if name in installed and installed[name].hold]
    return [Action("release " + ", ".join(names), lambda: removal.manager.unhold(names))] if names else []


def find_streams(removal: Removal) -> List[Action]:
    """Restore module streams."""
    enabled = removal.manager.streams() if removal.recorded.get("streams") else {}
    before = {name: entry.get("before") for name, entry in removal.recorded.get("streams", {}).items()}
    changed = {name: stream for name, stream in before.items() if enabled.get(name) != stream}
    words = ", ".join("%s:%s" % (name, stream) if stream else "none of " + name for name, stream in changed.items())
    act = functools.partial(removal.manager.restore_streams, changed)
    return [Action("restore the module stream " + words, act)] if changed else []


def find_rpm_keys(removal: Removal) -> List[Action]:
    """Remove the keys of gpu-ready's repositories from the RPM database."""
    recorded = removal.recorded.get("rpm_keys", {})
    argv = ["rpm", "-q", "gpg-pubkey", "--qf", "%{VERSION} %{NAME}-%{VERSION}-%{RELEASE}\n"]
    rows = [line.split() for line in removal.host.run(argv).out.splitlines()] if recorded else []
    names = sorted(
        row[1] for row in rows if len(row) == 2 and [key for key in recorded if rpm.is_same_key(row[0], key)]
    )
    argv = ["rpm", "-e", "--allmatches"] + names
    words = "remove %s from the RPM database" % ", ".join(names)
    return [Action(words, functools.partial(removal.run, argv))] if names else []


def find_packages(removal: Removal) -> List[Action]:
    """Purge the packages that gpu-ready installed, without those that somebody requested since or that others need."""
    plan = removal.packages
    removal.kept += ["the package %s: %s" % item for item in sorted(plan.kept.items())]
    if not plan.remove:
        return []
    refuse_removal_in_use(removal, plan.remove)
    words = "purge %d packages: %s" % (len(plan.remove), ", ".join(plan.remove))
    return [Action(words, functools.partial(purge_planned_packages, removal))]


def refuse_removal_in_use(removal: Removal, names: List[str]) -> None:
    """Raise UninstallError where containers need what would be purged: docker, or the container toolkit."""
    if set(packages.GROUPS["docker"]) & set(names):
        work = affected.containers_of_engines(removal.work, engines.DOCKER)
        removal.refuse_work(DOCKER_RESTART, "docker would be removed, which stops %s", work)
    elif "nvidia-container-toolkit" in names:
        work = affected.users_of_gpus(
            WorkFacts(containers=[one for one in removal.work.containers if one.gpu == "GPU"])
        )
        removal.refuse_work(DOCKER_RESTART, "the NVIDIA container toolkit would be removed, which is used by %s", work)


def purge_planned_packages(removal: Removal) -> None:
    """Finish what a killed run left incomplete, then purge what was planned."""
    plan = removal.packages
    if removal.manager.repair(manifest.owned_packages(removal.recorded)):
        plan = plan_packages(removal.manager, removal.recorded)
        new = {name: why for name, why in plan.kept.items() if name not in removal.packages.kept}
        removal.kept += ["the package %s: %s" % item for item in sorted(new.items())]
    if plan.remove:
        purge_packages(removal.host, removal.manager, plan.remove)


def find_accounts(removal: Removal) -> List[Action]:
    """Delete the users, and the groups without members, that the packages created."""
    found = []
    for names, path, program in (
        (packages.USERS, "/etc/passwd", "userdel"),
        (packages.GROUPS, "/etc/group", "groupdel"),
    ):
        text = removal.host.read(path) or ""
        accounts = {line.split(":")[0]: line.split(":") for line in text.splitlines()}
        what = "user" if path == "/etc/passwd" else "group"
        found += [
            Action("delete the %s %s" % (what, name), functools.partial(delete_account, removal, path, name, program))
            for name, owners in sorted(names.items())
            if owns_leftovers(removal, owners)
            and name in accounts
            and (what == "user" or not accounts[name][-1])
            and name not in removal.recorded.get("stays", {})
        ]
    return found


def owns_leftovers(removal: Removal, owners: Sequence[str]) -> bool:
    """Return True if gpu-ready installed one of these packages and none of them stays."""
    if not set(owners) & set(removal.recorded.get("packages", {})):
        return False
    installed = removal.manager.installed()
    return not [one for one in owners if packages.is_installed(installed, one) and one not in removal.packages.remove]


def delete_account(removal: Removal, path: str, name: str, program: str) -> None:
    """Delete a user or group if it still exists: a group may be deleted with its user."""
    if re.search("(?m)^%s:" % re.escape(name), removal.host.read(path) or ""):
        removal.run([program, name])


def find_leftovers(removal: Removal) -> List[Action]:
    """Delete files that programs of the packages wrote and that their removal leaves."""
    return [
        Action("delete " + path, functools.partial(removal.delete, path))
        for path, owners in sorted(packages.LEFTOVERS.items())
        if owns_leftovers(removal, owners)
        and path not in removal.recorded.get("stays", {})
        and removal.host.exists(path)
    ]
