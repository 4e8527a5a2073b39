"""Adds package repositories with pinned keys, and enables parts of the distribution's own sources."""

import os
import re
import shutil
import tempfile
from typing import Any, Dict, List, NamedTuple, Optional, Set

from ..base import download, files, manifest, manifest_notes, validation, work_directories
from ..base.errors import GpuReadyError
from ..base.host import Host
from . import (
    apt,
    apt_components,
    apt_sources,
    armor,
    dnf,
    openpgp,
    pinned_key,
    rpm,
    yum_repos,
    yum_sections,
)
from .manager import Manager, PackageError
from .repository import Repository, format_deb822, format_preferences, format_repo_file, parse_repository

KEY_LIMIT = 1024 * 1024
"""Most bytes of a file with keys; the vendors' have less than 10 kB."""
KEY_LIMITS = download.DownloadLimits(30.0, 120.0)
SUBSCRIPTION_LIMIT = 300.0
MODE = 0o644


class Request(NamedTuple):
    """Components and .repo sections of the distribution to enable, and third-party repositories to have.

    ``keys``: public keys in ASCII armour by fingerprint; one that is not among them is downloaded.
    """

    components: List[str]
    sections: List[str]
    repositories: List[Repository]
    keys: Dict[str, str] = {}


class Edits(NamedTuple):
    """New content by path, and why it differs.

    ``component_files`` get components of ``codename``; ``sections`` are enabled, by .repo file; ``repositories`` have
    at least one file that changes.
    """

    files: Dict[str, bytes]
    component_files: List[str]
    codename: str
    sections: Dict[str, List[str]]
    repositories: List[Repository]


def parse_request(params: Dict[str, Any]) -> Request:
    """Return the request in the options of gpu_repository."""
    values = [parse_repository(one) for one in params["repositories"] or []]
    return Request(params["components"] or [], params["enable"] or [], values, params["keys"])


def configure(host: Host, manager: Manager, request: Request, check: bool) -> Dict[str, Any]:
    """Configure the requested sources; returns the module's values. On failure all files are restored."""
    edits = plan_edits(host, request)
    before = {path: host.read_bytes(path) for path in edits.files}
    result = {
        "changed": bool(edits.files),
        "paths": sorted(edits.files),
        "diff": [
            {
                "before_header": path,
                "after_header": path,
                "before": format_content(path, before[path]),
                "after": format_content(path, data),
            }
            for path, data in sorted(edits.files.items())
        ],
    }
    if edits.files and not check:
        apply_edits(host, manager, request, edits, before)
    return result


def plan_edits(host: Host, request: Request) -> Edits:
    """Compare request and host. Downloads the keys that are neither on the host nor in the request."""
    edits = Edits({}, [], "", {}, [])
    if request.components:
        texts, codename = plan_components(host, request.components)
        edits.files.update(texts)
        edits = edits._replace(component_files=list(texts), codename=codename)
    if request.sections:
        for path, names in plan_sections(host, request.sections).items():
            edits.files[path] = yum_sections.enable_sections(host.read(path) or "", names).encode("utf-8")
            edits.sections[path] = names
    for repository in request.repositories:
        repository = with_fingerprint(repository)
        own = plan_repository(host, repository, request.keys)
        edits.files.update(own)
        edits.repositories.extend([repository] if own else [])
    return edits


# ---- the distribution's own sources ---------------------------------------------------------------------------------


def sources_files(host: Host) -> List[str]:
    """Return the files that apt reads."""
    found = [apt_sources.MAIN_FILE] if host.exists(apt_sources.MAIN_FILE) else []
    names = [name for name in host.listdir(apt_sources.DIRECTORY) if re.search(r"\.(list|sources)$", name)]
    return found + ["%s/%s" % (apt_sources.DIRECTORY, name) for name in names]


def plan_components(host: Host, names: List[str]) -> "tuple[Dict[str, bytes], str]":
    """Return new content, by path, of the distribution's sources without these components; code name of the release."""
    codename = read_codename(host)
    if not codename:
        raise PackageError(
            "/etc/os-release names no VERSION_CODENAME, so the distribution's own suites are unknown. Enable the "
            "components %s yourself, then run again." % " ".join(names)
        )
    found, entries = {}, 0
    texts = {path: host.read(path) or "" for path in sources_files(host)}
    for path, content in texts.items():
        others = [entry for other in texts if other != path for entry in apt_sources.parse_entries(other, texts[other])]
        change = apt_components.enable_components(path, content, names, codename, others)
        entries += change.entries
        if change.before != change.after:
            found[path] = change.after.encode("utf-8")
    if not entries:
        raise PackageError(
            "no package source of the distribution's own archive for %s is enabled in /etc/apt. Enable one, then run "
            "again." % codename
        )
    return found, codename


def read_codename(host: Host) -> str:
    """Return the code name of the distribution whose archive a host uses, "" where os-release names none."""
    text = host.read("/etc/os-release") or ""
    # A derivative that uses the archive of its base (Linux Mint) names that one's suites besides its own name.
    match = re.search(r"(?m)^(?:UBUNTU|DEBIAN)_CODENAME=\"?(\w+)", text)
    match = match or re.search(r"(?m)^VERSION_CODENAME=\"?(\w+)", text)
    return match.group(1) if match else ""


def plan_sections(host: Host, names: List[str]) -> Dict[str, List[str]]:
    """Return the disabled ones of the requested .repo sections, by path."""
    known: Set[str] = set()
    found = {}
    for name in host.listdir(yum_repos.DIRECTORY):
        path = yum_repos.DIRECTORY + "/" + name
        text = host.read(path) if name.endswith(".repo") else None
        states = yum_repos.parse_sections(text or "")
        known.update(states)
        disabled = [section for section, enabled in states.items() if section in names and not enabled]
        if disabled:
            found[path] = disabled
    missing = [name for name in names if name not in known]
    if missing:
        raise PackageError(
            "%s: in no file of %s, so the distribution's repositories are not configured as it delivers them. Add the "
            "repository, then run again." % (", ".join(missing), yum_repos.DIRECTORY)
        )
    return found


# ---- third-party repositories ---------------------------------------------------------------------------------------


def with_fingerprint(repository: Repository) -> Repository:
    """Return the repository with its key's fingerprint, read from the pinned key file if none is given."""
    if repository.fingerprint:
        return repository
    if repository.key_sha256:
        try:
            fingerprint = armor.fingerprint_by_checksum(download_keys(repository), repository.key_sha256)
        except openpgp.OpenPgpError as error:
            raise wrong_key(repository, error) from None
        return repository._replace(fingerprint=fingerprint)
    raise PackageError(
        "the repository %s (%s) has no known key fingerprint, and packages signed by an unpinned key are not "
        "installed. Set gpu_ready_mirror_keys: {%s: FINGERPRINT}." % (repository.id, repository.url, repository.id)
    )


def plan_repository(host: Host, repository: Repository, keys: Dict[str, str]) -> Dict[str, bytes]:
    """Return new content of the repository's files that differ, by path."""
    contents = {}
    if repository.kind == "rpm":
        text = format_repo_file(repository)
    else:
        text = format_deb822(repository, host.run(["dpkg", "--print-architecture"]).out.strip() or "amd64")
        if repository.pin:
            contents[repository.preferences_file] = format_preferences(repository.pin).encode("utf-8")
    if not repository.adopted:
        contents[repository.list_file] = text.encode("utf-8")
    needs_key = repository.kind == "rpm" or not repository.adopted
    known = openpgp.list_fingerprints(host.read_bytes(repository.keyring) or b"")
    if needs_key and known != [repository.fingerprint]:
        given = keys.get(repository.fingerprint)
        data = given.encode("ascii") if given else download_keys(repository)
        contents[repository.keyring] = format_keyring(repository, data)
    return {path: data for path, data in contents.items() if host.read_bytes(path) != data}


def format_keyring(repository: Repository, data: bytes) -> bytes:
    """Return a keyring that holds the pinned key of ``data`` and no other."""
    try:
        key = pinned_key.pick_key(data, repository.fingerprint)
    except openpgp.OpenPgpError as error:
        raise wrong_key(repository, error) from None
    return armor.armor(key) if repository.kind == "rpm" else key


def download_keys(repository: Repository) -> bytes:
    """Return the repository's key file, not yet verified."""
    directory = tempfile.mkdtemp(prefix="gpu-ready-key-", dir=work_directories.SMALL_FILES)
    try:
        path = os.path.join(directory, "key")
        download.download(repository.key_url, path, KEY_LIMITS, max_bytes=KEY_LIMIT)
        with open(path, "rb") as handle:
            return handle.read()
    finally:
        shutil.rmtree(directory)


def wrong_key(repository: Repository, error: openpgp.OpenPgpError) -> PackageError:
    return PackageError(
        "the key %s is not the pinned one: %s. Nothing was changed. If the owner changed the key, or your mirror signs "
        "with its own, set its fingerprint in gpu_ready_mirror_keys." % (repository.key_url, error)
    )


# ---- writing --------------------------------------------------------------------------------------------------------


def apply_edits(
    host: Host, manager: Manager, request: Request, edits: Edits, before: Dict[str, Optional[bytes]]
) -> None:
    """Write the files and read the package lists; on failure restores files and manifest."""
    recorded = manifest.read().get("files", {})
    manifest_notes.note_files(host, edits.files, mode=MODE)
    for path in edits.component_files:
        manifest_notes.note_components(path, request.components, edits.codename)
    for path, names in edits.sections.items():
        manifest_notes.note_sections(path, names)
    rpms = [repository for repository in edits.repositories if repository.kind == "rpm"]
    keys = note_rpm_keys(host, rpms) if rpms else []
    adopted = {one.adopted: describe_adopted(one) for one in rpms if one.adopted}
    manifest_notes.note("adopted", adopted)
    subscriptions = edits.sections.get(yum_sections.SUBSCRIPTIONS, []) if host.which("subscription-manager") else []
    try:
        # Keyrings first: the package manager must never see sources without their key.
        keyrings = [repository.keyring for repository in edits.repositories]
        for path in sorted(edits.files, key=lambda path: (path not in keyrings, path)):
            if path != yum_sections.SUBSCRIPTIONS or not subscriptions:
                write_or_delete(path, edits.files[path])
        if subscriptions:
            switch_subscriptions(host, "enable", subscriptions)
        try:
            read_lists(host, manager, request, edits)
        except PackageError as error:
            if not replace_given_keys(host, request, edits, error):
                raise
            read_lists(host, manager, request, edits)
        manager.check_sources()
    except BaseException:
        if subscriptions:
            switch_subscriptions(host, "disable", subscriptions)
        for path, data in before.items():
            write_or_delete(path, data)
        manifest_notes.drop("files", [path for path in before if path not in recorded])
        manifest_notes.drop("rpm_keys", keys)
        manifest_notes.drop("adopted", list(adopted))
        raise


def replace_given_keys(host: Host, request: Request, edits: Edits, error: PackageError) -> bool:
    """Replace keys of the request by their owners' present copies, with younger subkeys; False if that is no cause.

    The fingerprint of the primary key stays the pinned one.
    """
    new = [one for one in edits.repositories if one.keyring in edits.files and one.fingerprint in request.keys]
    if not new or "signature" not in str(error):
        return False
    try:
        keyrings = {one.keyring: format_keyring(one, download_keys(one)) for one in new}
    except GpuReadyError:
        return False
    manifest_notes.note_files(host, keyrings, mode=MODE)
    for path, data in keyrings.items():
        write_or_delete(path, data)
    return any(data != edits.files[path] for path, data in keyrings.items())


def read_lists(host: Host, manager: Manager, request: Request, edits: Edits) -> None:
    """Read the package lists of what changed. What others configured may fail."""
    if isinstance(manager, dnf.Dnf):
        names = [name for sections in edits.sections.values() for name in sections]
        for name in names + [one.section for one in edits.repositories]:
            manager.read_repository(name)
    elif isinstance(manager, apt.Apt):
        if request.components:
            manager.update(distribution_locations(host, edits.codename, edits.component_files))
        for repository in edits.repositories:
            manager.update_only(repository.adopted or repository.list_file)


def distribution_locations(host: Host, codename: str, paths: List[str]) -> List[str]:
    """Return where the distribution's own archive is, by these sources files."""
    entries = [entry for path in paths for entry in apt_sources.parse_entries(path, host.read(path) or "")]
    own = apt_sources.distribution_entries(entries, codename)
    return [location for entry in own for location, _ in apt_sources.locations(entry)]


def switch_subscriptions(host: Host, verb: str, names: List[str]) -> None:
    """Enable or disable repositories of a subscription: subscription-manager writes their file from its own state."""
    argv = ["subscription-manager", "repos"] + ["--%s=%s" % (verb, name) for name in names]
    answer = host.run(argv, timeout=SUBSCRIPTION_LIMIT)
    if answer.rc != 0:
        raise PackageError(
            "`%s` ended with %d (%s). Check the subscription of this host, then run again."
            % (" ".join(argv), answer.rc, (answer.err or answer.out).strip()[-300:])
        )


def note_rpm_keys(host: Host, repositories: List[Repository]) -> List[str]:
    """Record the keys that the package manager will import into the RPM database; returns the newly recorded ones."""
    known = host.run(["rpm", "-q", "gpg-pubkey", "--qf", "%{VERSION}\\n"]).out.split()
    names = sorted({repository.fingerprint.lower() for repository in repositories})
    fresh = [name for name in names if not any(rpm.is_same_key(version, name) for version in known)]
    recorded = manifest.read().get("rpm_keys", {})
    manifest_notes.note("rpm_keys", {name: {} for name in fresh})
    return [name for name in fresh if name not in recorded]


def describe_adopted(repository: Repository) -> Dict[str, Any]:
    """Return what the manifest records of a section that is not ours.

    Our calls of dnf use it with the pinned key only.
    """
    return {
        "keyring": repository.keyring,
        "gpgcheck": repository.gpgcheck,
        "repo_gpgcheck": repository.repo_gpgcheck,
    }


def write_or_delete(path: str, data: Optional[bytes]) -> None:
    if data is not None:
        manifest_notes.make_parents(path)
        files.write_atomic(path, data, MODE)
    elif os.path.exists(path):
        os.unlink(path)


def format_content(path: str, data: Optional[bytes]) -> str:
    """Return a file as a diff shows it."""
    if path.endswith(".gpg") or path.startswith(yum_repos.KEYRINGS):
        return "(key)\n" if data else ""
    return validation.mask_secrets((data or b"").decode("utf-8", "replace"))
