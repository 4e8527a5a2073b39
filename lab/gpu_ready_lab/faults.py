"""Faults for one lab host: `fault HOST NAME`, `heal HOST NAME`."""

import fnmatch
import os
import time
from pathlib import Path

from . import certificates, host_faults, mirror, mirror_faults, mirror_server, packages, paths
from .hosts import Running
from .mirror_faults import Rule
from .say import LabError

EVERYTHING = "*"
SIGNATURES = ("InRelease", "Release.gpg", "repomd.xml.asc")
MIRROR: dict[str, tuple[str, Rule]] = {
    "mirror-down": ("connections are closed without an answer", {"drop": True}),
    "mirror-hang": ("connections are accepted, and nothing is ever sent", {"hang": mirror_faults.LONGEST}),
    "mirror-slow": ("each answer is sent at 20 kB per second", {"rate": 20000}),
    "mirror-404": ("everything is missing", {"status": 404}),
    "mirror-500": ("every answer is a server error", {"status": 500}),
    "mirror-truncated": ("answers end after 1000 bytes", {"truncate": 1000}),
    "mirror-corrupt": ("the first byte of each answer is wrong", {"corrupt": True}),
}
MADE = {
    "mirror-signature": "lists are signed by an unknown key",
    "mirror-expired-key": "the key that is offered has expired",
    "mirror-certificate": "the vendors' names have a certificate of an unknown authority",
}
"""Faults with files that are made for them."""
VENDOR = "*/cuda/repos/*"


def described() -> dict[str, str]:
    """Description of every fault by name."""
    found = {name: f"{what}; GLOB of HOST/PATH" for name, (what, _) in MIRROR.items()}
    found |= {name: f"{what}; GLOB of HOST/PATH" for name, what in MADE.items()}
    return found | host_faults.described()


def inject(running: Running, name: str, arguments: list[str]) -> None:
    """Cause a fault for one host, and for no other."""
    if name in host_faults.described():
        host_faults.inject(running, name, arguments)
        return
    _known(name)
    if len(arguments) > 1:
        raise LabError(f"the fault {name} takes one argument: GLOB")
    if name in MIRROR:
        rules = {(arguments or [EVERYTHING])[0]: MIRROR[name][1]}
    else:
        rules = _made(running, name, arguments[0] if arguments else None)
    mirror_faults.set_rules(paths.STATE, running.address, name, rules)


def heal(running: Running, name: str) -> None:
    """End a fault of a host, or all with `all`."""
    if name == "all":
        mirror_faults.forget(paths.STATE, running.address)
        for each in host_faults.described():
            host_faults.heal(running, each)
    elif name in host_faults.described():
        host_faults.heal(running, name)
    else:
        _known(name)
        mirror_faults.set_rules(paths.STATE, running.address, name, None)


def _known(name: str) -> None:
    if name not in described():
        raise LabError(f"no fault {name}; there are: {', '.join(described())}")


def _made(running: Running, name: str, glob: str | None) -> dict[str, Rule]:
    """Rules that serve a host lists with a wrong signature, a key that has expired, or another certificate."""
    directory = paths.STATE / "faults" / name
    directory.mkdir(parents=True, exist_ok=True)
    if name == "mirror-certificate":
        unknown = certificates.ensure_server(directory, mirror.names())
        return {glob or EVERYTHING: {"certificate": str(unknown)}}
    tree, glob = mirror_server.root_for(paths.STATE, running.address).resolve(), glob or VENDOR
    files = [Path(root, file) for root, _, names in os.walk(tree) for file in names]
    matching = [path for path in files if fnmatch.fnmatchcase(str(path.relative_to(tree)), glob)]
    made = (
        _expired_keys(matching, directory) if name == "mirror-expired-key" else _strange_signatures(matching, directory)
    )
    if not made:
        raise LabError(f"nothing that {name} could change matches {glob} in the mirror")
    return {str(path.relative_to(tree)): {"serve": str(new)} for path, new in made.items()}


def _expired_keys(files: list[Path], directory: Path) -> dict[Path, Path]:
    """Write the lab's own key with an expiry one minute after its creation: the fingerprint stays."""
    key = packages.Key(paths.cache() / "mirror" / "key")
    text = key.public.read_text()
    holding = [path for path in files if path.stat().st_size == len(text.encode()) and path.read_text() == text]
    with key.home() as home:
        rows = packages.gpg(home, "--with-colons", "--list-keys", key.fingerprint).splitlines()
        born = int(next(row.split(":")[5] for row in rows if row.startswith("pub:")))
        then = time.strftime("%Y%m%dT%H%M%S", time.gmtime(born + 1))
        packages.gpg(home, "--faked-system-time", f"{then}!", "--quick-set-expire", key.fingerprint, "seconds=60")
        (directory / "key.asc").write_text(packages.gpg(home, "--armor", "--export", key.fingerprint))
    return dict.fromkeys(holding, directory / "key.asc")


def _strange_signatures(files: list[Path], directory: Path) -> dict[Path, Path]:
    """Sign the lists again, with a key that no host trusts."""
    made = {}
    stranger = packages.Key(directory / "key")
    with stranger.home() as home:
        for number, path in enumerate(path for path in files if path.name in SIGNATURES):
            new = directory / f"{number}-{path.name}"
            new.unlink(missing_ok=True)
            signed = path.with_name("repomd.xml" if path.name.startswith("repomd") else "Release")
            kind = ["--clearsign"] if path.name == "InRelease" else ["--armor", "--detach-sign"]
            packages.gpg(home, *kind, "--output", str(new), str(signed))
            made[path] = new
    return made
