"""The vendor mirror: stand-ins for vendors' repositories and downloads under their own paths, and what serves them."""

import argparse
import functools
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from . import (
    certificates,
    debian_archive,
    declarations,
    downloads,
    mirror_faults,
    mirror_server,
    packages,
    paths,
    proxy,
    published,
    rpms,
    verify_image,
    web,
)
from .engine import need_packages
from .say import LabError, alive, end, locked, say, wait_for

DECLARATIONS = declarations.DIRECTORY
PROGRAM = "gpu_ready_lab.mirror"
NEEDS = {
    "/usr/bin/dpkg-deb": "dpkg",
    "/usr/bin/gpg": "gpg",
    "/usr/bin/gpgconf": "gpgconf",
    "/usr/bin/gpg-agent": "gpg-agent",
    "/usr/bin/gcc": "gcc",
    str(debian_archive.KEYRING): "debian-archive-keyring",
    **rpms.NEEDS,
}
KEPT_TREES = 8
"""Several checkouts may use one lab at a time: each host gets the tree of its own."""
COMPLETE = ".complete"
"""Directory of a tree with an empty file for each complete repository."""
CERTIFICATES = "certificates"
"""Directory of the cache with the authority that hosts trust, and the certificate for the vendors' names."""
METALINKS = "mirrors.fedoraproject.org/metalink"
"""Where the tree has Fedora's lists of mirrors, by repository and architecture: REPO/ARCH of the query."""
DOWNLOADS = "downloads"
"""Listed among the repositories: the plain files of downloads.yml."""


class Offered(NamedTuple):
    """What hosts need to know: the proxy's address, and variables for the inventory."""

    proxy: str
    variables: dict[str, Any]


# ---- the tree -------------------------------------------------------------------------------------


def _inputs() -> str:
    """A digest of the inputs of the tree: declarations, sources and the code that builds."""
    total = hashlib.sha256(b"later" if declarations.is_later() else b"")
    code = [
        Path(__file__).with_name(f"{name}.py")
        for name in ("mirror", "declarations", "packages", "rpms", "downloads", "published")
    ]
    for path in [*sorted(DECLARATIONS.glob("*.yml")), *paths.sources(declarations.SOURCES), *code]:
        if path.exists():
            total.update(f"{path.name} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()[:16]


repositories = declarations.repositories


@functools.cache
def names() -> tuple[str, ...]:
    """Return the vendors' host names: those that declared repositories and files are at."""
    at = [path for entry in repositories().values() for path in (entry["path"], *entry.get("also", []), *entry["keys"])]
    at += downloads.places(DECLARATIONS / "downloads.yml")
    at += [METALINKS, *(entry.path for entry in published.read(DECLARATIONS / "published.yml"))]
    return tuple(sorted({path.split("/")[0] for path in at}))


def declared() -> tuple[list[packages.Package], list[rpms.Rpm]]:
    """Return all declared packages."""
    everything = declarations.read_all()
    debs = [packages.from_declared(one) for one in everything if one.kind == declarations.DEB]
    return debs, [rpms.from_declared(one) for one in everything if one.kind == declarations.RPM]


def streams() -> dict[str, dict[str, Any]]:
    """Return the declared modules and their streams."""
    modules: dict[str, dict[str, Any]] = declarations.read_yaml(DECLARATIONS / "streams.yml")
    for module in modules.values():
        found = {}
        for values in declarations.combinations(["drivers"]):
            for name, rule in module["streams"].items():
                if declarations.is_for(rule, values):
                    text = declarations.texts(values)
                    found[declarations.fill(str(name), text)] = declarations.fill_all(rule, text)
        module["streams"] = found
    return modules


def build(cache: Path, proxy_url: str | None = None, distributions: Collection[str] | None = None) -> Path:
    """Return the root of the mirror, with what hosts of these distributions need (None: everything).

    A tree is completed in place, also while it is served: a repository is complete before its first client starts.
    """
    with locked(cache / "mirror" / "lock"):
        return _build(cache, proxy_url, distributions)


def tree_of_checkout(cache: Path) -> Path:
    """Return the root of the mirror that this checkout declares; `build` makes it."""
    return _tree(cache, packages.Key(cache / "mirror" / "key"))


def _tree(cache: Path, key: packages.Key) -> Path:
    return cache / "mirror" / "trees" / f"{_inputs()}-{key.fingerprint[-8:]}"


def _build(cache: Path, proxy_url: str | None, distributions: Collection[str] | None) -> Path:
    need_packages(NEEDS, "the vendor mirror")
    key = packages.Key(cache / "mirror" / "key")
    tree = _tree(cache, key)
    complete = tree / COMPLETE
    needed = [name for name in (*repositories_for(distributions), DOWNLOADS) if not (complete / name).exists()]
    if not needed:
        os.utime(tree)
        return tree
    started = time.monotonic()
    say(f"making the vendor mirror: {len(needed)} repositories and directories that are missing")
    complete.mkdir(parents=True, exist_ok=True)
    with debian_archive.Members(cache / "debian", proxy_url) as members:

        def fetch(suite: str, package: str, path: str) -> bytes:
            return key_in_form(key, path) if suite == declarations.LAB_KEY else members(suite, package, path)

        _write(tree, cache, key, fetch, needed)
    os.utime(tree)
    for old in sorted(tree.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)[KEPT_TREES:]:
        shutil.rmtree(old)
    _forget(cache / "mirror")
    say(f"made the vendor mirror in {time.monotonic() - started:.0f} s")
    return tree


def _forget(cache: Path) -> None:
    """Remove packages and metadata that no tree links to any more, once they are a day old."""
    for directory in ("debs", "rpms", "metadata"):
        for path in (cache / directory).glob("*"):  # absent where the mirror has no packages of a kind
            file = path / "repomd.xml" if path.is_dir() else path
            if file.stat().st_nlink == 1 and time.time() - file.stat().st_mtime > 24 * 3600:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def repositories_for(distributions: Collection[str] | None) -> list[str]:
    """Return the ids of the repositories that hosts of these distributions use; of all for None."""
    return [
        name for name, entry in repositories().items() if distributions is None or {*entry["for"]} & {*distributions}
    ]


def _write(root: Path, cache: Path, key: packages.Key, fetch: packages.Fetch, needed: Collection[str]) -> None:
    """Write repositories into the tree and mark each as complete; an interrupted one is written again."""
    (all_debs, all_rpms), beside = declared(), published.read(DECLARATIONS / "published.yml")
    needed_debs = [package for package in all_debs if {*package.repositories} & {*needed}]
    needed_rpms = [rpm for rpm in all_rpms if {*rpm.repositories} & {*needed}]
    debs = packages.build_all(needed_debs, cache / "mirror" / "debs", fetch)
    built = rpms.build_all(needed_rpms, cache / "mirror" / "rpms", fetch, key)
    for name, entry in repositories().items():
        if name not in needed:
            continue
        directory = root / entry["path"]
        if entry.get("kind") == "rpm":
            shutil.rmtree(directory, ignore_errors=True)
            chosen = {rpm: path for rpm, path in built.items() if name in rpm.repositories}
            documents = [
                document
                for module, rule in streams().items()
                if name in rule["repositories"]
                for document in rpms.module_documents(module, rule, list(chosen))
            ]
            rpms.write_repository(directory, chosen.items(), key, cache / "mirror" / "metadata", documents)
        else:
            content = [(package, deb) for package, deb in debs.items() if name in package.repositories]
            suites, components = entry.get("suites", ()), entry.get("components", ())
            if not suites:  # several releases share the archive's directory
                shutil.rmtree(directory, ignore_errors=True)
            packages.write_repository(directory, content, entry["release"], key, suites, components)
        for other in entry.get("also", []):
            (root / other).parent.mkdir(parents=True, exist_ok=True)
            (root / other).unlink(missing_ok=True)
            (root / other).symlink_to(os.path.relpath(directory, (root / other).parent))
        for path in entry["keys"]:
            published.write_file(root / path, key_in_form(key, "binary" if path.endswith(".gpg") else "armored"))
        if "metalink" in entry:
            published.write_metalink(root / METALINKS / entry["metalink"], directory, entry["path"])
        published.write(root, directory, [each for each in beside if each.repository == name])
        (root / COMPLETE / name).touch()
    if DOWNLOADS in needed:
        downloads.write(root, DECLARATIONS / "downloads.yml", fetch)
        (root / COMPLETE / DOWNLOADS).touch()


def key_in_form(key: packages.Key, form: str) -> bytes:
    """Return the lab's public key, armored or binary."""
    return key.binary if form == "binary" else key.public.read_bytes()


# ---- starting and stopping ------------------------------------------------------------------------


def _code() -> str:
    """A digest of the code that serves."""
    files = [Path(str(module.__file__)) for module in (mirror_server, proxy, web, mirror_faults)]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]


def _running(state: Path) -> dict[str, Any] | None:
    """The record of the running server, None if none runs."""
    try:
        record: dict[str, Any] = json.loads((state / "mirror.json").read_text())
    except (OSError, ValueError):
        return None
    return record if alive(record["pid"], PROGRAM) else None


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), timeout=2).close()
    except OSError:
        return False
    return True


def start(distributions: Collection[str] | None = None, by_variable: bool = False) -> Offered:
    """Build and start the mirror, also under the vendors' names, and the archive proxy, unless the current ones run.

    The mirror has what hosts of these distributions need (None: everything), which reach it by the vendors' names or by
    the variable gpu_ready_mirror.
    """
    with locked(paths.STATE / "mirror.lock"):
        image, proxy_url = _ensure_running(paths.cache(), paths.STATE, distributions), paths.PROXY_URL
    fingerprint = packages.Key(paths.cache() / "mirror" / "key").fingerprint
    variables = {
        "gpu_ready_mirror_keys": dict.fromkeys(repositories(), fingerprint),
        "gpu_verify_image": str(image),
        **({"gpu_ready_mirror": paths.MIRROR_URL} if by_variable else {}),
    }
    return Offered(proxy_url, variables)


def _ensure_running(cache: Path, state: Path, distributions: Collection[str] | None) -> Path:
    """Return the verification image."""
    certificate = certificates.ensure_server(cache / CERTIFICATES, names())
    ports = mirror_server.PORTS
    settings = {
        "code": _code(),
        "ports": list(ports),
        "cache": str(cache),
        "certificate": hashlib.sha256(certificate.read_bytes()).hexdigest(),
    }
    record = _running(state)
    if record is None or {key: record.get(key) for key in settings} != settings:
        stop()
        say("starting the archive proxy and the vendor mirror")
        pid = _spawn(cache, state, paths.ADDRESS, ports, certificate)
        (state / "mirror.json").write_text(json.dumps({**settings, "pid": pid}))
    mirror_server.point_at(state, build(cache, f"{paths.PROXY_URL}/", distributions))
    return verify_image.ensure(cache, f"{paths.PROXY_URL}/")


def status() -> str:
    """Return a line with the state of mirror and proxy."""
    record = _running(paths.STATE)
    words = f"{paths.MIRROR_URL}, {paths.PROXY_URL}" if record else f"not running; log: {paths.STATE}/mirror.log"
    return f"vendor mirror and archive proxy: {words}"


def _spawn(cache: Path, state: Path, address: str, ports: mirror_server.Ports, certificate: Path) -> int:
    """Start the servers and return their process."""
    argv = [
        sys.executable, "-m", PROGRAM, "--cache", str(cache), "--state", str(state),
        "--address", address, "--certificate", str(certificate),
        "--ports", *map(str, ports),
    ]  # fmt: skip
    log_path = state / "mirror.log"
    with log_path.open("ab") as log:
        process = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/",
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
        )  # fmt: skip
    try:
        wait_for(
            lambda: process.poll() is not None or all(_listens(address, port) for port in ports),
            limit=120, what=f"the vendor mirror on {address} (its log: {log_path})",
        )  # fmt: skip
    finally:
        if process.poll() is None and not all(_listens(address, port) for port in ports):
            process.kill()
    if process.poll() is not None:
        words = log_path.read_text().strip().splitlines()[-1:]
        where = f"{address} ports {', '.join(map(str, ports))}"
        raise LabError(f"could not serve the vendor mirror on {where}: {' '.join(words)}")
    return process.pid


def serve_later(distributions: Collection[str], addresses: Collection[str]) -> Path:
    """Serve hosts what the vendors will have in six months, and return that tree; this process reads no other."""
    declarations.let_time_pass()
    tree = build(paths.cache(), f"{paths.PROXY_URL}/", distributions)
    for address in addresses:
        mirror_server.point_at(paths.STATE, tree, address)
    return tree


def stop() -> None:
    """Stop the mirror and the proxy, if they run."""
    state = paths.STATE
    record = _running(state)
    if record is not None:
        end(record["pid"], PROGRAM, "the vendor mirror")
    (state / "mirror.json").unlink(missing_ok=True)


def main(arguments: list[str] | None = None) -> int:
    """Serve until a signal ends it."""
    parser = argparse.ArgumentParser(prog="python -m gpu_ready_lab.mirror", description="The lab's vendor mirror.")
    parser.add_argument("--cache", type=Path, required=True, help="what outlives the lab")
    parser.add_argument("--state", type=Path, required=True, help="logs, faults")
    parser.add_argument("--address", required=True, help="where to listen")
    parser.add_argument("--ports", type=int, nargs=len(mirror_server.PORTS), required=True)
    parser.add_argument("--certificate", type=Path, required=True, help="of the vendors' names (PEM, with key)")
    options = parser.parse_args(arguments)
    ports = mirror_server.Ports(*options.ports)
    try:
        mirror_server.serve(options.address, ports, options.cache, options.state, options.certificate)
    except OSError as error:
        reason = error.strerror or error
        print(f"error: cannot listen on {options.address}: {reason}; does another program use the port?")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
