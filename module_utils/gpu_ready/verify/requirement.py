"""The environment variables of an image, as an engine prints them."""

from typing import Dict

from ..base.host import Host
from ..base.json_file import parse_json
from ..containers import engine as engines


def query_environment(host: Host, engine: str, image: str) -> Dict[str, str]:
    """Return environment variables of a local image; none for ``ctr``, which does not print them."""
    if engine in engines.OF_CONTAINERD:
        return {}
    name = engines.image_name(engine, image)
    result = host.run([engine, "image", "inspect", "--format", "{{json .Config.Env}}", name], timeout=60.0)
    return parse_environment(result.out) if result.rc == 0 else {}


def parse_environment(text: str) -> Dict[str, str]:
    """Parse an engine's JSON list of NAME=VALUE."""
    try:
        rows = parse_json(text.strip() or "null")
    except ValueError:
        return {}
    listed = rows if isinstance(rows, list) else []
    return dict(row.split("=", 1) for row in listed if isinstance(row, str) and "=" in row)
