#!/usr/bin/python
"""Enable components of Debian's own sources, or add a repository whose key is pinned by its fingerprint."""

DOCUMENTATION = r"""
module: gpu_node_repository
short_description: Enable Debian components, or add a package repository with a pinned key
description:
  - With O(components), enables components in the sources that Debian's installation wrote, in both formats, whichever
    mirror they name; every other byte stays.
  - With O(repository), fetches the key, compares its fingerprint, writes keyring, sources and pin file, and reads the
    list of that repository alone. When that fails, the files are taken away again.
options:
  components:
    description: Components of Debian's own archive.
    type: list
    elements: str
  repository:
    description: A repository of somebody else.
    type: dict
    suboptions:
      id: {description: Short name that the files get., type: str, required: true}
      url: {description: Base URL., type: str, required: true}
      suites: {description: Suites as a list or words., type: raw, default: "/"}
      components: {description: Components as a list or words., type: raw, default: ""}
      key_url: {description: URL of the signing key., type: str, required: true}
      fingerprint: {description: Fingerprint that the key must have., type: str, required: true}
      keyring: {description: Path of the keyring., type: path}
      list: {description: Path of the sources file., type: path}
      pin: {description: "One or a list of {package, pin, priority}.", type: raw}
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Enable the components that hold NVIDIA's driver
  gpu_node_repository:
    components: [contrib, non-free, non-free-firmware]

- name: Add a repository
  gpu_node_repository:
    repository:
      id: example
      url: https://packages.example.com/debian12/
      suites: [/]
      key_url: https://packages.example.com/debian12/key.pub
      fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC

- name: Add a repository and prefer it for one package
  gpu_node_repository:
    repository:
      id: example
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
"""

import base64
import os
import re
import ssl
import urllib.error
import urllib.request

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.gpu_ready import apt as aptlib
from ansible.module_utils.gpu_ready import apt_sources, files, manifest, openpgp
from ansible.module_utils.gpu_ready.host import Host

ARGUMENT_SPEC = {
    "components": {"type": "list", "elements": "str"},
    "repository": {
        "type": "dict",
        "options": {
            "id": {"type": "str", "required": True},
            "url": {"type": "str", "required": True},
            "suites": {"type": "raw", "default": "/"},
            "components": {"type": "raw", "default": ""},
            "key_url": {"type": "str", "required": True, "no_log": False},
            "fingerprint": {"type": "str", "required": True},
            "keyring": {"type": "path", "no_log": False},
            "list": {"type": "path"},
            "pin": {"type": "raw"},
        },
    },
}
KEY_LIMIT = 1024 * 1024
FETCH_WAIT = 30.0


def fetch(url):
    """Return the bytes behind a URL; AptError names URL, cause and remedy."""
    try:
        with urllib.request.urlopen(url, timeout=FETCH_WAIT) as answer:
            return answer.read(KEY_LIMIT)
    except urllib.error.HTTPError as error:
        raise aptlib.AptError(
            "the key %s could not be fetched (%d %s): the mirror does not have it" % (url, error.code, error.reason)
        ) from None
    except (urllib.error.URLError, OSError, ssl.SSLError, ValueError) as error:
        raise aptlib.AptError(
            "the key %s could not be fetched (%s): check network, proxy and gpu_ready_mirror"
            % (url, getattr(error, "reason", error))
        ) from None


def sources_files(host):
    """Return the paths of the sources that apt reads."""
    folder = "/etc/apt/sources.list.d"
    found = ["/etc/apt/sources.list"] if host.exists("/etc/apt/sources.list") else []
    return found + [folder + "/" + name for name in host.listdir(folder) if re.search(r"\.(list|sources)$", name)]


def component_changes(host, names):
    """Return {path: text} for the sources of Debian that lack a component, and the code name of the release."""
    match = re.search(r"(?m)^VERSION_CODENAME=\"?(\w+)", host.read("/etc/os-release") or "")
    if not match:
        raise aptlib.AptError(
            "/etc/os-release names no VERSION_CODENAME: gpu-ready cannot tell which suites are Debian's"
        )
    found, entries = {}, 0
    for path in sources_files(host):
        change = apt_sources.enable(path, host.read(path) or "", names, match.group(1))
        entries += change.entries
        if change.before != change.after:
            found[path] = change.after.encode("utf-8")
    if not entries:
        raise aptlib.AptError(
            "no package source of Debian's own archive for %s is enabled in /etc/apt: enable one, then run again"
            % match.group(1)
        )
    return found, match.group(1)


def paths_of(repository):
    """Return keyring, sources and pin file of a repository."""
    name = repository["id"]
    return (
        repository.get("keyring") or "/etc/apt/keyrings/gpu-ready-%s.gpg" % name,
        repository.get("list") or "/etc/apt/sources.list.d/gpu-ready-%s.sources" % name,
        "/etc/apt/preferences.d/gpu-ready-%s.pref" % name,
    )


def repository_changes(host, repository):
    """Return {path: bytes} for the files of a repository that are not as wanted; a key that lacks is fetched."""
    keyring, sources, pins = paths_of(repository)
    architecture = host.run(["dpkg", "--print-architecture"]).out.strip() or "amd64"
    wanted = {sources: apt_sources.source(repository, keyring, architecture).encode("utf-8")}
    if repository.get("pin"):
        wanted[pins] = apt_sources.pins(repository["pin"]).encode("utf-8")
    try:
        known = [key.fingerprint for key in openpgp.keys(host.read_bytes(keyring) or b"")]
    except openpgp.OpenPgpError:
        known = []
    if known != ["".join(repository["fingerprint"].split()).upper()]:
        data = fetch(repository["key_url"])
        try:
            wanted[keyring] = openpgp.pick(data, repository["fingerprint"])
        except openpgp.OpenPgpError as error:
            raise aptlib.AptError(
                "the key %s is not the one that is pinned: %s; nothing was changed. If the owner changed the key, or "
                "your mirror signs with its own, name its fingerprint in gpu_ready_mirror_keys"
                % (repository["key_url"], error)
            ) from None
    # The keyring comes first: apt must never see sources without their key.
    return {path: wanted[path] for path in sorted(wanted) if host.read_bytes(path) != wanted[path]}


def put(path, data):
    """Write a file, or take it away."""
    if data is not None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        files.write_atomic(path, data, 0o644)
    elif os.path.exists(path):
        os.unlink(path)


def shown(path, data):
    """Return a file as a diff shows it."""
    if path.endswith(".gpg"):
        return "(key)\n" if data else ""
    return (data or b"").decode("utf-8", "replace")


def run(host, params, check):
    """Bring the sources to the wanted state; returns the module's answer."""
    repository = params["repository"]
    todo, enabled, codename = {}, [], ""
    if params["components"]:
        enabled, codename = component_changes(host, params["components"])
        todo.update(enabled)
    if repository:
        todo.update(repository_changes(host, repository))
    before = {path: host.read_bytes(path) for path in todo}
    result = {
        "changed": bool(todo),
        "paths": sorted(todo),
        "diff": [
            {
                "before_header": path,
                "after_header": path,
                "before": shown(path, before[path]),
                "after": shown(path, data),
            }
            for path, data in sorted(todo.items())
        ],
    }  # fmt: skip
    if check or not todo:
        return result
    known = manifest.read().get("files", {})
    notes = {
        path: {"before": None if data is None else base64.b64encode(data).decode("ascii"), "mode": host.mode(path)}
        for path, data in before.items()
    }
    manifest.note("files", notes)
    for path in enabled:
        manifest.note_components(path, params["components"], codename)
    apt = aptlib.Apt(host)
    try:
        for path in sorted(todo):
            put(path, todo[path])
        only = []
        if repository and not params["components"]:
            only = ["-o", "Dir::Etc::sourcelist=" + paths_of(repository)[1]]
            only += ["-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0"]
        apt.update(only)
    except BaseException:
        for path, data in before.items():
            put(path, data)
        manifest.drop("files", [path for path in before if path not in known])
        raise
    return result


def main():
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC, supports_check_mode=True, required_one_of=[("components", "repository")]
    )
    try:
        result = run(Host(), module.params, module.check_mode)
    except (aptlib.AptError, manifest.ManifestError) as error:
        module.fail_json(msg=str(error))
    except OSError as error:
        module.fail_json(msg="%s cannot be written: %s" % (error.filename or "a file", error.strerror))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
