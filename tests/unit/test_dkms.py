"""DKMS and NVIDIA's modules: a build that is missing, and files that a loss of power left without their content."""

import pytest
from gpu_ready.base.host import Result
from gpu_ready.driver import dkms

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
        super().__init__(files=files)
        self.status, self.fails = status, fails
        self.did: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[0] == "modinfo":
            return Result(0, K if self.files[argv[3]] == "ELF" else "", "")
        if argv[0] == "sync":
            return Result(0, "", "")
        if argv == ["dkms", "status"]:
            return Result(0, self.status, "")
        self.did.append(" ".join(argv[1:]))
        if argv[1] == "autoinstall" and self.fails:
            return Result(10, "", self.fails)
        if argv[1] == "autoinstall" and K not in self.status and self.status:
            self.files |= {DIRECTORY + "nvidia-current.ko": "ELF", DIRECTORY + "nvidia-current-uvm.ko": "ELF"}
            self.status = self.status.replace(ADDED, "") + INSTALLED
        if argv[1] == "remove":
            self.status = self.status.replace(INSTALLED, "")
        if argv[1] == "add":
            self.status += ADDED
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
    assert host.did == [f"autoinstall -k {K}"]


@pytest.mark.parametrize("others", ["", OTHER])
@pytest.mark.parametrize("content", ["", "EL"])
def test_modules_that_lost_their_content_are_rebuilt(content: str, others: str, unlinked: list[str]) -> None:
    host = Node(
        {DIRECTORY + "nvidia-current.ko": "ELF", DIRECTORY + "nvidia-current-uvm.ko": content}, others + INSTALLED
    )
    damaged, _ = dkms.build(host, K)
    assert damaged == unlinked == [DIRECTORY + "nvidia-current-uvm.ko"]
    added = [] if others else [f"add {MODULE}"]
    assert host.did == [f"remove {MODULE} -k {K}", *added, f"autoinstall -k {K}"]


def test_a_failed_build_is_reported_with_the_compilers_cause() -> None:
    log = "/usr/src/nvidia/os.c:1:2: error: implicit declaration of function 'vma_flags'\nmake[1]: *** [Makefile:1] Error 2\n"
    host = Node({LOG: log}, ADDED, fails=FAILED)
    with pytest.raises(dkms.DkmsError, match=f"could not build the module for kernel .*does not compile.*{LOG}"):
        dkms.build(host, K)


def test_a_dkms_that_does_nothing_is_reported() -> None:
    host = Node({}, f"{MODULE}, {K}, x86_64: installed (Differences between built and installed modules)\n")
    with pytest.raises(dkms.DkmsError, match="succeeded, but /lib/modules/6.12.57.* has no NVIDIA module"):
        dkms.build(host, K)
    with pytest.raises(dkms.DkmsError, match=r"`dkms autoinstall -k .*` ended with 10 \(Error! no\)"):
        dkms.build(Node({}, "", fails="Error! no\n"), K)
