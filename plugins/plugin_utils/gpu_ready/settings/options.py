"""The options of gpu_node_plan, for the module on a host and for the action plugin, which also checks ``part``."""

from typing import Any, Dict

from ..catalog.settings import Settings

ARGUMENT_SPEC: Dict[str, Dict[str, Any]] = dict(
    {name: {"type": "raw"} for name in Settings._fields},
    overrides={"type": "dict", "default": {}},
    drains={"type": "list", "elements": "str", "default": []},
    part={"type": "str", "default": ""},
)
