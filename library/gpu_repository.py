#!/usr/bin/python
"""Enable parts of the distribution's own sources, or add repositories whose keys are pinned by their fingerprints."""

DOCUMENTATION = r"""
module: gpu_repository
short_description: Enable parts of the distribution's own sources, or add package repositories with pinned keys
description:
  - With O(components), enables components in the distribution's own sources, in both formats, whichever mirror they
    name. Every other byte is kept.
  - With O(enable), enables repositories that are disabled in the distribution's own .repo files.
  - With O(repositories), takes each key from the shipped keys or downloads it, compares its
    fingerprint, writes keyring and sources, and reads the lists of what changed. When that fails, all files are
    restored.
options:
  components:
    description: Components of the distribution's own archive.
    type: list
    elements: str
  enable:
    description: Sections of the distribution's own files in /etc/yum.repos.d.
    type: list
    elements: str
  repositories:
    description:
      - Third-party repositories, each a mapping.
      - C(id) is the short name that the files get; C(kind) is V(deb) or V(rpm).
      - C(url), C(key_url) and C(fingerprint) name the repository and the one key that may sign it. Where no fingerprint
        is published, C(key_sha256) pins the key's file (armoured, without its C(Version:) lines).
      - C(keyring), C(list) are the paths of the files (there are defaults).
      - For V(deb), C(suites), C(components) and C(pin), one or a list of {package, pin, priority}.
      - For V(rpm), C(gpgcheck) and C(repo_gpgcheck).
      - C(adopted) names an entry of the host's own that serves this repository, a file of apt or a section of dnf. It
        is used instead of a second one. For V(deb) only the pin is added, for V(rpm) only the pinned key.
    type: list
    elements: dict
  keys:
    description:
      - Public keys in ASCII armour by fingerprint. A key that is not among them is downloaded from its C(key_url).
      - Those that travel with gpu-ready are given on the control node.
    type: dict
    default: {}
  waited:
    description:
      - Seconds for which the caller has waited for other package managers. The module then waits a few more itself, and
        returns RV(waits_for) and nothing else where one still works; the caller shows that and calls again.
      - Without it the module waits as long as it may.
    type: int
attributes:
  check_mode: {support: full, description: Predicts the change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Enable the components that hold NVIDIA's driver
  gpu_ready.nodes.gpu_repository:
    components: [contrib, non-free, non-free-firmware]

- name: Add a repository
  gpu_repository:
    repositories:
      - id: example
        url: https://packages.example.com/debian12/
        suites: [/]
        key_url: https://packages.example.com/debian12/key.pub
        fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC

- name: Enable a repository of Enterprise Linux and add a third-party one
  gpu_ready.nodes.gpu_repository:
    enable: [crb]
    repositories:
      - id: example
        kind: rpm
        url: https://packages.example.com/rhel9/x86_64/
        key_url: https://packages.example.com/rhel9/x86_64/key.pub
        fingerprint: 610C7B14E068A878070DA4E99CD0A493D42D0685
        gpgcheck: true
        repo_gpgcheck: true

- name: Add a repository and prefer it for one package
  gpu_repository:
    repositories:
      - id: example
        url: https://packages.example.com/debian12/
        key_url: https://packages.example.com/debian12/key.pub
        fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC
        pin: {package: "example-*", pin: "origin packages.example.com", priority: 600}
"""

RETURN = r"""
paths:
  description: Files that changed.
  returned: always
  type: list
waits_for:
  description: The process for which this call has waited in vain, with O(waited); empty for none.
  returned: always
  type: str
  sample: process 7127 (apt-get)
"""

from ..module_utils.gpu_ready.answers.packages import RepositoryAnswer
from ..module_utils.gpu_ready.base.changing_module import run_changing_module
from ..module_utils.gpu_ready.packaging import repositories, select
from ..module_utils.gpu_ready.upgrade import journal

REPOSITORY = {
    "id": {"type": "str", "required": True},
    "kind": {"type": "str", "choices": ["deb", "rpm"], "default": "deb"},
    "url": {"type": "str", "required": True},
    "suites": {"type": "raw", "default": "/"},
    "components": {"type": "raw", "default": ""},
    "key_url": {"type": "str", "required": True, "no_log": False},
    "fingerprint": {"type": "str"},
    "key_sha256": {"type": "str", "no_log": False},
    "keyring": {"type": "path", "no_log": False},
    "list": {"type": "path"},
    "pin": {"type": "raw"},
    "gpgcheck": {"type": "bool", "default": True},
    "repo_gpgcheck": {"type": "bool", "default": False},
    "adopted": {"type": "str"},
}

ANSWER = RepositoryAnswer
ARGUMENT_SPEC = {
    "components": {"type": "list", "elements": "str"},
    "enable": {"type": "list", "elements": "str"},
    "repositories": {"type": "list", "elements": "dict", "options": REPOSITORY},
    "keys": {"type": "dict", "default": {}, "no_log": False},
    "waited": {"type": "int"},
}


def run(host, params, check):
    manager = select.choose_manager(host, journal.is_open(host))
    waits_for = "" if check else manager.report_wait(params["waited"])
    if waits_for:
        return RepositoryAnswer(waits_for=waits_for)
    return RepositoryAnswer(**repositories.configure(host, manager, repositories.parse_request(params), check))


def main():
    sources = ("components", "enable", "repository", "repositories")
    run_changing_module(run, ARGUMENT_SPEC, ANSWER, required_one_of=[sources])


if __name__ == "__main__":
    main()
