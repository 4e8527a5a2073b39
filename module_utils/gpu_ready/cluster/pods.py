"""What the API server reports about a pod."""

from .kubectl import Value, first_reason


def reason(item: Value) -> str:
    """Return why a pod does not run, as scheduler, kubelet or engine say it."""
    status = item.get("status", {})
    for one in status.get("containerStatuses") or []:
        for state in ("waiting", "terminated"):
            found = (one.get("state") or {}).get(state) or {}
            if found.get("message") or found.get("reason") not in (None, "ContainerCreating", "Error"):
                return short("%s %s" % (found.get("reason", ""), found.get("message", "")))
    if status.get("message") or status.get("reason"):
        return short("%s %s" % (status.get("reason", ""), status.get("message", "")))
    refused = [one for one in status.get("conditions") or [] if one.get("status") == "False" and one.get("message")]
    return short(refused[0]["message"]) if refused else ""


def is_ready(item: Value) -> bool:
    conditions = item.get("status", {}).get("conditions") or []
    return bool([one for one in conditions if one.get("type") == "Ready" and one.get("status") == "True"])


def is_ending(item: Value) -> bool:
    """Return True for a pod that was deleted and still ends."""
    return bool(item["metadata"].get("deletionTimestamp"))


def short(text: object) -> str:
    return first_reason(str(text))
