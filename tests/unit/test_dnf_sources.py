"""dnf where repositories of others are broken, where a section of others is used, and where the host hides packages."""

import json
import re

import pytest

from plugins.module_utils.gpu_ready.base import manifest
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.packaging import dnf, dnf_errors, dnf_filters
from plugins.module_utils.gpu_ready.packaging.manager import PackageChange, PackageError, PackageSpec
from tests.unit.recorded import RecordedHost
from tests.unit.test_dnf import Scripted

DEAD = "/etc/yum.repos.d/hashicorp.repo"
FILES = {DEAD: "[hashicorp]\nbaseurl=https://rpm.releases.hashicorp.example/x\n"}
IGNORED_4 = """Errors during downloading metadata for repository 'hashicorp':
  - Status code: 404 for https://rpm.releases.hashicorp.example/x/repodata/repomd.xml (IP: 2600::1)
Error: Failed to download metadata for repo 'hashicorp': Cannot download repomd.xml: All mirrors were tried
Ignoring repositories: hashicorp
"""
"""Printed by dnf 4.19 on Fedora 37 (a public report)."""
IGNORED_5 = """>>> Status code: 404 for https://rpm.releases.hashicorp.example/x/repodata/repomd.xml (IP: 2600::1)
>>> Usable URL not found
Failed to download metadata (baseurl: "https://rpm.releases.hashicorp.example/x") for repository "hashicorp": Usable URL not found
"""
IGNORED_YUM = "https://rpm.releases.hashicorp.example/x/repodata/repomd.xml: [Errno 14] HTTP Error 404 - Not Found\nfailure: repodata/repomd.xml from hashicorp: [Errno 256] No more mirrors to try.\n"


class Recording(Scripted):
    """A scripted host that keeps complete calls."""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        self.given = [*getattr(self, "given", []), argv]
        return super().run(argv, timeout, env)


@pytest.mark.parametrize("text", [IGNORED_4, IGNORED_5, IGNORED_YUM])
def test_a_broken_repository_of_others_is_a_warning_with_its_file(text: str) -> None:
    host = Recording({"-y makecache": Result(0, "", text)}, files=dict(FILES))
    manager = dnf.Dnf(host, wait=0.0)
    manager.update()
    (message,) = manager.failed_sources
    assert message.startswith(DEAD + ": the repository hashicorp could not be read (") and "404" in message
    assert "gpu_ready_mirror" not in message
    manager.offers(["docker-ce"])
    assert "--disablerepo=hashicorp" in host.given[-1] and "--disablerepo=hashicorp" not in host.given[0]
    assert "--setopt=*.skip_if_unavailable=1" in host.given[0]


@pytest.mark.parametrize("text", [IGNORED_4, IGNORED_5])
def test_a_package_that_no_source_offers_is_reported_with_what_was_not_read(text: str) -> None:
    answer = Result(1, "", text + "No match for argument: vault\nError: Unable to find a match: vault\n")
    manager = dnf.Dnf(Recording({"--assumeno install": answer}, files=dict(FILES)), wait=0.0)
    with pytest.raises(PackageError, match=rf"the package vault is in no package source.*Not read were: {DEAD}: .*404"):
        manager.plan_change("installing it", PackageChange([PackageSpec("vault")], [], []))


@pytest.mark.parametrize("program", ["/usr/bin/dnf", "/usr/bin/dnf5"])
def test_our_own_repository_must_be_read(program: str) -> None:
    text = IGNORED_4.replace("hashicorp", "gpu-ready-cuda-rhel9").replace("Ignoring repositories", "Note")
    host = Recording({"-y --repo=gpu-ready-cuda-rhel9": Result(1, "", text)}, program=program)
    manager = dnf.Dnf(host, wait=0.0)
    with pytest.raises(PackageError, match="gpu-ready-cuda-rhel9 could not be fetched.*404"):
        manager.read_repository("gpu-ready-cuda-rhel9")
    assert manager.failed_sources == []
    given = host.given[-1]
    strict = "--setopt=gpu-ready-*.skip_if_unavailable=0"
    assert given.index("--setopt=*.skip_if_unavailable=1") < given.index(strict)


def test_yum_is_not_given_two_options_for_the_repository_that_it_reads() -> None:
    """It applies them in the order of a Python 2 dictionary."""
    host = Recording({}, program="/usr/bin/yum")
    dnf.Dnf(host, wait=0.0).read_repository("x")
    assert [word for word in host.given[-1] if "skip_if" in word] == ["--setopt=x.skip_if_unavailable=0"]


def test_a_section_of_others_is_used_with_the_pinned_key_only() -> None:
    keyring = "/etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-cuda-rhel9"
    record = {"cuda-rhel9-x86_64": {"keyring": keyring, "gpgcheck": True, "repo_gpgcheck": False}}
    host = Recording({}, files={manifest.PATH: json.dumps({"adopted": record})})
    dnf.Dnf(host, wait=0.0).update()
    section = "--setopt=cuda-rhel9-x86_64."
    found = [word[len(section) :] for word in host.given[-1] if word.startswith(section)]
    assert found == ["gpgkey=file://" + keyring, "gpgcheck=1", "skip_if_unavailable=0"]


# ---- hidden packages --------------------------------------------------------------------------------------------------

CONF = "[main]\ngpgcheck=1\nexclude=*nvidia-container* nvidia-fabricmanager gdrcopy*\n  kernel-mft*\nbest=True\n"
"""As Azure's HPC images have it."""


@pytest.mark.parametrize(
    ("files", "name", "expected"),
    [
        ({"/etc/dnf/dnf.conf": CONF}, "nvidia-container-toolkit", "/etc/dnf/dnf.conf line 3 (exclude=*nvidia-"),
        ({"/etc/dnf/dnf.conf": CONF}, "nvidia-container-toolkit-1.17.4-1", "/etc/dnf/dnf.conf line 3"),
        ({"/etc/dnf/dnf.conf": CONF}, "kernel-mft", "/etc/dnf/dnf.conf line 4 (kernel-mft*)"),
        ({"/etc/dnf/dnf.conf": CONF}, "docker-ce", None),
        ({DEAD: "[x]\nexcludepkgs = mft*,docker-*\n"}, "docker-ce", DEAD + " line 2"),
        ({"/etc/yum.conf": "[main]\nexclude=*nvidia* *cuda*\n"}, "cuda-toolkit-12-9", "/etc/yum.conf line 2"),
        (
            {"/etc/dnf/plugins/versionlock.list": "# x\nnvidia-driver-3:570.86.10-1.el9.*\n"},
            "nvidia-driver",
            "/etc/dnf/plugins/versionlock.list line 2",
        ),
        (
            {"/etc/dnf/versionlock.toml": '[[packages]]\nname = "docker-ce"\n'},
            "docker-ce",
            "/etc/dnf/versionlock.toml line 2",
        ),
    ],
)
def test_the_line_that_hides_a_package_is_found(files: dict[str, str], name: str, expected: str | None) -> None:
    found = dnf_filters.find_hiding_lines(RecordedHost(files=files), name)
    assert len(found) == bool(expected) and (not expected or found[0].startswith(expected))


def test_a_link_to_the_same_file_is_read_once() -> None:
    host = RecordedHost(files={"/etc/dnf/dnf.conf": CONF}, links={"/etc/yum.conf": "dnf/dnf.conf"})
    assert len(dnf_filters.find_hiding_lines(host, "nvidia-fabricmanager")) == 1


@pytest.mark.parametrize(
    "text",
    [
        "All matches were filtered out by exclude filtering for argument: nvidia-container-toolkit\nError: Unable to find a match: nvidia-container-toolkit\n",
        "Failed to resolve the transaction:\nArgument 'nvidia-container-toolkit' matches only excluded packages.\n",
        "Error: \n Problem: package docker-gpu-1-1.noarch requires nvidia-container-toolkit, but none of the providers can be installed\n  - package nvidia-container-toolkit-1.17.4-1.x86_64 is filtered out by exclude filtering\n",
        "Failed to resolve the transaction:\nNo match for argument: nvidia-container-toolkit\n",
    ],
)
def test_a_message_about_a_hidden_package_names_file_and_line(text: str) -> None:
    assert dnf_errors.find_hidden_names(text) == ["nvidia-container-toolkit"]
    manager = dnf.Dnf(Scripted({"--assumeno": Result(1, "", text)}, files={"/etc/dnf/dnf.conf": CONF}), wait=0.0)
    with pytest.raises(PackageError, match=re.escape("Hidden by /etc/dnf/dnf.conf line 3 (exclude=*nvidia-container*")):
        manager.simulate("installing it", ["install", "nvidia-container-toolkit"])


def test_a_version_that_is_not_on_offer_names_the_lock_that_hides_it() -> None:
    files = {"/etc/dnf/plugins/versionlock.list": "docker-ce-3:28.5.1-1.el9.*\n"}
    host = Scripted({"-y list": Result(0, "docker-ce.x86_64 3:28.5.1-1.el9 docker-ce-stable\n", "")}, files=files)
    with pytest.raises(PackageError, match=r"offered: 3:28\.5\.1-1\.el9.*Hidden by .*versionlock\.list line 1"):
        dnf.Dnf(host, wait=0.0).resolve([PackageSpec("docker-ce", "29*")])
