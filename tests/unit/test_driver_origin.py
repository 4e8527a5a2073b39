"""Where a driver came from: what apt-cache, rpm, dnf and yum say, read from the real programs where they are here."""

import sqlite3
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.host import Host
from plugins.module_utils.gpu_ready.facts import apt, rpm
from plugins.module_utils.gpu_ready.facts.model import PackageEvidence, Place, YumFacts
from plugins.module_utils.gpu_ready.packaging import rpm_history
from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.catalog import driver_packages
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion.driver_origin import DriverOrigin, find_origin
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from tests.unit.real_programs import RPM, need_programs
from tests.unit.recorded import RecordedHost

COMPANIONS = """nvidia-fabricmanager nvidia-fabricmanager-580 nvidia-fabric-manager nvidia-imex nvidia-imex-580 nvidia-gds
nvidia-gds-13-0 nvidia-fs nvidia-fs-dkms gds-tools-13-0 libnvidia-nscq libnvidia-nscq-580 libnvsdm nvlsm nvidia-docker2
nvidia-container-toolkit nvidia-container-toolkit-base libnvidia-container1 libnvidia-container-tools
nvidia-container-runtime nvidia-mig-manager nvidia-settings nvidia-prime nvidia-modprobe nvidia-system-core
nvidia-system-utils nvidia-acs-disable nvidia-crashdump nvidia-raid-config nvidia-repo-keys nvidia-peermem-loader
nvidia-peer-memory-dkms nvidia-driver-assistant nvidia-driver-local-repo-ubuntu2404-580.95.05 nvidia-detect
nvidia-driver-pinning-580 nvidia-support nvidia-installer-cleanup nvidia-vaapi-driver nvidia-cuda-toolkit
nvidia-cuda-dev libnvidia-egl-wayland1 cuda-drivers-fabricmanager-580 cuda-keyring cuda-compat-13-0 datacenter-gpu-manager
nvidia-conf-cachefilesd nvidia-nvme-options nvidia-vgpu-ubuntu-580 libnvidia-ml-dev python3-nvidia-ml-py kernel-core
xserver-xorg-video-nouveau firmware-misc-nonfree nvidia-firmware-tools glx-alternative-nvidia nvidia-xconfig-gui
nvidia-dkms-sources-of-somebody linux-nvidia linux-image-nvidia-hwe-24.04-edge linux-nvidia-64k"""
DATA = {key: catalog.distro(key) for key in catalog.distros()}


@pytest.mark.parametrize("name", COMPANIONS.split())
def test_a_companion_is_no_driver(name: str) -> None:
    assert make_probes().driver_packages({name: "1"}) == {}


def test_every_pattern_has_a_package_and_publishers_are_complete() -> None:
    for names in catalog_data.DRIVER_PACKAGES["packages"].values():
        assert set(names) == {"libraries", "modules", "parts"} and all(names.values())
    for entry in driver_packages.publishers().values():
        assert entry["name"] and {"urls", "sections", "revisions", "archive"} & set(entry)
        assert entry.get("source") in (None, "distro", "cuda_repo", "elrepo")


@pytest.mark.parametrize(
    ("names", "deciding"),
    [
        (["libcuda1", "nvidia-kernel-dkms", "libnvidia-ml1", "nvidia-smi"], ["libcuda1", "libnvidia-ml1"]),
        (["kmod-nvidia-open-dkms", "nvidia-driver-cuda"], ["kmod-nvidia-open-dkms"]),
        (["nvidia-utils-580", "nvidia-firmware-580-580.95.05"], []),
        (["nvidia-fabricmanager-580", "nvidia-gds"], []),
    ],
)
def test_the_packages_with_the_libraries_decide(names: list[str], deciding: list[str]) -> None:
    assert make_probes().deciding_packages(names) == deciding


def origin(
    distro: str, version: str, name: str = "libnvidia-compute-580", *others: str, **more: object
) -> DriverOrigin:
    found = PackageEvidence(name, version)._replace(**more)  # type: ignore[arg-type]
    return find_origin([found], [name, *others], DATA[distro])


@pytest.mark.parametrize(
    ("distro", "version", "publisher"),
    [
        ("ubuntu2404", "580.95.05-0ubuntu0.24.04.1", "distro_desktop"),
        ("ubuntu2404", "550.120-0ubuntu0~gpu22.04.1", "graphics_ppa"),
        ("ubuntu2204", "580.105.08-0lambda0.22.04.1", "lambda"),
        ("ubuntu2204", "570.133.20-1", "cuda_repo"),
        ("ubuntu2204", "570.133.20-1ubuntu1", "cuda_repo"),
        ("ubuntu2204", "450.142.00-0ubuntu1", "cuda_repo"),
        ("ubuntu2404", "580.95.05+site1", "unknown"),
        ("debian12", "535.261.03-1~deb12u1", "distro"),
        ("debian12", "535.261.03-1", "unknown"),
    ],
)
def test_the_revision_decides_where_no_repository_has_the_version(distro: str, version: str, publisher: str) -> None:
    assert origin(distro, version).publisher == publisher
    elsewhere = Place("https://apt.site.example/gpu", "stable", "main")
    assert origin(distro, version, places=[elsewhere]).publisher == "unknown"


def test_the_server_series_of_ubuntu_is_another_than_that_for_desktops() -> None:
    assert origin("ubuntu2404", "580.95.05-0ubuntu0.24.04.1", "libnvidia-compute-580-server").publisher == "distro"
    archive = Place("http://mirror.site.example/ubuntu", "noble-updates", "restricted")
    for name, publisher in (("libnvidia-compute-580", "distro_desktop"), ("libnvidia-compute-580-server", "distro")):
        expected = DriverOrigin(publisher, "http://mirror.site.example/ubuntu noble-updates")
        assert origin("ubuntu2404", "580.95.05-1", name, places=[archive]) == expected


def test_a_package_that_only_one_publisher_has_decides_on_debian() -> None:
    assert origin("debian12", "535.261.03-1", "libcuda1", "nvidia-alternative").publisher == "distro"
    assert origin("debian12", "580.95.05-1", "libcuda1", "nvidia-driver-cuda").publisher == "cuda_repo"


@pytest.mark.parametrize("name", ["nvidia-kernel-support", "libcuda1"])
def test_a_package_that_debian_and_nvidia_both_publish_decides_nothing(name: str) -> None:
    """An interrupted dpkg keeps new records in a journal, which apt-cache does not read: it names no repository."""
    assert origin("debian13", "580.178.04-1", name, "nvidia-kernel-support").publisher == "unknown"


@pytest.mark.parametrize(
    ("names", "vendor", "section", "publisher"),
    [
        ("kmod-nvidia-open-dkms nvidia-driver-cuda-libs", "", "", "cuda_repo"),
        ("kmod-nvidia-580.95.05-5.14.0-570.12.1 nvidia-driver-cuda-libs", "", "", "cuda_repo"),
        ("nvidia-driver-cuda-libs", "", "cuda-rhel9-x86_64", "cuda_repo"),
        ("nvidia-driver-cuda-libs", "", "gpu-ready-cuda-rhel9", "cuda_repo"),
        ("nvidia-driver-cuda-libs", "", "cuda-rhel9-13-0-local", "cuda_local"),
        ("nvidia-driver-cuda-libs", "", "site-gpu", "unknown"),
        ("nvidia-driver-cuda-libs kmod-nvidia-open-dkms", "Amazon Linux", "", "amazon"),
        ("nvidia-driver-cuda-libs kmod-nvidia-open-dkms", "", "amazonlinux-nvidia", "amazon"),
        ("nvidia-driver-cuda-libs", "negativo17.org", "", "negativo17"),
        ("nvidia-driver-cuda-libs dkms-nvidia", "", "", "negativo17"),
        ("nvidia-driver-cuda-libs", "", "epel-nvidia", "negativo17"),
        ("xorg-x11-drv-nvidia-cuda-libs akmod-nvidia", "", "", "rpmfusion"),
        ("xorg-x11-drv-nvidia-cuda-libs", "RPM Fusion", "", "rpmfusion"),
        ("nvidia-x11-drv-libs kmod-nvidia", "The ELRepo Project (https://elrepo.org)", "", "elrepo"),
        ("nvidia-x11-drv-580xx-libs kmod-nvidia-580xx", "", "", "elrepo"),
    ],
)
def test_the_publishers_of_rpms(names: str, vendor: str, section: str, publisher: str) -> None:
    first, *others = names.split()
    places = [Place("", section=section)] if section else []
    found = origin("el9", "3:580.95.05-1.el9", first, *others, vendor=vendor, places=places)
    assert found.publisher == publisher


# ---- apt ------------------------------------------------------------------------------------------------------------

PACKAGE = "Package: %s\nVersion: %s\nArchitecture: all\nFilename: ./x.deb\nSize: 1\nSHA256: %s\n\n"
CUDA = "developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64"


def archive(path: Path, name: str, versions: list[str]) -> None:
    path.mkdir(parents=True)
    (path / "Packages").write_text("".join(PACKAGE % (name, version, "0" * 64) for version in versions))


@pytest.mark.host_io
def test_the_real_apt_cache_names_the_repositories_of_the_installed_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suite of the archive, a flat repository of NVIDIA's, and a version that no repository has any longer."""
    archive(
        tmp_path / "ubuntu/dists/noble-updates/restricted/binary-all", "libnvidia-compute-580-server", ["580.1-0u", "9"]
    )
    archive(tmp_path / "ubuntu/dists/noble-updates/restricted/binary-amd64", "other", ["1"])
    archive(tmp_path / CUDA, "libnvidia-compute", ["590.1-1", "590.2-1"])
    (tmp_path / "ubuntu/dists/noble-updates/Release").write_text("Suite: noble-updates\nCodename: noble\n")
    for directory in (
        "etc/apt.conf.d",
        "etc/preferences.d",
        "etc/sources.list.d",
        "state/lists/partial",
        "cache/archives/partial",
    ):
        (tmp_path / directory).mkdir(parents=True)
    (tmp_path / "etc/sources.list").write_text(
        f"deb [trusted=yes] file:{tmp_path}/ubuntu noble-updates restricted\ndeb [trusted=yes] file:{tmp_path}/{CUDA} /\n"
    )
    installed = {
        "libnvidia-compute-580-server": "580.1-0u",
        "libnvidia-compute": "590.1-1",
        "libcuda1": "535-1~deb12u1",
    }
    stanza = (
        "Package: %s\nStatus: install ok installed\nVersion: %s\nArchitecture: all\nMaintainer: x\nDescription: x\n\n"
    )
    (tmp_path / "status").write_text("".join(stanza % pair for pair in installed.items()))
    (tmp_path / "apt.conf").write_text(
        f'Dir::Etc "{tmp_path}/etc"; Dir::State "{tmp_path}/state"; Dir::Cache "{tmp_path}/cache";\n'
        f'Dir::State::status "{tmp_path}/status"; APT::Sandbox::User "root";\n'
    )
    monkeypatch.setenv("APT_CONFIG", str(tmp_path / "apt.conf"))
    subprocess.run(["apt-get", "update"], check=True, capture_output=True)
    policies = apt.ask_policy(Host(), [*installed, "nowhere"])
    offered = apt.offered_versions(policies, [*installed, "nowhere"])
    assert {name: sorted(versions) for name, versions in offered.items()} == {
        "libcuda1": [],
        "libnvidia-compute": ["590.1-1", "590.2-1"],
        "libnvidia-compute-580-server": ["580.1-0u", "9"],
        "nowhere": [],
    }
    found = {one.name: one.places for one in apt.origin_evidence(policies, installed)}
    assert found == {
        "libcuda1": [],
        "libnvidia-compute": [Place(f"file:{tmp_path}/{CUDA}")],
        "libnvidia-compute-580-server": [Place(f"file:{tmp_path}/ubuntu", "noble-updates", "restricted")],
    }


def test_a_version_that_comes_in_phases_is_read() -> None:
    """apt 2.1.16: private-show.cc prints the share of hosts behind the priority of an update of Ubuntu."""
    text = (
        "nvidia-persistenced:\n  Installed: 580.1-1\n  Candidate: 580.1-1\n  Version table:\n"
        "     580.2-1 500 (phased 20%)\n        500 http://a/ubuntu noble-updates/main amd64 Packages\n"
        " *** 580.1-1 500 (phased 90%)\n        500 http://a/ubuntu noble/main amd64 Packages\n"
        "        100 /var/lib/dpkg/status\n"
    )
    policies = apt.parse_policy(text)
    assert apt.offered_versions(policies, ["nvidia-persistenced"]) == {"nvidia-persistenced": ["580.2-1", "580.1-1"]}
    assert apt.origin_evidence(policies, {"nvidia-persistenced": "580.1-1"})[0].places == [
        Place("http://a/ubuntu", "noble", "main")
    ]


# ---- RPM ------------------------------------------------------------------------------------------------------------

SPEC = "Name: %s\nVersion: 580.95.05\nRelease: 1.fc43\nSummary: x\nLicense: x\nBuildArch: noarch\n%s%%description\nx\n%%files\n"


@pytest.mark.host_io
def test_the_real_rpm_names_vendor_and_packager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    need_programs(RPM)
    (tmp_path / ".rpmmacros").write_text(f"%_dbpath {tmp_path}/db\n%_topdir {tmp_path}/build\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    tags = {
        "xorg-x11-drv-nvidia-cuda-libs": "Vendor: RPM Fusion\n",
        "libnvidia-ml": "",
        "bash": "Vendor: Fedora Project\n",
    }
    for name, text in tags.items():
        (tmp_path / f"{name}.spec").write_text(SPEC % (name, text))
    subprocess.run(["rpmbuild", "-bb", *(f"{tmp_path}/{name}.spec" for name in tags)], check=True, capture_output=True)
    rpms = [str(path) for path in (tmp_path / "build/RPMS").rglob("*.rpm")]
    subprocess.run(["rpm", "-i", "--justdb", "--nodeps", *rpms], check=True, capture_output=True)
    asked = {"xorg-x11-drv-nvidia-cuda-libs": "580.95.05-1.fc43", "libnvidia-ml": "580.95.05-1.fc43"}
    found = rpm.origin_evidence(Host(), asked, YumFacts())
    assert [(one.name, one.vendor) for one in found] == [
        ("libnvidia-ml", ""),
        ("xorg-x11-drv-nvidia-cuda-libs", "RPM Fusion"),
    ]


HISTORY = """
CREATE TABLE repo (id INTEGER PRIMARY KEY, repoid TEXT NOT NULL);
CREATE TABLE rpm (item_id INTEGER UNIQUE NOT NULL, name TEXT NOT NULL, epoch INTEGER NOT NULL, version TEXT NOT NULL,
  release TEXT NOT NULL, arch TEXT NOT NULL);
CREATE TABLE trans_item (id INTEGER PRIMARY KEY AUTOINCREMENT, trans_id INTEGER, item_id INTEGER, repo_id INTEGER,
  action INTEGER NOT NULL, reason INTEGER NOT NULL, state INTEGER NOT NULL);
INSERT INTO repo VALUES (1, 'rpmfusion-nonfree'), (2, '@System'), (3, 'cuda-rhel9-x86_64');
INSERT INTO rpm VALUES (1, 'libnvidia-ml', 3, '570', '1', 'x86_64'), (2, 'libnvidia-ml', 3, '580', '1', 'x86_64'),
  (3, 'bash', 0, '5', '1', 'x86_64');
INSERT INTO trans_item (trans_id, item_id, repo_id, action, reason, state) VALUES (1, 1, 1, 1, 2, 1), (1, 3, 1, 1, 2, 1),
  (2, 2, 3, 6, 2, 1), (2, 1, 2, 7, 2, 1);
"""


@pytest.mark.host_io
def test_the_history_of_dnf_4_names_the_last_section(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "history.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(HISTORY)
    monkeypatch.setattr(rpm_history, "DNF_HISTORY", str(path))
    before = sorted(tmp_path.iterdir())
    assert rpm_history.read_dnf_history(Host(), ["libnvidia-ml", "nvidia-driver"]) == {
        "libnvidia-ml": "cuda-rhel9-x86_64"
    }
    assert sorted(tmp_path.iterdir()) == before
    path.write_bytes(b"not a database")
    assert rpm_history.read_dnf_history(Host(), ["libnvidia-ml"]) == {}


@pytest.mark.parametrize(
    "text",
    [
        '[nevras]\n"libnvidia-ml-3:580.95.05-1.fc43.x86_64" = {from_repo="fedora-nvidia"}\n"bash-5-1.x" = {from_repo="f"}\n',
        '[nevras."libnvidia-ml-3:580.95.05-1.fc43.x86_64"]\nfrom_repo = "fedora-nvidia"\n',
    ],
)
def test_the_state_of_dnf_5_names_the_section(text: str) -> None:
    assert rpm_history.parse_nevras('version = "1.0"\n' + text, ["libnvidia-ml"]) == {"libnvidia-ml": "fedora-nvidia"}


def test_the_database_of_yum_names_the_section() -> None:
    files = {
        "/var/lib/yum/yumdb/l/0a1b-libnvidia-ml-580.95.05-1.el7-x86_64/from_repo": "cuda-rhel7-x86_64\n",
        "/var/lib/yum/yumdb/l/0a1c-less-458-9.el7-x86_64/from_repo": "base\n",
    }
    host = RecordedHost(files=files)
    assert rpm_history.read_sections(host, ["libnvidia-ml"]) == {"libnvidia-ml": "cuda-rhel7-x86_64"}
