"""Packages that the owner hides from the package manager are named before the first change."""

from typing import Any

import pytest

from plugins.module_utils.gpu_ready.facts import apt as apt_facts
from plugins.module_utils.gpu_ready.facts import rpm as rpm_facts
from tests.unit.goldens import decide
from tests.unit.hosts import T4, bare, having, installed
from tests.unit.recorded import RecordedHost

EL9 = "5.14.0-687.5.1.el9_8"


def codes(distro: str, files: dict[str, str], **given: Any) -> list[tuple[str, str]]:
    """The refusals of a bare host with these files, as code and message."""
    host, facts = RecordedHost(files=files), bare(T4, distro=distro)
    if distro.startswith(("ubuntu", "debian")):
        read = apt_facts.apt_facts(host)
        facts = having(facts, apt={"pins": read.pins, "preferences": read.preferences})
    else:
        facts = having(facts, yum={"hiding": rpm_facts.yum_facts(host, "9.8").hiding})
    plan = decide(facts, **given)
    assert bool(plan.refusals) != bool(plan.steps)
    return [(one.code, one.message) for one in plan.refusals]


def stanza(packages: str, pin: str, priority: int) -> str:
    return f"Package: {packages}\nPin: {pin}\nPin-Priority: {priority}\n"


@pytest.mark.parametrize(
    ("path", "text", "place"),
    [
        ("/etc/apt/preferences.d/no-nvidia", stanza("*nvidia*", "release *", -1), "no-nvidia line 1 (priority -1)"),
        ("/etc/apt/preferences", "\n" + stanza("/^nvidia-/", "version *", -10), "preferences line 2 (priority -10)"),
        ("/etc/apt/preferences", stanza("*nvidia*", "release o=Ubuntu", -1), ""),
        ("/etc/apt/preferences", stanza("*nvidia*", "version *", 1), ""),
        ("/etc/apt/preferences.d/no-nvidia.bak", stanza("*nvidia*", "release *", -1), ""),
        (
            "/etc/apt/preferences",
            stanza("nvidia-*-server*", "release *", -1)
            + "\n"
            + stanza("nvidia-dkms-580-server-open nvidia-headless-no-dkms-580-server-open nvidia-utils-580-server", "version *", 500),
            "",
        ),
    ],
)  # fmt: skip
def test_a_pin_that_forbids_the_driver_is_refused(path: str, text: str, place: str) -> None:
    found = codes("ubuntu2404", {path: text})
    assert [code for code, _ in found] == (["package_hidden"] if place else [])
    if place:
        assert place in found[0][1] and "hides nvidia-" in found[0][1]


LOCKS = "/etc/dnf/plugins/versionlock.list"


@pytest.mark.parametrize(
    ("files", "place"),
    [
        ({"/etc/dnf/dnf.conf": "[main]\nexclude=kernel*\n"}, "/etc/dnf/dnf.conf line 2 (exclude=kernel*) hides kernel-devel"),
        ({"/etc/dnf/dnf.conf": "[main]\nexcludepkgs = foo,\n  kmod-*\n"}, "/etc/dnf/dnf.conf line 3 (kmod-*) hides kmod-nvidia"),
        ({LOCKS: "kernel-devel-0:5.14.0-503.el9.*\n"}, LOCKS + " line 1 (kernel-devel-0:5.14.0-503.el9.*) hides"),
        ({LOCKS: f"kernel-devel-0:5.14.0-503.el9.*\nkernel-devel-0:{EL9}.*\n"}, ""),
        ({LOCKS: "kernel-devel\n"}, ""),
        ({"/etc/dnf/dnf.conf": "[main]\nexclude=podman\n"}, ""),
        ({"/etc/yum.repos.d/x.repo": "[x]\nexclude=kernel*\nenabled=1\n"}, ""),
    ],
)  # fmt: skip
def test_what_the_owner_hides_from_dnf_is_refused(files: dict[str, str], place: str) -> None:
    """A line of one repository hides what that has; what another one has is known to dnf alone."""
    found = codes("el9", files)
    assert [code for code, _ in found] == (["package_hidden"] if place else [])
    assert not place or place in found[0][1]


def test_what_is_installed_needs_no_source() -> None:
    host = installed("ubuntu2404", T4, "distro", "580.95.05", "open")
    text = stanza("*nvidia-dkms*", "release *", -1)
    assert decide(having(host, apt={"pins": {"x": text}}), nvidia_driver_branch="580").refusals == []
    refused = decide(having(host, apt={"pins": {"x": text}}), nvidia_driver_branch="595").refusals
    assert [one.code for one in refused] == ["package_hidden"]
