"""What gpu-explain says of a GPU that the catalog does not have."""

from ..catalog import model as catalog


def describe_unknown(device_id: str) -> str:
    """Return what a plan makes of it: see plan.driver.candidates.pairs_of_gpu."""
    named = "10de:%s is not in the catalog of %s" % (device_id, catalog.DATE)
    if catalog.is_older_than_turing(device_id):
        text = "%s, and its number is that of a chip before Turing: its last branch is not known. "
        return text % named + "Remedy: set nvidia_driver_branch: 470 for Kepler, 580 for Maxwell, Pascal and Volta."
    text = "%s, and its number is that of a newer GPU: branch %d with the open module is the best guess."
    return text % (named, catalog.newest_branch())
