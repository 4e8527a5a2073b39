"""The options of gpu_node_plan, for the module on a host and for the action plugin, which also checks ``part``."""

from typing import Any

from ..catalog.settings import Settings

ARGUMENT_SPEC: dict[str, dict[str, Any]] = dict(
    {name: {"type": "raw"} for name in Settings._fields},
    overrides={"type": "dict", "default": {}},
    drains={"type": "list", "elements": "str", "default": []},
    part={"type": "str", "default": ""},
    release={"type": "str", "default": ""},
)
