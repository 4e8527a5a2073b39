"""The simulated kernel reads module files as the real one does."""

import importlib.util
from pathlib import Path

import pytest
from gpu_ready_lab import packages, paths, python
from gpu_ready_lab.say import LabError

SPEC = importlib.util.spec_from_file_location("lab_host_kernel", paths.DATA / "host/kernel.py")
assert SPEC is not None
assert SPEC.loader is not None
kernel = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(kernel)


@pytest.mark.parametrize("signer", [None, "Canonical Ltd. Kernel Module Signing", "NVIDIA"])
def test_a_signature_is_read_from_the_end_of_a_module(tmp_path: Path, signer: str | None) -> None:
    path = tmp_path / "x.ko"
    path.write_bytes(b"\x7fELF and so on" + packages.signature(signer))
    assert kernel.signer(str(path)) == signer


def test_keys_of_vendors_are_not_among_the_kernels_own() -> None:
    assert "Canonical Ltd. Kernel Module Signing".startswith(kernel.TRUSTED)
    assert not "NVIDIA".startswith(kernel.TRUSTED)


def test_a_missing_python_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match=r"python: 3\.6: this machine has no python3\.6: .*pyenv install"):
        python.find("3.6")
