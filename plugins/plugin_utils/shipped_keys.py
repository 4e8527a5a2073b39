# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""The keys of repositories that travel with gpu-ready (catalog/keys), so that hosts need not download them."""

from __future__ import annotations

from pathlib import Path

KEYS = Path(__file__).resolve().parents[2] / "catalog/keys"


def read_keys() -> dict[str, str]:
    """Return the public keys in ASCII armour by fingerprint."""
    return {path.stem: path.read_text(encoding="ascii") for path in sorted(KEYS.glob("*.asc"))}
