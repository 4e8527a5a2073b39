#!/usr/bin/python
"""Read what the package sources of a host offer, in a private root: nothing of the host changes."""

DOCUMENTATION = r"""
module: gpu_package_index
short_description: Read what the package sources of a host offer
description:
  - Has the package manager read the sources of the host, and those that a plan will add, with lists and caches of its
    own, which are deleted afterwards. The host's lists, sources and caches stay as they are.
  - Needs the network, and up to 768 MB in /var/cache meanwhile.
  - A source of others that fails is named in RV(offered.failed). One that O(sources) names makes the answer V(stale) or
    V(unavailable).
options:
  names:
    description: Names of packages, or patterns with V(*).
    type: list
    elements: str
    required: true
  sources:
    description:
      - The sources that the packages come from, with those that are not configured yet. The options of
        M(gpu_ready.nodes.gpu_repository), C(repositories), C(components) and C(enable).
    type: dict
    default: {}
  needed:
    description:
      - Sources of the host without which the answer is not V(fresh), besides those of O(sources) and the
        distribution's. URLs for apt, sections of .repo files for dnf.
    type: list
    elements: str
    default: []
  install:
    description:
      - Packages that a plan installs, names or mappings of C(name) and C(version), for the size of the downloads. With
        O(remove), the installed ones that it removes.
    type: list
    elements: raw
    default: []
  remove:
    description: Packages that a plan removes.
    type: list
    elements: str
    default: []
  keys:
    description: Public keys in ASCII armour by fingerprint, as for M(gpu_ready.nodes.gpu_repository).
    type: dict
    default: {}
attributes:
  check_mode: {support: full, description: Does the same in check mode.}
  diff_mode: {support: none, description: It changes nothing.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Ask for the versions of a driver
  gpu_ready.nodes.gpu_package_index:
    names: [nvidia-headless-580-server-open, nvidia-utils-580-server]

- name: Ask for all toolkits of a repository that the host does not have yet
  gpu_ready.nodes.gpu_package_index:
    names: [cuda-toolkit-*]
    sources:
      repositories:
        - id: example
          url: https://packages.example.com/debian12/
          key_url: https://packages.example.com/debian12/key.pub
          fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC

- name: Ask for packages of a component that is not enabled
  gpu_ready.nodes.gpu_package_index:
    names: [nvidia-driver]
    sources: {components: [contrib, non-free, non-free-firmware]}
"""

RETURN = r"""
offered:
  description:
    - C(state) is V(fresh), V(stale) or V(unavailable); C(cause) says why it is not fresh, and C(age) how many seconds
      ago stale lists were read.
    - C(versions) are the offered versions by package, the newest first.
    - C(download) has the bytes of the packages in O(install) and of what they depend on, 0 where that is unknown.
    - C(hidden) says why a package cannot be installed, such as a pin; C(failed) names the sources of others that could
      not be read.
  returned: always
  type: dict
  sample: {"state": "fresh", "versions": {"cuda-toolkit-13-5": ["13.5.0-1"]}, "age": 0, "cause": "", "hidden": {},
           "failed": [], "download": 0}
"""

from ..module_utils.gpu_ready.answers.packages import PackageIndexAnswer
from ..module_utils.gpu_ready.base.module import run_module
from ..module_utils.gpu_ready.packaging import package_index, repositories
from ..module_utils.gpu_ready.packaging.manager import package_specs

ANSWER = PackageIndexAnswer
ARGUMENT_SPEC = {
    "names": {"type": "list", "elements": "str", "required": True},
    "sources": {"type": "dict", "default": {}},
    "needed": {"type": "list", "elements": "str", "default": []},
    "install": {"type": "list", "elements": "raw", "default": []},
    "remove": {"type": "list", "elements": "str", "default": []},
    "keys": {"type": "dict", "default": {}, "no_log": False},
}


def run(host, params, check):
    sources = {"repositories": None, "components": None, "enable": None, **params["sources"]}
    request = package_index.IndexQuestion(
        params["names"],
        repositories.parse_request(dict(sources, keys=params["keys"])),
        params["needed"],
        package_specs(params["install"]),
        params["remove"],
    )
    return PackageIndexAnswer(package_index.read_index(host, request))


def main():
    run_module(run, ARGUMENT_SPEC, ANSWER)


if __name__ == "__main__":
    main()
