"""Placing, repairing, replacing and removing cuDNN, from the test's own HTTP server."""

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from ansible_collections.gpu_ready.nodes.plugins.modules import gpu_cudnn_archive

from plugins.module_utils.gpu_ready.base import files
from plugins.module_utils.gpu_ready.base.download import DownloadLimits
from plugins.module_utils.gpu_ready.base.errors import GpuReadyError
from plugins.module_utils.gpu_ready.base.locks import LockError
from plugins.module_utils.gpu_ready.cuda.cudnn import fetch as cudnn_fetch
from plugins.module_utils.gpu_ready.cuda.cudnn import install as cudnn_install
from plugins.module_utils.gpu_ready.cuda.cudnn import model as cudnn
from plugins.module_utils.gpu_ready.cuda.cudnn.model import CudnnError
from tests.unit import web_server

pytestmark = pytest.mark.host_io
ROOT = Path(__file__).resolve().parents[2]


class Site:
    """Files of the server by path; ``cut``: paths whose body ends early, ``asked``: the requests."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.cut: set[str] = set()
        self.asked: list[str] = []
        self.url = ""

    def archive(self, version: str, data: bytes, **entry: Any) -> None:
        path = f"cudnn/linux-x86_64/cudnn-linux-x86_64-{version}_cuda12-archive.tar.xz"
        listed = {"relative_path": path, "sha256": hashlib.sha256(data).hexdigest(), "size": str(len(data)), **entry}
        text = json.dumps({"cudnn": {"version": version, "linux-x86_64": {"cuda12": listed}}})
        self.files["/redist/" + cudnn.manifest_path(version)] = text.encode()
        self.files["/redist/" + path] = data


@pytest.fixture
def site() -> Iterator[Site]:
    offered = Site()

    class Handler(web_server.QuietHandler):
        def do_GET(self) -> None:
            offered.asked.append(self.path)
            body = offered.files.get(self.path)
            if body is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: len(body) // 2] if self.path in offered.cut else body)

    with web_server.serve(Handler) as url:
        offered.url = f"{url}/redist/"
        yield offered


def header(version: str) -> bytes:
    numbers = zip(("MAJOR", "MINOR", "PATCHLEVEL"), version.split(".")[:3], strict=True)
    return "".join(f"#define CUDNN_{name} {number}\n" for name, number in numbers).encode()


def members(version: str) -> dict[str, bytes | str]:
    """Name in the archive -> content, or the target of a link as text."""
    return {
        "include/cudnn_version.h": header(version),
        "include/cudnn.h": b"/* api */\n",
        f"lib/libcudnn.so.{version}": b"\x7fELF" + version.encode(),
        f"lib/libcudnn_ops_{version.split('.')[1]}.a": b"!<arch>\n",
        "lib/libcudnn.so.9": f"libcudnn.so.{version}",
        "lib/libcudnn.so": "libcudnn.so.9",
        "LICENSE": b"terms\n",
    }


MODES: dict[str, Literal["w:xz", "w:gz"]] = {"xz": "w:xz", "gz": "w:gz"}


def pack(content: dict[str, bytes | str], top: str = "cudnn-archive", compression: str = "xz") -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=MODES[compression]) as archive:
        for name, value in content.items():
            member = tarfile.TarInfo(f"{top}/{name}" if top else name)
            if isinstance(value, str):
                member.type, member.linkname = tarfile.SYMTYPE, value
                archive.addfile(member)
            else:
                member.size, member.mode = len(value), 0o755 if ".so" in name else 0o600
                archive.addfile(member, io.BytesIO(value))
    return stream.getvalue()


class Node:
    """A toolkit as NVIDIA's packages lay it out, and the records of the host."""

    def __init__(self, directory: Path) -> None:
        self.path = directory / "cuda-12.9"
        self.real = self.path / "targets/x86_64-linux"
        for name in ("include", "lib"):
            (self.real / name).mkdir(parents=True)
        (self.path / "include").symlink_to("targets/x86_64-linux/include")
        (self.path / "lib64").symlink_to("targets/x86_64-linux/lib")
        (self.real / "lib/libcudart.so.12").write_bytes(b"cudart")
        (self.path / "version.json").write_text("{}")
        (directory / "ld.so.conf.d").mkdir()
        (directory / "ld.so.conf").write_text("include ld.so.conf.d/*.conf\n")
        self.paths = cudnn_install.CudnnPaths(
            str(directory / "state/cudnn"),
            str(directory / "state/manifest.json"),
            str(directory / "cuda"),
            str(directory / "ld.so.conf"),
        )
        self.refreshed = 0

    def refresh(self) -> None:
        self.refreshed += 1

    def install(self, site: Site, version: str = "9.10.2.21", **more: str) -> cudnn_fetch.CudnnInstall:
        url = site.url + cudnn.manifest_path(version)
        return cudnn_fetch.CudnnInstall("12.9", version, str(self.path), url, "cuda12", **more)

    def place(self, site: Site, version: str = "9.10.2.21", **more: str) -> str:
        return self.install_archive(self.install(site, version, **more))

    def install_archive(self, install: cudnn_fetch.CudnnInstall, refresh: Callable[[], None] | None = None) -> str:
        with cudnn_install.archive_directory(self.paths) as shelf:
            return cudnn_install.install_archive(
                install, self.paths, DownloadLimits(5, 20), refresh or self.refresh, shelf
            )

    def remove(self) -> list[str]:
        return cudnn_install.remove_archive("12.9", self.paths, self.refresh)

    def tree(self) -> dict[str, str]:
        found = {}
        for file in sorted(self.path.rglob("*")):
            name = str(file.relative_to(self.path))
            if file.is_symlink():
                found[name] = f"-> {file.readlink()}"
            elif file.is_file():
                found[name] = hashlib.sha256(file.read_bytes()).hexdigest()
        return found

    def recorded(self) -> dict[str, Any]:
        file = Path(self.paths.manifest)
        return json.loads(file.read_text()).get("cudnn", {}) if file.exists() else {}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


@pytest.mark.parametrize("compression", ["xz", "gz"])
def test_places_its_files_through_the_links_of_the_toolkit(site: Site, node: Node, compression: str) -> None:
    before = node.tree()
    site.archive("9.10.2.21", pack(members("9.10.2.21"), compression=compression))
    assert node.place(site) == "9.10.2.21"
    assert {name: value for name, value in node.tree().items() if name not in before} == {
        "doc/cudnn/LICENSE": hashlib.sha256(b"terms\n").hexdigest(),
        "targets/x86_64-linux/include/cudnn.h": hashlib.sha256(b"/* api */\n").hexdigest(),
        "targets/x86_64-linux/include/cudnn_version.h": hashlib.sha256(header("9.10.2")).hexdigest(),
        "targets/x86_64-linux/lib/libcudnn.so": "-> libcudnn.so.9",
        "targets/x86_64-linux/lib/libcudnn.so.9": "-> libcudnn.so.9.10.2.21",
        "targets/x86_64-linux/lib/libcudnn.so.9.10.2.21": hashlib.sha256(b"\x7fELF9.10.2.21").hexdigest(),
        "targets/x86_64-linux/lib/libcudnn_ops_10.a": hashlib.sha256(b"!<arch>\n").hexdigest(),
    }
    assert (node.real / "include/cudnn.h").stat().st_mode & 0o777 == 0o644
    assert (node.real / "lib/libcudnn.so.9.10.2.21").stat().st_mode & 0o777 == 0o755
    assert cudnn_install.is_installed(node.install(site), node.paths)
    assert cudnn_install.is_installed(node.install(site, "9.10.2"), node.paths)
    assert node.recorded()["12.9"]["version"] == "9.10.2.21"
    assert node.refreshed == 1


def test_removal_restores_the_toolkit(site: Site, node: Node) -> None:
    before = node.tree()
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    removed = node.remove()
    assert len(removed) == 7
    assert node.tree() == before
    assert not (node.path / "doc").exists()
    assert node.recorded() == {}
    assert node.remove() == []


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"cuda": "12.9"}', "\udcff"])
def test_the_manifest_replaces_a_missing_or_damaged_record(site: Site, node: Node, text: str | None) -> None:
    before = node.tree()
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    record = Path(cudnn.record_path("12.9", node.paths.records))
    if text is None:
        shutil.rmtree(record.parent)
    else:
        record.write_text(text, errors="surrogateescape")
    assert not cudnn_install.is_installed(node.install(site), node.paths)
    assert len(node.remove()) == 7 and node.tree() == before


def test_a_damaged_record_is_written_again(site: Site, node: Node) -> None:
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    Path(cudnn.record_path("12.9", node.paths.records)).write_text("{")
    assert node.place(site) == "9.10.2.21"
    assert cudnn_install.is_installed(node.install(site), node.paths)


def test_another_version_replaces_exactly_the_files_of_the_previous_one(site: Site, node: Node) -> None:
    for version in ("9.10.2.21", "9.17.0.29"):
        site.archive(version, pack(members(version)))
        node.place(site, version)
    names = {file.name for file in (node.real / "lib").iterdir()}
    assert names == {
        "libcudart.so.12",
        "libcudnn.so",
        "libcudnn.so.9",
        "libcudnn.so.9.17.0.29",
        "libcudnn_ops_17.a",
    }
    assert node.recorded()["12.9"]["version"] == "9.17.0.29"
    assert not cudnn_install.is_installed(node.install(site), node.paths)


def test_a_run_killed_while_placing_is_repaired_and_forgets_nothing(site: Site, node: Node) -> None:
    before = node.tree()
    for version in ("9.10.2.21", "9.17.0.29"):
        site.archive(version, pack(members(version)))
    node.place(site)

    def killed() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        node.install_archive(node.install(site, "9.17.0.29"), killed)
    assert not cudnn_install.is_installed(node.install(site, "9.17.0.29"), node.paths)
    stale = node.path / (cudnn_install.STAGING + "stale")
    stale.mkdir()
    (stale / "archive").write_text("half")
    node.place(site, "9.17.0.29")
    assert cudnn_install.is_installed(node.install(site, "9.17.0.29"), node.paths)
    assert not stale.exists()
    node.remove()
    assert node.tree() == before


def test_a_deleted_file_is_placed_again(site: Site, node: Node) -> None:
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    whole = node.tree()
    (node.real / "lib/libcudnn.so.9").unlink()
    assert not cudnn_install.is_installed(node.install(site), node.paths)
    node.place(site)
    assert node.tree() == whole


def spoil(site: Site, how: str) -> dict[str, str]:
    version, good = "9.10.2.21", pack(members("9.10.2.21"))
    name = "/redist/cudnn/linux-x86_64/cudnn-linux-x86_64-9.10.2.21_cuda12-archive.tar.xz"
    site.archive(version, good)
    if how == "truncated":
        site.cut.add(name)
    elif how == "shorter":
        site.files[name] = good[:-7]
    elif how == "longer":
        site.files[name] = good + b"more"
    elif how == "wrong checksum":
        site.files[name] = good[:-1] + bytes([good[-1] ^ 1])
    elif how == "archive missing":
        del site.files[name]
    elif how == "manifest missing":
        site.files.clear()
    elif how == "sign-in page":
        site.files["/redist/redistrib_9.10.2.json"] = b"<html>sign in"
    elif how == "other pin":
        return {"sha256": "0" * 64}
    elif how == "too big for the disk":
        site.archive(version, good, size=str(1 << 60))
    elif how == "no archive at all":
        site.archive(version, b"not a tar file, but with the right checksum")
    elif how == "outside of its directory":
        site.archive(version, pack({"a/lib/../../../libcudnn.so.9": b"x", **members(version)}, top=""))
    elif how == "absolute":
        site.archive(version, pack({"/usr/lib/libcudnn.so.9": b"x"}, top=""))
    elif how == "link outside of its directory":
        site.archive(version, pack({**members(version), "lib/libcudnn.so": "/etc/passwd"}))
    elif how == "nothing of cuDNN":
        site.archive(version, pack({"lib/libz.so": b"x"}))
    return {}


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("truncated", ["cuda12-archive.tar.xz", "bytes", "Nothing was changed"]),
        ("shorter", ["cuda12-archive.tar.xz", "expected", "Nothing was changed"]),
        ("longer", ["cuda12-archive.tar.xz", "longer", "Nothing was changed"]),
        ("wrong checksum", ["cuda12-archive.tar.xz", "sha256", "expected", "mirror"]),
        ("archive missing", ["cuda12-archive.tar.xz", "404", "The server does not have it"]),
        ("manifest missing", ["redistrib_9.10.2.json", "404", "version"]),
        ("sign-in page", ["redistrib_9.10.2.json", "not JSON"]),
        ("other pin", ["redistrib_9.10.2.json", "0" * 64]),
        ("too big for the disk", ["MiB", "free", "Free disk space"]),
        ("no archive at all", ["cuda12-archive.tar.xz", "unpacked"]),
        ("outside of its directory", ["outside of its directory"]),
        ("absolute", ["outside of its directory"]),
        ("link outside of its directory", ["/etc/passwd", "outside of its directory"]),
        ("nothing of cuDNN", ["not a cuDNN archive"]),
    ],
)
def test_errors_are_one_message_and_change_nothing(site: Site, node: Node, how: str, words: list[str]) -> None:
    before = node.tree()
    pin = spoil(site, how)
    with pytest.raises(GpuReadyError) as caught:
        node.place(site, **pin)
    text = str(caught.value)
    assert [word for word in words if word not in text] == []
    assert "\n" not in text
    assert node.tree() == before
    assert node.recorded() == {}
    assert cudnn_install.read_record("12.9", node.paths) is None
    assert node.refreshed == 0
    assert not [file for file in node.path.iterdir() if file.name.startswith(".")]


def test_a_failed_upgrade_leaves_the_previous_version_complete(site: Site, node: Node) -> None:
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    before = node.tree()
    site.archive("9.17.0.29", pack(members("9.17.0.29")), sha256="0" * 64)
    with pytest.raises(GpuReadyError, match="sha256"):
        node.place(site, "9.17.0.29")
    assert node.tree() == before
    assert cudnn_install.is_installed(node.install(site), node.paths)


def test_an_unreachable_server_is_reported(node: Node, site: Site) -> None:
    install = node.install(site)._replace(manifest_url="http://127.0.0.1:9/redistrib_9.10.2.json")
    with pytest.raises(GpuReadyError, match="127.0.0.1:9.*could not be fetched.*check network and proxy"):
        node.install_archive(install)


def test_files_of_others_are_not_overwritten(site: Site, node: Node) -> None:
    (node.real / "include/cudnn.h").write_text("mine")
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    with pytest.raises(CudnnError, match=r"include/cudnn.h was not installed by gpu-ready.*cudnn_source"):
        node.place(site)
    assert (node.real / "include/cudnn.h").read_text() == "mine"


def test_a_toolkit_without_directories_is_reported(site: Site, node: Node) -> None:
    (node.path / "lib64").unlink()
    with pytest.raises(CudnnError, match="the CUDA toolkit in .* is incomplete"):
        node.place(site)
    assert site.asked == []


def test_the_module_downloads_only_what_is_missing(site: Site, node: Node) -> None:
    module = gpu_cudnn_archive
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    params = {
        "installs": [dict(node.install(site)._asdict())],
        "file": "",
        "state": "present",
    }
    before = node.tree()

    def converge(check_mode: bool = False, **more: Any) -> dict[str, Any]:
        result: dict[str, Any] = module.converge({**params, **more}, check_mode, node.paths, node.refresh)
        return result

    predicted = converge(check_mode=True)
    assert (predicted["changed"], predicted["after"]) == (True, {"12.9": "9.10.2.21"})
    assert (node.tree(), site.asked, node.refreshed) == (before, [], 0)
    assert converge()["changed"] is True
    asked = list(site.asked)
    assert converge()["changed"] is False
    assert converge(check_mode=True)["changed"] is False
    assert (site.asked, node.refreshed) == (asked, 1)
    (node.real / "lib/libcudnn.so").unlink()
    assert converge(check_mode=True)["changed"] is True
    assert converge()["changed"] is True
    assert converge(check_mode=True, state="absent")["changed"] is True
    assert converge(state="absent")["changed"] is True
    assert converge(state="absent")["changed"] is False
    assert node.tree() == before


OLD: dict[str, bytes | str] = {
    "include/cudnn.h": header("6.0.21"),
    "lib64/libcudnn.so.6.0.21": b"\x7fELF",
    "lib64/libcudnn.so.6": "libcudnn.so.6.0.21",
}


def given(node: Node, content: dict[str, bytes | str], **more: str) -> cudnn_fetch.CudnnInstall:
    """An operator's archive on the host, under a name without a version."""
    path = node.path.parent / "cudnn-archive"
    path.write_bytes(pack(content, top="cuda", compression="gz"))
    values = {
        "cuda_path": str(node.path),
        "archive_url": str(path),
        "origin": "file:cudnn-8.0-linux-x64-v6.0.tgz",
        **more,
    }
    return cudnn_fetch.CudnnInstall("12.9", **values)


@pytest.mark.parametrize(("stated", "full"), [("", "6.0.21"), ("6.0", "6.0.21"), ("6.0.21.7", "6.0.21.7")])
def test_the_version_of_an_operators_archive_is_read_from_it(node: Node, stated: str, full: str) -> None:
    install = given(node, OLD, version=stated)
    assert node.install_archive(install) == full
    assert Path(install.archive_url).exists()
    assert cudnn_install.is_installed(install, node.paths)
    assert not cudnn_install.is_installed(install._replace(origin="sha256:0"), node.paths)
    assert (node.real / "lib/libcudnn.so.6").readlink() == Path("libcudnn.so.6.0.21")


@pytest.mark.parametrize(
    ("content", "more", "words"),
    [
        (OLD, {"version": "5.1"}, "contains cuDNN 6.0.21, expected 5.1"),
        (OLD, {"sha256": "0" * 64}, "expected " + "0" * 64),
        (OLD, {"archive_url": "/absent/cudnn.tgz"}, "is not a file on this host"),
        (OLD, {"archive_url": "http://127.0.0.1:9/cudnn.tgz"}, "cannot be verified"),
        ({**OLD, "include/cudnn.h": b""}, {}, "its headers have no version"),
        ({**OLD, "extra": "../../etc"}, {}, "points outside of its directory"),
        ({**OLD, "extra/deep": "../../../etc"}, {}, "points outside of its directory"),
        ({**OLD, "extra": "/etc"}, {}, "points outside of its directory"),
    ],
)
def test_errors_of_an_operators_archive(
    node: Node, content: dict[str, bytes | str], more: dict[str, str], words: str
) -> None:
    before = node.tree()
    with pytest.raises(CudnnError, match=words):
        node.install_archive(given(node, content, **more))
    assert node.tree() == before


def test_a_hard_link_to_the_outside_is_not_followed(node: Node) -> None:
    stream = io.BytesIO(pack(OLD, top="cuda", compression="gz"))
    with tarfile.open(fileobj=stream) as archive:
        members = [(member, archive.extractfile(member).read() if member.isreg() else b"") for member in archive]  # type: ignore[union-attr]
    evil = tarfile.TarInfo("cuda/lib64/libcudnn.so.7")
    evil.type, evil.linkname = tarfile.LNKTYPE, "etc/shadow"
    install = given(node, OLD)
    with tarfile.open(install.archive_url, "w:gz") as archive:
        for member, data in [*members, (evil, b"")]:
            archive.addfile(member, io.BytesIO(data))
    with pytest.raises(CudnnError, match="points outside of its directory"):
        node.install_archive(install)


def test_one_download_serves_every_toolkit_of_a_run(site: Site, node: Node) -> None:
    data = pack(members("9.10.2.21"))
    site.archive("9.10.2.21", data)
    second = Node(node.path.parent / "b")
    first, other = node.install(site), second.install(site)
    with cudnn_install.archive_directory(node.paths) as shelf:
        for install, paths in ((first, node.paths), (other._replace(cuda="12.8"), node.paths)):
            cudnn_install.install_archive(install, paths, DownloadLimits(5, 20), node.refresh, shelf)
    assert len([path for path in site.asked if path.endswith(".tar.xz")]) == 1
    assert not [name for name in Path(node.paths.records).iterdir() if name.name.startswith(cudnn_install.ARCHIVES)]


def test_a_simultaneous_second_run_is_reported(site: Site, node: Node) -> None:
    with (
        cudnn_install.archive_directory(node.paths),
        pytest.raises(LockError, match="cudnn.lock: another run"),
        cudnn_install.archive_directory(node.paths),
    ):
        pass


def test_changed_files_are_no_longer_owned(site: Site, node: Node) -> None:
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    site.archive("9.17.0.29", pack(members("9.17.0.29")))
    node.place(site)
    own = node.real / "lib/libcudnn_ops_10.a"
    own.write_text("theirs")
    node.place(site, "9.17.0.29")
    assert own.read_text() == "theirs"
    (node.real / "include/cudnn.h").write_text("theirs")
    with pytest.raises(CudnnError, match=r"include/cudnn.h .*not installed by gpu-ready, or changed since"):
        node.place(site)
    assert str(node.real / "include/cudnn.h") not in node.remove()
    assert (node.real / "include/cudnn.h").read_text() == "theirs"


@pytest.mark.parametrize(
    ("default", "known", "needed"),
    [(True, False, True), (True, True, False), (False, False, False)],
    ids=["the default, unknown", "the default, known", "not the default"],
)
def test_the_linkers_file_is_written_where_it_is_needed(
    site: Site, node: Node, default: bool, known: bool, needed: bool
) -> None:
    directory = node.path.parent
    if default:
        (directory / "cuda").symlink_to("cuda-12.9")
    if known:
        (directory / "ld.so.conf.d/cuda.conf").write_text(
            f"# NVIDIA's\n{directory}/cuda/targets/x86_64-linux/lib  # x\n"
        )
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    own = directory / "ld.so.conf.d/gpu-ready-cudnn.conf"
    for _ in range(2):
        node.place(site)
        assert own.exists() is needed
    assert not needed or own.read_text() == f"{directory}/cuda/lib64\n"
    node.remove()
    assert not own.exists()


def test_a_removed_toolkit_leaves_no_directory_behind(site: Site, node: Node) -> None:
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    for name in ("include", "lib64", "version.json", "targets/x86_64-linux/lib/libcudart.so.12"):
        (node.path / name).unlink()
    node.remove()
    assert not node.path.exists()


@pytest.mark.parametrize("name", [".", "./", "", "./."])
@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_message_of_an_odd_member_at_the_top_of_an_archive(node: Node, name: str, kind: bytes) -> None:
    odd = tarfile.TarInfo(name)
    odd.type, odd.linkname = kind, "etc"
    install = given(node, OLD)
    with tarfile.open(install.archive_url, "w:gz") as archive:
        archive.addfile(odd)
    before = node.tree()
    with pytest.raises(CudnnError):
        node.install_archive(install)
    assert node.tree() == before


@pytest.mark.parametrize("kind", [tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.LNKTYPE])
def test_only_files_and_links_of_an_archive_are_placed(node: Node, kind: bytes) -> None:
    odd = tarfile.TarInfo("cuda/lib64/libcudnn.so.7")
    odd.type, odd.linkname, odd.devmajor, odd.mode = kind, "cuda/include/cudnn.h", 1, 0o6777
    install = given(node, OLD)
    with tarfile.open(install.archive_url, "w:gz") as archive:
        archive.addfile(odd)
    with pytest.raises(CudnnError, match="neither a file nor a symbolic link"):
        node.install_archive(install)
    assert not [file for file in node.path.iterdir() if file.name.startswith(".")]


@pytest.mark.parametrize(
    "path",
    ["file:///etc/shadow", "http://elsewhere/a.tar.xz", "//elsewhere/a.tar.xz", "/a.tar.xz", "../../../a.tar.xz"],
)
def test_a_manifest_cannot_redirect_the_download(site: Site, node: Node, path: str) -> None:
    site.archive("9.10.2.21", pack(members("9.10.2.21")), relative_path=path)
    with pytest.raises(CudnnError, match="which is not below it"):
        node.place(site)
    assert len(site.asked) == 1


def test_the_linkers_file_stays_while_a_toolkit_needs_it(site: Site, node: Node) -> None:
    directory = node.path.parent
    link = directory / "cuda"
    link.symlink_to("cuda-12.9")
    site.archive("9.10.2.21", pack(members("9.10.2.21")))
    node.place(site)
    other = Node(directory / "b")
    link.unlink()
    link.symlink_to("b/cuda-12.9")
    second = node.install(site)._replace(cuda="13.0", cuda_path=str(other.path))
    node.install_archive(second)
    own = directory / "ld.so.conf.d/gpu-ready-cudnn.conf"
    assert str(own) not in node.remove()
    assert own.exists()
    assert cudnn_install.is_installed(second, node.paths)
    assert str(own) in cudnn_install.remove_archive("13.0", node.paths, node.refresh)


def test_the_manifest_has_the_files_at_every_moment_of_an_upgrade(
    site: Site, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in ("9.10.2.21", "9.17.0.29"):
        site.archive(version, pack(members(version)))
    node.place(site)
    seen = []
    write = files.write_atomic

    def watched(path: str, data: bytes, mode: int | None = None) -> None:
        write(path, data, mode)
        seen.append("12.9" in node.recorded())

    monkeypatch.setattr(files, "write_atomic", watched)
    node.place(site, "9.17.0.29")
    assert seen and all(seen)


def test_the_copy_of_an_archive_is_removed_after_use(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    module = gpu_cudnn_archive
    install = given(node, OLD)
    params = {
        "installs": [{"cuda": "12.9", "cuda_path": str(node.path), "origin": install.origin}],
        "file": install.archive_url,
        "state": "present",
    }
    module.converge(params, False, node.paths, node.refresh)
    assert Path(install.archive_url).exists()
    module.converge({**params, "state": "absent"}, False, node.paths, node.refresh)
    monkeypatch.setattr(module.manifest_notes, "DIRECTORY", str(node.path.parent))
    module.converge(params, True, node.paths, node.refresh)
    assert Path(install.archive_url).exists()
    module.converge(params, False, node.paths, node.refresh)
    assert not Path(install.archive_url).exists()
