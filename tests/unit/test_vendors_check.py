"""gpu-catalog check: indexes in the vendors' formats, whole and damaged, and what the comparison says of them."""

import gzip
import hashlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.vendors import check, cli, indexes
from plugins.plugin_utils.gpu_ready.vendors.check import CHANGED, MISSING, RIGHT, UNREAD, Checker
from plugins.plugin_utils.gpu_ready.vendors.indexes import Index, IndexedPackage, IndexUnread, Tree

PACKAGES = """Package: nvidia-driver-cuda
Version: 580.95.05-1
Depends: libcuda1 (= 580.95.05-1),
 libnvidia-ml1
Description: NVIDIA driver (compute)
 Package: not a field

Package: nvidia-dkms-590-server-open
Version: 590.48.01-0ubuntu0.24.04.5
Depends: nvidia-dkms-595-server-open (>= 595.58.03)
Description: NVIDIA DKMS package (transitional package)
"""
REPOMD = """<?xml version="1.0" encoding="UTF-8"?>
<repomd xmlns="http://linux.duke.edu/metadata/repo"><revision>1</revision>
<data type="primary"><checksum type="sha256">{primary}</checksum><location href="repodata/p-primary.xml.gz"/></data>
<data type="modules"><checksum type="sha256">{modules}</checksum><location href="repodata/m-modules.yaml.xz"/></data>
</repomd>"""
PRIMARY = """<?xml version="1.0" encoding="UTF-8"?>
<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="2">
<package type="rpm"><name>nvidia-driver-cuda</name><arch>x86_64</arch><version epoch="3" ver="580.95.05" rel="1.el9"/></package>
<package type="rpm"><name>cuda-toolkit-13-0</name><arch>x86_64</arch><version epoch="0" ver="13.0.2" rel="1"/></package>
</metadata>"""
MODULES = """---
document: modulemd
version: 2
data: {name: nvidia-driver, stream: 580-open, version: 1}
---
document: modulemd-defaults
data: {module: nvidia-driver, stream: latest}
"""
URL = "https://vendor.example/repos/x86_64"
ZSTD = b"\x28\xb5\x2f\xfd"
SUM = f"<checksum>{hashlib.sha256(ZSTD).hexdigest()}</checksum>"


def lay(root: Path, path: str, data: bytes | str) -> None:
    target = root / "vendor.example" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data.encode() if isinstance(data, str) else data)


def rpm_repository(root: Path, primary: bytes | None = None, modules: bytes | None = None) -> Tree:
    """Lay out a repository; ``primary`` and ``modules`` replace the packed files after their checksums were taken."""
    packed = {"p-primary.xml.gz": gzip.compress(PRIMARY.encode()), "m-modules.yaml.xz": lzma.compress(MODULES.encode())}
    sums = [hashlib.sha256(data).hexdigest() for data in packed.values()]
    lay(root, "repos/x86_64/repodata/repomd.xml", REPOMD.format(primary=sums[0], modules=sums[1]))
    for name, data, other in zip(packed, packed.values(), (primary, modules), strict=True):
        lay(root, f"repos/x86_64/repodata/{name}", data if other is None else other)
    return Tree(str(root))


# ---- formats -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "pack"), [("Packages", bytes), ("Packages.gz", gzip.compress), ("Packages.xz", lzma.compress)]
)
def test_packages_of_a_flat_repository(tmp_path: Path, name: str, pack: Callable[[bytes], bytes]) -> None:
    lay(tmp_path, f"repos/x86_64/{name}", pack(PACKAGES.encode()))
    index = indexes.read_apt(Tree(str(tmp_path)), URL + "/", ["/"], [])
    assert index.packages["nvidia-driver-cuda"] == [IndexedPackage("nvidia-driver-cuda", "580.95.05-1")]
    (transitional,) = index.packages["nvidia-dkms-590-server-open"]
    assert transitional.replaced_by == "nvidia-dkms-595-server-open"


def test_components_of_suites_and_a_component_that_updates_do_not_have(tmp_path: Path) -> None:
    for suite in ("noble", "noble-updates"):
        lay(tmp_path, f"repos/x86_64/dists/{suite}/main/binary-amd64/Packages", PACKAGES)
    lay(tmp_path, "repos/x86_64/dists/noble/restricted/binary-amd64/Packages", PACKAGES)
    tree = Tree(str(tmp_path))
    index = indexes.read_apt(tree, URL, ["noble", "noble-updates"], ["main", "restricted"])
    assert len(index.packages["nvidia-driver-cuda"]) == 3
    with pytest.raises(IndexUnread, match="dists/noble/universe"):
        indexes.read_apt(tree, URL, ["noble"], ["universe"])


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"<html><title>Sign in</title></html>", "no Packages file"),
        (b"Package: x\n", "no Packages file"),
        (gzip.compress(PACKAGES.encode())[:-20], "damaged"),
        (b"\x1f\x8b broken", "damaged"),
    ],
)
def test_a_damaged_packages_file_is_no_empty_one(tmp_path: Path, data: bytes, reason: str) -> None:
    lay(tmp_path, "repos/x86_64/Packages" + (".gz" if reason == "damaged" else ""), data)
    with pytest.raises(IndexUnread, match=reason):
        indexes.read_apt(Tree(str(tmp_path)), URL, ["/"], [])


def test_packages_and_streams_of_an_rpm_repository(tmp_path: Path) -> None:
    index = indexes.read_rpm(rpm_repository(tmp_path), URL)
    assert index.packages["nvidia-driver-cuda"] == [IndexedPackage("nvidia-driver-cuda", "580.95.05-1.el9")]
    assert index.streams == {"nvidia-driver": {"580-open"}}


@pytest.mark.parametrize(
    ("primary", "modules", "reason"),
    [
        (gzip.compress(b"<metadata/>"), None, "has not the checksum"),
        (gzip.compress(PRIMARY.encode())[:-9], None, "has not the checksum"),
        (None, b"", "has not the checksum"),
    ],
    ids=["another primary", "half a primary", "empty modules"],  # compressed bytes name the time, and differ by process
)
def test_a_file_that_repomd_does_not_describe_is_not_used(
    tmp_path: Path, primary: bytes | None, modules: bytes | None, reason: str
) -> None:
    with pytest.raises(IndexUnread, match=reason):
        indexes.read_rpm(rpm_repository(tmp_path, primary, modules), URL)


@pytest.mark.parametrize(
    ("repomd", "reason"),
    [
        ("<repomd><data", "damaged"),
        ("<repomd/>", "names no primary"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><repomd/>', "document type"),
        ('<repomd><data type="primary"><location href="../../../etc/passwd"/></data></repomd>', "not below it"),
        ('<repomd><data type="primary"><location href="https://other.example/p"/></data></repomd>', "not below it"),
        (f'<repomd><data type="primary">{SUM}<location href="repodata/p.xml.zst"/></data></repomd>', "zstd"),
        (f'<repomd><data type="primary">{SUM}<location href="repodata/absent.xml"/></data></repomd>', "no such file"),
        ('<repomd><data type="primary"><location href="repodata/p.xml.zst"/></data></repomd>', "has no checksum of"),
        ('<!DOCTYPE x [<!ENTITY a "b">]><repomd/>'.encode("utf-16"), "damaged"),
    ],
)
def test_a_damaged_repomd(tmp_path: Path, repomd: str | bytes, reason: str) -> None:
    lay(tmp_path, "repos/x86_64/repodata/repomd.xml", repomd)
    lay(tmp_path, "repos/x86_64/repodata/p.xml.zst", ZSTD)
    with pytest.raises(IndexUnread, match=reason):
        indexes.read_rpm(Tree(str(tmp_path)), URL)


@pytest.mark.parametrize("text", ["{a: [", "a: b: c", "- !!python/object:os.system x\n- ["])
def test_damaged_modules(text: str) -> None:
    with pytest.raises(IndexUnread, match="damaged"):
        indexes.parse_modules(text, "modules")


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"chips": {}}', b'{"chips": [{"name": "x"}]}', b'{"chips": [1]}', b"\xff"]
)
def test_a_damaged_list_of_gpus(data: bytes) -> None:
    with pytest.raises(IndexUnread):
        indexes.parse_supported_gpus(data, "gpus")


# ---- comparison ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("versions", "state", "found"),
    [
        ([IndexedPackage("x", "580.95.05-1"), IndexedPackage("x", "590.48.01-1")], RIGHT, ""),
        ([IndexedPackage("x", "590.48.01-1", "y-595")], CHANGED, "x 590.48.01-1 is a transitional name of y-595"),
        (
            [IndexedPackage("x", "595.71.05-1"), IndexedPackage("x", "610.57.04-1")],
            CHANGED,
            "no version of 590; newest 610.57.04-1",
        ),
        ([], MISSING, "no package of that name"),
    ],
)
def test_a_package_of_a_branch(versions: list[IndexedPackage], state: str, found: str) -> None:
    branch = 580 if state == RIGHT else 590
    assert check.branch_state(Index({"x": versions}, {}), "x", branch) == (state, found)


def test_packages_of_any_kernel() -> None:
    name = "linux-modules-nvidia-580-server-{kernel}"
    index = Index({"linux-modules-nvidia-580-server-6.8.0-100-generic": [IndexedPackage("a", "1")]}, {})
    assert check.matching(index, name)
    index = Index({"linux-modules-nvidia-580-server-open-6.8.0-100-generic": [IndexedPackage("a", "1")]}, {})
    assert not check.matching(index, name)


def gpu_file(path: Path, **chip: object) -> Path:
    path.write_text(json.dumps({"chips": [{"devid": "0x1B38", "name": "Tesla P40", "features": [], **chip}]}))
    return path


@pytest.mark.parametrize(
    ("chip", "state"),
    [
        ({"legacybranch": "580.xx", "features": ["kernelopen"]}, RIGHT),
        ({"legacybranch": "470.xx"}, CHANGED),
        ({"devid": "0x3FFF"}, MISSING),
        ({"devid": "0x2901", "features": ["kernelopen"]}, RIGHT),
    ],
)
def test_a_list_of_gpus_against_the_catalog(tmp_path: Path, chip: dict[str, object], state: str) -> None:
    assert [row.state for row in check.check_gpus(gpu_file(tmp_path / "gpus.json", **chip))] == [state]


def test_a_manifest_of_cudnn(tmp_path: Path) -> None:
    release = next(one for one in catalog.cudnns() if one.version == "9.26.0.51")
    archive = release.archives["x86_64", "13"]
    entry = {"relative_path": archive["path"], "sha256": archive["sha256"]}
    base = tmp_path / "developer.download.nvidia.com/compute/cudnn/redist"
    base.mkdir(parents=True)
    for cuda13, states in ((entry, [MISSING, RIGHT]), ({**entry, "sha256": "0" * 64}, [MISSING, CHANGED])):
        manifest = {"cudnn": {"linux-x86_64": {"cuda13": cuda13}}}
        (base / "redistrib_9.26.0.json").write_text(json.dumps(manifest))
        rows = list(check.check_cudnn(Checker(Tree(str(tmp_path))), release))
        assert [row.state for row in rows] == states
    (base / "redistrib_9.26.0.json").write_text("<html>")
    assert [row.state for row in check.check_cudnn(Checker(Tree(str(tmp_path))), release)] == [UNREAD]


def test_installers_by_the_vendors_checksums(tmp_path: Path) -> None:
    assert indexes.parse_md5sums("0123456789abcdef0123456789abcdef  cuda_13.0.0_580.65.06_linux.run\n<html>\n") == {
        "cuda_13.0.0_580.65.06_linux.run"
    }
    url = "https://download.nvidia.com/XFree86/Linux-x86_64/1.2/NVIDIA-Linux-x86_64-1.2.run.sha256sum"
    path = tmp_path / url.split("://")[1]
    path.parent.mkdir(parents=True)
    for text, state in (("0" * 64 + "  NVIDIA-Linux-x86_64-1.2.run\n", RIGHT), ("not found", CHANGED)):
        path.write_text(text)
        assert [row.state for row in check.check_url(Checker(Tree(str(tmp_path))), url, "1.2")] == [state]


def test_exit_status_and_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["check", "--tree", str(tmp_path), "debian12"]) == 2
    text = capsys.readouterr().out
    assert "unread  debian12 cuda_repo" in text and "no such file" in text and text.rstrip().endswith("4 unread")
    assert cli.main(["check", "--gpus", str(gpu_file(tmp_path / "a.json", legacybranch="470.xx"))]) == 1
    assert "changed  gpus  1b38: last branch 580  470" in capsys.readouterr().out
    assert cli.main(["check", "--gpus", str(gpu_file(tmp_path / "a.json", legacybranch="580.xx"))]) == 0
    assert capsys.readouterr().out == "1 right, 0 changed, 0 missing, 0 unread\n"


def test_a_repository_of_one_distribution_is_compared_whole(tmp_path: Path) -> None:
    """A laid out repository of NVIDIA for Debian 13 with one branch: the rows of that branch are right."""
    names = ["nvidia-kernel-dkms", "nvidia-driver-cuda", "nvidia-kernel-open-dkms", "cuda-drivers", "nvidia-open"]
    names += ["nvidia-fabricmanager", "nvidia-imex", "nvidia-persistenced"]
    text = "\n".join(f"Package: {name}\nVersion: 595.91.07-1\nDescription: x\n" for name in names)
    text += "\nPackage: nvlsm\nVersion: 2025.10.11-1\n"
    place = tmp_path / catalog.repository("cuda-debian13")["url"].split("://")[1]
    place.mkdir(parents=True)
    (place / "Packages").write_text(text)
    rows = list(check.check_source(Checker(Tree(str(tmp_path))), "debian13", "cuda_repo"))
    of_595 = [row for row in rows if "of 595" in row.fact]
    assert len(of_595) == 9 and {row.state for row in of_595} == {RIGHT}
    assert {row.state for row in rows if "of 580" in row.fact} == {CHANGED}
    assert {row.state for row in rows if row.fact == "cuda-toolkit-13-1"} == {MISSING}
