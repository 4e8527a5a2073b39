"""DKMS and NVIDIA's modules: a build that is missing, and files that a loss of power left without their content."""

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.driver import dkms
from tests.unit.explained import raises_explained
from tests.unit.recorded import RecordedHost

K = "6.12.57+deb13-amd64"
DIRECTORY = f"/lib/modules/{K}/updates/dkms/"
MODULE = "nvidia-current/550.163.01"
LOG = "/var/lib/dkms/nvidia-current/550.163.01/build/make.log"
FAILED = f"Error! Bad return status for module build on kernel: {K} (x86_64)\nConsult {LOG} for more information.\n"


ADDED = f"{MODULE}: added\n"
INSTALLED = f"{MODULE}, {K}, x86_64: installed\n"
OTHER = f"{MODULE}, 6.1.0-1, x86_64: installed\n"


class Node(RecordedHost):
    """A host with a DKMS that lists modules as installed whatever their content, as DKMS does."""

    def __init__(self, files: dict[str, str], status: str, fails: str = "") -> None:
        trees = [line.partition(":")[0].partition(",")[0] for line in status.splitlines()]
        super().__init__(files=files, directories=["/var/lib/dkms/" + tree for tree in trees])
        self.status, self.fails = status, fails
        self.did: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[0] == "modinfo":
            return Result(0, K if self.files[argv[3]] == "ELF" else "", "")
        if argv[0] == "sync":
            return Result(0, "", "")
        if argv == ["dkms", "status"]:
            return Result(0, self.status, "")
        if argv[:2] == ["dkms", "add"] and self.isdir("/var/lib/dkms/" + argv[2]):
            return Result(3, "", "Error! DKMS tree already contains it.\n")
        self.did.append(" ".join(argv[1:]))
        if argv[1] == "install" and self.fails:
            return Result(10, "", self.fails)
        if argv[1] == "install" and (INSTALLED not in self.status or argv[2] == "--force"):
            self.files |= {DIRECTORY + "nvidia-current.ko": "ELF", DIRECTORY + "nvidia-current-uvm.ko": "ELF"}
            self.status = self.status.replace(ADDED, "") + INSTALLED
        if argv[1] == "remove":
            self.status = self.status.replace(INSTALLED, "")
            if MODULE not in self.status:
                self.directories.discard("/var/lib/dkms/" + MODULE)
        if argv[1] == "add":
            self.status += ADDED
            self.directories.add("/var/lib/dkms/" + argv[2])
        return Result(0, "", "")


@pytest.fixture(autouse=True)
def unlinked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    removed: list[str] = []
    monkeypatch.setattr("os.unlink", removed.append)
    return removed


def test_a_build_that_is_missing_is_made() -> None:
    host = Node({}, ADDED)
    damaged, present = dkms.build(host, K)
    assert damaged == [] and present == [DIRECTORY + "nvidia-current-uvm.ko", DIRECTORY + "nvidia-current.ko"]
    assert host.did == [f"install {MODULE} -k {K}"]


def test_modules_of_others_are_not_built() -> None:
    """`dkms autoinstall` of DKMS 3 exits with 11 where any module fails, also with NVIDIA's built and installed."""
    others = f"zfs/2.1.11: added\nmlnx-ofed-kernel/24.10, {K}, x86_64: built\nnvidia-fs/2.27: added\n"
    host = Node({DIRECTORY + "nvidia-fs.ko": ""}, others + ADDED)
    dkms.build(host, K)
    assert host.did == [f"install {MODULE} -k {K}"]


def test_a_module_that_is_installed_is_not_built_again() -> None:
    """A newer version is a leftover that its package did not remove: what is installed for the kernel stays."""
    host = Node({DIRECTORY + "nvidia-current.ko": "ELF"}, INSTALLED + "nvidia-current/560.1: added\n")
    assert dkms.build(host, K) == ([], [DIRECTORY + "nvidia-current.ko"])
    assert host.did == []


def test_the_newest_version_is_built_and_sources_that_dkms_lost_are_added() -> None:
    old = "nvidia-current/535.261.03: added\n"
    host = Node({"/usr/src/nvidia-current-550.163.01/dkms.conf": ""}, old)
    dkms.build(host, K)
    assert host.did == [f"add {MODULE}", f"install {MODULE} -k {K}"]


@pytest.mark.parametrize("others", ["", OTHER, "nvidia-current/560.1: added\n"])
@pytest.mark.parametrize("content", ["", "EL"])
def test_modules_that_lost_their_content_are_rebuilt(content: str, others: str, unlinked: list[str]) -> None:
    host = Node(
        {DIRECTORY + "nvidia-current.ko": "ELF", DIRECTORY + "nvidia-current-uvm.ko": content}, others + INSTALLED
    )
    damaged, _ = dkms.build(host, K)
    assert damaged == unlinked == [DIRECTORY + "nvidia-current-uvm.ko"]
    added = [] if others == OTHER else [f"add {MODULE}"]
    assert host.did == [f"remove {MODULE} -k {K}", *added, f"install {MODULE} -k {K}"]


def test_a_failed_build_is_reported_with_the_compilers_cause() -> None:
    log = "/usr/src/nvidia/os.c:1:2: error: implicit declaration of function 'vma_flags'\nmake[1]: *** [Makefile:1] Error 2\n"
    host = Node({LOG: log}, ADDED, fails=FAILED)
    with raises_explained(dkms.DkmsError, match=f"could not build the module for kernel .*does not compile.*{LOG}"):
        dkms.build(host, K)


def test_files_that_somebody_removed_are_installed_again() -> None:
    host = Node({}, INSTALLED.replace("installed", "installed (Differences between built and installed modules)"))
    dkms.build(host, K)
    assert host.did == [f"install --force {MODULE} -k {K}"]


def test_a_leftover_that_does_not_build_is_no_error_where_another_module_is_built() -> None:
    class Leftover(Node):
        def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
            if argv[:2] == ["dkms", "install"] and argv[2].startswith("nvidia-open/"):
                return Result(10, "", "Error! old\n")
            return super().run(argv, timeout, env)

    assert dkms.build(Leftover({}, ADDED + "nvidia-open/515.1: added\n"), K)[1]
    with pytest.raises(dkms.DkmsError, match=r"`dkms install nvidia-open/515.1 -k .*` ended with 10 \(Error! old\)"):
        dkms.build(Leftover({}, "nvidia-open/515.1: added\n"), K)


def test_a_dkms_without_modules_is_reported() -> None:
    with pytest.raises(dkms.DkmsError, match="nothing more to build, but /lib/modules/6.12.57.* has no NVIDIA module"):
        dkms.build(Node({}, "zfs/2.1.11: added\n"), K)
