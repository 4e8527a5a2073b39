# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""An HTML page from templates/: no file beside it, every text escaped by Jinja, no control character.

The Content-Security-Policy in it permits the style and the script of this package by their checksums and nothing else,
so that a text that came through as markup could load and run nothing.
"""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...module_utils.gpu_ready.base.plain_text import plain_text

TEMPLATES = Path(__file__).resolve().parent / "templates"
SOURCES = {"style": "page.css", "script": "page.js"}


def render(template: str, more_style: str = "", **values: Any) -> str:
    """Return the page of a template. It gets SOURCES too, and their checksums as ``style_hash``, ``script_hash``.

    ``more_style``: rules after the file, with no text of a host.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for key, name in SOURCES.items():
        content = (TEMPLATES / name).read_text(encoding="utf-8") + (more_style if key == "style" else "")
        digest = base64.b64encode(hashlib.sha256(content.encode("utf-8")).digest()).decode("ascii")
        # Files of this package and checksums, no text of a host.
        values |= {key: Markup(content), f"{key}_hash": Markup(f"'sha256-{digest}'")}
    return plain_text(environment.get_template(template).render(values))
