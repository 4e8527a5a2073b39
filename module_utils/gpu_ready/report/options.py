"""Options of the module gpu_report, which is an action plugin."""

from typing import Any, Dict

ARGUMENT_SPEC: Dict[str, Dict[str, Any]] = {
    "kind": {"type": "str", "choices": ["site", "audit", "upgrade", "rollback", "uninstall"], "default": "site"},
    "parts": {"type": "dict", "default": {}},
    "directory": {"type": "path", "default": ""},
    "formats": {
        "type": "list",
        "elements": "str",
        "choices": ["json", "html", "prometheus"],
        "default": ["json", "html"],
    },
    "keep": {"type": "int", "default": 0},
    "width": {"type": "int", "default": 150},
}
