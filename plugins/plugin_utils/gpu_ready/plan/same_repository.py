"""Whether a source of a host serves a repository of the catalog."""

from ....module_utils.gpu_ready.packaging.locations import url_location
from ..catalog import model as catalog


def is_same_repository(location: str, identity: str, url: str) -> bool:
    """Return True if a location is a repository's URL (perhaps a mirror's) or one of the vendor's mirror lists.

    Mirror lists have more parameters than the catalog names (``also``).
    """
    also = catalog.repository(identity).get("also") or []
    return location == url_location(url) or any(location.startswith(url_location(one)) for one in also)
