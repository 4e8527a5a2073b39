#!/usr/bin/python
"""Install, remove and hold packages in one call, with a manifest of what came."""

DOCUMENTATION = r"""
module: gpu_packages
short_description: Install, remove and hold packages, and note what came with them
description:
  - Does with apt, dnf or yum what a GPU node needs, in one call. Waits for other package managers, finishes what a
    killed run left half done, simulates first, and refuses a new kernel or a removal that nobody asked for.
  - Notes in the manifest on the node, before acting, exactly the packages that are new, so that uninstall.yml removes
    these and no others.
options:
  names:
    description:
      - Packages to install, as names or as mappings of V(name) and V(version); a version may end in V(*).
      - A metapackage may have V(parts), a regular expression for names of what it depends on. These come in the
        versions that this version of it names, not in newer ones.
    type: list
    elements: raw
    default: []
  optional:
    description: Packages like O(names) that are left out where no source of the host offers them.
    type: list
    elements: raw
    default: []
  streams:
    description: Module streams to have enabled, by module; another stream of the module is left.
    type: dict
  remove:
    description: Packages to remove (their configuration stays).
    type: list
    elements: str
    default: []
  purge:
    description: Takes the configuration of O(remove) away too, where the package manager would leave it.
    type: bool
    default: false
  hold:
    description: Packages to protect from upgrades.
    type: list
    elements: str
    default: []
  unhold:
    description: Packages to release before anything else.
    type: list
    elements: str
    default: []
  allow_remove:
    description: Packages that may go because others come.
    type: list
    elements: str
    default: []
  update_cache:
    description: Read the package lists again when they are older than a day or lack a wanted package.
    type: bool
    default: false
  purpose:
    description: What the packages are for, as the errors say it.
    type: str
    default: the packages
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Lists the packages.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Install docker
  gpu_packages:
    names: [docker.io]
    update_cache: true
    purpose: the docker engine

- name: Install a driver of one branch and keep it
  gpu_packages:
    names: [{name: nvidia-kernel-open-dkms, version: 580.95.05*}]
    hold: [nvidia-kernel-open-dkms]

- name: Install a driver of one module stream
  gpu_packages:
    names: [nvidia-driver, kmod-nvidia-open-dkms]
    streams: {nvidia-driver: 580-open}

- name: Finish what a killed run left half configured
  gpu_packages:
"""

RETURN = r"""
installed:
  description: Version by name of what is new or upgraded.
  returned: always
  type: dict
  sample: {docker.io: 20.10.24+dfsg1-1+deb12u1}
removed:
  description: Packages that went.
  returned: always
  type: list
repaired:
  description: Packages that had been left half configured.
  returned: always
  type: list
held:
  description: Packages whose hold was set.
  returned: always
  type: list
unheld:
  description: Packages whose hold was released.
  returned: always
  type: list
streams:
  description: Module streams that were enabled.
  returned: always
  type: dict
versions:
  description: Version on the host of each package in O(names), after the call.
  returned: outside check mode
  type: dict
"""

from ansible.module_utils.gpu_ready.base import manifest
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.packaging import manager as packages
from ansible.module_utils.gpu_ready.packaging import select
from ansible.module_utils.gpu_ready.packaging.version_match import version_matches
from ansible.module_utils.gpu_ready.upgrade import journal

ARGUMENT_SPEC = {
    "names": {"type": "list", "elements": "raw", "default": []},
    "optional": {"type": "list", "elements": "raw", "default": []},
    "streams": {"type": "dict"},
    "remove": {"type": "list", "elements": "str", "default": []},
    "purge": {"type": "bool", "default": False},
    "hold": {"type": "list", "elements": "str", "default": []},
    "unhold": {"type": "list", "elements": "str", "default": []},
    "allow_remove": {"type": "list", "elements": "str", "default": []},
    "update_cache": {"type": "bool", "default": False},
    "purpose": {"type": "str", "default": "the packages"},
}


def note(host, simulation, asked):
    """Note what will be new, before it comes; and what its removal would leave, but was there before it."""
    known = manifest.read().get("packages", {})
    fresh = {package for package in simulation.new if package not in known}
    stays = []
    for names, path in ((packages.GROUPS, "/etc/group"), (packages.USERS, "/etc/passwd")):
        there = {line.split(":")[0] for line in (host.read(path) or "").splitlines()}
        stays += [name for name, owners in names.items() if fresh.intersection(owners) and name in there]
    stays += [path for path, own in packages.LEFTOVERS.items() if fresh.intersection(own) and host.exists(path)]
    manifest.note("stays", {name: {} for name in stays})
    manifest.note("packages", {name: {"manual": name in asked} for name in simulation.new})


def lacks(before, package_specs):
    """Return the wishes that are not fulfilled."""
    return [
        wish
        for wish in package_specs
        if not (packages.is_installed(before, wish.name) and version_matches(wish.version, before[wish.name].version))
    ]


def refresh(manager, wanted, todo, check):
    """Read the package lists again when they are old, or lack a package that is wanted."""
    offers = manager.offers([wish.name for wish in todo])
    lacking = [w for w in todo if not [v for v in offers.get(w.name, []) if version_matches(w.version, v)]]
    if todo and wanted["update_cache"] and not check and (lacking or manager.lists_are_stale()):
        manager.update()


def bring(manager, wanted, names, gone, check, result):
    """Install ``names`` and remove ``gone``; what happened is added to ``result``."""
    what = "installing " + wanted["purpose"]
    before = manager.installed()
    todo = lacks(before, names)
    gone = [name for name in gone if packages.is_installed(before, name)]
    if not todo and not gone:
        return
    refresh(manager, wanted, todo, check)
    change = packages.PackageChange(todo, gone, wanted["allow_remove"])
    for attempt in ("with these lists", "with fresh lists"):
        calls, simulation = manager.plan_change(what, change)
        if check:
            break
        note(manager.host, simulation, [wish.name for wish in names])
        try:
            manager.apply_change(what, calls, simulation)
            break
        except packages.PackageError as error:
            # Lists that are older than the mirror name files that are gone: read them again, once.
            if "404" not in str(error) or attempt == "with fresh lists":
                raise
            manager.update()
    result["installed"].update({name: after for name, (_, after) in simulation.install.items()})
    result["removed"] += simulation.remove
    if gone and not check and lacks(manager.installed(), todo):
        # A manager that cannot replace packages in one go has removed them by now.
        bring(manager, wanted, names, [], check, result)


def purge(manager, names):
    """Take away what packages that were removed left of their configuration."""
    there = manager.installed()
    rest = [name for name in names if name in there and there[name].state == "config-files"]
    if rest:
        manager.run_change("purging " + ", ".join(rest[:5]), manager.removal_command(rest))


def switch_streams(manager, wanted, check, result):
    """Have the module streams enabled; returns the streams before, of the modules that changed."""
    there = manager.streams()
    result["streams"] = {name: stream for name, stream in wanted.items() if there.get(name) != stream}
    before = {name: there.get(name) for name in result["streams"]}
    if before and not check:
        manifest.note("streams", {name: {"before": stream} for name, stream in before.items()})
        manager.enable_streams(result["streams"])
    return before


def change_packages(manager, wanted, check):
    """Bring the packages to the wanted state; returns the module's answer."""
    what = "installing " + wanted["purpose"]
    result = {"installed": {}, "removed": [], "repaired": [], "held": [], "unheld": [], "streams": {}}
    ours = sorted(manifest.read().get("packages", {}))
    result["repaired"] = manager.find_interrupted() if check else manager.repair(ours)
    before = manager.installed()

    locked = manager.held() if wanted["unhold"] else []
    result["unheld"] = [name for name in wanted["unhold"] if name in locked]
    if result["unheld"] and not check:
        manager.unhold(result["unheld"])

    streams = switch_streams(manager, wanted["streams"] or {}, check, result)
    try:
        names = packages.package_specs(wanted["names"])
        optional = lacks(before, packages.package_specs(wanted["optional"]))
        if optional and wanted["update_cache"] and not check and manager.lists_are_stale():
            manager.update()  # lists that were never read offer nothing
        offers = manager.offers([wish.name for wish in optional])
        names += [wish for wish in optional if offers.get(wish.name)]
        parts = {value["name"]: value["parts"] for value in wanted["names"] if packages.pins_parts(value)}
        exact = lacks(before, [wish for wish in names if wish.name in parts])
        if exact:
            refresh(manager, wanted, exact, check)
            names = manager.add_parts(names, parts)
        if check and streams:
            # Only an enabled stream shows its packages: the simulation would speak of another one's.
            result["installed"].update({wish.name: wish.version or "any" for wish in lacks(before, names)})
            result["removed"] += [name for name in wanted["remove"] if packages.is_installed(before, name)]
        else:
            bring(manager, wanted, names, wanted["remove"], check, result)
            if wanted["purge"] and not check:
                purge(manager, wanted["remove"])
    except packages.PackageError:
        if streams and not check and manager.installed() == before:
            # Nothing came of the new stream: leave the host on the one it was on.
            manager.restore_streams(streams)
        if result["unheld"] and not check:
            # What stays must not be upgraded unattended until somebody repairs this.
            there = manager.installed()
            stay = [name for name in result["unheld"] if name in there]
            if stay:
                manager.hold(stay)
        raise

    after = before if check else manager.installed()
    result["held"] = [
        name
        for name in wanted["hold"]
        if not (name in after and after[name].hold and name not in result["unheld"])
        and (name in after or name in result["installed"])
    ]
    if result["held"] and not check:
        manifest.note("holds", {name: {} for name in result["held"]})
        manager.hold(result["held"])
    if not check:
        missing = [wish.name for wish in names if not packages.is_installed(after, wish.name)]
        if missing:
            raise packages.PackageError(
                "%s: %s succeeded, but %s is not installed" % (what, manager.program, ", ".join(missing))
            )
        result["versions"] = {wish.name: after[wish.name].version for wish in names}
        # Whoever holds them from here on is somebody else.
        manifest.drop("holds", [name for name in result["unheld"] if name not in wanted["hold"]])
    result["changed"] = any(result[key] for key in ("installed", "removed", "repaired", "held", "unheld", "streams"))
    result["diff"] = {
        "before": "".join(
            "%s %s\n" % (name, before[name].version)
            for name in sorted(result["installed"]) + sorted(result["removed"])
            if packages.is_installed(before, name)
        ),
        "after": "".join("%s %s\n" % item for item in sorted(result["installed"].items())),
    }
    return result


def run(host, params, check):
    return change_packages(select.choose_manager(host, journal.is_open(host)), params, check)


def main():
    run_module(run, ARGUMENT_SPEC)


if __name__ == "__main__":
    main()
