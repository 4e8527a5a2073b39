"""Runs of ansible-playbook that use the modules that an earlier run packed: tests/callback_plugins/packed_modules.py."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def environment(callbacks: Path | None = None, *enabled: str) -> dict[str, str]:
    """Return the variables of a run that also has these callbacks of a directory."""
    directories = [*([callbacks] if callbacks else []), ROOT / "tests/callback_plugins"]
    return {
        "ANSIBLE_CALLBACK_PLUGINS": ":".join(map(str, directories)),
        "ANSIBLE_CALLBACKS_ENABLED": ",".join((*enabled, "packed_modules")),
        "GPU_READY_PACKED_MODULES": str(ROOT / "build/packed_modules"),
    }
