#!/usr/bin/python
"""Download packages and installers of a driver upgrade and its rollback, without installing any."""

DOCUMENTATION = r"""
module: gpu_upgrade_stage
short_description: Download packages and installers of a driver upgrade and its rollback
description:
  - Updates the package lists and fills the package manager's cache, so that neither the upgrade nor its rollback needs
    the network. Installs, removes and configures nothing.
  - NVIDIA's installers are downloaded and verified by their checksums. Those of the control node must be at RV(files)
    before; check mode returns these paths.
options:
  transactions:
    description:
      - The package transactions of the upgrade in their order, each with options of M(gpu_packages).
      - With apt, each is resolved as after the ones before it.
    type: list
    elements: dict
    default: []
  runfile:
    description: The installer of the new driver, the parameters of its step, or empty.
    type: dict
    default: {}
  installer:
    description: The installer of the installed driver, RV(gpu_node_plan#module:upgrade.installer), or empty.
    type: dict
    default: {}
  target:
    description: The version of the new driver, for the journal.
    type: str
    default: ""
attributes:
  check_mode: {support: full, description: Downloads nothing.}
  diff_mode: {support: none, description: It changes no configuration.}
author: The gpu-ready maintainers
"""

EXAMPLES = r"""
- name: Download what the upgrade and its rollback need
  gpu_ready.nodes.gpu_upgrade_stage:
    transactions:
      - names: [nvidia-driver-pinning-595]
        remove: [nvidia-driver-pinning-580]
        allow_remove: [nvidia-driver-pinning-580]
        purpose: the pin of the NVIDIA driver
      - names: [{name: nvidia-open, version: 595.*}]
        unhold: [nvidia-open]
        purpose: NVIDIA driver

- name: List what would be downloaded
  gpu_ready.nodes.gpu_upgrade_stage:
    transactions: [{names: [nvidia-open], purpose: NVIDIA driver}]
  check_mode: true

- name: Download an installer
  gpu_ready.nodes.gpu_upgrade_stage:
    runfile:
      version: 595.91.07
      source: https://us.download.nvidia.com/tesla/595.91.07/NVIDIA-Linux-x86_64-595.91.07.run
      sha256: ""
      sha256_url: https://us.download.nvidia.com/tesla/595.91.07/NVIDIA-Linux-x86_64-595.91.07.run.sha256sum
"""

RETURN = r"""
coming:
  description: Packages that the upgrade installs, now in the cache.
  returned: always
  type: list
  elements: str
  sample: ["libcuda1=595.91.07-1"]
kept:
  description: Installed packages, now in the cache for the rollback.
  returned: always
  type: list
  elements: str
  sample: ["libcuda1=580.95.05-1"]
installers:
  description: Versions whose installers were downloaded; in check mode, those that are missing.
  returned: always
  type: list
  elements: str
  sample: ["595.91.07"]
files:
  description: Where the role puts installers of the control node, by their path there.
  returned: always
  type: dict
  sample: {"/srv/NVIDIA-Linux-x86_64-595.91.07.run": "/var/lib/gpu-ready/installers/NVIDIA-driver-595.91.07.run"}
"""

import time

from ..module_utils.gpu_ready.answers.upgrade import UpgradeStageAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.driver.runfile import fetch as runfile_fetch
from ..module_utils.gpu_ready.driver.runfile import store as runfile_store
from ..module_utils.gpu_ready.packaging import install, select
from ..module_utils.gpu_ready.upgrade import journal, phases, stage

ANSWER = UpgradeStageAnswer
ARGUMENT_SPEC = {
    "transactions": {"type": "list", "elements": "dict", "default": []},
    "runfile": {"type": "dict", "default": {}},
    "installer": {"type": "dict", "default": {}},
    "target": {"type": "str", "default": ""},
}


def run(host, params, check):
    transactions = [install.parse_transaction(one) for one in params["transactions"]]
    installers = [stage.read_installer(params[name]) for name in ("runfile", "installer") if params[name]]
    files = {one.source: runfile_store.installer_path(one.version) for one in installers if "://" not in one.source}
    if check:
        missing = [one.version for one in installers if not runfile_store.find_installer(one.version, one.sha256)]
        return UpgradeStageAnswer([spec.name for one in transactions for spec in one.names], [], missing, files)
    recorded = journal.read(host)
    manager = select.choose_manager(host, journal.is_open(host))
    staged = stage.stage_packages(manager, transactions)
    stage.keep_for_rollback(manager, staged, recorded.from_.packages if recorded and recorded.from_ else [])
    missing = stage.stage_installers(installers, host.uname()[1], runfile_fetch.RunfileLimits())
    if recorded:
        phases.write(phases.record_fetched(recorded, params["target"], int(time.time())))
    changed = bool(staged.coming or missing)
    return UpgradeStageAnswer(staged.coming, staged.kept, missing, files, changed)


def main():
    run_changing_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
