# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""A run as JSON, in ASCII: other characters are escaped."""

from __future__ import annotations

import json

from .model import Fleet


def as_json(fleet: Fleet) -> str:
    """Return the content of the file."""
    return json.dumps(fleet.record, indent=1, sort_keys=True) + "\n"
