"""What can be made to fail on one lab host: `fault HOST NAME`, `heal HOST NAME`."""

import fnmatch
import os
import time
from pathlib import Path

from . import host_faults, mirror_faults, packages, paths
from .hosts import Running
from .mirror_faults import Rule
from .say import LabError

EVERYTHING = "*"
SIGNATURES = ("InRelease", "Release.gpg", "repomd.xml.asc")
MIRROR: dict[str, tuple[str, Rule]] = {
    "mirror-down": ("connections are closed without an answer", {"drop": True}),
    "mirror-hang": ("connections are taken, and nothing is ever said", {"hang": mirror_faults.LONGEST}),
    "mirror-slow": ("each answer comes at 20 kB a second", {"rate": 20000}),
    "mirror-404": ("everything is missing", {"status": 404}),
    "mirror-500": ("everything is an error of the server", {"status": 500}),
    "mirror-truncated": ("answers end after 1000 bytes", {"truncate": 1000}),
    "mirror-corrupt": ("the first byte of each answer is wrong", {"corrupt": True}),
}
SIGNED = {
    "mirror-signature": "lists are signed by a stranger's key",
    "mirror-expired-key": "the key that is offered has expired",
}
VENDOR = "*/cuda/repos/*"


def described() -> dict[str, str]:
    """Return every fault's name with what it is."""
    found = {name: f"{what}; GLOB of HOST/PATH" for name, (what, _) in MIRROR.items()}
    found |= {name: f"{what}; GLOB of HOST/PATH" for name, what in SIGNED.items()}
    return found | host_faults.described()


def put(running: Running, name: str, arguments: list[str]) -> None:
    """Have a fault for a host, and for no other."""
    if name in host_faults.described():
        host_faults.put(running, name, arguments)
        return
    _known(name)
    if len(arguments) > 1:
        raise LabError(f"the fault {name} takes one argument: GLOB")
    if name in MIRROR:
        rules = {(arguments or [EVERYTHING])[0]: MIRROR[name][1]}
    else:
        rules = _signed(name, (arguments or [VENDOR])[0])
    mirror_faults.put(paths.STATE, running.address, name, rules)


def heal(running: Running, name: str) -> None:
    """Take a fault from a host, or all with `all`."""
    if name == "all":
        mirror_faults.forget(paths.STATE, running.address)
        for each in host_faults.described():
            host_faults.heal(running, each)
    elif name in host_faults.described():
        host_faults.heal(running, name)
    else:
        _known(name)
        mirror_faults.put(paths.STATE, running.address, name, None)


def _known(name: str) -> None:
    if name not in described():
        raise LabError(f"no fault {name}; there are: {', '.join(described())}")


def _signed(name: str, glob: str) -> dict[str, Rule]:
    """Return rules that give a host lists with a wrong signature, or a key that has expired."""
    tree = (paths.STATE / "mirror-root").resolve()
    folder = paths.STATE / "faults" / name
    folder.mkdir(parents=True, exist_ok=True)
    files = [Path(root, file) for root, _, names in os.walk(tree) for file in names]
    matching = [path for path in files if fnmatch.fnmatchcase(str(path.relative_to(tree)), glob)]
    made = _expired_keys(matching, folder) if name == "mirror-expired-key" else _strange_signatures(matching, folder)
    if not made:
        raise LabError(f"nothing that {name} could change matches {glob} in the mirror")
    return {str(path.relative_to(tree)): {"serve": str(new)} for path, new in made.items()}


def _expired_keys(files: list[Path], folder: Path) -> dict[Path, Path]:
    """Make the lab's own key one that expired a minute after it was made: its fingerprint stays."""
    key = packages.Key(paths.cache() / "mirror" / "key")
    text = key.public.read_text()
    holding = [path for path in files if path.stat().st_size == len(text.encode()) and path.read_text() == text]
    with key.home() as home:
        rows = packages.gpg(home, "--with-colons", "--list-keys", key.fingerprint).splitlines()
        born = int(next(row.split(":")[5] for row in rows if row.startswith("pub:")))
        then = time.strftime("%Y%m%dT%H%M%S", time.gmtime(born + 1))
        packages.gpg(home, "--faked-system-time", f"{then}!", "--quick-set-expire", key.fingerprint, "seconds=60")
        (folder / "key.asc").write_text(packages.gpg(home, "--armor", "--export", key.fingerprint))
    return dict.fromkeys(holding, folder / "key.asc")


def _strange_signatures(files: list[Path], folder: Path) -> dict[Path, Path]:
    """Sign the lists again, by a key that no host knows."""
    made = {}
    stranger = packages.Key(folder / "key")
    with stranger.home() as home:
        for number, path in enumerate(path for path in files if path.name in SIGNATURES):
            new = folder / f"{number}-{path.name}"
            new.unlink(missing_ok=True)
            signed = path.with_name("repomd.xml" if path.name.startswith("repomd") else "Release")
            kind = ["--clearsign"] if path.name == "InRelease" else ["--armor", "--detach-sign"]
            packages.gpg(home, *kind, "--output", str(new), str(signed))
            made[path] = new
    return made
