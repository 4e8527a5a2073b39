"""Failed builds and installations by the format strings of the programs that print them, in several languages."""

from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.diagnostics import installer_log, messages
from plugins.plugin_utils.gpu_ready.explain import cli as explain

HEAD = "nvidia-installer log file '/var/log/nvidia-installer.log'\ninstaller version: 570.133.07\n"
AKMODS = "2026/02/11 18:46:29 akmodsbuild: "

FAILED: list[tuple[str, str]] = [
    # GNU ld, gcc 8 to 15 and clang; the words of gcc's catalogues (gcc/po/*.po).
    ("dkms_build_failed", "ld: cannot find /tmp/selfgz1/nvidia/nv.o: No such file or directory"),
    ("dkms_build_failed", "ld.bfd: cannot find nv-kernel.o"),
    ("dkms_build_failed", "nv-mmap.c:77:5: 错误：隐式声明函数‘take_lock’ [-Wimplicit-function-declaration]"),
    ("dkms_build_failed", "nv-mmap.c:77:5: Fehler: unbekannter Typname »x«"),
    ("dkms_build_failed", "nv-mmap.c:77:5: erreur: déclaration implicite"),
    ("dkms_build_failed", "nv-mmap.c:77:5: ошибка: нет члена"),
    ("dkms_build_failed", "nv-mmap.c:77:5: エラー: 引数が多すぎます"),
    ("dkms_build_failed", "nv-drm.c:3:10: schwerwiegender Fehler: drm/x.h: Datei oder Verzeichnis nicht gefunden"),
    ("dkms_build_failed", "make[2]: *** [scripts/Makefile.build:243: nv.o] Fehler 1"),
    ("dkms_build_failed", "make[2]: *** [scripts/Makefile.build:243: nv.o] 错误 1"),
    ("build_tool_missing", "make[1]: *** [Makefile:10: nv.o] Erreur 127"),
    # akmods, rpmbuild.
    ("build_tool_missing", AKMODS + "error: Failed build dependencies:\n\tgcc-c++ is needed by nvidia-kmod-3:590.48.01-1.fc43.x86_64"),
    ("kernel_headers_missing", "Building and installing nvidia-kmod [FAILED]\nCould not find files needed to compile modules for 6.17.10-300.fc43.x86_64\nAre the development files for kernel 6.17.10-300.fc43.x86_64 or the appropriate kernel-devel package installed?"),
    ("kernel_headers_missing", AKMODS + "error: Failed build dependencies:\n\tkernel-devel-uname-r = 6.17.10-300.fc43.x86_64 is needed by nvidia-kmod-3:580.65.06-1.fc43.x86_64"),
    ("dkms_build_failed", "Building and installing nvidia-kmod [FAILED]\nBuilding rpms failed; see /var/cache/akmods/nvidia/565.77-1-for-6.13.4-200.fc41.x86_64.failed.log for details"),
    # dnf 4 and 5, apt.
    ("packages_conflict", "Error: \n Problem: cannot install the best candidate for the job\n  - package nvidia-driver-3:580.65.06-1.el10.x86_64 is filtered out by modular filtering"),
    ("packages_conflict", " - package kmod-nvidia-3:580.65.06-1.el10.x86_64 is filtered out by exclude filtering"),
    ("packages_conflict", "E: Unable to locate package nvidia-driver-999"),
    ("packages_conflict", "No match for argument: nvidia-driver-cuda"),
    ("kernel_headers_missing", "E: Unable to locate package linux-headers-6.1.0-99-amd64"),
    ("packages_conflict", "W: GPG error: https://x InRelease: The following signatures couldn't be verified because the public key is not available: NO_PUBKEY A4B469963BF863CC"),
    ("package_manager_busy", "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 812 (unattended-upgr)"),
    ("packages_conflict", "All matches were filtered out by modular filtering for argument: cuda-drivers\nError: Unable to find a match: cuda-drivers"),
    ("packages_conflict", "Error: Transaction test error:\n  file /etc/x conflicts between attempted installs of a-3:560.35.03-2.el9.x86_64 and b-3:560.35.03-1.el9.x86_64"),
    ("packages_conflict", "Failed to resolve the transaction:\nProblem: package nvidia-driver-3:580.65.06-1.fc42.x86_64 requires x, but none of the providers can be installed"),
    ("packages_conflict", "E: dpkg was interrupted, you must manually run 'sudo dpkg --configure -a' to correct the problem."),
    ("archive_corrupt", "Error: Failed to download metadata for repo 'cuda-rhel9-x86_64': Cannot download repomd.xml: All mirrors were tried"),
    ("no_space", "Error Summary\nDisk Requirements:\n   At least 812MB more space needed on the / filesystem."),
    ("not_root", "Error: This command has to be run with superuser privileges (under the root user on most systems)."),
    ("dkms_build_failed", "gcc: fatal error: Killed signal terminated program cc1"),
    ("kernel_headers_missing", "/bin/sh: 1: scripts/basic/fixdep: not found\nmake[2]: *** [scripts/Makefile.build:244: x.o] Error 127"),
    # apt, dpkg, dnf, libdnf and rpm: their format strings.
    ("package_manager_busy", "E: Could not get lock /var/cache/apt/archives/lock"),
    ("package_manager_busy", "E: Unable to acquire the dpkg frontend lock (/var/lib/dpkg/lock-frontend), is another process using it?"),
    ("package_manager_busy", "dpkg: error: dpkg database lock was locked by another process with pid 812"),
    ("package_manager_busy", "Waiting for process with pid 812 to finish.\nError: Failed to obtain it."),
    ("package_manager_busy", "error: can't create transaction lock on /var/lib/rpm/.rpm.lock (Resource temporarily unavailable)"),
    ("not_root", "dpkg: error: requested operation requires superuser privilege"),
    ("no_space", "error: installing package cuda-13-0 needs 812MB more space on the / filesystem"),
    ("packages_conflict", "E: The repository 'https://x InRelease' is no longer signed."),
    ("packages_conflict", "W: GPG error: https://x InRelease: The following signatures were invalid: EXPKEYSIG A4B469963BF863CC"),
    ("packages_conflict", "W: OpenPGP signature verification failed: https://x InRelease: Missing key"),
    ("packages_conflict", "W: GPG error: https://x InRelease: At least one invalid signature was encountered."),
    ("packages_conflict", "E: Conflicting values set for option Trusted regarding source https://x/ /"),
    ("packages_conflict", "error: public key unavailable for cuda-13-0.rpm"),
    ("packages_conflict", "Import of key(s) didn't help, wrong key(s)?"),
    ("packages_conflict", 'The GPG keys listed for the "cuda-rhel9" repository are already installed but they are not correct for this package.'),
    ("archive_corrupt", "Error: Error downloading packages:\n  No more mirrors to try"),
    ("kernel_headers_missing", "E: Package 'linux-headers-6.1.0-9-amd64' has no installation candidate"),
    ("packages_conflict", "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution)."),
    ("packages_conflict", "E: Unsatisfied dependencies:"),
    ("packages_conflict", "error: Failed dependencies:\n\tx is needed by y"),
    # DKMS 2 to 3.
    ("dkms_build_failed", "Error! Aborting build of module nvidia/580.95.05 for kernel 6.1.0-9-amd64 (x86_64) due to missing BUILD_DEPENDS: x."),
    ("kernel_headers_missing", "Error! Your kernel headers for kernel 6.1.0-9-amd64 cannot be found at /lib/modules/6.1.0-9-amd64/build"),
]  # fmt: skip


@pytest.mark.parametrize(("cause", "text"), FAILED)
def test_a_message_of_a_failure_has_its_cause(cause: str, text: str) -> None:
    answer = explain.KINDS["installer-log"].read(text.encode())
    assert answer["causes"] == [cause] and answer["installer_failed"] is True
    assert answer["problems"][0]["line"]


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (" cuda-drivers : Depends: libnvidia-gl-418 (>= 418.40.04) but it is not going to be installed\n", "packages_conflict"),
        (" nvidia-dkms-530 : Depends: nvidia-kernel-common-530 (>= 530.41.03) but 530.30.02-0ubuntu1 is to be installed\n", "packages_conflict"),
        (" xserver-xorg-video-nvidia-495 : PreDepends: xorg-video-abi-24 but it is not installable or\n", "packages_conflict"),
        ("Resolving Linux kernel version...\nCould not resolve Linux kernel version\n", "kernel_headers_missing"),
        ("NOTE: Skipping kernel installation since no kernel module package kmod-nvidia-470.57.02-4.18.0-305.17.1 for kernel version "
         "4.18.0-305.17.1.el8_4 and NVIDIA driver 470.57.02 could be found\nError:\n Problem 1: package kernel-core-4.18.0-305.17.1.el8_4.x86_64 "
         "is filtered out by exclude filtering\n", "precompiled_module_missing"),
    ],
)  # fmt: skip
def test_a_part_of_an_output_without_its_heading(log: str, code: str) -> None:
    assert messages.explain("installer-log", log)[0].code == code


@pytest.mark.parametrize(
    ("text", "failed", "words"),
    [
        (HEAD + "-> Installing NVIDIA driver version 570.133.07.\n", None, "neither a failure nor the end"),
        (
            HEAD + "-> Installation of the NVIDIA driver (version: 570.133.07) is now complete.\n",
            False,
            "was completed",
        ),
        ("Installing : nvidia-driver-3:580.65.06-1.el10.x86_64  1/9\n\nComplete!\n", False, "was completed"),
        ("Installing : nvidia-driver-3:580.65.06-1.el10.x86_64  1/9\n", None, "neither a failure nor the end"),
        ("Building and installing nvidia-kmod [  OK  ]\n", False, "was completed"),
    ],
)
def test_no_failure_is_reported_only_with_a_positive_end(text: str, failed: bool | None, words: str) -> None:
    answer = explain.KINDS["installer-log"].read(text.encode())
    assert answer["installer_failed"] is failed
    assert words in explain.KINDS["installer-log"].describe(answer)[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("package nvidia-open-3:580.65.06-1.el10.x86_64 is filtered out", {"driver_version": "580.65.06"}),
        ("nvidia-driver-550 : Depends: nvidia-kernel-550 (= 550.54.15-0ubuntu1) but it is not", {"driver_version": "550.54.15"}),
        ("nvidia-driver : Depends: nvidia-alternative (= 535.216.01-1~deb12u1)", {"driver_version": "535.216.01"}),
        ("error: builder for '/nix/store/x-nvidia-x11-550.90.07-6.6.36.drv' failed", {"driver_version": "550.90.07", "kernel": "6.6.36"}),
        ("Unpacking cuda-drivers (580.65.06-1) ...", {"driver_version": "580.65.06"}),
        ("see /var/cache/akmods/nvidia/565.77-1-for-6.13.4-200.fc41.x86_64.failed.log", {"driver_version": "565.77", "kernel": "6.13.4-200.fc41.x86_64"}),
        ("nvidia: version magic '6.1.0-20-amd64 SMP ' should be '6.1.0-21-amd64 SMP '", {"kernel": "6.1.0-21-amd64"}),
        ('/proc/version string: "Linux version 5.14.0-570.el9.x86_64 (mockbuild', {"kernel": "5.14.0-570.el9.x86_64"}),
        ("Setting up nvidia-dkms-580-open (580.95.05-0ubuntu0.24.04.1) ...", {"driver_version": "580.95.05"}),
        ("Building initial module for 6.8.0-88-generic\nlinux-headers-6.8.0-88-generic", {"driver_version": None, "kernel": "6.8.0-88-generic"}),
    ],
)  # fmt: skip
def test_versions_with_epochs_suffixes_and_names_of_other_distributions(text: str, expected: dict[str, Any]) -> None:
    answer = installer_log.read(text)
    assert {key: answer[key] for key in expected} == expected


def test_make_alone_is_not_called_dkms() -> None:
    answer = explain.KINDS["installer-log"].read(b"make[1]: *** [Makefile:1: modules] Error 2\n")
    assert "DKMS" not in " ".join(explain.KINDS["installer-log"].describe(answer))
