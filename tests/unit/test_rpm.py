"""The RPM database, version locks, module streams and .repo files as values."""

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.facts import public
from plugins.module_utils.gpu_ready.facts import rpm as rpm_facts
from plugins.module_utils.gpu_ready.facts.model import AptFacts, HidingLine, YumFacts
from plugins.module_utils.gpu_ready.packaging import rpm, yum_repos, yum_sections
from plugins.module_utils.gpu_ready.packaging.dpkg_status import STATUS
from plugins.module_utils.gpu_ready.packaging.family import uses_rpm
from plugins.module_utils.gpu_ready.packaging.repository import format_repo_file, parse_repository
from plugins.plugin_utils.gpu_ready.completion import complete
from tests.unit.recorded import RecordedHost

LOCKS = "/etc/dnf/plugins/versionlock.list"
ROCKY = 'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.6"\nPLATFORM_ID="platform:el9"\n'
ROWS = (
    "bash\t(none)\t5.1.8\t9.el9\tx86_64\nnvidia-driver\t3\t580.95.05\t1.el9\tx86_64\n"
    "kernel-core\t0\t5.14.0\t503.el9\tx86_64\nkernel-core\t0\t5.14.0\t570.el9\tx86_64\ngpg-pubkey\t(none)\td6839024\t6b012e80\t(none)\n"
)


def test_packages_are_named_as_rpm_prints_them() -> None:
    found = rpm.parse_packages(ROWS)
    assert found[1].evr == "3:580.95.05-1.el9" and found[1].full == "nvidia-driver-580.95.05-1.el9.x86_64"
    assert found[2].evr == "5.14.0-503.el9"
    assert rpm.newest(found)["kernel-core"].release == "570.el9"
    assert rpm.duplicate_names(found) == []


@pytest.mark.parametrize(
    ("left", "right", "order"),
    [
        ("1.10", "1.9", 1),
        ("1.0", "1.0", 0),
        ("1.0~rc1", "1.0", -1),
        ("1.0^git1", "1.0", 1),
        ("1.0^git1", "1.0.1", -1),
        ("1:1", "2", 1),
        ("580.95.05-1.el9", "580.95.05-2.el9", -1),
        ("580.95.05", "580.95.05-2.el9", 0),
        ("1.a", "1.1", -1),
        ("2.0.1", "2.0", 1),
        ("10.001", "10.1", 0),
        ("1.rc.2", "1.rc.1", 1),
        ("1~rc2", "1~rc1", 1),
        ("1^git2", "1^git1", 1),
        ("2-1.el9_6", "2-1.el9_4", 1),
        ("1.el9", "1.el9", 0),
        ("1.b", "1.a", 1),
        ("1.0^", "1.0~", 1),
    ],
)
def test_versions_are_ordered_as_rpm_does(left: str, right: str, order: int) -> None:
    assert rpm.compare(left, right) == order and rpm.compare(right, left) == -order


def test_the_packages_that_a_user_asked_yum_for() -> None:
    """One directory per package: LETTER/CHECKSUM-NAME-VERSION-RELEASE-ARCH (yum 3, rpmsack.py)."""
    reasons = {
        "n/0a-nvidia-driver-580.95-1.el7-x86_64": "user\n",
        "l/0b-libx-1-1-noarch": "dep",
        "z/0c-zsh-5-1-x86_64": "user",
    }
    host = RecordedHost(files={f"{rpm.YUMDB}/{name}/reason": text for name, text in reasons.items()})
    assert rpm.read_user_installed(host) == {"nvidia-driver", "zsh"}


def test_version_locks_of_all_three_managers() -> None:
    assert rpm.parse_locks("# Added lock\nnvidia-driver-3:580.95.05-1.el9.*\n\n!bad-0:1-1.*\n") == ["nvidia-driver"]
    assert rpm.parse_locks("0:docker-ce-28.3.2-1.el7.*\n3:nvidia-driver-580.95.05-1.el7.*\nbash\n") == [
        "bash",
        "docker-ce",
        "nvidia-driver",
    ]
    text = (
        'version = "1.0"\n\n[[packages]]\nname = "docker-ce"\ncomment = "x"\n\n[[packages.conditions]]\nkey = "evr"\n'
        'comparator = "="\nvalue = "28.3.3-1"\n\n[[packages]]\nname = "never"\n[[packages.conditions]]\nkey = "evr"\n'
        'comparator = "!="\nvalue = "1-1"\n'
    )
    assert rpm.parse_locks_toml(text) == ["docker-ce"]
    assert rpm.parse_locks_toml('packages = []\nversion = "1.0"\n') == []


def test_streams_of_both_dnf() -> None:
    assert rpm.parse_stream_file(
        "[a]\nname=a\nstream=1\nprofiles=\nstate=enabled\n[b]\nstream=2\nstate=disabled\n"
    ) == {"a": "1"}
    assert rpm.parse_stream_file("[a]\nname=a\nstream=\nprofiles=\nstate=\n") == {}
    text = '[modules]\n[modules.a]\nenabled_stream = "580-open"\nstate = "Enabled"\n[modules.b]\nenabled_stream = ""\nstate = "Available"\n'
    assert rpm.parse_streams_toml(text) == {"a": "580-open"}


@pytest.mark.parametrize(
    ("version", "same"),
    [("d6839024", True), ("b31eec9d30382b5b98a2c5801d7127ecd6839024", True), ("d6839025", False), ("", False)],
)
def test_a_key_of_the_database_is_known_by_the_end_of_its_fingerprint(version: str, same: bool) -> None:
    assert rpm.is_same_key(version, "B31EEC9D30382B5B98A2C5801D7127ECD6839024") is same


REPO = "# ours\n[baseos]\nname=BaseOS\nenabled=1\n\n[crb]\nname=CRB\nenabled = 0 \ngpgcheck=1\n[crb-source]\nenabled=0\n[always]\nname=x\n"


def test_sections_are_switched_and_every_other_byte_stays() -> None:
    assert yum_repos.parse_sections(REPO) == {"baseos": True, "crb": False, "crb-source": False, "always": True}
    after = yum_sections.enable_sections(REPO, ["crb", "baseos"])
    assert after == REPO.replace("enabled = 0 ", "enabled = 1 ")
    assert yum_sections.disable_sections(after, ["crb"]) == REPO
    crlf = REPO.replace("\n", "\r\n")
    assert yum_sections.disable_sections(yum_sections.enable_sections(crlf, ["crb"]), ["crb"]) == crlf


def test_a_repository_of_ours_names_its_key() -> None:
    values = {"id": "cuda-rhel9", "kind": "rpm", "url": "https://m/x/", "key_url": "", "gpgcheck": True}
    repository = parse_repository(values)
    assert repository.list_file == "/etc/yum.repos.d/gpu-ready-cuda-rhel9.repo"
    text = format_repo_file(repository)
    assert yum_repos.parse_sections(text) == {"gpu-ready-cuda-rhel9": True}
    assert "gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-gpu-ready-cuda-rhel9\n" in text
    assert "baseurl=https://m/x/\n" in text and "gpgcheck=1\nrepo_gpgcheck=0\n" in text


def test_a_host_with_rpms_is_asked_rpm_and_no_dpkg() -> None:
    host = RecordedHost(
        files={
            "/etc/os-release": ROCKY,
            "/etc/yum.repos.d/rocky.repo": REPO,
            "/etc/yum.repos.d/README": "x",
            "/etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9": "x",
            "/etc/dnf/modules.d/nvidia-driver.module": "[nvidia-driver]\nstream=580-open\nstate=enabled\n",
            LOCKS: "nvidia-driver-3:580.95.05-1.el9.*\n",
        },
        programs={tuple(rpm.QUERY): Result(0, ROWS, "")},
    )
    found = complete.collect_facts(host)
    assert found.packages.installed["nvidia-driver"] == "3:580.95.05-1.el9"
    assert found.packages.held == ["nvidia-driver"] and found.packages.broken == []
    assert found.yum == YumFacts(
        sources={"/etc/yum.repos.d/rocky.repo": REPO},
        keyrings=["RPM-GPG-KEY-Rocky-9"],
        streams={"nvidia-driver": "580-open"},
        hiding=[HidingLine(LOCKS, 1, "nvidia-driver-3:580.95.05-1.el9.*", ["nvidia-driver"], locks=True)],
    )
    assert found.apt == AptFacts() and "yum" not in public.public_json(found)
    # The second call asks for the vendor of the driver; a host without a driver does not pay for it.
    assert [argv[1:4] for argv in host.asked if argv[0] == "rpm"] == [
        tuple(rpm.QUERY[1:4]), ("-q", "--qf", rpm_facts.VENDOR),
    ]  # fmt: skip
    assert {path for path in host.opened if "dpkg" in path or "/etc/apt" in path} == {STATUS}


def test_a_host_with_apt_is_asked_nothing_of_rpm() -> None:
    host = RecordedHost(files={"/etc/os-release": "ID=debian\nVERSION_ID=12\n"})
    assert complete.collect_facts(host).yum == YumFacts()
    assert not [argv for argv in host.asked if argv[0] in ("rpm", "dnf", "yum")]


@pytest.mark.parametrize(
    ("answer", "more", "broken"),
    [
        (Result(0, ROWS, ""), {}, []),
        (Result(1, "", "error: rpmdb open failed"), {}, ["rpm"]),
        (Result(0, ROWS + "bash\t(none)\t5.2\t1.el9\tx86_64\n", ""), {}, ["bash"]),
        (Result(0, ROWS, ""), {"/var/lib/yum/transaction-all.2026-11-21.06:00.00": ""}, ["yum"]),
        (Result(0, ROWS, ""), {rpm.PENDING: '["bash", "removed"]'}, ["bash"]),
    ],
)
def test_what_a_killed_run_left_is_seen(answer: Result, more: dict[str, str], broken: list[str]) -> None:
    host = RecordedHost(files=more, programs={tuple(rpm.QUERY): answer})
    assert rpm_facts.rpm_packages(host).broken == broken


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, False),
        ({"/usr/bin/rpm": ""}, True),
        ({"/usr/bin/rpm": "", "/usr/bin/dpkg": "", "/var/lib/dpkg/status": "\n"}, True),  # Fedora's package of dpkg
        ({"/usr/bin/rpm": "", "/var/lib/dpkg/status": "Package: rpm\n"}, False),  # Debian's package of rpm
    ],
)
def test_a_host_has_rpms_unless_dpkg_has_packages(files: dict[str, str], expected: bool) -> None:
    assert uses_rpm(RecordedHost(files=files)) is expected
