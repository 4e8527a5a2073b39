"""What the lab's images, packages and states are made of, and what makes them again."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from gpu_ready_lab import declarations, images, mirror, packages, paths, states, vm_image

MADE_FROM: dict[str, Callable[[], object]] = {
    "image": lambda: images.tag("debian12"),
    "guest": lambda: vm_image._recipe("bookworm", ()),
    "mirror": mirror._inputs,
    "package": lambda: packages.sources_of([declarations.File("/x.ko", 0o644, module="nvidia")]),
    "state": lambda: states.product_digest.__wrapped__(),
}


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the sources, which all of these read."""
    top = tmp_path_factory.mktemp("copy")
    for name in (*states.PRODUCT, "lab/gpu_ready_lab/data"):
        source, target = paths.REPO / name, top / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    return top


@pytest.fixture
def copy(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    data = copied / "lab/gpu_ready_lab/data"
    monkeypatch.setattr(paths, "REPO", copied)
    monkeypatch.setattr(paths, "DATA", data)
    for module in (declarations, packages):
        monkeypatch.setattr(module, "SOURCES", data / "vendor")
    monkeypatch.setattr(images, "LIBCUDA", data / "vendor/libcuda.c")
    return copied


@pytest.mark.parametrize("what", MADE_FROM)
def test_bytecode_beside_the_sources_changes_nothing(what: str, copy: Path) -> None:
    """Python leaves it wherever a program or a test imports a file of the lab."""
    before = MADE_FROM[what]()
    made = [path / "__pycache__" for path in copy.rglob("*") if path.is_dir() and not path.is_symlink()]
    for directory in made:
        directory.mkdir()
        (directory / "kernel.cpython-311.pyc").write_bytes(b"bytecode")
    try:
        assert MADE_FROM[what]() == before
    finally:
        for directory in made:
            shutil.rmtree(directory)
