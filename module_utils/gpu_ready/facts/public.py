"""The facts that gpu_node_facts returns: without the texts of files, which may contain passwords."""

from typing import Any, Dict

from ..base import records
from ..containers.containerd import toml
from .model import SCHEMA, EngineFacts, Facts


def public_json(facts: Facts) -> Dict[str, object]:
    """Return facts as JSON, without what is large or private: all packages and the texts of files.

    daemon.json and containerd's files may contain passwords of proxies and registries.
    """
    shown = {name: records.to_json(part) for name, part in facts._asdict().items() if name not in ("apt", "yum")}
    del shown["packages"]["installed"], shown["docker"]["daemon_json"]["text"]
    shown["engines"] = engines_json(facts.engines)
    return dict(shown, schema=SCHEMA)


def engines_json(facts: EngineFacts) -> Dict[str, object]:
    """Return the facts as JSON without file contents: containerd's files may contain passwords of registries."""
    engine = dict(
        records.to_json(facts.containerd),
        files=[file.path for file in facts.containerd.files],
        record=[toml.dotted(path) for path, _ in facts.containerd.record],
    )
    del engine["before"], engine["after"]
    shown: Dict[str, Any] = {
        "podman": records.to_json(facts.podman),
        "containerd": engine,
        "crio": dict(records.to_json(facts.crio), files=[file.path for file in facts.crio.files]),
        "kubernetes": dict(records.to_json(facts.kubernetes), files=[file.path for file in facts.kubernetes.files]),
        "nodes": sorted(facts.nodes),
    }
    shown["kubernetes"]["templates"] = [file.path for file in facts.kubernetes.templates]
    return shown
