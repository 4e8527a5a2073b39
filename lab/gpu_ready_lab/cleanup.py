"""Taking the lab away without a trace but the cache."""

import shutil

from . import engine, hosts, paths, services
from .say import say


def down(everything: bool) -> None:
    """Stop and remove hosts, services, engine and state; with everything, the cache too."""
    hosts.remove(hosts.existing())
    services.stop()
    engine.stop()
    engine.remove_state()
    if everything and paths.cache().exists():
        say(f"deleting the cache {paths.cache()}")
        shutil.rmtree(paths.cache())
    say("the lab is down")
