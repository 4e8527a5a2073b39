"""Parsers of apt's output, and messages for its failures."""

import fcntl
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.download_errors import download_remedy
from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Host, Result
from plugins.module_utils.gpu_ready.packaging import apt, apt_errors, apt_lists, apt_policy
from plugins.module_utils.gpu_ready.packaging import manager as packages
from plugins.module_utils.gpu_ready.packaging.dpkg_status import STATUS, parse_dpkg_status
from plugins.module_utils.gpu_ready.packaging.version_match import version_matches
from tests.unit.recorded import RecordedHost

SIMULATION = """Reading package lists...
Remv old-thing [1.0-1]
Inst libc6 [2.36-9] (2.36-10 Debian:12.5/stable [amd64]) []
Inst nvidia-smi (535.261.03-1 Debian:12/oldstable [amd64])
Inst libx:i386 (1.2 Debian:12 [i386])
Conf nvidia-smi (535.261.03-1 Debian:12/oldstable [amd64])
"""


def test_simulation() -> None:
    found = apt.parse_simulation(SIMULATION)
    assert found.install == {
        "libc6": ("2.36-9", "2.36-10"),
        "nvidia-smi": (None, "535.261.03-1"),
        "libx:i386": (None, "1.2"),
    }
    assert found.new == ["libx:i386", "nvidia-smi"]
    assert found.remove == ["old-thing"]


@pytest.mark.parametrize(
    ("pattern", "version", "fits"),
    [
        (None, "1", True),
        ("580.95.05-1", "580.95.05-1", True),
        ("580.95.05-1", "1:580.95.05-1", True),
        ("580.*", "580.95.05-1", True),
        ("580.*", "1:580.95.05-1", True),
        ("580.*", "5800.1", False),
        ("580", "580.95.05-1", False),
        ("28.5*", "5:28.5.1-1~debian.12~bookworm", True),
        ("28.5.1*", "5:28.5.1-1~debian.12~bookworm", True),
        ("28.5.1-1~debian.12~bookworm*", "5:28.5.1-1~debian.12~bookworm", True),
        ("28.5.1*", "3:28.5.1-1.el9", True),
        ("20.10.24*", "20.10.24+dfsg1-1+deb12u1", True),
        ("28.5*", "5:28.50.0-1", False),
        ("28.5.1*", "5:28.5.10-1", False),
    ],
)
def test_version_matches(pattern: str | None, version: str, fits: bool) -> None:
    assert version_matches(pattern, version) is fits


def test_installed_prefers_the_architecture_that_is_there() -> None:
    """A package of a foreign architecture is another one: it has holds of its own, and a version."""
    rows = "a 1 installed hold amd64|b 2 not-installed unknown |b 3 installed install all||b 4 config-files deinstall amd64"
    rows += "|dpkg 1 installed install amd64|a 1 installed install i386"
    found = apt.parse_installed(rows.replace(" ", "\t").replace("|", "\n") + "\n")
    assert not found["a:i386"].hold and set(found) == {"a", "b", "dpkg", "a:i386"}
    assert found["a"].hold and packages.is_installed(found, "a")
    assert found["b"].version == "3" and not found["b"].hold


def test_broken_packages() -> None:
    text = (
        "Package: a\nStatus: install ok installed\n\nPackage: b\nStatus: install ok half-configured\n\n"
        "Package: c\nStatus: install reinstreq half-installed\n\nPackage: d\nStatus: deinstall ok config-files\n"
    )
    assert [one.name for one in parse_dpkg_status(text) if one.is_incomplete] == ["b", "c"]


def test_a_kernel_is_never_pulled_in() -> None:
    simulation = packages.Simulation({"linux-image-6.1.0-50-amd64": (None, "6.1")}, [])
    with pytest.raises(packages.PackageError, match="linux-image-6.1.0-50-amd64"):
        packages.refuse_unrequested(simulation, [])


def test_unasked_removals_are_refused() -> None:
    simulation = packages.Simulation({}, ["mine", "yours"])
    with pytest.raises(packages.PackageError, match="remove yours,"):
        packages.refuse_unrequested(simulation, ["mine"])
    packages.refuse_unrequested(simulation, ["mine", "yours"])


EXPLANATIONS = [
    ("E: Unable to locate package foo", ["foo", "no package source"]),
    ("E: Package 'foo' has no installation candidate", ["foo"]),
    ("Err:1 http://m/x InRelease\nE: Failed to fetch http://m/x/InRelease  404  Not Found [IP: 10.0.0.1 80]", ["http://m/x/InRelease", "404", "The server does not have it"]),
    ("E: Failed to fetch http://m/nvidia.github.io/x/InRelease  404  Not Found [IP: 10.0.0.1 80]", ["404", "correct gpu_ready_mirror"]),
    ("E: Failed to fetch http://m/x  Could not connect to m:80 (1.2.3.4). - connect (111: Connection refused)", ["http://m/x", "does not answer"]),
    ("W: GPG error: http://m/x  InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY A4B4\nE: The repository 'http://m/x  InRelease' is not signed.", ["signature", "NO_PUBKEY A4B4"]),
    ("E: Failed to fetch http://m/x/InRelease  Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)", ["signature", "http://m/x/InRelease"]),
    ("Err:2 http://m/nope  Release\n  404  File not found [IP: 127.0.0.1 8977]\nE: The repository 'http://m/nope  Release' does not have a Release file.", ["http://m/nope ", "404 File not found"]),
    ("Err:2 http://m/nvidia.github.io/x  Release\n  404  Not Found [IP: 127.0.0.1 80]\nE: The repository 'http://m/nvidia.github.io/x  Release' does not have a Release file.", ["The mirror does not have it", "gpu_ready_mirror"]),
    ("E: The repository 'http://m/nope  Release' no longer has a Release file.", ["no Release file", "The server does not have it"]),
    ("E: Failed to fetch http://m/x/InRelease  500  Internal Server Error [IP: 10.0.0.1 80]", ["error of its own"]),
    ("Err:2 http://m/nope  InRelease\n  500  Internal Server Error [IP: 127.0.0.1 8977]\nE: The repository 'http://m/nope  Release' does not have a Release file.", ["http://m/nope ", "500", "error of its own"]),
    ("E: Failed to fetch http://m/x/InRelease  Temporary failure resolving 'm'", ["resolve", "DNS"]),
    ("E: Failed to fetch http://m/x/InRelease  407  Proxy Authentication Required", ["refuses"]),
    ("E: Release file for http://m/x/InRelease is not valid yet (invalid for another 10d 3h 2min 1s). Updates for this repository will not be applied.", ["http://m/x/InRelease", "clock of this host", "NTP"]),
    ("E: Release file for http://m/x/InRelease is expired (invalid since 9d). Updates for this repository will not be applied.", ["http://m/x/InRelease", "clock of this host", "no longer updated"]),
    ("W: OpenPGP signature verification failed: http://m/x InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: Verifying signature: Not live until 2026-11-20T10:00:00Z\nE: The repository 'http://m/x InRelease' is not signed.", ["signature", "clock of this host"]),
    ("E: You don't have enough free space in /var/cache/apt/archives/.", ["free space", "/var/cache/apt/archives/"]),
    ("dpkg: error: failed to write (No space left on device)", ["disk is full"]),
    ("E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 4711 (apt-get)", ["4711", "apt-get", "/var/lib/dpkg/lock-frontend"]),
    ("Error! Bad return status for module build on kernel: 6.1.0-50-amd64 (x86_64)\nConsult /var/lib/dkms/nvidia/1/build/make.log for more information.", ["DKMS", "6.1.0-50-amd64"]),
    ("The following packages have unmet dependencies:\n nvidia-smi : Depends: libnvidia-ml1 (= 1) but 2 is to be installed\nE: Unable to correct problems, you have held broken packages.", ["libnvidia-ml1", "hold"]),
    ("dpkg: error processing package docker.io (--configure):\n installed docker.io package post-installation script subprocess returned error exit status 1\nE: Sub-process /usr/bin/dpkg returned an error code (1)", ["docker.io", "exit status 1", "/var/log/apt/term.log"]),
    ("", ["exit status 100"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words"), EXPLANATIONS)
def test_errors_are_one_line_with_cause_and_remedy(text: str, words: list[str]) -> None:
    message = apt_errors.explain_failure("installing it", Result(100, "", text))
    assert message.startswith("installing it: ") and "\n" not in message
    for word in words:
        assert word in message


UNMET = (
    "The following packages have unmet dependencies:\n%s\nE: Unable to correct problems, you have held broken packages."
)
SECOND_CAUSES = [
    # The same words of the program, another cause: what is asserted must hold for both, or distinguish them.
    ("E: Unable to locate package foo", ["no package source", "for its architecture"], "pin"),
    ("E: Package 'foo' has no installation candidate", ["no package source of this host has it, or a pin forbids it"], "virtual"),
    (UNMET % " a : Depends: b but it is not installable", ["no package source of this host has it, or a pin forbids it"], "holds"),
    (UNMET % " a : Depends: b (= 1) but 2 is to be installed", ["pins, holds"], "exclude each other"),
    (UNMET % " a : Conflicts: b\n     Breaks: c", ["exclude each other"], "pins, holds"),
    ("E: Version '7' for 'foo' was not found", ["no package source of this host has foo 7"], "pin"),
    ("E: Could not get lock /var/lib/dpkg/lock-frontend - open (11: Resource temporarily unavailable)", ["Another package manager runs"], "become"),
    ("E: Could not get lock /var/lib/dpkg/lock-frontend - open (13: Permission denied)", ["become"], "Another package manager"),
    ("E: Could not get lock /var/lib/dpkg/lock - open (30: Read-only file system)", ["writable"], "Another package manager"),
    ("dpkg: error: failed to write (No space left on device)", ["inodes"], "watch"),
    ("Failed to add /run/systemd/ask-password to directory watch: No space left on device\ndpkg: error processing package docker.io (--configure):\n x failed", ["docker.io"], "disk"),
    ("The module is not signed\ndpkg: error processing package shim (--configure):\n x failed", ["shim"], "signature"),
    ("dpkg: error processing package a (--configure):\n dependency problems - leaving unconfigured\ndpkg: error processing package b (--configure):\n x failed", ["package b could not be configured"], "package a"),
    ("dpkg: error processing package a (--configure):\n dependency problems - leaving unconfigured", ["package a"], "removed"),
    ("dpkg: error processing package a (--remove):\n x failed", ["a could not be removed"], "configured"),
    ("dpkg: error processing archive /x/a.deb (--unpack):\n x failed", ["could not be unpacked"], "configured"),
    ("dpkg: error processing archive /x/a.deb (--unpack):\n trying to overwrite '/usr/bin/x', which is also in package b 1.0", ["/usr/bin/x belongs to the package b", "Remove one"], "unpacked"),
    ("E: Release file for http://m/x/InRelease is not valid yet (invalid for another 1d).", ["clock of this host", "the mirror's owner"], "no longer updated"),
    ("W: GPG error: http://m/x InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY A4B4", ["does not have that key", "Signed-By"], "login page"),
    ("W: GPG error: http://m/x InRelease: The following signatures were invalid: EXPKEYSIG A4B4 x", ["has expired", "clock"], "something else than"),
    ("W: GPG error: http://m/x InRelease: The following signatures were invalid: BADSIG A4B4 x\nE: The repository 'http://m/x InRelease' is not signed.", ["something else than its owner signed", "middle of an update"], "expired"),
    ("E: Failed to fetch http://m/x/InRelease  Clearsigned file isn't valid, got 'NOSPLIT' (does the network require authentication?)", ["login page"], "signs with another key"),
    ("W: GPG error: http://m/x InRelease: Could not execute 'gpgv' to verify signature (is gpgv installed?)\nE: The repository 'http://m/x InRelease' is not signed.", ["cannot check signatures"], "something else than"),
    ("W: OpenPGP signature verification failed: http://m/x InRelease: Sub-process /usr/bin/sqv returned an error code (1), error message is: Signing key on A4B4 is not bound: because: SHA1 is not considered secure since 2026-02-01T00:00:00Z", ["algorithm"], "something else than"),
    ("E: The repository 'http://m/x  InRelease' is not signed.", ["signs nothing"], "expired"),
    ("E: Failed to fetch http://m/x  Could not connect to m:404 (1.2.3.4), connection timed out", ["does not answer"], "does not have"),
    ("E: Failed to fetch http://m/x/nvidia-410.deb  Connection failed [IP: 1.2.3.4 80]", ["does not answer"], "does not have"),
    ("E: Failed to fetch file:/mnt/x/a.deb  File not found - /mnt/x/a.deb (2: No such file or directory)", ["disk is mounted"], "does not answer"),
    ("E: Failed to fetch https://m/x  Could not handshake: An unexpected TLS packet was received. [IP: 1 443]", ["agree on no encryption"], "does not answer"),
    ("E: Failed to fetch https://m/x  Certificate verification failed: The certificate is NOT trusted. The name in the certificate does not match the expected.", ["ca-certificates", "wrong on the server"], "does not answer"),
    ("E: Failed to fetch http://m/x  Could not resolve '10.199.0.1'", ["no DNS is needed", "routes"], "check its DNS"),
    ("E: Failed to fetch http://m/x  Something wicked happened resolving '[fd00::1]:http' (-9 - Address family for hostname not supported)", ["no DNS is needed"], "check its DNS"),
    ("E: Failed to fetch http://m/x  Something wicked happened resolving 'm:http' (-5 - No address associated with hostname)", ["check its DNS"], "no DNS"),
    ("E: Failed to fetch http://m/x  403  Forbidden [IP: 1.2.3.4 80]", ["refuses", "do not have"], "does not answer"),
    ("E: Failed to fetch http://m/x  503  Service Unavailable [IP: 1.2.3.4 3128]", ["proxy before it"], "does not answer"),
    ("E: Failed to fetch http://m/x  Undetermined Error", ["the log of the server"], "does not answer"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "words", "other"), SECOND_CAUSES)
def test_an_explanation_fits_every_cause_of_its_text(text: str, words: list[str], other: str) -> None:
    message = apt_errors.explain_failure("installing it", Result(100, "", text))
    assert message.startswith("installing it: ") and "\n" not in message
    for word in words:
        assert word in message
    assert other not in message


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Result(TIMED_OUT, "", "apt-get: no answer in 300 s"), "no answer in 300 s"),
        (Result(-9, "", ""), "signal 9 ended it (9: also by the kernel where memory runs out"),
        (Result(-15, "", ""), "signal 15 ended it. Run again"),
    ],
)
def test_a_stopped_call_is_reported_with_its_own_limit(answer: Result, words: str) -> None:
    assert words in apt_errors.explain_failure("installing it", answer)


PREFERENCES = """# third-party text
Explanation: the driver comes from elsewhere
Package: nvidia-* src:x
Pin: release *
Pin-Priority: -1

Package: /^lib.*-580$/
Pin: origin ""
Pin-Priority: 900
Package: without-a-priority

Package: *
Pin: release *
Pin-Priority: x
"""


def test_pins_are_read_with_their_lines() -> None:
    assert apt_policy.parse_pins("/p", PREFERENCES) == [
        apt_policy.Pin("/p", 3, ["nvidia-*", "src:x"], -1, "release *"),
        apt_policy.Pin("/p", 7, ["/^lib.*-580$/"], 900, 'origin ""'),
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("nvidia-*", "nvidia-smi", True),
        ("nvidia-*", "libnvidia-1", False),
        ("nvidia-smi:amd64", "nvidia-smi", True),
        ("/^lib.*-580$/", "libnvidia-580", True),
        ("/^lib.*-580$/", "libnvidia-580-server", False),
        ("/[/", "x", False),
        ("*", "x", True),
    ],
)
def test_a_pin_names_packages_as_apt_preferences_says(pattern: str, name: str, fits: bool) -> None:
    assert apt_policy.pins_package(pattern, name) is fits


@pytest.mark.parametrize("text", ["", "\0\xff garbage", "E: ", "Inst", "|||", "Package: \n\n\n"])
def test_readers_survive_garbage(text: str) -> None:
    apt.parse_simulation(text)
    apt.parse_madison(text)
    apt.parse_installed(text)
    apt.parse_sizes(text)
    parse_dpkg_status(text)
    apt_policy.parse_policies(text)
    apt_policy.parse_pins("/p", text)
    apt_errors.explain_failure("x", Result(1, text, text))


def test_missing_versions_name_what_is_on_offer() -> None:
    offers = apt.parse_madison("nvidia-smi | 1:2-1 | http://m/debian bookworm/non-free amd64 Packages\nnvidia-smi | 1-1 | http://m x Packages\n")  # fmt: skip
    assert apt.Apt(Host()).resolve([packages.PackageSpec("nvidia-smi", "2*")], offers) == ["nvidia-smi=1:2-1"]
    with pytest.raises(packages.PackageError, match="offered: 1:2-1, 1-1"):
        apt.Apt(Host()).resolve([packages.PackageSpec("nvidia-smi", "3*")], offers)
    with pytest.raises(packages.PackageError, match="no longer carries the headers"):
        apt.Apt(Host()).resolve([packages.PackageSpec("linux-headers-6.1.0-1-amd64")], {})


def test_headers_may_be_in_a_source_that_was_not_read() -> None:
    manager = apt.Apt(Host())
    manager.failed_sources = ["/etc/apt/sources.list: the archive does not answer"]
    with pytest.raises(packages.PackageError) as found:
        manager.resolve([packages.PackageSpec("linux-headers-6.1.0-1-amd64")], {})
    assert "could be read. Not read were: /etc/apt/sources.list: the archive does not answer. Repair" in str(
        found.value
    )
    assert "no longer carries" not in str(found.value)


URIS = """'http://mirror.example/cuda/InRelease' mirror.example_cuda_InRelease 0
'http://deb.example/debian/dists/bookworm/InRelease' deb.example_debian_dists_bookworm_InRelease 0
'http://deb.example/debian/dists/bookworm/main/binary-amd64/Packages.xz' deb.example_debian_dists_bookworm_main_binary-amd64_Packages 0
"""


@pytest.mark.parametrize(
    ("lists", "missing"),
    [
        (["mirror.example_cuda_InRelease"], ["deb.example_debian_dists_bookworm_InRelease"]),
        (["mirror.example_cuda_Release", "deb.example_debian_dists_bookworm_InRelease"], []),
        ([], ["mirror.example_cuda_InRelease", "deb.example_debian_dists_bookworm_InRelease"]),
    ],
)
def test_a_source_that_was_never_read_is_seen_beside_one_that_was(lists: list[str], missing: list[str]) -> None:
    """The repository that a run has just added is read alone: that shows nothing about the distribution's own archive."""
    assert apt_lists.find_unread_lists(URIS, lists) == missing


BASE = "deb.example_debian_dists_trixie_"
MAIN, NON_FREE, EMPTY = (f"{part}_binary-amd64_Packages" for part in ("main", "non-free", "contrib"))
RELEASE = f"""-----BEGIN PGP SIGNED MESSAGE-----
MD5Sum:
 {"a" * 32}  7 main/binary-amd64/Packages
SHA256:
 {"a" * 64}        7 main/binary-amd64/Packages
 {"b" * 64}        3 main/binary-amd64/Packages.xz
 {"c" * 64}        9 non-free/binary-amd64/Packages
 {"e" * 64}        0 contrib/binary-amd64/Packages
-----BEGIN PGP SIGNATURE-----
-----END PGP SIGNATURE-----
"""


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, []),
        ({BASE + NON_FREE: ""}, [BASE + NON_FREE, BASE + "InRelease"]),
        ({BASE + MAIN: "1234"}, [BASE + MAIN, BASE + "InRelease"]),
        ({BASE + MAIN: None}, []),  # a source that never had it
        ({BASE + MAIN: None, BASE + MAIN + ".lz4": "12"}, []),
        ({BASE + MAIN: None, BASE + MAIN + ".lz4": ""}, [BASE + MAIN + ".lz4", BASE + "InRelease"]),
        ({BASE + "InRelease": ""}, [BASE + EMPTY, BASE + "InRelease"]),
        ({BASE + "InRelease": RELEASE[:-40]}, [BASE + "InRelease"]),
        ({"other_._Release": "", "other_._Packages": "12"}, ["other_._Release"]),
    ],
)
def test_lists_that_a_power_cut_left_without_their_content(changes: dict[str, str | None], lost: list[str]) -> None:
    """Seen on a guest whose power went a minute after `apt-get update`: "nvidia-kernel-dkms is in no package source"."""
    files = {
        BASE + "InRelease": RELEASE,
        BASE + MAIN: "1234567",
        BASE + NON_FREE: "123456789",
        BASE + EMPTY: "",
    } | changes
    present = {f"{apt_lists.DIRECTORY}/{name}": text for name, text in files.items() if text is not None}
    names = [Path(path).name for path in present]
    assert apt_lists.find_damaged_lists(names, present.get, lambda path: (len(present[path] or ""), 0)) == lost


def test_a_held_lock_names_its_holder(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.touch()
    script = f"import fcntl,time; f=open({str(lock)!r},'w'); fcntl.lockf(f, fcntl.LOCK_EX); print('held', flush=True); time.sleep(600)"
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        with pytest.raises(packages.PackageError, match=f"held by process {holder.pid} .*python"):
            apt.Apt(Host(), locks=(str(lock),), wait=0.0).wait_for_locks()
        holder.kill()
    apt.Apt(Host(), locks=(str(lock),), wait=0.0).wait_for_locks()
    assert fcntl.F_GETLK


def test_what_a_metapackage_asks_for_at_least() -> None:
    """From NVIDIA's repository for Debian 12 (the metapackages of CUDA 12.9.0)."""
    text = (
        "Package: cuda-toolkit-12-9\nVersion: 12.9.0-1\nDepends: cuda-compiler-12-9 (>= 12.9.0), "
        "cuda-libraries-12-9 (>= 12.9.0), libc6\nDescription: x\n\n"
        "Package: cuda-nvcc-12-9\nVersion: 12.9.41-1\nPre-Depends: a:any (>= 1:2-3)\nDepends: build-essential, "
        "cuda-nvvm-12-9 (>= 12.9.41), b (= 1), c (<< 3)\n"
    )
    assert apt.parse_lowest_versions(text) == {
        "cuda-compiler-12-9": "12.9.0",
        "cuda-libraries-12-9": "12.9.0",
        "a": "1:2-3",
        "cuda-nvvm-12-9": "12.9.41",
    }
    assert apt.parse_lowest_versions("N: no such package\n") == {}


class Source(packages.Manager):
    """A manager whose sources hold two releases of a metapackage with a part that has a part."""

    def __init__(self) -> None:
        packages.Manager.__init__(self, RecordedHost())

    def offers(self, names: list[str]) -> dict[str, list[str]]:
        known = {"kit-1-0": ["1.0.1-1", "1.0.0-1"], "cc-1-0": ["1.0.7-1", "1.0.2-1"], "lib-1-0": ["9-1"], "all": ["3"]}
        return {name: known[name] for name in names}

    def lowest_versions(self, packages: list[tuple[str, str]]) -> dict[str, str]:
        known = {
            ("kit-1-0", "1.0.1-1"): {"cc-1-0": "1.0.7", "all": "3"},
            ("kit-1-0", "1.0.0-1"): {"cc-1-0": "1.0.2", "all": "3"},
            ("cc-1-0", "1.0.2-1"): {"lib-1-0": "9", "kit-1-0": "1.0.0"},
        }
        return {name: low for pair in packages for name, low in known.get(pair, {}).items()}


def test_an_older_release_of_a_metapackage_installs_its_own_parts_not_the_newest() -> None:
    specs = [packages.PackageSpec("kit-1-0", "1.0.0-*"), packages.PackageSpec("other")]
    assert Source().add_parts(specs, {"kit-1-0": "-1-0(-|$)"}) == [
        *specs,
        packages.PackageSpec("cc-1-0", "1.0.2-*"),
        packages.PackageSpec("lib-1-0", "9-*"),
    ]
    assert Source().add_parts(specs, {}) == specs


def test_a_read_only_host_is_reported_before_anything_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: path != "/etc")
    with pytest.raises(packages.PackageError, match=r"/etc is read-only.*run again"):
        apt.Apt(Host()).check_free_space(3, [])


class Slow(RecordedHost):
    """A host whose apt-cache does not come back: its lists are new, its disk slow."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        assert timeout >= 300
        return Result(TIMED_OUT, "", f"{argv[0]}: no answer in {timeout:g} s")


def test_a_question_without_an_answer_is_no_answer_that_nothing_is_on_offer() -> None:
    """It was reported as headers that the archive no longer carries."""
    with pytest.raises(packages.PackageError, match=r"linux-headers-6\.1.*no answer in 300 s"):
        apt.Apt(Slow()).offers(["linux-headers-6.1.0-50-amd64"])
    with pytest.raises(packages.PackageError, match="no answer in 300 s"):
        apt.Apt(Slow()).lowest_versions([("cuda-toolkit-12-9", "12.9.1-1")])


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (
            "[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: unable to get local issuer certificate",
            "authority",
        ),
        ("Certificate verification failed: The certificate is NOT trusted. [IP: 10.4.40.1 443]", "ca-certificates"),
        ("Curl error (60): SSL peer certificate or SSH remote key was not OK for https://m/x", "ca-certificates"),
        ("404  Not Found [IP: 10.0.0.1 80]", "The server does not have it"),
        ("Temporary failure resolving 'm'", "cannot resolve"),
        ("Connection timed out", "does not answer"),
    ],
)
def test_the_remedy_for_a_file_that_cannot_be_fetched(cause: str, words: str) -> None:
    """A site that looks into TLS, and an image without the list of authorities, are no mirror that does not answer."""
    assert words in download_remedy(cause)
    assert "gpu_ready_mirror" not in download_remedy(cause, "https://developer.download.nvidia.com/compute/x.run")
    mirrored = download_remedy(cause, "https://mirror.site:8080/nvidia/developer.download.nvidia.com/compute/x.run")
    assert "mirror" in mirrored


@pytest.mark.parametrize(
    ("waited", "lasts", "slept", "found"),
    [
        (None, 99, 0, ""),
        (0, 3, 3, ""),
        (0, 99, 5, "process 812 (apt-get)"),
        (5, 99, 30, "process 812 (apt-get)"),
        (5, 9, 9, ""),
    ],
)
def test_a_caller_learns_who_is_awaited(
    monkeypatch: pytest.MonkeyPatch, waited: int | None, lasts: int, slept: int, found: str
) -> None:
    host = RecordedHost({"/proc/812/comm": "apt-get\n"}, locks={"/var/lib/dpkg/lock-frontend": 812})
    clock: list[float] = []

    def sleep(seconds: float) -> None:
        clock.append(seconds)
        if len(clock) >= lasts:
            host.locks = {}

    monkeypatch.setattr(time, "monotonic", lambda: 100.0 + sum(clock))
    assert apt.Apt(host).report_wait(waited, sleep) == found
    assert sum(clock) == slept


def test_a_process_that_does_not_end_is_named_when_the_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    host = RecordedHost(locks={"/var/lib/dpkg/lock-frontend": 812})
    clock: list[float] = []
    monkeypatch.setattr(time, "monotonic", lambda: 100.0 + sum(clock))
    with pytest.raises(packages.PackageError, match=r"lock-frontend is held by process 812.* for more than 600 s"):
        apt.Apt(host).report_wait(600, clock.append)


def test_what_another_apt_is_doing_is_waited_for_not_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first boot of a cloud image: unattended-upgrades has a package unpacked, and finishes it."""
    stanza = "Package: linux-firmware\nStatus: install ok %s\nVersion: 1\n"
    host = RecordedHost({STATUS: stanza % "half-configured"}, locks={"/var/lib/dpkg/lock-frontend": 812})

    def sleep(seconds: float) -> None:
        host.files[STATUS], host.locks = stanza % "installed", {}

    manager = apt.Apt(host, wait=5.0)
    monkeypatch.setattr(manager, "wait_for_locks", lambda: packages.Manager.wait_for_locks(manager, sleep))
    assert manager.repair([]) == [] and host.asked == []
