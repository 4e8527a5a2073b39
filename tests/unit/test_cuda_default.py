"""The default toolkit: through update-alternatives itself, and as a plain link."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.cuda import default as cuda_default
from plugins.module_utils.gpu_ready.cuda import toolkit as cuda

pytestmark = pytest.mark.host_io


class Node:
    """Directories of a test with toolkits, and a database of update-alternatives of their own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("cuda-12.9", "cuda-13.0", "alternatives", "admin"):
            (directory / name).mkdir()
        self.where = cuda_default.DefaultPaths(
            str(directory / "cuda"),
            (str(directory / "admin/cuda"),),
            ("--altdir", str(directory / "alternatives"), "--admindir", str(directory / "admin"), "--log", "/dev/null"),
            str(directory / "manifest.json"),
        )

    def path(self, version: str) -> str:
        return str(self.directory / f"cuda-{version}")

    def register(self, *versions: str) -> None:
        if shutil.which("update-alternatives") is None:
            pytest.skip("update-alternatives is not installed here")
        for version in versions:
            priority = version.replace(".", "")
            argv = ["--install", self.where.link, "cuda", self.path(version), priority]
            subprocess.run(["update-alternatives", "--quiet", *self.where.arguments, *argv], check=True)

    def set(self, version: str) -> bool:
        change = cuda_default.plan_change(Host(), self.path(version), self.where)
        if change.changed:
            cuda_default.apply_change(Host(), change, version, self.where)
        return change.changed

    def found(self) -> cuda.DefaultLink:
        return cuda.read_default(Host(), self.where.link, self.where.states)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_group_is_set_by_hand_once(node: Node) -> None:
    node.register("12.9", "13.0")
    assert node.found() == cuda.DefaultLink(node.path("13.0"), "alternatives", "auto")
    assert node.set("12.9") is True
    assert node.found() == cuda.DefaultLink(node.path("12.9"), "alternatives", "manual")
    assert node.set("12.9") is False
    assert json.loads(Path(node.where.manifest).read_text())["alternatives"] == {
        "cuda": {"before": node.path("13.0"), "mode": "auto", "link": node.where.link}
    }


def test_the_right_target_is_still_pinned_against_the_next_toolkit(node: Node) -> None:
    node.register("12.9")
    assert node.set("12.9") is True
    node.register("13.0")
    assert node.found().target == node.path("12.9")


def test_a_toolkit_that_the_group_does_not_offer_is_registered(node: Node) -> None:
    node.register("12.9")
    assert node.set("13.0") is True
    assert node.found() == cuda.DefaultLink(node.path("13.0"), "alternatives", "manual")


@pytest.mark.parametrize("before", [None, "cuda-12.9", "cuda-removed"])
def test_without_a_group_the_link_is_plain(node: Node, before: str | None) -> None:
    link = Path(node.where.link)
    if before is not None:
        link.symlink_to(before)
    assert node.set("13.0") is True
    assert node.found() == cuda.DefaultLink(node.path("13.0"), "link", None)
    assert node.set("13.0") is False


def test_a_directory_in_its_place_and_a_missing_toolkit_are_reported(node: Node) -> None:
    with pytest.raises(cuda_default.DefaultError, match="11.8, which does not exist"):
        node.set("11.8")
    assert cuda_default.plan_change(Host(), node.path("11.8"), node.where, ahead=True).changed
    Path(node.where.link).mkdir()
    with pytest.raises(cuda_default.DefaultError, match="Move it to another place"):
        node.set("12.9")
    assert not Path(node.where.manifest).exists()


def restored(node: Node) -> cuda.DefaultLink:
    entry = json.loads(Path(node.where.manifest).read_text())["alternatives"]["cuda"]
    cuda_default.restore_default(Host(), entry, node.where)
    assert cuda_default.restore_default(Host(), entry, node.where) is False
    return node.found()


def test_an_automatic_group_is_restored(node: Node) -> None:
    node.register("12.9", "13.0")
    before = node.found()
    node.set("12.9")
    assert restored(node) == before


def test_a_manually_set_group_is_restored(node: Node) -> None:
    node.register("12.9", "13.0")
    argv = ["--set", "cuda", node.path("12.9")]
    subprocess.run(["update-alternatives", "--quiet", *node.where.arguments, *argv], check=True)
    before = node.found()
    node.set("13.0")
    assert restored(node) == before


@pytest.mark.parametrize("before", [None, "cuda-12.9"])
def test_a_plain_link_is_restored_or_removed(node: Node, before: str | None) -> None:
    if before is not None:
        Path(node.where.link).symlink_to(before)
    found = node.found()
    node.set("13.0")
    assert restored(node) == found


def test_a_toolkit_removed_with_its_packages_leaves_no_link(node: Node) -> None:
    node.register("12.9")
    node.set("12.9")
    argv = ["--remove", "cuda", node.path("12.9")]
    subprocess.run(["update-alternatives", "--quiet", *node.where.arguments, *argv], check=True)
    assert restored(node) == cuda.DefaultLink(None, "absent", None)


@pytest.mark.parametrize("registered", [False, True])
def test_a_toolkit_that_was_moved_to_another_disk_is_the_default_once(node: Node, registered: bool) -> None:
    (node.directory / "data").mkdir()
    (node.directory / "cuda-12.9").rename(node.directory / "data/cuda-12.9")
    (node.directory / "cuda-12.9").symlink_to("data/cuda-12.9")
    if registered:
        node.register("12.9", "13.0")
    assert node.set("12.9") is True
    assert node.found().target == node.path("12.9")
    assert node.set("12.9") is False
