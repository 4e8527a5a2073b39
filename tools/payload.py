"""What AnsiballZ sends to a host for one module: its files, and the script that ansible-core makes of them."""

import argparse
import ast
import base64
import re
from importlib.util import resolve_name
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COLLECTIONS = ROOT / "collections"
MODULES = "ansible_collections.gpu_ready.nodes.plugins.modules"
"""Package of a module of library/ as Ansible runs it, where `..module_utils` is what Ansible collects."""
NAMESPACE = "ansible_collections.gpu_ready.nodes.plugins.module_utils."


class Wrapper(NamedTuple):
    """The script that ansible-core copies to the host, and the zip inside it."""

    size: int
    archive: bytes


def module_path(name: str, module_utils: Path) -> Path | None:
    """File of a dotted name below module_utils/; None for a name inside a module, and for ansible's own."""
    base = module_utils.joinpath(*name.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.py"):
        if path.is_file():
            return path
    return None


def imported_names(path: Path, package: str) -> set[str]:
    """Dotted names below module_utils/ that any import statement of a file mentions, those inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            origin = resolve_name("." * node.level + (node.module or ""), package)
            names |= {origin} | {f"{origin}.{alias.name}" for alias in node.names}
    return {name[len(NAMESPACE) :] for name in names if name.startswith(NAMESPACE)}


def import_closure(module: str, root: Path = ROOT) -> dict[str, Path]:
    """Files below module_utils/ that a module of library/ takes to the host, by dotted name.

    Follows every import statement, as ansible.executor.module_common does, wherever in the file it is.
    """
    module_utils = root / "module_utils"
    pending = imported_names(root / "library" / f"{module}.py", MODULES)
    found: dict[str, Path] = {}
    while pending:
        name = pending.pop()
        path = module_path(name, module_utils)
        if path is None or name in found:
            continue
        found[name] = path
        package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
        pending |= imported_names(path, NAMESPACE + ".".join(package))
        pending |= {".".join(package[:depth]) for depth in range(1, len(package) + 1)}
    return found


def build_wrapper(module: str, collections: Path = COLLECTIONS, path: Path | None = None) -> Wrapper:
    """Have ansible-core itself make the script that it would send, without arguments.

    ``path``: file of a module that is not in the collection.
    """
    from ansible.executor.module_common import modify_module
    from ansible.parsing.dataloader import DataLoader
    from ansible.plugins import loader
    from ansible.template import Templar

    loader.init_plugin_loader([str(collections)])
    variables = {"ansible_python_interpreter": "/usr/bin/python3"}
    built = modify_module(
        module_name=module,
        module_path=str(path or collections / MODULES.replace(".", "/") / f"{module}.py"),
        module_args={},
        templar=Templar(loader=DataLoader(), variables=variables),
        task_vars=variables,
        module_compression="ZIP_DEFLATED",
    )
    script: bytes = built.b_module_data if hasattr(built, "b_module_data") else built[0]
    encoded = max(re.findall(rb"[A-Za-z0-9+/=]{1000,}", script), key=len)
    return Wrapper(len(script), base64.b64decode(encoded))


def main() -> None:
    """Write MODULE.zip, as it is sent, for each module. A process of its own: Ansible's finder of collections stays."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("modules", nargs="+", metavar="module", help="name of a module in library/")
    parser.add_argument("--archives", type=Path, required=True, metavar="DIRECTORY")
    parser.add_argument("--collections", type=Path, default=COLLECTIONS, help="where gpu_ready.nodes is installed")
    options = parser.parse_args()
    for module in options.modules:
        archive = build_wrapper(module, options.collections).archive
        (options.archives / f"{module}.zip").write_bytes(archive)


if __name__ == "__main__":
    main()
