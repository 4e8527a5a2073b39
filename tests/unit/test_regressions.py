"""Defects that comparable tools had or have, each with a test that fails where the same mistake is made again."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.modules import gpu_nvidia_detect

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes, versions
from plugins.module_utils.gpu_ready.base import module as module_runner
from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Result
from plugins.module_utils.gpu_ready.driver import nvidia_detect
from plugins.module_utils.gpu_ready.facts import driver as look_at_driver
from plugins.module_utils.gpu_ready.hardware import pci
from plugins.module_utils.gpu_ready.packaging import apt_errors, dnf_errors, install, openpgp, pinned_key, rpm
from plugins.module_utils.gpu_ready.packaging import manager as packages
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import os_family
from plugins.plugin_utils.gpu_ready.execute import steps
from plugins.plugin_utils.gpu_ready.plan.model import RepositoryParams
from plugins.plugin_utils.gpu_ready.verdict import judge
from tests.unit import test_verify as verdicts
from tests.unit.goldens import decide
from tests.unit.hosts import (
    CARDS,
    H100,
    NVSWITCH,
    P40,
    T4,
    UNKNOWN,
    V100,
    attributed,
    bare,
    carried_out,
    having,
    installed,
    with_packages,
)
from tests.unit.plans import all_todo
from tests.unit.recorded import RecordedHost

ROOT = Path(__file__).resolve().parents[2]


# --- 1: versions ---------------------------------------------------------------------------------------------------


def test_versions_are_numbers_not_letters() -> None:
    """Sorted as text, 580.9 is newer than 580.82, and Enterprise Linux 10 older than 8."""
    assert sorted(["595.1", "580.82", "580.9"], key=versions.key) == ["580.9", "580.82", "595.1"]
    assert versions.compare("580.9", "580.82") < 0 < versions.compare("595.1", "580.82")
    assert sorted(["10", "8", "7"], key=versions.key) == ["7", "8", "10"]
    assert rpm.compare("3:580.82.07-1.el9", "3:580.9-1.el9") > 0


@pytest.mark.parametrize(
    ("version", "key"), [("10.1", "el10"), ("10", "el10"), ("9.7", "el9"), ("8.10", "el8"), ("7.9", "centos7")]
)
def test_enterprise_linux_10_is_not_1(version: str, key: str) -> None:
    """Comparing the first character takes EL 10 for EL 1, or gives it the repository of nobody."""
    identity = "rhel" if key != "centos7" else "centos"
    release = os_family.read_os_release(f'ID="{identity}"\nVERSION_ID="{version}"\nPRETTY_NAME="Linux {version}"\n')
    assert os_family.resolve(release) == key


# --- 2: PCI functions ----------------------------------------------------------------------------------------------

S = "/sys/bus/pci/devices/"
GPU, GPU_3D, AUDIO, USB, UCSI, BRIDGE = "030000", "030200", "040300", "0c0330", "0c8000", "068000"
CASES: dict[str, tuple[list[tuple[str, str, str]], int, int, tuple[int, str] | None]] = {
    "K80, two GPUs on one board": ([("10de", "102d", GPU_3D)] * 2, 2, 0, (470, "proprietary")),
    "P100": ([("10de", "15f8", GPU_3D)], 1, 0, (580, "proprietary")),
    "V100": ([("10de", V100, GPU_3D)], 1, 0, (580, "proprietary")),
    "T4": ([("10de", T4, GPU_3D)], 1, 0, (580, "open")),
    "A100": ([("10de", "20b5", GPU_3D)], 1, 0, (580, "open")),
    "H100 with four NVSwitches": ([("10de", H100, GPU_3D)] * 8 + [("10de", NVSWITCH, BRIDGE)] * 4, 8, 4, (580, "open")),
    "B200": ([("10de", "2901", GPU_3D)], 1, 0, (580, "open")),
    "GB10": ([("10de", "2e12", GPU)], 1, 0, (580, "open")),
    "V100 beside H100": ([("10de", V100, GPU_3D), ("10de", H100, GPU_3D)], 2, 0, (580, "proprietary")),
    "a workstation card with audio and USB": (
        [("10de", "1e84", GPU), ("10de", "10f8", AUDIO), ("10de", "1ad8", USB), ("10de", "1ad9", UCSI)], 1, 0, (580, "open"),
    ),
    "graphics of AMD and Intel": ([("1002", "744c", GPU), ("8086", "56c0", GPU_3D)], 0, 0, None),
    "no GPU": ([("8086", "1572", "020000")], 0, 0, None),
    "a GPU that the catalog does not know": ([("10de", UNKNOWN, GPU_3D)], 1, 0, (catalog.newest_branch(), "open")),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_the_bus_is_counted_by_class_and_id(name: str) -> None:
    """A count of lines with NVIDIA in them takes audio functions for GPUs, NVSwitches for cards, AMD's for ours."""
    functions, gpus, switches, driver = CASES[name]
    files: dict[str, str] = {}
    for number, (vendor, device, kind) in enumerate(functions):
        directory = f"{S}0000:{number + 1:02x}:00.0/"
        files |= {
            directory + "vendor": f"0x{vendor}",
            directory + "device": f"0x{device}",
            directory + "class": f"0x{kind}",
        }
    found = pci.read_sysfs(RecordedHost(files=files))
    assert (len(pci.gpus(found)), len(pci.nvswitches(found))) == (gpus, switches)
    decided = decide(bare(*(one.device for one in pci.gpus(found)), distro="ubuntu2204", nvswitches=switches))
    chosen = decided.choices.driver
    assert (chosen and (chosen.branch, chosen.flavour)) == driver
    assert decided.gpu_host is bool(gpus)


def test_a_virtual_gpu_of_a_host_is_none_of_its_cards() -> None:
    """SR-IOV functions carry the id of their GPU: counted, one card becomes seventeen."""
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    for number in range(17):
        directory = f"{S}0000:3b:{number // 8:02x}.{number % 8}/"
        files |= {directory + "vendor": "0x10de", directory + "device": "0x20b5", directory + "class": "0x030200"}
        if number:
            links[directory + "physfn"] = "../0000:3b:00.0"
    assert len(pci.gpus(pci.read_sysfs(RecordedHost(files=files, links=links)))) == 1


# --- 3: nvidia-detect ----------------------------------------------------------------------------------------------

FOUND = "[10de:{}] NVIDIA Corporation {}\nThis device requires the {} NVIDIA driver {}\n"
TESLA_T4 = FOUND.format("1eb8", "TU104GL [Tesla T4]", "current 595.91.07", "kmod-nvidia-open")
TESLA_P40 = FOUND.format("1b38", "GP102GL [Tesla P40]", "legacy 580.xx", "kmod-nvidia-580xx")


def detector(terse: str, verbose: str, rc: int, err: str = "") -> RecordedHost:
    programs: dict[tuple[str, ...], Result] = {("nvidia-detect",): Result(rc, terse, err)}
    return RecordedHost(programs={**programs, ("nvidia-detect", "-v"): Result(rc, verbose, err)})


@pytest.mark.parametrize("rc", [0, 1, 2, 10, 11])
def test_the_detectors_exit_status_means_nothing(rc: int) -> None:
    """It is an enumeration of branches that was renumbered in 2025; 1 and 11 are successes."""
    verdict = nvidia_detect.run_nvidia_detect(
        detector("kmod-nvidia-580xx\n", TESLA_P40, rc, "An Intel display controller was also detected\n")
    )
    assert (verdict.packages, verdict.problem) == (["kmod-nvidia-580xx"], "")
    assert nvidia_detect.find_disagreement(verdict, ["kmod-nvidia-580xx"], []) == ""


def test_the_detectors_status_is_the_last_cards_so_all_cards_are_read() -> None:
    """With a P40 before a T4 its status says "current", and a tool that reads that kills the P40."""
    verdict = nvidia_detect.run_nvidia_detect(
        detector("kmod-nvidia-580xx\nkmod-nvidia-open\n", TESLA_P40 + TESLA_T4, 1)
    )
    assert verdict.packages == ["kmod-nvidia-580xx", "kmod-nvidia-open"]
    assert nvidia_detect.find_disagreement(verdict, ["kmod-nvidia-open"], [])


def test_the_detectors_blank_line_is_a_card_without_a_package() -> None:
    """On EL 10 it prints an empty line for a card of the 470 branch and ends as for a served one."""
    unserved = FOUND.format("102d", "GK210GL [Tesla K80]", "legacy 470.xx", "")
    verdict = nvidia_detect.run_nvidia_detect(detector("\n", unserved, 10))
    assert verdict.packages == []
    assert "no package" in nvidia_detect.find_disagreement(verdict, ["kmod-nvidia-470xx"], [])


def test_what_the_detector_says_on_standard_error_is_no_package() -> None:
    """Unsupported cards are reported on standard error only, with exit status 0."""
    printed = "This device does not appear to be supported at present\nPlease report at http://elrepo.org/bugs\n"
    assert nvidia_detect.run_nvidia_detect(detector("", "", 0, printed)).packages == []
    silent = detector("", "", TIMED_OUT)
    assert "did not end within" in nvidia_detect.find_disagreement(
        nvidia_detect.run_nvidia_detect(silent), ["kmod-nvidia"], []
    )


def test_the_catalog_and_the_detector_of_today_agree() -> None:
    """For each kind of card the packages that the plan expects include what ELRepo's program prints."""
    printed = {T4: "kmod-nvidia-open", P40: "kmod-nvidia-580xx", "102d": "kmod-nvidia-470xx"}
    for device, package in printed.items():
        todo = all_todo(decide(bare(device, distro="el9"), nvidia_driver_source="elrepo"))
        assert package in todo["nvidia_driver.detect"]["expect"]
        assert todo["nvidia_driver.install"]["packages"][0]["name"] == package


def test_another_machine_is_refused_before_packages_of_ours_come() -> None:
    """Every address of the catalog has x86_64 in it: on arm64 the repository is added, and nothing in it fits."""
    for spec in ({}, {"nvidia_driver_source": "none"}):
        decided = decide(bare("2e12", distro="ubuntu2404", arch="aarch64"), **spec)
        assert [refusal.code for refusal in decided.refusals] == ["machine_unsupported"]
        assert "aarch64" in decided.refusals[0].message


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (detector("kmod-nvidia-open\n", TESLA_T4, 1), ""),
        (detector("kmod-nvidia-open\n", TESLA_T4, 0), ""),
        (detector("kmod-nvidia-580xx\n", TESLA_P40, 11), "nvidia-detect and the catalog disagree"),
        (RecordedHost(), "not installed"),
    ],
)
def test_the_module_fails_on_disagreement_and_on_nothing_else(
    host: RecordedHost, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper that passes the exit status on fails on every success; one that ignores the text never fails."""
    loaded = gpu_nvidia_detect
    answers: list[tuple[str, dict[str, Any]]] = []

    class Answered(Exception):  # noqa: N818 - not an error
        pass

    class Fake:
        params: dict[str, Any] = {"expect": ["kmod-nvidia-open"], "gpus": ["10de:1eb8 Tesla T4"], "timeout": 5}
        check_mode = False

        def __init__(self, **_: Any) -> None:
            pass

        def fail_json(self, **values: Any) -> None:
            answers.append(("failed", values))
            raise Answered

        def exit_json(self, **values: Any) -> None:
            answers.append(("fine", values))
            raise Answered

    monkeypatch.setattr("ansible.module_utils.basic.AnsibleModule", Fake)
    monkeypatch.setattr(module_runner, "Host", lambda: host)
    with pytest.raises(Answered):
        loaded.main()
    ((how, values),) = answers
    assert (how, words in values.get("msg", "")) == ("failed" if words else "fine", True)
    assert how == "failed" or values["changed"] is False


# --- 8: headers of the running kernel are missing ---------------------------------------------------------------------

KERNELS = ["linux-image-6.1.0-51-amd64", "linux-image-generic", "kernel", "kernel-core", "kernel-5.14.0-687.el9.x86_64"]
KERNELS += ["kernel-modules-core", "kernel-uek", "kernel-uek-core", "kernel6.12"]
HEADERS = ["linux-headers-6.1.0-50-amd64", "linux-kbuild-6.1", "kernel-devel", "kernel-devel-5.14.0-687.el9.x86_64"]
HEADERS += [
    "kernel-headers",
    "kernel-uek-devel-5.15.0-1",
    "kernel6.12-devel",
    "kernel-devel-matched",
    "kernel-srpm-macros",
    "kernel-modules-extra",
    "kernel-modules-extra-6.12.0-124.8.1.el10_1.x86_64",
]


@pytest.mark.parametrize("name", KERNELS)
def test_no_transaction_installs_a_kernel(name: str) -> None:
    """Tools that install the headers' metapackage install a kernel, build for it, and wait for a reboot that never ends."""
    with pytest.raises(packages.PackageError, match="never installed unasked"):
        packages.refuse_unrequested(packages.Simulation({name: (None, "1")}, []), [])


def test_headers_are_no_kernel() -> None:
    """A rule that is too wide would refuse every module build."""
    packages.refuse_unrequested(packages.Simulation({name: (None, "1") for name in HEADERS}, []), [])


@pytest.mark.parametrize("distro", catalog.distros())
def test_headers_are_asked_for_the_running_kernel_exactly(distro: str) -> None:
    """Only a name with the release in it fails where the mirror dropped it; a metapackage installs those of another."""
    host = bare(T4, distro=distro)
    kernel = host.base.kernel.running
    spec = {"nvidia_driver_kernel_modules": "dkms"}
    asked = all_todo(decide(host, **spec))["kernel_headers.install"]["packages"]
    assert [name for name in asked if kernel in name]
    assert not [name for name in asked if name.startswith(("linux-headers", "kernel")) and kernel not in name]
    assert "the archive no longer carries the headers" in packages.describe_missing_headers(asked[0])


# --- 9: where the module is -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".xz", ".zst", ".gz"])
@pytest.mark.parametrize("name", ["nvidia.ko", "nvidia-current.ko", "nvidia-current-open.ko"])
@pytest.mark.parametrize(
    "directory",
    [
        "updates/dkms",
        "extra",
        "extra/nvidia",
        "weak-updates/nvidia",
        "kernel/drivers/video",
        "kernel/nvidia-580srv-open",
    ],
)
def test_the_module_is_found_in_every_directory_and_compression(directory: str, name: str, suffix: str) -> None:
    """A tool that looks for nvidia.ko in one directory reinstalls what exists, compressed, in another."""
    path = f"/lib/modules/6.1.0/{directory}/{name}{suffix}"
    assert look_at_driver.find_modules(RecordedHost(files={path: "x"}), "6.1.0") == [path]


# --- 10: names that changed ----------------------------------------------------------------------------------------

RENAMES = [
    ("el8", 575, "nvidia-fabric-manager"),
    ("el8", 580, "nvidia-fabricmanager"),
    ("el9", 570, "nvidia-fabric-manager"),
    ("el9", 595, "nvidia-fabricmanager"),
    ("el10", 580, "nvidia-fabricmanager"),
    ("debian12", 580, "nvidia-fabricmanager"),
    ("ubuntu2404", 580, "nvidia-fabricmanager"),
    ("ubuntu2004", 570, "nvidia-fabricmanager-570"),
]


@pytest.mark.parametrize(("distro", "branch", "name"), RENAMES)
def test_the_fabric_manager_has_its_name_of_the_branch(distro: str, branch: int, name: str) -> None:
    """From 580 on it is written without a dash, and the old name finds nothing."""
    assert driver_sources.fabricmanager_package(catalog.distro(distro), "cuda_repo", branch) == name


def test_over_the_rename_the_new_fabric_manager_comes_with_the_new_driver() -> None:
    """An upgrade from 570 to 580 that keeps the old name leaves an HGX host without CUDA."""
    host = bare(H100, distro="el9", nvswitches=4)
    host = carried_out(host, decide(host, nvidia_driver_branch="570"))
    assert "nvidia-fabric-manager" in host.packages.installed
    todo = all_todo(decide(host, nvidia_driver_branch="580"))
    assert todo["nvidia_driver.fabricmanager"]["packages"][0]["name"] == "nvidia-fabricmanager"
    assert todo["nvidia_driver.fabricmanager"]["remove"] == ["nvidia-fabric-manager"]


@pytest.mark.parametrize("service", ["fabricmanager", "imex"])
def test_a_service_with_the_branch_in_its_name_replaces_that_of_the_other_branch(service: str) -> None:
    """The packages of two branches have the same files, so one of them has to be removed for the other."""
    host = bare(H100, distro="ubuntu2404", nvswitches=4)
    host = carried_out(host, decide(host))
    assert "nvidia-fabricmanager-580" in host.packages.installed
    host = with_packages(host, **{"nvidia-imex-580": "580.178.04-1", "nvidia-fs-dkms": "2.25-1"})
    host = having(host, driver={"imex": {"member": True}})
    request = {"nvidia_driver_branch": "595"}
    if service == "imex":
        request |= {"nvidia_driver_source": "cuda_repo"}
    decided = decide(host, **request, nvidia_driver_replace_foreign=True)
    params = all_todo(decided)[f"nvidia_driver.{service}"]
    assert params["remove"] == [f"nvidia-{service}-580"]
    staged = steps.package_transactions("nvidia_driver", all_todo(decided))
    removed = [name for one in staged for name in (*one.get("remove", []), *one.get("allow_remove", []))]
    assert f"nvidia-{service}-580" in removed and "nvidia-fs-dkms" not in removed


def test_streams_only_where_there_is_modularity() -> None:
    """`dnf module` on EL 10 and Fedora fails; without it on EL 8 and 9 the newest branch comes."""
    for distro in catalog.distros():
        data = catalog.distro(distro)
        streams = bool(data["driver_sources"].get("cuda_repo", {}).get("streams"))
        assert streams == (distro in ("el8", "el9", "amzn2023")), distro


def test_nothing_is_installed_by_a_metapackage_that_follows_the_newest_branch() -> None:
    """nvidia-open, cuda-drivers and cuda moved to 620 under everybody who asked for them: compute needs none of them."""
    for distro in catalog.distros():
        data = catalog.distro(distro)
        for source in driver_sources.source_names(data):
            for kind in driver_sources.module_kinds(data, source):
                for branch, flavour in driver_sources.branch_flavours(data, source, kind, "compute"):
                    names = driver_sources.packages(data, source, branch, "compute", flavour, kind, "any")
                    assert not {"nvidia-open", "cuda-drivers", "cuda", "nvidia-driver"} & set(names), (distro, source)


# --- 11: holds -----------------------------------------------------------------------------------------------------


class Packages(packages.Manager):
    """A package manager without a host: installed and held packages; ``fails`` makes the next transaction fail."""

    program = "manager"

    def __init__(self, present: dict[str, str], held: list[str], fails: bool) -> None:
        super().__init__(RecordedHost())
        self.packages, self.locks, self.fails = dict(present), list(held), fails

    def held(self) -> list[str]:
        return self.locks

    def installed(self) -> dict[str, packages.Installed]:
        return {name: packages.Installed(v, "installed", name in self.locks) for name, v in self.packages.items()}

    def find_interrupted(self) -> list[str]:
        return []

    def repair(self, ours: list[str] | None = None) -> list[str]:
        return []

    def offers(self, names: list[str]) -> dict[str, list[str]]:
        return {name: ["2"] for name in names}

    def plan_change(self, what: str, change: packages.PackageChange) -> tuple[list[list[str]], packages.Simulation]:
        locked = [spec.name for spec in change.install if spec.name in self.locks]
        assert not locked, f"{locked} are held while they are to change"
        return [["install"]], packages.Simulation(
            {spec.name: (self.packages.get(spec.name), "2") for spec in change.install}, []
        )

    def apply_change(self, what: str, calls: list[list[str]], simulation: packages.Simulation) -> None:
        if self.fails:
            raise packages.PackageError("the mirror is down")
        self.packages.update({name: after for name, (_, after) in simulation.install.items()})

    @contextlib.contextmanager
    def simulated(self) -> Iterator[None]:
        before = self.locks
        yield
        self.locks = before

    def hold(self, names: list[str]) -> None:
        self.locks = sorted({*self.locks, *names})

    def unhold(self, names: list[str]) -> None:
        self.locks = [name for name in self.locks if name not in names]


@pytest.fixture
def manifest_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the package's records out of /var/lib."""
    monkeypatch.setattr(manifest, "read", dict)
    monkeypatch.setattr(manifest_notes, "note", lambda *_: None)
    monkeypatch.setattr(manifest_notes, "drop", lambda *_: None)
    monkeypatch.setattr(manifest_notes, "note_packages", lambda *_: None)
    monkeypatch.setattr(manifest_notes, "forget_packages", lambda *_: None)


def converge(manager: Packages, request: dict[str, Any], check: bool = False) -> None:
    install.converge(manager, install.parse_transaction(request), check)


def request(**given: Any) -> dict[str, Any]:
    empty: dict[str, Any] = {"names": [], "optional": [], "streams": None, "remove": [], "hold": [], "unhold": []}
    return empty | {"allow_remove": [], "update_cache": False, "purge": False, "purpose": "a test"} | given


@pytest.mark.parametrize("fails", [False, True])
def test_a_hold_is_released_for_an_upgrade_and_is_there_again_when_the_upgrade_failed(
    manifest_off: None, fails: bool
) -> None:
    """A driver that lost its hold in a failed run is upgraded at night, and the loaded module no longer fits."""
    manager = Packages({"driver": "1"}, ["driver"], fails)
    change = request(names=[{"name": "driver", "version": "2"}], unhold=["driver"])
    if fails:
        with pytest.raises(packages.PackageError):
            converge(manager, change)
        assert (manager.packages, manager.locks) == ({"driver": "1"}, ["driver"])
        return
    converge(manager, change)
    converge(manager, request(hold=["driver"]))
    assert (manager.packages, manager.locks) == ({"driver": "2"}, ["driver"])


def test_a_released_hold_is_dropped_from_the_manifest(manifest_off: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator may hold the package from then on, and neither a later run nor uninstall.yml may release that."""
    dropped: list[str] = []
    monkeypatch.setattr(manifest_notes, "drop", lambda section, names: dropped.extend(names))
    manager = Packages({"docker-ce": "1", "docker-ce-cli": "1"}, ["docker-ce", "docker-ce-cli"], False)
    converge(manager, request(unhold=["docker-ce", "docker-ce-cli"], hold=["docker-ce-cli"]), True)
    assert dropped == []
    converge(manager, request(unhold=["docker-ce", "docker-ce-cli"], hold=["docker-ce-cli"]))
    assert (dropped, manager.locks) == (["docker-ce"], ["docker-ce-cli"])


@pytest.mark.parametrize("distro", ["el9", "el10", "debian12", "ubuntu2404"])
def test_a_run_that_was_killed_before_the_hold_holds_the_next_time(distro: str) -> None:
    """The hold is part of the desired state, not an afterthought of an installation."""
    host = bare(T4, distro=distro)
    done = carried_out(host, decide(host))
    assert len(done.packages.held) >= 2
    done = having(done, packages={"held": []})
    assert [step.id for step in decide(done).steps][0] == "nvidia_driver.hold"


def test_every_package_that_is_tied_to_the_drivers_version_is_held() -> None:
    """An unattended upgrade of the fabric manager alone makes it refuse to start."""
    host = bare(H100, distro="el9", nvswitches=4)
    done = carried_out(host, decide(host))
    assert "nvidia-fabricmanager" in done.packages.held


# --- 12: what comes over the network -------------------------------------------------------------------------------

BODY = bytes([4, 0, 0, 0, 1, 22, 9]) + bytes.fromhex("2b06010401da470f01") + bytes([1, 7, 0x40]) + bytes(32)
KEY = bytes([0x98, len(BODY)]) + BODY


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (KEY[:-5], "cut short"),
        (b"<html>captive portal</html>", "no OpenPGP key"),
        (b"", "no OpenPGP key|no public key"),
    ],
)
def test_a_key_that_is_cut_short_or_something_else_is_not_trusted(data: bytes, words: str) -> None:
    """Keys that are piped into the keyring as they come trust a proxy's error page, or somebody else."""
    with pytest.raises(openpgp.OpenPgpError, match=words):
        pinned_key.pick_key(data, "AB" * 20)


def test_another_key_is_not_trusted_although_it_is_a_good_one() -> None:
    """NVIDIA changed its key in 2022; whoever took what the address served would have taken any key."""
    with pytest.raises(openpgp.OpenPgpError, match="expected is"):
        pinned_key.pick_key(KEY, "AB" * 20)


EXPIRED = """\
Err:1 http://mirror.site/debian12  InRelease
  The following signatures were invalid: EXPKEYSIG A4B469963BF863CC cudatools <cudatools@nvidia.com>
E: Failed to fetch http://mirror.site/debian12/InRelease  The following signatures were invalid: EXPKEYSIG A4B469963BF863CC
"""
TAMPERED = "E: Failed to fetch http://mirror.site/libcuda1.deb  Hash Sum mismatch\n"
CUT = "E: Failed to fetch http://mirror.site/libcuda1.deb  File has unexpected size (100 != 200). Mirror sync in progress?\n"
DNF_TAMPERED = """\
[MIRROR] kmod-nvidia-open-dkms.rpm: Downloading successful, but checksum doesn't match. Calculated: 12(sha256)
Error: Error downloading packages:
  Cannot download kmod-nvidia-open-dkms.rpm: All mirrors were tried
"""
DNF_UNSIGNED = "Package kmod-nvidia-open-dkms-580.x86_64.rpm is not signed\nError: GPG check FAILED\n"


@pytest.mark.parametrize(
    ("explain", "text"),
    [
        (apt_errors.explain_failure, EXPIRED),
        (apt_errors.explain_failure, TAMPERED),
        (apt_errors.explain_failure, CUT),
        (dnf_errors.explain_failure, DNF_TAMPERED),
        (dnf_errors.explain_failure, DNF_UNSIGNED),
    ],
)
def test_what_is_not_what_its_owner_signed_is_not_called_a_network_problem(explain: Any, text: str) -> None:
    """ "Check your network" for a bad signature or a wrong checksum teaches people to switch the checks off."""
    message = explain("installing the driver", Result(100, text, ""))
    assert "does not answer" not in message and "check network" not in message
    assert any(one in message for one in (packages.WRONG_SIGNATURE, "its own lists", "signature has expired"))


def test_no_plan_uses_a_repository_without_a_pinned_key() -> None:
    """`gpgcheck=0` and trusted=yes are how such repositories are usually made to work."""
    for distro in catalog.distros():
        host = bare(T4, distro=distro)
        decided = decide(host, gpu_ready_mirror_keys={})
        for step in decided.steps:
            for one in step.params.repositories if isinstance(step.params, RepositoryParams) else []:
                assert one.fingerprint or one.key_sha256, (distro, one.id)
                assert one.kind != "rpm" or one.gpgcheck or one.repo_gpgcheck, (distro, one.id)


# --- 13, 14: the fabric manager ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("state", "version"), [("inactive", verdicts.DRIVER), (None, None), ("active", "580.95.05")])
def test_an_nvswitch_host_without_its_fabric_manager_is_red(state: str | None, version: str | None) -> None:
    """nvidia-smi shows all GPUs there, and the first CUDA program fails with "system not yet initialized"."""
    judged = judge.judge_evidence(verdicts.nvswitch(state, version)(verdicts.sound()))
    assert not judged.ok
    assert any("fabric" in check.name and not check.ok for check in judged.checks)


def test_a_host_without_nvswitches_needs_no_fabric_manager() -> None:
    """Where it is required everywhere, its service fails on every PCIe host and the node never gets ready."""
    assert judge.judge_evidence(verdicts.sound()).ok
    for distro in catalog.distros():
        for device in CARDS.values():
            for step in decide(bare(device, device, distro=distro)).steps:
                assert step.action != "fabricmanager"


def test_nvswitches_without_gpus_of_ours_need_none_either() -> None:
    """All cards given to virtual machines: their guests run the fabric manager."""
    host = bare(H100, distro="el9", nvswitches=4)
    host = having(host, base={"gpus": [gpu._replace(driver="vfio-pci") for gpu in host.base.gpus]})
    assert decide(host).steps == []


def test_a_driver_change_takes_the_fabric_manager_along() -> None:
    """Both have exactly one version; the driver alone upgraded leaves the fabric manager refusing to start."""
    host = bare(H100, distro="el10", nvswitches=4)
    host = carried_out(host, decide(host, nvidia_driver_version="580.95.05"))
    todo = all_todo(decide(host, nvidia_driver_version="580.178.04"))
    assert todo["nvidia_driver.fabricmanager"]["packages"][0] == {
        "name": "nvidia-fabricmanager",
        "version": "580.178.04-*",
    }


def test_an_installed_driver_of_another_branch_is_seen_as_from_its_source() -> None:
    """A branch that left its repository must not turn its own packages into a foreign driver."""
    host = installed("el9", T4, "cuda_repo", "570.211.01", "open")
    names = {name: version.replace("570", "565") for name, version in host.driver.packages.items()}
    assert attributed(names, "el9", "cuda_repo") == "cuda_repo"
