"""Calls to dnf 4, dnf5 and yum 3, parsers of their output, and messages for their failures."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.packaging import dnf, dnf_errors, dnf_output, rpm
from plugins.module_utils.gpu_ready.packaging import manager as packages
from tests.unit.recorded import Content, RecordedHost

DNF4 = """Last metadata expiration check: 0:03:32 ago on Sat Nov 21 05:39:31 2026.
Dependencies resolved.
================================================================================
 Package           Architecture   Version                Repository        Size
================================================================================
Installing:
 driver            x86_64         3:580.95.05-1.el9      vendor           5.5 k
     replacing  old-driver.x86_64 470.1-1
 a-package-whose-name-is-longer-than-its-column
                   noarch         1-1                    vendor           6.1 M
 kernel-devel      x86_64         5.14.0-600.el9         vendor            22 M
Installing dependencies:
 libs              x86_64         3:580.95.05-1.el9      vendor             0  
Upgrading:
 tool              x86_64         2-1                    vendor           1.2 M
Downgrading:
 docker            x86_64         28.3.2-1.el9           vendor           5.5 k
Removing dependent packages:
 fighter           noarch         1-1                    @vendor          6.0 k
Enabling module streams:
 nvidia-driver                    580-open                                     
Skipping packages with conflicts:
(add '--best --allowerasing' to command line to force their upgrade):
 other             x86_64         9-1                    vendor           1.0 k

Transaction Summary
================================================================================
Install    4 Packages
Upgrade    1 Package

Total download size: 30 M
Installed size: 64 M
Operation aborted.
"""  # noqa: W291 - as dnf pads it
DNF5 = """Package                 Arch   Version             Repository      Size
Installing:
 driver                  x86_64 3:580.95.05-1.el9   vendor       5.0 MiB
   replacing old-driver  x86_64 0:470.1-1           vendor       1.0   B
Upgrading:
 tool                    x86_64 0:2-1               vendor       0.0   B
   replacing tool        x86_64 0:1-1               <unknown>  104.0   B
Removing dependent packages:
 fighter                 noarch 0:1-1                           24.0   B

Transaction Summary:
 Installing:         1 package
 Replacing:          2 packages

Total size of inbound packages is 30 KiB. Need to download 20 KiB.
After this operation, 5 MiB extra will be used (install 6 MiB, remove 1 MiB).
Operation aborted by the user.
"""
YUM = """Dependencies Resolved

================================================================================
 Package          Arch          Version                  Repository        Size
================================================================================
Installing:
 driver           x86_64        3:580.95.05-1.el7        vendor           5.5 k
Updating:
 tool             x86_64        2-1                      vendor           1.2 M
Installing for dependencies:
 libs             x86_64        3:580.95.05-1.el7        vendor           2.0 k
Removing for dependencies:
 fighter          noarch        1-1                      @vendor          6.0 k

Transaction Summary
================================================================================
Install  1 Package (+1 Dependent package)

Total download size: 1.2 M
Exiting on user command
Your transaction was saved, rerun it with:
 yum load-transaction /tmp/yum_save_tx.2026-11-21.06-00.abc.yumtx
"""
BEFORE = {
    name: packages.Installed(version, "installed", False)
    for name, version in (("tool", "1-1"), ("docker", "28.3.3-1.el9"), ("fighter", "1-1"), ("kernel-devel", "5.14.0-570.el9"))
}  # fmt: skip


def test_the_table_of_dnf_4() -> None:
    found = dnf_output.parse_simulation(DNF4, BEFORE)
    assert found.install == {
        "driver": (None, "3:580.95.05-1.el9"),
        "a-package-whose-name-is-longer-than-its-column": (None, "1-1"),
        "kernel-devel-5.14.0-600.el9.x86_64": (None, "5.14.0-600.el9"),
        "libs": (None, "3:580.95.05-1.el9"),
        "tool": ("1-1", "2-1"),
        "docker": ("28.3.3-1.el9", "28.3.2-1.el9"),
    }
    assert found.remove == ["fighter", "old-driver"]
    assert (found.fetch, found.unpacked) == (30 * 2**20, 64 * 2**20)


def test_the_table_of_dnf5() -> None:
    found = dnf_output.parse_simulation(DNF5, BEFORE)
    assert found.install == {"driver": (None, "3:580.95.05-1.el9"), "tool": ("1-1", "2-1")}
    assert found.remove == ["fighter", "old-driver"]
    assert (found.fetch, found.unpacked) == (20 * 1024, 5 * 2**20)


def test_the_table_of_yum() -> None:
    found = dnf_output.parse_simulation(YUM, BEFORE)
    assert found.new == ["driver", "libs"] and found.install["tool"] == ("1-1", "2-1")
    assert found.remove == ["fighter"]


def test_versions_on_offer_are_sorted_as_rpm_does() -> None:
    text = """Installed Packages
driver.x86_64                    3:580.95.05-1.el9                   @vendor
Available Packages
driver.x86_64                    3:580.105.08-1.el9                  vendor
driver.x86_64                    3:580.95.05-1.el9                   vendor
a-package-whose-name-is-longer-than-its-column.noarch
                                 0:1-1                               vendor
"""
    found = dnf_output.parse_list(text)
    assert found == {
        "driver": ["3:580.105.08-1.el9", "3:580.95.05-1.el9"],
        "a-package-whose-name-is-longer-than-its-column": ["1-1"],
    }
    assert dnf_output.parse_offers(found, [])["driver-580.95.05-1.el9"] == ["3:580.95.05-1.el9"]


def test_an_offer_is_found_by_the_name_with_the_release_of_a_kernel() -> None:
    """`uname -r` ends with the architecture: without it in the offers, welcome headers of other kernels never came."""
    listed = {"kernel-devel": ["5.14.0-2.el9", "5.14.0-1.el9"], "docker-ce": ["3:28.5.1-1.el9"]}
    asked = ["kernel-devel-5.14.0-1.el9.x86_64", "kernel-devel-5.14.0-9.el9.x86_64", "docker-ce"]
    found = dnf_output.parse_offers(listed, asked)
    assert found["kernel-devel-5.14.0-1.el9.x86_64"] == ["5.14.0-1.el9"]
    assert "kernel-devel-5.14.0-9.el9.x86_64" not in found


EXPLANATIONS = [
    ("No match for argument: foo\nError: Unable to find a match: foo", ["the package foo is in no package source"]),
    ("Failed to resolve the transaction:\nNo match for argument: foo\nYou can try to add to command line:\n  --skip-unavailable", ["the package foo "]),
    ("No package foo available.\nError: Nothing to do", ["the package foo "]),
    ("Error: Unable to find a match: kernel-devel-5.14.0-1.el9.x86_64", ["no longer carries the headers"]),
    ("All matches were filtered out by modular filtering for argument: driver\nError: Unable to find a match: driver", ["modular filtering", "stream"]),
    ("Failed to resolve the transaction:\nArgument 'docker-1' matches only packages excluded by versionlock.", ["docker-1", "version lock"]),
    ("Failed to resolve the transaction:\nArgument 'docker-1' matches only excluded packages.", ["docker-1", "hidden by filtering"]),
    ("Error: Problems in request:\nmissing groups or modules: foo:1", ["the module stream foo:1 "]),
    ("Error: \n Problem: conflicting requests\n  - nothing provides x >= 2 needed by y-1-1.noarch\n(try to add '--skip-broken')", ["nothing provides x >= 2 needed by y", "cannot be fulfilled"]),
    ("Error: Package: y-1-1.x86_64 (vendor)\n           Requires: x >= 2\n You could try using --skip-broken", ["Requires: x >= 2"]),
    ("Errors during downloading metadata for repository 'r':\n  - Status code: 404 for http://m/r/repodata/repomd.xml (IP: 1.2.3.4)\nError: Failed to download metadata for repo 'r': Cannot download repomd.xml: All mirrors were tried", ["r could not be fetched", "404", "does not have it"]),
    ("  - Curl error (7): Couldn't connect to server for http://m/r/repodata/repomd.xml [Failed to connect]\nError: Failed to download metadata for repo 'r': Cannot download repomd.xml", ["Curl error (7)", "does not answer"]),
    (">>> Status code: 404 for http://m/r/repodata/repomd.xml (IP: 1.2.3.4) - http://m/r/repodata/repomd.xml\n>>> Usable URL not found\nFailed to download metadata (baseurl: \"http://m/r\") for repository \"r\": Usable URL not found", ["r could not be fetched", "404"]),
    ("Errors during downloading metadata for repository 'skip':\n  - Curl error (37): no file\nError: Failed to download metadata for repo 'skip': x\nIgnoring repositories: skip\nErrors during downloading metadata for repository 'r':\n  - Status code: 404 for http://m/r (IP: 1)\nError: Failed to download metadata for repo 'r': x", ["r could not be fetched", "404 for http://m/r"]),
    ("Error: Failed to download metadata for repo 'skip': x\nIgnoring repositories: skip\nError: Unable to find a match: foo", ["the package foo "]),
    ("Error: Failed to download metadata for repo 'r': repomd.xml GPG signature verification error: Bad GPG signature", ["signature of the repository r is not valid", "Bad GPG signature"]),
    ("Error: Failed to download metadata for repo 'r': GPG verification is enabled, but GPG signature is not available. This may be an error: Status code: 404 for http://m/r/repodata/repomd.xml.asc (IP: 1)", ["r has no signature", "repomd.xml.asc"]),
    ("failure: repodata/repomd.xml from r: [Errno 256] No more mirrors to try.\nhttp://m/r/repodata/repomd.xml: [Errno 14] HTTP Error 404 - Not Found", ["r could not be fetched"]),
    ("[MIRROR] a-1.rpm: Status code: 404 for http://m/nvidia.github.io/a-1.rpm (IP: 1.2.3.4)\nError: Error downloading packages:\n  a-1: Cannot download", ["/a-1.rpm", "404", "correct gpu_ready_mirror"]),
    ("[MIRROR] a-1.rpm: Downloading successful, but checksum doesn't match. Calculated: 1 Expected: 2\nError: Error downloading packages:\n  a-1: Cannot download", ["checksum doesn't match", "not what the repository's list says"]),
    (">>> Curl error (7): Could not connect to server for http://m/a.rpm - http://m/a.rpm\nFailed to download packages", ["does not answer", "Curl error (7)"]),
    ('The GPG keys listed for the "R" repository are already installed but they are not correct for this package.\nError: GPG check FAILED', ["not correct for this package", "the clock of this host is wrong", "timedatectl"]),
    ("Package a-1-1.noarch.rpm is not signed\nError: GPG check FAILED", ["signature", "a-1-1.noarch.rpm is not signed"]),
    ('Transaction failed: Signature verification failed.\nOpenPGP check for package "a-0:1-1.noarch" (/x.rpm) from repo "r" has failed: The package is not signed.', ["signature", "The package is not signed"]),
    ("However, you do not have any GPG public keys installed. You need\n\nProblem repository: [r]\nbandwidth: 0\n", ["the repository r requires signed packages"]),
    ("Error Summary\n-------------\nDisk Requirements:\n   At least 300MB more space needed on the /usr filesystem.", ["300MB", "/usr"]),
    ("error: unpacking of archive failed: cpio: write failed - No space left on device", ["disk is full"]),
    ("Error: Failed to download metadata for repo 'r': Cannot write /var/cache/dnf/r/x: No space left on device", ["disk is full", "/var/cache/dnf"]),
    ("metadata already locked by 4711\n  The application with PID 4711 is: dnf", ["process 4711"]),
    ("Existing lock /var/run/yum.pid: another copy is running as pid 4711.", ["process 4711"]),
    ("error: rpmdb: damaged header #12\nError: rpmdb open failed", ["RPM database", "--rebuilddb"]),
    ("No such command: versionlock. Please use /usr/bin/dnf --help", ["versionlock plugin"]),
    ("Error: Transaction test error:\n  file /usr/bin/x from install of a-1-1 conflicts with file from package b-1-1", ["/usr/bin/x from install of a"]),
    ("Error! Bad return status for module build on kernel: 5.14.0-570.el9.x86_64 (x86_64)\nConsult /var/lib/dkms/nvidia/1/build/make.log", ["DKMS", "5.14.0-570.el9.x86_64"]),
    (">>> [RPM] %post(a-1-1.noarch) scriptlet failed, exit status 3\nTransaction failed: Rpm transaction failed.", ["%post", "a-1-1.noarch", "3"]),
    (" Problem: The operation would result in removing the following protected packages: dnf", ["would remove dnf"]),
    ("Error: This command has to be run with superuser privileges (under the root user on most systems).", ["run with become"]),
    ("You need to be root to perform this command.", ["run with become"]),
    ("Error: Failed to download metadata for repo 'r': Cannot download repodata/0a-primary.xml.gz: Checksum mismatch", ["r could not be fetched", "a proxy keeps an old file"]),
    ("", ["exit status 1"]),
]  # fmt: skip
SECOND_CAUSES = [
    # The same words of the program, another cause: what is asserted must hold for both, or distinguish them.
    ("error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Permission denied)", ["become"], "another package manager"),
    ("error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)", ["another package manager"], "become"),
    ("error: cannot open Packages index using db5 - Permission denied (13)\nError: rpmdb open failed", ["become"], "rebuilddb"),
    ("error: cannot open Packages database in /var/lib/rpm\nError: rpmdb open failed", ["rebuilddb"], "become"),
    ("Failed to add /run/systemd/ask-password to directory watch: No space left on device\n>>> [RPM] %post(a-1) scriptlet failed, exit status 3", ["%post"], "disk"),
    ("error: unpacking of archive failed: cpio: write failed - No space left on device", ["inodes", "df -i"], "watch"),
    ("error: write failed - Disk quota exceeded", ["Disk quota exceeded"], "does not answer"),
    ("There are no enabled repositories in \"/etc/yum.repos.d\".", ["register"], "not configured"),
    ("Error: Failed to download metadata for repo 'r': repomd.xml GPG signature verification error: Signing key not found", ["does not have that key"], "being updated"),
    ("Error: Failed to download metadata for repo 'r': repomd.xml GPG signature verification error: Bad GPG signature", ["something else than its owner signed"], "does not have that key"),
    ("  - Status code: 404 for http://m/r/repodata/0a-primary.xml.gz (IP: 1)\nError: Failed to download metadata for repo 'r': Yum repo downloading error: Downloading error(s): repodata/0a-primary.xml.gz", ["being updated"], "URL or the version is wrong"),
    ("  - Status code: 404 for http://m/r/repodata/repomd.xml (IP: 1)\nError: Failed to download metadata for repo 'r': Cannot download repomd.xml", ["URL or the version is wrong"], "being updated"),
    ("  - Curl error (7): Failed to connect to m port 443 after 404 ms: Could not connect to server for https://m/r/repodata/repomd.xml []\nError: Failed to download metadata for repo 'r': x", ["does not answer"], "does not have"),
    ("  - Curl error (28): Timeout was reached for https://m/r/nvidia-410/repomd.xml [Operation too slow]\nError: Failed to download metadata for repo 'r': x", ["does not answer"], "does not have"),
    ("  - Curl error (23): Failed writing received data to disk/application for https://m/r [x]\nError: Failed to download metadata for repo 'r': x", ["cannot write"], "does not answer"),
    ("  - Curl error (37): Couldn't read a file:// file for file:///mnt/r/repodata/repomd.xml [Couldn't open file]\nError: Failed to download metadata for repo 'r': x", ["disk is mounted"], "does not answer"),
    ("  - Status code: 403 for https://m/r/repodata/repomd.xml (IP: 1)\nError: Failed to download metadata for repo 'r': x", ["refuses", "do not have"], "does not answer"),
    ("  - Status code: 503 for https://m/r/repodata/repomd.xml (IP: 1)\nError: Failed to download metadata for repo 'r': x", ["proxy before it"], "does not answer"),
    ("  - Status code: 429 for https://m/r/repodata/repomd.xml (IP: 1)\nError: Failed to download metadata for repo 'r': x", ["too many requests"], "does not answer"),
    ("[MIRROR] a.rpm: Downloading successful, but checksum doesn't match.\nError: Error downloading packages", ["being updated", "something else than its owner signed"], "network"),
    ("No match for argument: foo\nError: Unable to find a match: foo", ["no package source", "exclude="], "hidden by"),
    ("Error: Problems in request:\nmissing groups or modules: foo:1", ["Enable the source", "modules.yaml"], "hidden"),
    ("Error: \n Problem: nothing provides x needed by y-1", ["CRB"], "exclude each other"),
    ("Error: \n Problem: package y-1 conflicts with z provided by z-1", ["exclude each other"], "CRB"),
    ("No such command: versionlock. Please use /usr/bin/dnf --help", ["not installed", "plugins=0"], "root's"),
    ('OpenPGP check for package "a-1" (/x.rpm) from repo "r" has failed: Public key is not installed.', ["does not have that key"], "being updated"),
    ('OpenPGP check for package "a-1" (/x.rpm) from repo "r" has failed: Policy rejects 0A1B: SHA1 is not considered secure', ["algorithm"], "being updated"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "other"), SECOND_CAUSES)
def test_an_explanation_fits_every_cause_of_its_text(text: str, words: list[str], other: str) -> None:
    message = dnf_errors.explain_failure("installing it", Result(1, "", text))
    for word in words:
        assert word in message
    assert other not in message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Result(124, "", "dnf: no answer in 600 s"), "no answer in 600 s"),
        (Result(-9, "", ""), "memory"),
        (Result(-15, "", ""), r"signal 15 ended it\. Run"),
    ],
)
def test_a_stopped_call_is_reported_with_its_own_limit(answer: Result, words: str) -> None:
    with pytest.raises(packages.PackageError, match=words):
        dnf.Dnf(Scripted({"-y install": answer}), wait=0.0).run_change("installing it", ["install", "a"])


@pytest.mark.parametrize(("free", "full"), [(0, True), (4096, True), (2**30, False), (None, False)])
def test_a_full_disk_is_not_the_only_cause_where_dnf_names_another(free: int | None, full: bool) -> None:
    """A small /tmp of two megabytes has nothing to do with a file that the mirror does not have."""
    host = Scripted({"-y install": Result(1, "", "No match for argument: foo\nError: Unable to find a match: foo")})
    host.free = lambda path: free if path == "/tmp" else 2**40  # type: ignore[method-assign]
    with pytest.raises(packages.PackageError, match="package foo is in no package source") as found:
        dnf.Dnf(host, wait=0.0).run_change("installing it", ["install", "foo"])
    assert ("Besides, the disk is full, no free space left in /tmp" in str(found.value)) is full


def test_a_lock_that_may_not_be_written_is_not_waited_for() -> None:
    text = "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Permission denied)"
    host = Scripted({"-y install": Result(1, "", text)})
    with pytest.raises(packages.PackageError, match="become"):
        dnf.Dnf(host, wait=60.0).run_change("installing it", ["install", "foo"])
    assert len(host.made) == 1


@pytest.mark.parametrize(("text", "words"), EXPLANATIONS)
def test_errors_are_one_line_with_cause_and_remedy(text: str, words: list[str]) -> None:
    message = dnf_errors.explain_failure("installing it", Result(1, "", text))
    assert message.startswith("installing it: ") and "\n" not in message
    for word in words:
        assert word in message


@pytest.mark.parametrize(
    "text", ["", "\0\xff garbage", "Installing:\n x", "[[packages]]\nname", "replacing", " replacing x"]
)
def test_readers_survive_garbage(text: str) -> None:
    dnf_output.parse_simulation(text, {})
    dnf_output.parse_list(text)
    dnf_errors.explain_failure("x", Result(1, text, text))
    rpm.parse_packages(text)
    rpm.parse_locks(text)
    rpm.parse_locks_toml(text)
    rpm.parse_stream_file(text)
    rpm.parse_streams_toml(text)


@pytest.mark.parametrize(
    ("programs", "links", "found"),
    [
        (["/usr/bin/dnf"], {"/usr/bin/dnf": "dnf-3"}, ("/usr/bin/dnf", "dnf")),
        (["/usr/bin/dnf-3"], {"/usr/bin/yum": "dnf-3"}, ("/usr/bin/yum", "dnf")),
        (["/usr/bin/dnf5"], {"/usr/bin/dnf": "dnf5", "/usr/bin/yum": "dnf5"}, ("/usr/bin/dnf", "dnf5")),
        (["/usr/bin/yum"], {}, ("/usr/bin/yum", "yum")),
    ],
)
def test_links_show_which_manager_it_is(programs: list[str], links: dict[str, str], found: tuple[str, str]) -> None:
    host = RecordedHost(files=dict.fromkeys([*programs, "/usr/bin/dnf-3"], ""), links=links)
    assert dnf.find_program(host) == found


def test_no_manager_is_an_error_with_a_remedy() -> None:
    with pytest.raises(packages.PackageError, match="neither dnf nor yum"):
        dnf.find_program(RecordedHost())


class Scripted(RecordedHost):
    """A host whose manager is asked by its verb: ``answers`` {first words: answer}; dnf is dnf 4."""

    def __init__(
        self,
        answers: dict[str, Result],
        installed: str = "",
        program: str = "/usr/bin/dnf",
        files: Mapping[str, Content] | None = None,
        **more: Any,
    ):
        super().__init__(files={program: "", **(files or {})}, **more)
        self.links["/usr/bin/dnf"] = "dnf-3"
        self.files["/usr/bin/dnf-3"] = ""
        if not program.endswith("dnf"):
            del self.links["/usr/bin/dnf"], self.files["/usr/bin/dnf-3"]
        self.answers = answers
        self.rows = installed
        self.made: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[0] == "rpm":
            return Result(0, self.rows or "bash\t(none)\t5\t1\tx86_64\n", "") if argv[1] == "-qa" else Result(0, "", "")
        words = " ".join(word for word in argv[1:] if not word.startswith("--setopt"))
        self.made.append(words)
        for start, answer in self.answers.items():
            if words.startswith(start):
                return answer
        return Result(0, "", "")


def change(
    *names: packages.PackageSpec, remove: list[str] | None = None, allowed: list[str] | None = None
) -> packages.PackageChange:
    return packages.PackageChange(list(names), remove or [], allowed or [])


@pytest.mark.parametrize("program", ["/usr/bin/dnf", "/usr/bin/yum"])
def test_headers_of_one_more_kernel_push_no_others_out(program: str) -> None:
    """Of kernel-devel three stay (installonly_limit), so a fourth had the oldest one removed, which is refused."""
    assert "--setopt=installonly_limit=0" in dnf.Dnf(Scripted({}, program=program), wait=0.0).options()


@pytest.mark.parametrize("program", ["/usr/bin/dnf", "/usr/bin/yum"])
def test_repositories_of_others_may_fail_and_ours_may_not(program: str) -> None:
    """yum 3 applies such options in any order, so there the one that is read has no exception beside it."""
    manager, yum = dnf.Dnf(Scripted({}, program=program), wait=0.0), program.endswith("yum")
    others, ours = "--setopt=*.skip_if_unavailable=1", "--setopt=gpu-ready-*.skip_if_unavailable=0"
    for needed in ("", "gpu-ready-x"):
        options = manager.options(needed)
        assert (others in options) is not (yum and bool(needed)) and (ours in options) is not yum
    assert ("--setopt=install_weak_deps=False" in manager.options()) is not yum


def test_versions_become_exact_and_removals_are_part_of_the_installation() -> None:
    table = (
        "Installing:\n driver x86_64 3:580.95.05-1 r 1 k\nRemoving:\n old x86_64 1-1 @r 1 k\nTotal download size: 1 k\n"
    )
    host = Scripted(
        {
            "-y list": Result(0, "driver.x86_64 3:580.95.05-1 r\ndriver.x86_64 3:575.1-1 r\n", ""),
            "--assumeno install": Result(1, table + "Operation aborted.\n", ""),
        }
    )
    manager = dnf.Dnf(host, wait=0.0)
    calls, simulation = manager.plan_change("x", change(packages.PackageSpec("driver", "580.*"), remove=["old"]))
    assert calls == [["install", "--allowerasing", "driver-3:580.95.05-1"]]
    assert simulation.new == ["driver"] and simulation.remove == ["old"]


def test_what_does_not_go_by_itself_is_removed_first() -> None:
    host = Scripted(
        {
            "--assumeno install": Result(1, "Installing:\n new x86_64 1-1 r 1 k\n", "Operation aborted."),
            "--assumeno remove": Result(1, "Removing:\n old x86_64 1-1 @r 1 k\n", "Operation aborted."),
        }
    )
    calls, _ = dnf.Dnf(host, wait=0.0).plan_change("x", change(packages.PackageSpec("new"), remove=["old"]))
    assert calls == [["remove", "old"], ["install", "--allowerasing", "new"]]


def test_removals_that_nobody_asked_for_and_kernels_are_refused() -> None:
    for table, words in (
        ("Installing:\n new x86_64 1-1 r 1 k\n     replacing  docker.x86_64 1-1\n", "would remove docker"),
        ("Installing:\n new x86_64 1-1 r 1 k\nInstalling dependencies:\n kernel-core x86_64 6-1 r 1 k\n", "the kernel kernel-core"),
    ):  # fmt: skip
        host = Scripted({"--assumeno install": Result(1, table, "Operation aborted.")})
        with pytest.raises(packages.PackageError, match=words):
            dnf.Dnf(host, wait=0.0).plan_change("x", change(packages.PackageSpec("new")))
        assert host.made == ["--assumeno install new"]


def test_yum_downgrades_with_a_separate_command() -> None:
    rows = "driver\t3\t580.95.05\t1\tx86_64\ntool\t(none)\t1\t1\tx86_64\n"
    manager = dnf.Dnf(Scripted({}, rows, program="/usr/bin/yum"), wait=0.0)
    assert manager.form == "yum"
    assert manager.installations(["driver-3:575.1-1", "tool-2-1", "new"], True) == [
        ["downgrade", "driver-3:575.1-1"],
        ["install", "tool-2-1", "new"],
    ]


def test_a_module_that_dkms_could_not_build_is_an_error_although_rpm_succeeds() -> None:
    printed = "Error! Bad return status for module build on kernel: 5.14 (x86_64)\nConsult /var/lib/dkms/n/make.log for more\nComplete!\n"
    host = Scripted(
        {"-y install": Result(0, printed, "")}, files={"/var/lib/dkms/n/make.log": "a.c:1:2: error: no such thing\n"}
    )
    with pytest.raises(
        packages.PackageError, match="DKMS could not build the module for kernel 5.14(?s:.)*no such thing"
    ):
        dnf.Dnf(host, wait=0.0).run_change("installing it", ["install", "n"])


def test_a_module_of_others_that_dkms_could_not_build_is_not_the_drivers_failure() -> None:
    """New headers make DKMS build every module of the host; rpm ignores the result."""
    printed = "Error! Bad return status for module build on kernel: 5.14 (x86_64)\nConsult /var/lib/dkms/zfs/2.1/build/make.log\n"
    assert dnf.Dnf(Scripted({"-y install": Result(0, printed, "")}), wait=0.0).run_change("x", ["install", "n"]).rc == 0
    message = "installing it: DKMS could not build zfs/2.1 for kernel 5.14, which is no part of the driver. Repair it"
    with pytest.raises(packages.PackageError, match=message):
        dnf.Dnf(Scripted({"-y install": Result(1, printed, "")}), wait=0.0).run_change(
            "installing it", ["install", "n"]
        )
    both = printed + printed.replace("zfs/2.1", "nvidia-open/580.1")
    files = {"/var/lib/dkms/nvidia-open/580.1/build/make.log": "a.c:1:2: error: no such thing\n"}
    with pytest.raises(packages.PackageError, match="build the module for kernel 5.14(?s:.)*no such thing"):
        dnf.Dnf(Scripted({"-y install": Result(0, both, "")}, files=files), wait=0.0).run_change("x", ["install", "n"])


def test_what_another_dnf_is_doing_is_waited_for_not_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """A running upgrade has a package in two versions, until it removes the older."""
    row = "glibc\t(none)\t2.34\t%d.el9\tx86_64\n"
    host = Scripted({}, row % 1 + row % 2, locks={"/var/lib/rpm/.rpm.lock": 812})

    def sleep(seconds: float) -> None:
        host.rows, host.locks = row % 2, {}

    manager = dnf.Dnf(host, wait=5.0)
    monkeypatch.setattr(manager, "wait_for_locks", lambda: packages.Manager.wait_for_locks(manager, sleep))
    assert manager.repair([]) == [] and host.made == []


def test_a_lock_that_ends_is_waited_for_and_the_call_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Result(
        1, "", "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)"
    )
    host, slept = Scripted({"-y install": held}), []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == 2:
            host.answers = {}

    monkeypatch.setattr(time, "sleep", sleep)
    assert dnf.Dnf(host, wait=60.0).run_change("installing it", ["install", "a"]).rc == 0
    assert slept == [2.0, 2.0] and host.made == ["-y install a"] * 3
    busy = Scripted({"-y install": held})
    with pytest.raises(packages.PackageError, match="another package manager runs"):
        dnf.Dnf(busy, wait=0.0).run_change("installing it", ["install", "a"])
    assert len(busy.made) == 1


def test_a_database_that_cannot_be_read_is_an_error() -> None:
    host = Scripted({})
    host.run = lambda *_, **__: Result(1, "", "error: rpmdb open failed")  # type: ignore[method-assign]
    with pytest.raises(packages.PackageError, match="reading the package database: .*RPM database"):
        dnf.Dnf(host, wait=0.0).installed()


def test_a_stream_that_dnf_leaves_without_a_name_is_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rpm, "MODULES", str(tmp_path))
    for name in ("m", "other"):
        (tmp_path / f"{name}.module").touch()
    dnf.Dnf(Scripted({}), wait=0.0).restore_streams({"m": None, "other": "1", "absent": None})
    assert [path.name for path in tmp_path.iterdir()] == ["other.module"]


def test_another_stream_is_left_before_one_is_enabled() -> None:
    module = "[nvidia-driver]\nname=nvidia-driver\nstream=575-open\nprofiles=\nstate=enabled\n"
    host = Scripted({}, files={"/etc/dnf/modules.d/nvidia-driver.module": module})
    manager = dnf.Dnf(host, wait=0.0)
    manager.enable_streams({"nvidia-driver": "575-open"})
    assert host.made == []
    manager.enable_streams({"nvidia-driver": "580-open"})
    assert host.made == ["-y module reset nvidia-driver", "-y module enable nvidia-driver:580-open"]


def test_a_killed_installation_is_made_again(tmp_path: Path) -> None:
    mark = tmp_path / "pending.json"
    dnf.mark_pending(str(mark), ["docker-ce", "never-came"])
    rows = "docker-ce\t(none)\t28\t1\tx86_64\n"
    host = Scripted({"--assumeno": Result(0, "Nothing to do.\n", "")}, rows, files={str(mark): mark.read_text()})
    manager = dnf.Dnf(host, wait=0.0, pending=str(mark))
    assert manager.find_interrupted() == ["docker-ce"]
    host.read_bytes = lambda path: mark.read_bytes() if path == str(mark) and mark.exists() else None  # type: ignore[method-assign]
    assert manager.repair() == ["docker-ce"]
    assert host.made[-1] == "-y reinstall docker-ce" and not mark.exists()


@pytest.mark.parametrize(
    ("answer", "stays"),
    [(Result(1, "", "Error: no"), False), (Result(124, "", ""), True), (Result(-9, "", ""), True)],
)
def test_the_mark_outlives_only_what_was_stopped_in_the_middle(tmp_path: Path, answer: Result, stays: bool) -> None:
    mark = tmp_path / "pending.json"
    manager = dnf.Dnf(Scripted({"-y install": answer}), wait=0.0, pending=str(mark))
    with pytest.raises(packages.PackageError):
        manager.apply_change("x", [["install", "a"]], packages.Simulation({"a": (None, "1")}, []))
    assert mark.exists() is stays


def test_a_full_disk_is_reported_where_dnf_prints_something_else() -> None:
    host = Scripted({"-y list": Result(1, "", "While writing extension cache (0): cannot close temporary file")})
    host.free = lambda path: 4096 if path == "/var/cache" else 2**40  # type: ignore[method-assign]
    with pytest.raises(packages.PackageError, match="the disk is full, no free space left in /var/cache"):
        dnf.Dnf(host, wait=0.0).offers(["a"])


def test_yum_removes_conflicting_packages_in_a_separate_call() -> None:
    answers = {
        "--assumeno install": Result(1, "Error: new conflicts with old-1-1.x86_64\n", ""),
        "--assumeno remove": Result(1, "Removing:\n old x86_64 1-1 @r 1 k\n", "Exiting on user command"),
    }
    requested = change(packages.PackageSpec("new"), remove=["old"])
    calls, simulation = dnf.Dnf(Scripted(answers, program="/usr/bin/yum"), wait=0.0).plan_change("x", requested)
    assert calls == [["remove", "old"]] and simulation.remove == ["old"]
    with pytest.raises(packages.PackageError, match="new conflicts with old"):
        dnf.Dnf(Scripted(answers), wait=0.0).plan_change("x", requested)


def test_yum_releases_whole_lines() -> None:
    locks = {rpm.YUM_LOCKS: "0:docker-ce-28.3.2-1.el7.*\n0:docker-ce-cli-28.3.2-1.el7.*\n"}
    host = Scripted({}, program="/usr/bin/yum", files=locks)
    dnf.Dnf(host, wait=0.0).unhold(["docker-ce"])
    assert host.made == ["-y versionlock delete 0:docker-ce-28.3.2-1.el7.*"]


def test_a_killed_upgrade_of_ours_takes_along_what_needs_the_older_version() -> None:
    rows = "module\t3\t580.1\t1\tx86_64\nmodule\t3\t595.1\t1\tx86_64\ndriver\t3\t580.1\t1\tx86_64\n"
    removal = (
        "Removing:\n module x86_64 3:580.1-1 @r 1 k\nRemoving dependent packages:\n driver x86_64 3:580.1-1 @r 1 k\n"
    )
    removal += "Operation aborted.\n"
    host = Scripted({"--assumeno remove": Result(1, removal, "")}, rows)
    with pytest.raises(packages.PackageError, match="would remove driver"):
        dnf.Dnf(host, wait=0.0).repair([])
    with pytest.raises(packages.PackageError, match="stayed half installed"):  # the script's database does not change
        dnf.Dnf(host, wait=0.0).repair(["driver", "module"])
    assert host.made[-1] == "-y remove module-580.1-1.x86_64"


def test_only_the_older_of_two_versions_is_removed() -> None:
    rows = "tool\t(none)\t1\t1\tx86_64\ntool\t(none)\t2\t1\tx86_64\ntool\t(none)\t2\t1\ti686\nkernel\t(none)\t1\t1\tx86_64\nkernel\t(none)\t2\t1\tx86_64\n"
    found = rpm.parse_packages(rows)
    assert rpm.duplicate_names(found) == ["tool"] and rpm.older_duplicates(found) == ["tool-1-1.x86_64"]


def test_a_holder_of_a_lock_is_named() -> None:
    files = {"/var/lib/dnf/rpmdb_lock.pid": "4711", "/proc/4711/cmdline": "/usr/bin/python3\0/usr/bin/dnf\0upgrade\0"}
    manager = dnf.Dnf(Scripted({}, files=files), wait=0.0)
    with pytest.raises(packages.PackageError, match="held by process 4711 .*/usr/bin/dnf upgrade"):
        manager.wait_for_locks()
    del manager.host.files["/proc/4711/cmdline"]  # type: ignore[attr-defined]
    manager.wait_for_locks()


def test_the_mark_holds_names(tmp_path: Path) -> None:
    path = tmp_path / "x" / "mark.json"
    dnf.mark_pending(str(path), ["b", "a"])
    assert json.loads(path.read_text()) == ["b", "a"]
    dnf.clear_pending(str(path))
    dnf.clear_pending(str(path))
    assert not path.exists()


def test_the_lock_of_a_removed_package_is_reported() -> None:
    locks = {rpm.DNF_LOCKS: "driver-3:580.1-1.el9.*\n"}
    assert dnf.Dnf(Scripted({}, "tool\t(none)\t1\t1\tx86_64\n", files=locks), wait=0.0).held() == ["driver"]


def test_what_a_metapackage_asks_for_at_least() -> None:
    """`dnf repoquery --requires` (4.14, dnf5) and `yum deplist` (CentOS 7) of the same package."""
    requested = {"cuda-nvcc-12-9": "12.9.41", "cuda-cupti-12-9": "12.9.19-1"}
    assert (
        dnf_output.parse_lowest_versions("/bin/sh\ncuda-cupti-12-9 >= 12.9.19-1\ncuda-nvcc-12-9 >= 0:12.9.41\nx = 1\n")
        == requested
    )
    deplist = """package: cuda-toolkit-12-9.x86_64 12.9.0-1
  dependency: cuda-nvcc-12-9 >= 12.9.41
   provider: cuda-nvcc-12-9.x86_64 12.9.86-1
  dependency: cuda-cupti-12-9 >= 12.9.19-1
   provider: cuda-cupti-12-9.x86_64 12.9.79-1
"""
    assert dnf_output.parse_lowest_versions(deplist) == requested
    assert dnf_output.parse_lowest_versions("") == {}


def test_downloaded_packages_are_kept_only_where_an_upgrade_needs_them_later() -> None:
    host = Scripted({}, program="/usr/bin/dnf")
    assert "--setopt=keepcache=1" in dnf.Dnf(host, wait=0.0, keep_cache=True).options()
    assert "--setopt=keepcache=1" not in dnf.Dnf(host, wait=0.0).options()
