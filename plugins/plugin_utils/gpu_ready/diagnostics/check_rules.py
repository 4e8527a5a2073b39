"""What Xids mean to the check on a host: the text of check/rules.py, which `make catalog` writes there."""

from __future__ import annotations

import json
from collections.abc import Mapping

from ....module_utils.gpu_ready.check.model import CRITICAL, DRAIN, INFO, WARNING
from ..catalog import messages as data
from .message_table import CRITICAL as SERIOUS
from .xid import FATAL_SWITCH

REPORTED = (63, 92, 154)
"""Xids after which a GPU is verified again, beside the critical ones of the catalog: their classes are warnings."""
ACTIONS = {
    "reset": "reset_gpu",
    "drain_reset": "reset_gpu",
    "reboot": "restart_os",
    "power_cycle": "restart_os",
    "replace": "service_required",
    "fix": "service_required",
}
"""NVIDIA's words for an action of message_table.ACTIONS, where an Xid is critical."""
NOT_BACK = ("lost", "lost_link")
"""Classes whose Xids only a reboot ends."""
HEAD = '''"""What Xids mean, generated from catalog/xids.yml by `make catalog`; do not edit."""

import json
from typing import Any, Dict, Optional

from .model import Rules, XidRule

# fmt: off
# ruff: noqa: E501
'''
FOOT = '''

def make_rules(settings: Optional[Dict[str, Any]] = None) -> Rules:
    """Return the rules of the catalog. ``settings``: of the check on this host, with ``off`` and ``limits``."""
    classes = {name: XidRule(*values) for name, values in _CLASSES.items()}
    xids = {number: classes[kind]._replace(name=name) for number, (kind, name) in _XIDS.items()}
    recovery = {number: XidRule(*values) for number, values in _RECOVERY.items()}
    given = settings or {}
    return Rules(xids, recovery, XidRule(*_SWITCH), list(given.get("off", [])), dict(given.get("limits", {})))
'''


def node_action(row: Mapping[str, str]) -> str:
    """Return what the check recommends beyond the drain, "" for nothing."""
    by_severity = ACTIONS.get(row["action"], "") if row["severity"] == SERIOUS else ""
    return row.get("node_action", by_severity)


def module_text() -> str:
    """Return the module; the fields of a row are those of XidRule."""
    warned = {data.XIDS[number][0] for number in REPORTED}
    classes: dict[str, list[object]] = {}
    for kind, known in data.XID_CLASSES.items():
        level = CRITICAL if known["severity"] == SERIOUS else WARNING if kind in warned else INFO
        classes[kind] = [level, node_action(known), "", known["remedy"], kind in NOT_BACK]
    recovery: dict[str, list[object]] = {
        str(number): [CRITICAL, node_action(row) or DRAIN, row["name"], row["remedy"]]
        for number, row in data.RECOVERY_ACTIONS.items()
        if number
    }
    tables: dict[str, dict[str, list[object]]] = {
        "_CLASSES": classes,
        "_XIDS": {str(number): list(row) for number, row in data.XIDS.items()},
        "_RECOVERY": recovery,
    }
    text = HEAD
    for name, rows in tables.items():
        lines = ",\n".join(json.dumps({key: row}, ensure_ascii=False)[1:-1] for key, row in rows.items())
        text += f"{name} = json.loads(r'''{{\n{lines}}}''')\n"
    switch = json.dumps([CRITICAL, "reset_gpu", FATAL_SWITCH.name, FATAL_SWITCH.remedy])
    return text + f"_SWITCH = json.loads(r'''{switch}''')\n" + FOOT
