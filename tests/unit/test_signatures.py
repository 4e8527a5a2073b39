"""Packages are verified before they are unpacked: real RPMs and keys, and apt's own lists."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.packaging import armor, signatures
from plugins.module_utils.gpu_ready.packaging.manager import PackageError
from plugins.module_utils.gpu_ready.packaging.signatures import PinnedFile
from tests.unit.gpg_keys import GpgHome
from tests.unit.real_programs import RPM, need_programs
from tests.unit.recorded import RecordedHost

pytestmark = pytest.mark.host_io
PACKAGE = "kmod-nvidia-open-dkms=3:595.91.07-1.el9"
SPEC = """\
Name: kmod-nvidia-open-dkms
Epoch: 3
Version: 595.91.07
Release: 1.el9
Summary: x
License: x
BuildArch: noarch
%description
x
%post
touch /tmp/ran
%install
mkdir -p %{buildroot}/usr/src/nvidia-open-595.91.07
echo 'PACKAGE_NAME="nvidia"' > %{buildroot}/usr/src/nvidia-open-595.91.07/dkms.conf
%files
/usr/src/nvidia-open-595.91.07/dkms.conf
"""


class Shop:
    """Keys, and one package as the vendor or an attacker would deliver it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.gpg = GpgHome(directory / "gpg")
        self.key = self.write_key("vendor")
        self.write_key("attacker")
        self.unsigned = self.build()

    def write_key(self, name: str) -> str:
        self.gpg.generate(name)
        path = self.directory / f"{name}.asc"
        path.write_bytes(armor.armor(self.gpg.export(name)))
        return str(path)

    def build(self) -> Path:
        (self.directory / "x.spec").write_text(SPEC)
        top = f"_topdir {self.directory}/top"
        subprocess.run(
            ["rpmbuild", "-bb", "--define", top, "x.spec"], cwd=self.directory, check=True, capture_output=True
        )
        (built,) = (self.directory / "top").glob("RPMS/**/*.rpm")
        return built

    def sign(self, name: str, target: Path) -> Path:
        shutil.copy(self.unsigned, target)
        defines = [f"_gpg_name {name}", "__gpg /usr/bin/gpg", f"_gpg_path {self.gpg.path}"]
        argv = ["rpmsign", *(word for one in defines for word in ("--define", one)), "--addsign", str(target)]
        subprocess.run(argv, check=True, capture_output=True, env=os.environ | {"GNUPGHOME": str(self.gpg.path)})
        return target


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """Return one shop for all tests, since keys and packages take a second each."""
    need_programs(RPM)
    found = Shop(tmp_path_factory.mktemp("shop"))
    yield found
    found.gpg.close()


def damage(path: Path, at: int) -> Path:
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)
    return path


def test_a_package_with_the_pinned_signature_is_verified(shop: Shop, tmp_path: Path) -> None:
    path = shop.sign("vendor", tmp_path / "good.rpm")
    signatures.verify_rpms(Host(), {PACKAGE: PinnedFile(str(path), shop.key)})


@pytest.mark.parametrize("kind", ["attacker", "unsigned", "header", "payload", "cut", "empty", "missing"])
def test_any_other_package_is_refused(shop: Shop, tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"digests signatures OK {kind}.rpm"  # the text of a good answer in the name is no good answer
    if kind in ("header", "payload", "cut"):
        shop.sign("vendor", path)
        data = path.read_bytes()
        if kind == "cut":
            path.write_bytes(data[:-100])
        else:
            damage(path, data.find(b"dkms.conf") if kind == "header" else -40)
    elif kind == "attacker":
        shop.sign("attacker", path)
    elif kind == "unsigned":
        shutil.copy(shop.unsigned, path)
    elif kind == "empty":
        path.write_bytes(b"")
    with pytest.raises(PackageError, match="not signed with the pinned key") as error:
        signatures.verify_rpms(Host(), {PACKAGE: PinnedFile(str(path), shop.key)})
    assert str(path) in str(error.value) and "dnf clean packages" in str(error.value)
    assert "(rpmkeys: )" not in str(error.value), "it says what rpmkeys printed, on either stream"


def test_the_pinned_key_alone_counts_not_those_of_the_host(shop: Shop, tmp_path: Path) -> None:
    """One key verifies one package: the key of another repository is of no use."""
    good = shop.sign("vendor", tmp_path / "good.rpm")
    other = shop.sign("attacker", tmp_path / "other.rpm")
    foreign = str(shop.directory / "attacker.asc")
    signatures.verify_rpms(Host(), {PACKAGE: PinnedFile(str(other), foreign)})
    for path, key in ((other, shop.key), (good, foreign)):
        with pytest.raises(PackageError, match=str(path)):
            signatures.verify_rpms(Host(), {PACKAGE: PinnedFile(str(path), key)})


def test_a_signed_package_under_the_name_of_another_is_refused(shop: Shop, tmp_path: Path) -> None:
    path = shop.sign("vendor", tmp_path / "good.rpm")
    newer = PACKAGE.replace("595", "610")
    with pytest.raises(PackageError, match=f"is {PACKAGE}, not {newer}"):
        signatures.verify_rpms(Host(), {newer: PinnedFile(str(path), shop.key)})


def test_a_key_file_with_two_keys_verifies_nothing(shop: Shop, tmp_path: Path) -> None:
    path = shop.sign("vendor", tmp_path / "good.rpm")
    both = tmp_path / "both.asc"
    both.write_bytes(Path(shop.key).read_bytes() + (shop.directory / "attacker.asc").read_bytes())
    with pytest.raises(PackageError, match="2 keys in place of the pinned one"):
        signatures.verify_rpms(Host(), {PACKAGE: PinnedFile(str(path), str(both))})


OWN_FILE = "[gpu-ready-cuda-fedora42]\nbaseurl=https://m/x\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-x\n"
LOCAL_FILE = "[gpu-ready-local]\nbaseurl=file:///srv/mirror\ngpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-y\n"
MANIFEST = '{"adopted": {"cuda-theirs": {"keyring": "/k", "gpgcheck": true, "repo_gpgcheck": false}}}'


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("/var/cache/libdnf5/gpu-ready-cuda-fedora42-0123456789abcdef/packages/a.rpm", "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-x"),
        ("/var/cache/dnf/gpu-ready-cuda-fedora42-0123456789abcdef/packages/a.rpm", "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-x"),
        ("/var/cache/dnf/cuda-theirs-0123456789abcdef/packages/a.rpm", "/k"),
        ("/var/cache/dnf/fedora-0123456789abcdef/packages/a.rpm", None),
        ("/var/cache/dnf/x/packages/gpu-ready-cuda-fedora42-0123456789abcdef/a.rpm", None),
        ("/srv/gpu-ready-cuda-fedora42/a.rpm", None),
        ("/srv/mirror/a.rpm", "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-y"),  # dnf does not copy it to its cache
    ],
)  # fmt: skip
def test_the_repository_of_a_file_says_which_key_it_must_have(path: str, key: str | None) -> None:
    files = {
        "/etc/yum.repos.d/gpu-ready-cuda-fedora42.repo": OWN_FILE,
        "/etc/yum.repos.d/gpu-ready-local.repo": LOCAL_FILE,
        "/etc/yum.repos.d/fedora.repo": "[fedora]\nbaseurl=https://m/f\ngpgkey=file:///etc/pki/rpm-gpg/F\n",
        "/var/lib/gpu-ready/manifest.json": MANIFEST,
    }
    assert signatures.find_pinned_key(RecordedHost(files=files), path) == key


# ---- .deb


class Apt(Host):
    """This machine, whose apt knows one checksum."""

    def __init__(self, printed: str) -> None:
        self.printed = printed

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None):  # type: ignore[no-untyped-def]
        if argv[0] == "apt-get":
            assert argv[1:] == ["download", "--print-uris", "x=1"]
            return super().run(["printf", "%s", self.printed])
        return super().run(argv, timeout, env)


def deb(directory: Path) -> Path:
    (directory / "tree/DEBIAN").mkdir(parents=True)
    (directory / "tree/DEBIAN/control").write_text(
        "Package: x\nVersion: 1\nArchitecture: all\nMaintainer: x <x@example.org>\nDescription: x\n"
    )
    (directory / "tree/usr/src").mkdir(parents=True)
    (directory / "tree/usr/src/file").write_text("x")
    subprocess.run(["dpkg-deb", "-b", directory / "tree", directory / "x.deb"], check=True, capture_output=True)
    return directory / "x.deb"


@pytest.mark.parametrize("program", ["sha256sum", "sha512sum"])
def test_a_deb_is_compared_with_the_lists_of_apt(tmp_path: Path, program: str) -> None:
    path = deb(tmp_path)
    total = subprocess.run([program, path], check=True, capture_output=True, text=True).stdout.split()[0]
    line = f"'http://m/x.deb' x_1_all.deb {path.stat().st_size} {program[:-3].upper()}:{total}\n"
    root = tmp_path / "root"
    signatures.unpack_deb(Apt(line), "x=1", str(path), str(root))
    assert (root / "usr/src/file").read_text() == "x"
    shutil.rmtree(root)
    damage(path, -10)  # of the same size, which is all that apt compares of a file in its cache
    with pytest.raises(PackageError, match="not the file of apt's signed lists"):
        signatures.unpack_deb(Apt(line), "x=1", str(path), str(root))
    with pytest.raises(PackageError, match="apt's lists have no checksum of x 1"):
        signatures.unpack_deb(Apt(""), "x=1", str(path), str(root))
    assert not root.exists() and [one.name for one in tmp_path.iterdir() if one.name.startswith("deb-")] == []
