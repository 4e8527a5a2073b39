#!/usr/bin/python
"""Enable parts of the distribution's own sources, or add repositories whose keys are pinned by their fingerprints."""

DOCUMENTATION = r"""
module: gpu_repository
short_description: Enable parts of the distribution's own sources, or add package repositories with pinned keys
description:
  - With O(components), enables components in the sources that Debian's installation wrote, in both formats, whichever
    mirror they name; every other byte stays.
  - With O(enable), switches on repositories that the distribution's own .repo files hold switched off.
  - With O(repository) or O(repositories), fetches each key, compares its fingerprint, writes keyring and sources, and
    reads the lists of what changed alone. When that fails, the files are what they were.
options:
  components:
    description: Components of the distribution's own archive.
    type: list
    elements: str
  enable:
    description: Sections of the distribution's own files in /etc/yum.repos.d.
    type: list
    elements: str
  repository:
    description: A repository of somebody else; see O(repositories).
    type: dict
  repositories:
    description:
      - Repositories of somebody else, each a mapping.
      - C(id) is the short name that the files get; C(kind) is V(deb) or V(rpm).
      - C(url), C(key_url) and C(fingerprint) name the repository and the one key that may sign it. Where no fingerprint
        is known, C(key_sha256) pins the key's file - armoured, without its C(Version:) lines.
      - C(keyring), C(list) are the paths of the files (there are defaults).
      - For V(deb), C(suites), C(components) and C(pin), one or a list of {package, pin, priority}.
      - For V(rpm), C(gpgcheck) and C(repo_gpgcheck).
    type: list
    elements: dict
attributes:
  check_mode: {support: full, description: Says what would change; changes nothing.}
  diff_mode: {support: full, description: Shows the files before and after.}
author: [gpu-ready]
"""

EXAMPLES = r"""
- name: Enable the components that hold NVIDIA's driver
  gpu_repository:
    components: [contrib, non-free, non-free-firmware]

- name: Add a repository
  gpu_repository:
    repository:
      id: example
      url: https://packages.example.com/debian12/
      suites: [/]
      key_url: https://packages.example.com/debian12/key.pub
      fingerprint: EB693B3035CD5710E231E123A4B469963BF863CC

- name: Enable a repository of Enterprise Linux and add one of somebody else
  gpu_repository:
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

from ansible.module_utils.gpu_ready.base import download_errors, files, manifest, validation
from ansible.module_utils.gpu_ready.base.download import open_url
from ansible.module_utils.gpu_ready.base.module import run_module
from ansible.module_utils.gpu_ready.packaging import apt_sources, openpgp, rpm, select, yum_repos
from ansible.module_utils.gpu_ready.packaging import manager as packages
from ansible.module_utils.gpu_ready.upgrade import journal

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
}

ARGUMENT_SPEC = {
    "components": {"type": "list", "elements": "str"},
    "enable": {"type": "list", "elements": "str"},
    "repository": {"type": "dict", "options": REPOSITORY},
    "repositories": {"type": "list", "elements": "dict", "options": REPOSITORY},
}
KEY_LIMIT = 1024 * 1024
FETCH_WAIT = 30.0


def fetch(url):
    """Return the bytes behind a URL; PackageError names URL, cause and remedy."""
    try:
        with open_url(url, FETCH_WAIT) as answer:
            return answer.read(KEY_LIMIT)
    except urllib.error.HTTPError as error:
        raise packages.PackageError(
            "the key %s could not be fetched (%d %s): %s"
            % (url, error.code, error.reason, download_errors.download_remedy("%d %s" % (error.code, error.reason)))
        ) from None
    except (urllib.error.URLError, OSError, ssl.SSLError, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise packages.PackageError(
            "the key %s could not be fetched (%s): %s" % (url, reason, download_errors.download_remedy(str(reason)))
        ) from None


def sources_files(host):
    """Return the paths of the sources that apt reads."""
    folder = "/etc/apt/sources.list.d"
    found = ["/etc/apt/sources.list"] if host.exists("/etc/apt/sources.list") else []
    return found + [folder + "/" + name for name in host.listdir(folder) if re.search(r"\.(list|sources)$", name)]


def component_changes(host, names):
    """Return {path: text} for the distribution's sources that lack a component, and the code name of the release."""
    text = host.read("/etc/os-release") or ""
    # A derivative that uses the archive of its base (Linux Mint) names that one's suites besides its own name.
    match = re.search(r"(?m)^(?:UBUNTU|DEBIAN)_CODENAME=\"?(\w+)", text)
    match = match or re.search(r"(?m)^VERSION_CODENAME=\"?(\w+)", text)
    if not match:
        raise packages.PackageError(
            "/etc/os-release names no VERSION_CODENAME: gpu-ready cannot tell which suites are the distribution's"
        )
    found, entries = {}, 0
    for path in sources_files(host):
        change = apt_sources.enable_components(path, host.read(path) or "", names, match.group(1))
        entries += change.entries
        if change.before != change.after:
            found[path] = change.after.encode("utf-8")
    if not entries:
        raise packages.PackageError(
            "no package source of the distribution's own archive for %s is enabled in /etc/apt: enable one, run again"
            % match.group(1)
        )
    return found, match.group(1)


def section_changes(host, names):
    """Return {path: (text, names)} for the .repo files in which a section is to be switched on."""
    there, found = {}, {}
    for name in host.listdir(yum_repos.FOLDER):
        path = yum_repos.FOLDER + "/" + name
        text = host.read(path) if name.endswith(".repo") else None
        mine = [section for section in yum_repos.parse_sections(text or "") if section in names]
        there.update(dict.fromkeys(mine))
        off = [section for section in mine if not yum_repos.parse_sections(text)[section]]
        if off:
            found[path] = (yum_repos.enable_sections(text, off).encode("utf-8"), off)
    missing = [name for name in names if name not in there]
    if missing:
        raise packages.PackageError(
            "%s is in no file of %s: the distribution's own repositories are not set up as it delivers them; add this "
            "one, then run again" % (", ".join(missing), yum_repos.FOLDER)
        )
    return found


def paths_of(repository):
    """Return keyring, sources and pin file of a repository."""
    name = repository["id"]
    if repository["kind"] == "rpm":
        return (*yum_repos.repository_paths(repository), None)
    return (
        repository.get("keyring") or "/etc/apt/keyrings/gpu-ready-%s.gpg" % name,
        repository.get("list") or "/etc/apt/sources.list.d/gpu-ready-%s.sources" % name,
        "/etc/apt/preferences.d/gpu-ready-%s.pref" % name,
    )


def told_by_checksum(repository):
    """Return the fingerprint of a key whose owner publishes the checksum of its file instead."""
    try:
        return openpgp.fingerprint_by_checksum(fetch(repository["key_url"]), repository["key_sha256"])
    except openpgp.OpenPgpError as error:
        raise packages.PackageError(
            "the key %s is not the one that is pinned: %s; nothing was changed. If the owner changed the key, or "
            "your mirror signs with its own, name its fingerprint in gpu_ready_mirror_keys"
            % (repository["key_url"], error)
        ) from None


def repository_changes(host, repository):
    """Return {path: bytes} for the files of a repository that are not as wanted; a key that lacks is fetched."""
    if not repository.get("fingerprint") and repository.get("key_sha256"):
        repository["fingerprint"] = told_by_checksum(repository)
    if not repository.get("fingerprint"):
        raise packages.PackageError(
            "no fingerprint is known for the key of %s (%s), and nothing is installed on an unknown key's word: give "
            "it as gpu_ready_mirror_keys: {%s: FINGERPRINT}" % (repository["id"], repository["url"], repository["id"])
        )
    keyring, sources, pins = paths_of(repository)
    if repository["kind"] == "rpm":
        wanted = {sources: yum_repos.format_repo_file(repository, keyring).encode("utf-8")}
    else:
        architecture = host.run(["dpkg", "--print-architecture"]).out.strip() or "amd64"
        wanted = {sources: apt_sources.format_deb822(repository, keyring, architecture).encode("utf-8")}
    if repository.get("pin") and pins:
        wanted[pins] = apt_sources.format_preferences(repository["pin"]).encode("utf-8")
    try:
        known = [key.fingerprint for key in openpgp.parse_keys(host.read_bytes(keyring) or b"")]
    except openpgp.OpenPgpError:
        known = []
    if known != ["".join(repository["fingerprint"].split()).upper()]:
        data = fetch(repository["key_url"])
        try:
            key = openpgp.pick_key(data, repository["fingerprint"])
        except openpgp.OpenPgpError as error:
            raise packages.PackageError(
                "the key %s is not the one that is pinned: %s; nothing was changed. If the owner changed the key, or "
                "your mirror signs with its own, name its fingerprint in gpu_ready_mirror_keys"
                % (repository["key_url"], error)
            ) from None
        wanted[keyring] = openpgp.armor(key) if repository["kind"] == "rpm" else key
    return {path: data for path, data in wanted.items() if host.read_bytes(path) != data}


def put(path, data):
    """Write a file, or take it away."""
    if data is not None:
        os.makedirs(os.path.dirname(path), mode=0o755, exist_ok=True)
        files.write_atomic(path, data, 0o644)
    elif os.path.exists(path):
        os.unlink(path)


def shown(path, data):
    """Return a file as a diff shows it."""
    if path.endswith(".gpg") or path.startswith(yum_repos.KEYRINGS):
        return "(key)\n" if data else ""
    return validation.masked((data or b"").decode("utf-8", "replace"))


def read_lists(host, params, repositories, sections):
    """Have the package manager read the lists of what changed, of nothing else where that is possible."""
    manager = select.choose_manager(host, journal.is_open(host))
    if isinstance(manager, select.dnf.Dnf):
        for name in sections + [yum_repos.section_name(one) for one in repositories]:
            manager.read_repository(name)
    elif params["components"]:
        manager.update()
    else:
        for one in repositories:
            only = ["-o", "Dir::Etc::sourcelist=" + paths_of(one)[1]]
            manager.update([*only, "-o", "Dir::Etc::sourceparts=-", "-o", "APT::Get::List-Cleanup=0"])


def subscribe(host, verb, names):
    """Switch repositories of a subscription: subscription-manager writes their file anew from its own state."""
    argv = ["subscription-manager", "repos"] + ["--%s=%s" % (verb, name) for name in names]
    answer = host.run(argv, timeout=300.0)
    if answer.rc != 0:
        raise packages.PackageError(
            "`%s` ended with %d (%s): see to the subscription of this host, then run again"
            % (" ".join(argv), answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def note_keys(host, repositories):
    """Note the keys that the package manager will take into the RPM database and that are not there; returns them."""
    there = host.run(["rpm", "-q", "gpg-pubkey", "--qf", "%{VERSION}\\n"]).out.split()
    names = {"".join(repository["fingerprint"].split()).lower() for repository in repositories}
    fresh = [name for name in sorted(names) if not [version for version in there if rpm.is_same_key(version, name)]]
    noted = manifest.read().get("rpm_keys", {})
    manifest.note("rpm_keys", {name: {} for name in fresh})
    return [name for name in fresh if name not in noted]


def run(host, params, check):
    """Bring the sources to the wanted state; returns the module's answer."""
    repositories = ([params["repository"]] if params["repository"] else []) + (params["repositories"] or [])
    todo, enabled, codename, sections = {}, [], "", {}
    if params["components"]:
        enabled, codename = component_changes(host, params["components"])
        todo.update(enabled)
    if params["enable"]:
        sections = section_changes(host, params["enable"])
        todo.update({path: data for path, (data, _) in sections.items()})
    changed = []
    for repository in repositories:
        mine = repository_changes(host, repository)
        changed += [repository] if mine else []
        todo.update(mine)
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
    for path, (_, names) in sections.items():
        manifest.note_sections(path, names)
    rpms = [repository for repository in changed if repository["kind"] == "rpm"]
    keys = note_keys(host, rpms) if rpms else []
    subscribed = sections.get(yum_repos.SUBSCRIPTIONS, (None, []))[1] if host.which("subscription-manager") else []
    try:
        # Keyrings come first: the package manager must never see sources without their key.
        keyrings = [paths_of(repository)[0] for repository in changed]
        for path in sorted(todo, key=lambda path: (path not in keyrings, path)):
            if path != yum_repos.SUBSCRIPTIONS or not subscribed:
                put(path, todo[path])
        if subscribed:
            subscribe(host, "enable", subscribed)
        read_lists(host, params, changed, [name for _, names in sections.values() for name in names])
    except BaseException:
        if subscribed:
            subscribe(host, "disable", subscribed)
        for path, data in before.items():
            put(path, data)
        manifest.drop("files", [path for path in before if path not in known])
        manifest.drop("rpm_keys", keys)
        raise
    return result


def main():
    run_module(run, ARGUMENT_SPEC, required_one_of=[("components", "enable", "repository", "repositories")])


if __name__ == "__main__":
    main()
