#!/usr/bin/python
"""Install, remove and hold packages in one call, with a manifest of what came."""

DOCUMENTATION = r"""
module: gpu_node_packages
short_description: Install, remove and hold packages, and note what came with them
description:
  - Does with apt what a GPU node needs, in one call. Waits for other package managers, finishes what a killed run left
    half configured, simulates first, and refuses a new kernel or a removal that nobody asked for.
  - Notes in the manifest on the node, before acting, exactly the packages that are new, so that uninstall.yml removes
    these and no others.
options:
  names:
    description: Packages to install, as names or as mappings of V(name) and V(version); a version may end in V(*).
    type: list
    elements: raw
    default: []
  remove:
    description: Packages to remove (their configuration stays).
    type: list
    elements: str
    default: []
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
  gpu_node_packages:
    names: [docker.io]
    update_cache: true
    purpose: the docker engine

- name: Install a driver of one branch and keep it
  gpu_node_packages:
    names: [{name: nvidia-kernel-open-dkms, version: 580.95.05*}]
    hold: [nvidia-kernel-open-dkms]

- name: Finish what a killed run left half configured
  gpu_node_packages:
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
versions:
  description: Version on the host of each package in O(names), after the call.
  returned: outside check mode
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready import apt as aptlib
from ansible.module_utils.gpu_ready import manifest
from ansible.module_utils.gpu_ready.host import Host

ARGUMENT_SPEC = {
    "names": {"type": "list", "elements": "raw", "default": []},
    "remove": {"type": "list", "elements": "str", "default": []},
    "hold": {"type": "list", "elements": "str", "default": []},
    "unhold": {"type": "list", "elements": "str", "default": []},
    "allow_remove": {"type": "list", "elements": "str", "default": []},
    "update_cache": {"type": "bool", "default": False},
    "purpose": {"type": "str", "default": "the packages"},
}


def mark(apt, verb, names):
    """Set or release holds."""
    apt.await_locks()
    answer = apt.host.run(["apt-mark", verb] + names, timeout=120.0)
    if answer.rc != 0:
        raise aptlib.AptError(aptlib.explain("apt-mark %s %s" % (verb, " ".join(names)), answer))


def note(host, simulation, asked):
    """Note what will be new, before it comes; and what a package's purge would leave, but was there before it."""
    groups = {line.split(":")[0] for line in (host.read("/etc/group") or "").splitlines()}
    known = manifest.read().get("packages", {})
    fresh = [package for package in simulation.new if package not in known]
    stays = [name for name, owner in aptlib.GROUPS.items() if owner in fresh and name in groups]
    stays += [path for path, owner in aptlib.LEFTOVERS.items() if owner in fresh and host.exists(path)]
    manifest.note("stays", {name: {} for name in stays})
    manifest.note("packages", {name: {"manual": name in asked} for name in simulation.new})


def bring(apt, wanted, names, gone, check, result):
    """Install ``names`` and remove ``gone`` in one apt-get call; what happened is added to ``result``."""
    what = "installing " + wanted["purpose"]
    before = apt.installed()
    todo = [
        wish
        for wish in names
        if not (aptlib.present(before, wish.name) and aptlib.matches(wish.version, before[wish.name].version))
    ]
    gone = [name for name in gone if aptlib.present(before, name)]
    if not todo and not gone:
        return
    offers = apt.offers([wish.name for wish in todo])
    lacking = [w for w in todo if not [v for v in offers.get(w.name, []) if aptlib.matches(w.version, v)]]
    if todo and wanted["update_cache"] and not check and (lacking or apt.stale()):
        apt.update()
    for attempt in ("with these lists", "with fresh lists"):
        argv = ["--allow-downgrades", "install"]
        argv += apt.resolve(todo, apt.offers([wish.name for wish in todo])) + [name + "-" for name in gone]
        simulation = apt.simulate(what, argv)
        aptlib.refuse(simulation, gone + wanted["allow_remove"])
        apt.check_disk(simulation)
        if check:
            break
        asked = [wish.name for wish in names]
        note(apt.host, simulation, asked)
        try:
            apt.get(what, argv)
            break
        except aptlib.AptError as error:
            # Lists that are older than the mirror name files that are gone: read them again, once.
            if "404" not in str(error) or attempt == "with fresh lists":
                raise
            apt.update()
    result["installed"].update({name: after for name, (_, after) in simulation.install.items()})
    result["removed"] += simulation.remove


def run(apt, wanted, check):
    """Bring the packages to the wanted state; returns the module's answer."""
    what = "installing " + wanted["purpose"]
    result = {"installed": {}, "removed": [], "repaired": [], "held": [], "unheld": []}
    result["repaired"] = apt.half_done() if check else apt.repair(sorted(manifest.read().get("packages", {})))

    before = apt.installed()
    result["unheld"] = [n for n in wanted["unhold"] if n in before and before[n].hold]
    if result["unheld"] and not check:
        mark(apt, "unhold", result["unheld"])

    names = aptlib.wishes(wanted["names"])
    bring(apt, wanted, names, wanted["remove"], check, result)

    after = before if check else apt.installed()
    result["held"] = [
        name
        for name in wanted["hold"]
        if not (name in after and after[name].hold and name not in result["unheld"])
        and (name in after or name in result["installed"])
    ]
    if result["held"] and not check:
        manifest.note("holds", {name: {} for name in result["held"]})
        mark(apt, "hold", result["held"])
    if not check:
        missing = [wish.name for wish in names if not aptlib.present(after, wish.name)]
        if missing:
            raise aptlib.AptError("%s: apt-get succeeded, but %s is not installed" % (what, ", ".join(missing)))
        result["versions"] = {wish.name: after[wish.name].version for wish in names}
    result["changed"] = any(result[key] for key in ("installed", "removed", "repaired", "held", "unheld"))
    result["diff"] = {
        "before": "".join(
            "%s %s\n" % (name, before[name].version)
            for name in sorted(result["installed"]) + sorted(result["removed"])
            if aptlib.present(before, name)
        ),
        "after": "".join("%s %s\n" % item for item in sorted(result["installed"].items())),
    }
    return result


def main():
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(aptlib.Apt(Host()), module.params, module.check_mode)
    except (aptlib.AptError, manifest.ManifestError) as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
