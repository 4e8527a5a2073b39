"""CUDA toolkits by packages and by NVIDIA's installer, side by side, on a host of apt's and one of dnf's.

A playbook with the role alone runs, as a site may write one; the complete provisioning with driver and containers is in other files.

`make test` has the host of apt's, with packages, installers beside them, and removal; `make campaign` also that of dnf's, defaults, profiles,
refusals, and installers that are damaged or fail halfway.
"""

import hashlib
import re
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.fleet import Fleet, Run, hosts_of

pytestmark = pytest.mark.lab

DEB, RPM = "cuda-deb", "cuda-rpm"
HOSTS = hosts_of("cuda")
LAST = HOSTS[-1]
"""The host of dnf's in the campaign, which has both."""
MIRROR = "http://10.199.0.1:8080"
PLAYBOOK = (
    "- {name: Toolkits alone, hosts: all, gather_facts: false, become: true, roles: [gpu_ready.nodes.cuda_toolkit]}\n"
)
DRIVER = {"nvidia_driver_source": "runfile", "nvidia_driver_branch": "580"}
"""The plan needs to know a driver to judge toolkits by; none is installed here."""
CLEAN = """
for u in /usr/local/cuda-*/bin/cuda-uninstaller; do [ ! -e $u ] || $u --silent; done
if command -v apt-get >/dev/null; then
  n=$(dpkg-query -W -f '${Package}\\n' | grep -E -- '-1[23]-[0-9](-config-common)?$|^cuda-toolkit|^libxml2$')
  [ -z "$n" ] || DEBIAN_FRONTEND=noninteractive apt-get -qq -y purge $n
else
  n=$(rpm -qa --qf '%{NAME}\\n' | grep -E -- '-1[23]-[0-9](-config-common)?$|^cuda-toolkit')
  [ -z "$n" ] || dnf -q -y remove $n
fi
update-alternatives --remove-all cuda 2>/dev/null
rm -rf /usr/local/cuda* /var/lib/gpu-ready /etc/profile.d/cuda.* /etc/ld.so.conf.d/*cuda* /var/log/cuda-*
rm -f /etc/apt/sources.list.d/gpu-ready-* /etc/apt/preferences.d/gpu-ready-* /etc/yum.repos.d/gpu-ready-*
"""
PACKAGES = "if command -v dpkg-query >/dev/null; then dpkg-query -W -f '${Package} ${Version}\\n'; else rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\\n'; fi"
TRACES = """
ls -d /usr/local/cuda* /etc/profile.d/cuda.* /etc/ld.so.conf.d/*cuda* /var/lib/gpu-ready /var/log/cuda-* /usr/share/man/man1/cuda* \
  /var/tmp/gpu-ready* /var/lib/alternatives/cuda /var/lib/dpkg/alternatives/cuda 2>/dev/null
"""
DRIVERS = re.compile(r"^(?:cuda-drivers|nvidia-(?!container)|libnvidia|kmod-nvidia|xserver-xorg-video-nvidia|libcuda1)")


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("cuda")
    fleet.up()
    for host in HOSTS:
        fleet.ssh(host, CLEAN, check=False)
    return fleet


@pytest.fixture(scope="module")
def playbook(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("site") / "toolkits.yml"
    path.write_text(PLAYBOOK)
    return str(path)


@pytest.fixture
def broken_mirror(fleet: Fleet) -> Iterator[Any]:
    """Make the vendor mirror answer wrongly until the end of the test."""
    yield fleet.set_mirror_rules
    fleet.set_mirror_rules(None)


def play(fleet: Fleet, playbook: str, *limit: str, holds: Sequence[str] = (), **settings: Any) -> Run:
    options = ("--limit", ",".join(limit)) if limit else ()
    return fleet.play(*options, playbook=playbook, extra=DRIVER | settings, holds=holds)


def packages(fleet: Fleet, host: str) -> dict[str, str]:
    return dict(line.split(" ", 1) for line in fleet.ssh(host, PACKAGES).splitlines())


def release(fleet: Fleet, host: str, directory: str = "/usr/local/cuda") -> str:
    """The release that a toolkit states, with that of nvcc."""
    text = fleet.ssh(host, f"cat {directory}/version.json; {directory}/bin/nvcc --version")
    found = re.search(r'"version" : "([\d.]+)"', text)
    assert found and f"release {'.'.join(found[1].split('.')[:2])}" in text
    return found[1]


# ---- packages -------------------------------------------------------------------------------------------------------


def test_an_exact_release_is_installed_as_packages_without_a_driver(fleet: Fleet, playbook: str) -> None:
    before = {host: packages(fleet, host) for host in HOSTS}
    checked = fleet.play("--check", extra=DRIVER | {"cuda_toolkit_versions": ["12.9.0"]})
    assert checked.rc == 0 and {host: packages(fleet, host) for host in HOSTS} == before
    done = play(
        fleet,
        playbook,
        cuda_toolkit_versions=["12.9.0"],
        holds=["cuda_toolkit.repository", "cuda_toolkit.install", "cuda_toolkit.default", "cuda_toolkit.profile"],
    )
    for host in HOSTS:
        assert done.rc == 0, done.failures(host)
        steps = [step for step in done.steps(host) if step.startswith("cuda_toolkit.")]
        assert steps == [f"cuda_toolkit.{step}" for step in ("repository", "install", "default", "profile")]
        assert [step for step in checked.steps(host) if step.startswith("cuda_toolkit.")] == steps
        assert done.changed_steps(host) == steps
        after = packages(fleet, host)
        assert after["cuda-toolkit-12-9"].startswith("12.9.0-")
        assert after["cuda-nvcc-12-9"].startswith("12.9.41-")  # not the newest that the metapackage would take
        assert release(fleet, host) == "12.9.0"
        new = {name for name in after if after[name] != before[host].get(name)}
        assert not [name for name in new if DRIVERS.match(name)], new
        assert not {"cuda", "cuda-12-9", "cuda-runtime-12-9"} & new


def test_upgrade_within_the_version(fleet: Fleet, playbook: str) -> None:
    up = play(fleet, playbook, cuda_toolkit_versions=["12.9.1"])
    for host in HOSTS:
        assert up.rc == 0, up.failures(host)
        assert up.changed_steps(host) == ["cuda_toolkit.install"]
        assert release(fleet, host) == "12.9.1"
        assert packages(fleet, host)["cuda-nvcc-12-9"].startswith("12.9.86-")


# ---- installers -----------------------------------------------------------------------------------------------------


@pytest.mark.long  # in every run test_runfile.py has a driver's installer with another checksum
def test_an_installer_is_verified_before_any_change(fleet: Fleet, playbook: str, broken_mirror: Any) -> None:
    settings = {"cuda_toolkit_source": "runfile", "cuda_toolkit_versions": ["12.8", "12.9"]}
    before = {host: fleet.ssh(host, TRACES, check=False) for host in HOSTS}
    broken_mirror({"*12.8.2_570*": {"corrupt": True}})
    failed = play(fleet, playbook, **settings)
    for host in HOSTS:
        assert re.search("12.8.2_570.* has md5 .* Nothing was changed", failed.failures(host)), failed.failures(host)
    assert {host: fleet.ssh(host, TRACES, check=False) for host in HOSTS} == before


@pytest.mark.long
def test_the_cause_of_an_installer_that_fails_halfway(fleet: Fleet, playbook: str) -> None:
    """The next test repairs what it leaves, as the next run does."""
    fleet.ssh(DEB, "mkdir /usr/local/cuda-12.8; mount -t tmpfs -o size=16k none /usr/local/cuda-12.8")
    try:
        failed = play(fleet, playbook, DEB, cuda_toolkit_source="runfile", cuda_toolkit_versions=["12.8", "12.9"])
        assert re.search("a disk is full.*No space left on device.*cuda-installer.log", failed.failures(DEB))
    finally:
        fleet.ssh(DEB, "cp -a /usr/local/cuda-12.8 /tmp/half; umount /usr/local/cuda-12.8; cp -a /tmp/half/. /usr/local/cuda-12.8; rm -r /tmp/half")  # fmt: skip
    assert '"complete": false' in fleet.ssh(DEB, "cat /var/lib/gpu-ready/cuda/12.8.json")


def test_installers_beside_packages_keep_the_configured_default(fleet: Fleet, playbook: str, tmp_path: Path) -> None:
    """12.8 comes from the server by its md5, 13.4 (no driver in the name) as a file of the control node by its sha256."""
    url = f"{MIRROR}/developer.download.nvidia.com/compute/cuda/13.4.2/local_installers/cuda_13.4.2_linux.run"
    file = tmp_path / "cuda_13.4.2_linux.run"
    file.write_bytes(urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url, timeout=60).read())
    sha256 = hashlib.sha256(file.read_bytes()).hexdigest()
    settings: dict[str, Any] = {
        "cuda_toolkit_source": "runfile",
        "cuda_toolkit_versions": ["12.8", "12.9", "13.4"],
        "cuda_toolkit_default": "12.9",
        "cuda_toolkit_runfiles": {"13.4": {"file": str(file), "sha256": sha256}},
    }
    before = {host: packages(fleet, host) for host in HOSTS}
    done = play(fleet, playbook, **settings, holds=["cuda_toolkit.runfile"])
    second = play(fleet, playbook, **settings)
    for host in HOSTS:
        assert done.rc == 0, done.failures(host)
        assert done.changed_steps(host) == ["cuda_toolkit.runfile"]
        found = [release(fleet, host, f"/usr/local/cuda-{version}") for version in ("12.8", "12.9", "13.4")]
        assert found == ["12.8.2", "12.9.1", "13.4.2"]
        assert fleet.ssh(host, "readlink -f /usr/local/cuda").strip() == "/usr/local/cuda-12.9"
        new = set(packages(fleet, host)) - set(before[host])
        assert new <= {"libxml2", "libicu72"} and not [name for name in new if DRIVERS.match(name)]
        traces = fleet.ssh(host, TRACES, check=False)
        assert "man1" not in traces and "gpu-ready-runfile" not in traces
        assert "cuda_13.4.run" not in fleet.ssh(host, "ls /var/lib/gpu-ready")
        assert second.rc == 0 and second.changed(host) == []


@pytest.mark.long
def test_another_source_is_refused_with_a_remedy(fleet: Fleet, playbook: str) -> None:
    failed = play(fleet, playbook, cuda_toolkit_source="runfile", cuda_toolkit_versions=["12.9.0"])
    for host in HOSTS:
        words = failed.failures(host)
        assert "installed from packages, not from NVIDIA's installer" in words and "cuda_toolkit_remove" in words
        assert failed.changed(host) == []
    failed = play(fleet, playbook, DEB, cuda_toolkit_versions=["13.4"], nvidia_driver_branch="535")
    assert "13.4 needs driver 580" in failed.failures(DEB)
    assert "set cuda_toolkit_versions to 12.9, the newest that works here" in failed.failures(DEB)


@pytest.mark.long
def test_the_default_changes_to_an_installers_toolkit_and_back(fleet: Fleet, playbook: str) -> None:
    settings = {"cuda_toolkit_versions": ["12.9", "13.4"]}
    for version in ("13.4", "12.9"):
        moved = play(fleet, playbook, **settings, cuda_toolkit_default=version)
        for host in HOSTS:
            assert moved.rc == 0, moved.failures(host)
            assert moved.changed_steps(host) == ["cuda_toolkit.default"]
            assert release(fleet, host).startswith(version)


# ---- login shells ---------------------------------------------------------------------------------------------------

SHELLS = {"sh": "sh -eu", "bash": "bash --norc -eu", "dash": "dash -eu", "zsh": "zsh -f -eu", "tcsh": "tcsh -f"}


@pytest.mark.long
def test_login_shells_find_the_toolkit_once_in_every_shell(fleet: Fleet, playbook: str) -> None:
    fleet.ssh(DEB, "DEBIAN_FRONTEND=noninteractive apt-get -qq -y --no-install-recommends install dash zsh tcsh")
    for shell, call in SHELLS.items():
        word, file = ("source", "cuda.csh") if shell == "tcsh" else (".", "cuda.sh")
        for times in (1, 2):
            script = "\n".join([f"{word} /etc/profile.d/{file}"] * times + ["nvcc --version", "env"])
            found = fleet.ssh(DEB, f"env -i PATH=/usr/bin:/bin {call} <<'END'\n{script}\nEND\n")
            assert "Cuda compilation tools" in found, shell
            assert "\nPATH=/usr/local/cuda/bin:/usr/bin:/bin\n" in found, (shell, times, found)
            assert "\nLD_LIBRARY_PATH=/usr/local/cuda/lib64:/usr/local/cuda/extras/CUPTI/lib64\n" in found, (
                shell,
                times,
            )
    assert "Cuda compilation tools" in fleet.ssh(DEB, "env -i bash -lc 'nvcc --version'")
    assert "Cuda compilation tools" in fleet.ssh(RPM, "env -i bash -lc 'nvcc --version'")


@pytest.mark.long
def test_a_pinned_profile_and_none(fleet: Fleet, playbook: str) -> None:
    settings = {"cuda_toolkit_versions": ["12.9", "13.4"], "cuda_toolkit_default": "12.9"}
    pinned = play(fleet, playbook, RPM, **settings, cuda_toolkit_profile="13.4")
    assert pinned.rc == 0 and pinned.changed_steps(RPM) == ["cuda_toolkit.profile"]
    assert "release 13.4" in fleet.ssh(RPM, "env -i bash -lc 'nvcc --version; echo $LD_LIBRARY_PATH'")
    removed = play(fleet, playbook, RPM, **settings, cuda_toolkit_profile="none")
    assert removed.changed_steps(RPM) == ["cuda_toolkit.profile"] and "profile.d" not in fleet.ssh(
        RPM, TRACES, check=False
    )


# ---- removal --------------------------------------------------------------------------------------------------------


def test_one_toolkit_is_removed_with_its_cudnn_and_the_others_stay(fleet: Fleet, playbook: str) -> None:
    fleet.ssh(LAST, "touch /usr/local/cuda-12.9/lib64/libcudnn.so.9 /usr/local/cuda-12.9/include/cudnn.h")
    before = {host: packages(fleet, host) for host in HOSTS}
    settings = {"cuda_toolkit_versions": ["13.4"], "cuda_toolkit_remove": ["12.9"]}
    removed = play(fleet, playbook, **settings, holds=["cuda_toolkit.remove"])
    second = play(fleet, playbook, **settings)
    for host in HOSTS:
        assert removed.rc == 0, removed.failures(host)
        assert "cuda_toolkit.remove" in removed.changed_steps(host)
        assert second.rc == 0 and second.changed(host) == []
        traces = fleet.ssh(host, TRACES, check=False)
        assert "cuda-12.9" not in traces and "cuda-12.8" in traces
        assert release(fleet, host) == "13.4.2"
        lost = set(before[host]) - set(packages(fleet, host))
        assert lost and all(name.endswith(("-12-9", "-12-9-config-common")) for name in lost)


@pytest.mark.long
def test_a_toolkit_placed_by_hand_is_kept_and_reported(fleet: Fleet, playbook: str) -> None:
    fleet.ssh(RPM, "cp -a /usr/local/cuda-12.8 /usr/local/cuda-12.4; rm /usr/local/cuda-12.4/bin/cuda-uninstaller")
    fleet.ssh(RPM, "sed -i s/12.8.2/12.4.1/ /usr/local/cuda-12.4/version.json")
    refused = play(fleet, playbook, RPM, cuda_toolkit_versions=["13.4"], cuda_toolkit_remove=["12.4"])
    assert "/usr/local/cuda-12.4 belongs to no package and has no uninstaller" in refused.failures(RPM)
    assert "cuda-12.4" in fleet.ssh(RPM, TRACES, check=False)
    fleet.ssh(RPM, "rm -r /usr/local/cuda-12.4")


@pytest.mark.long
def test_with_source_none_the_last_toolkit_is_removed_with_link_and_profile(fleet: Fleet, playbook: str) -> None:
    settings = {"cuda_toolkit_source": "none", "cuda_toolkit_remove": ["12.8", "13.4"]}
    removed = play(fleet, playbook, RPM, **settings)
    assert removed.rc == 0, removed.failures(RPM)
    left = fleet.ssh(RPM, TRACES, check=False)
    # What toolkits share stays until uninstall.yml.
    assert left.split() == ["/etc/ld.so.conf.d/000_cuda.conf", "/var/lib/gpu-ready"]
    assert play(fleet, playbook, RPM, **settings).changed(RPM) == []


def test_uninstall_removes_installers_toolkits(fleet: Fleet, playbook: str) -> None:
    back = fleet.play("--limit", DEB, playbook="playbooks/uninstall.yml")
    assert back.rc == 0, back.failures(DEB)
    assert fleet.ssh(DEB, TRACES, check=False).strip() == ""
    assert "libxml2" not in packages(fleet, DEB)
