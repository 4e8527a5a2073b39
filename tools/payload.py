"""What AnsiballZ sends to a host for one module: its files, and the script that ansible-core makes of them."""

import argparse
import base64
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COLLECTIONS = ROOT / "collections"
MODULES = "ansible_collections/gpu_ready/nodes/plugins/modules"


class Wrapper(NamedTuple):
    """The script that ansible-core copies to the host, and the zip inside it."""

    size: int
    archive: bytes


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
        module_path=str(path or collections / MODULES / f"{module}.py"),
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
