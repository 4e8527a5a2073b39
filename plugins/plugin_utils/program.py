# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Starts the programs of bin/, which run from a checkout or an installed collection."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parents[2]
OWN_PYTHON = ROOT / ".venv/bin/python"


def run(module: str) -> NoReturn:
    """Run the function ``main`` of a module with the Python of ansible-core, which has PyYAML."""
    if importlib.util.find_spec("yaml") is None:
        if OWN_PYTHON.exists():
            os.execv(OWN_PYTHON, [str(OWN_PYTHON), *sys.argv])
        python = "$(sed -n '1s/^#!//p' \"$(command -v ansible-playbook)\")"
        sys.exit(
            f"{Path(sys.argv[0]).name}: {sys.executable} has no PyYAML, which comes with ansible-core."
            f" Remedy: start it with the Python of ansible-core: {python} {sys.argv[0]}"
        )
    sys.exit(importlib.import_module(module).main())
