"""cuDNN on lab hosts: as archives and as packages, with apt and with dnf: upgrade, replacement, repair, removal.

`make test` has the host of apt's, with archives, what is refused on the host itself, and pinned packages; `make campaign` also that of
dnf's, impossible settings, interruptions, old releases and changes between packages.
"""

import hashlib
import io
import json
import re
import tarfile
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.integration.fleet import Fleet, Run, hosts_of

pytestmark = pytest.mark.lab

DEB, RPM = "dnn-debian12", "dnn-rocky9"
BOTH = hosts_of("cudnn")
ROLE = "tests/integration/cudnn_role.yml"
REDIST = "http://10.199.0.1:8080/developer.download.nvidia.com/compute/cudnn/redist/"
OLD, NEW = "9.17.0", "9.28.0"
NEWEST = dict.fromkeys(["12.9", "13.0"], "9.28.1")
"""The last release for each toolkit."""
FILES = "find / -xdev -name '*cudnn*' -not -path '/proc/*' -not -path '*/share/*' -not -path '/var/*' -not -path '*/ansible*' | sort"
TREE = "cd /usr/local; find cuda-* \\( -type f -o -type l \\) -printf '%p %l ' -exec sh -c 'md5sum <\"$1\"' _ {} \\; | sort"
LINKER = "ldconfig -p | sed -n 's/.*libcudnn.so[.0-9]* .*=> //p'"
INSTALLED = {
    DEB: "dpkg-query -W -f '${db:Status-Abbrev}${Package} ${Version}\\n' '*cudnn*' 2>/dev/null | sed -n 's/^[ih]i //p'",
    RPM: "rpm -qa --qf '%{NAME} %{VERSION}-%{RELEASE}\\n' '*cudnn*' | sort",
}
HELD = {DEB: "apt-mark showhold", RPM: "dnf -q -C versionlock list"}


@pytest.fixture(scope="module")
def fleet(lab_machine: None) -> Fleet:
    fleet = Fleet("cudnn")
    fleet.up()
    first = fleet.play()
    assert first.rc == 0, "\n".join(first.failures(host) for host in BOTH)
    return fleet


def role(fleet: Fleet, host: str, *options: str, holds: Sequence[str] = (), **settings: Any) -> Run:
    """Run the role with these variables, on one host or on "all"."""
    return fleet.play("--limit", host, *options, playbook=ROLE, extra=settings, holds=holds)


def planned_steps(run: Run, host: str) -> list[str]:
    """Return the steps of cuDNN in the plan."""
    assert run.rc == 0, run.failures(host)
    return [step for step in run.steps(host) if step.startswith("cudnn.")]


def steps(run: Run, host: str) -> list[str]:
    """Return the steps of cuDNN in the plan; the tasks that changed something must be the same ones."""
    planned = planned_steps(run, host)
    assert [step for step in run.changed_steps(host) if step.startswith("cudnn.")] == planned
    return planned


def places(fleet: Fleet, host: str) -> dict[str, str]:
    """Return the cuDNN of each toolkit, as its header states it."""
    text = fleet.ssh(host, "grep -s define.CUDNN_[MP] /usr/local/cuda-*.*/include/cudnn*.h || true")
    found: dict[str, list[str]] = {}
    for toolkit, number in re.findall(r"cuda-([\d.]+)/include/cudnn(?:_version)?\.h:#define CUDNN_[MP]\w+ (\d+)", text):
        found.setdefault(toolkit, []).append(number)
    return {toolkit: ".".join(numbers) for toolkit, numbers in found.items()}


def packages(fleet: Fleet, host: str) -> dict[str, str]:
    return dict(line.split() for line in fleet.ssh(host, INSTALLED[host], check=False).splitlines())


def archive(path: Path, members: dict[str, str | bytes]) -> Path:
    """Write an archive as NVIDIA made them up to 8.2; text is the target of a link."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content in members.items():
            item = tarfile.TarInfo(name)
            if isinstance(content, str):
                item.type, item.linkname = tarfile.SYMTYPE, content
                tar.addfile(item)
            else:
                item.size = len(content)
                tar.addfile(item, io.BytesIO(content))
    return path


SIX: dict[str, str | bytes] = {
    "cuda/include/cudnn.h": b"#define CUDNN_MAJOR 6\n#define CUDNN_MINOR 0\n#define CUDNN_PATCHLEVEL 21\n",
    "cuda/lib64/libcudnn.so.6.0.21": b"\x7fELF",
    "cuda/lib64/libcudnn.so.6": "libcudnn.so.6.0.21",
    "cuda/lib64/libcudnn.so": "libcudnn.so.6",
    "cuda/lib64/libcudnn_static.a": b"!<arch>\n",
}


@pytest.fixture
def old_toolkit(fleet: Fleet) -> Iterator[str]:
    """A CUDA 8.0, which nobody supports any more, on a host until the end of the test."""
    root = "/usr/local/cuda-8.0"
    fleet.ssh(
        DEB,
        f"mkdir -p {root}/bin {root}/include {root}/lib64; echo 'CUDA Version 8.0.61' >{root}/version.txt; touch {root}/bin/nvcc",
    )
    yield "8.0"
    fleet.ssh(DEB, f"rm -rf {root} /var/lib/gpu-ready/cudnn/8.0.json")


# ---- archives -------------------------------------------------------------------------------------------------------


def test_every_toolkit_has_the_newest_supported_version_and_a_second_run_is_one_call(fleet: Fleet) -> None:
    second = fleet.play()
    for host in BOTH:
        assert places(fleet, host) == NEWEST
        assert "/usr/local/cuda/targets/x86_64-linux/lib/libcudnn.so.9" in fleet.ssh(host, LINKER)
        assert "gpu-ready" not in fleet.ssh(host, "ls /etc/ld.so.conf.d").replace("gpu-ready-lab", "")
        assert second.changed(host) == [] and second.steps(host) == [] and second.calls[host] == 1


def test_another_version_in_one_toolkit_only_as_shown_by_check_mode(fleet: Fleet) -> None:
    settings: dict[str, Any] = {"cudnn_version": OLD, "cudnn_toolkits": ["13.0"]}
    before = {host: fleet.ssh(host, TREE) for host in BOTH}
    foretold = role(fleet, "all", "--check", **settings)
    assert all(fleet.ssh(host, TREE) == before[host] for host in BOTH)
    done = role(fleet, "all", holds=["cudnn.install", "cudnn.remove"], **settings)
    for host in BOTH:
        assert planned_steps(foretold, host) == steps(done, host) == ["cudnn.install", "cudnn.remove"]
        assert places(fleet, host) == {"13.0": OLD}
        names = fleet.ssh(host, FILES)
        assert "cuda-12.9" not in names and "28" not in names
        assert "cuda-13.0" in fleet.ssh(host, LINKER) and "cuda/" not in fleet.ssh(host, LINKER)
    second = role(fleet, "all", **settings)
    assert [steps(second, host) for host in BOTH] == [[]] * len(BOTH)


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"cudnn_version": "9.10.2", "cudnn_toolkits": ["13.0"]}, r"9\.10\.2 is not made for CUDA 13\.0.*9\.28\.1\.4"),
        (
            {"cudnn_archive": "/x/cudnn-linux-x86_64-9.28.0.42_cuda12-archive.tar.xz"},
            r"made for CUDA 12.*13\.0 would get",
        ),
        ({"cudnn_source": "package"}, "one CUDA major at a time.*12.9 and 13.0.*cudnn_toolkits"),
    ],
)
def test_impossible_settings_are_refused_and_change_nothing(fleet: Fleet, settings: Any, words: str) -> None:
    before = fleet.ssh(DEB, TREE)
    run = role(fleet, DEB, **settings)
    assert run.rc != 0 and run.changed(DEB) == []
    assert re.search(words, run.failures(DEB), re.DOTALL)
    assert fleet.ssh(DEB, TREE) == before


@pytest.mark.long
def test_an_archive_by_its_url_and_the_linkers_file_only_where_it_is_needed(fleet: Fleet) -> None:
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(REDIST + "redistrib_9.10.2.json") as answer:
        entry = json.load(answer)["cudnn"]["linux-x86_64"]["cuda12"]
    settings = {
        "cudnn_archive": REDIST + entry["relative_path"],
        "cudnn_archive_sha256": entry["sha256"],
        "cudnn_toolkits": ["12.9"],
    }
    wrong = role(fleet, DEB, **settings | {"cudnn_archive_sha256": "0" * 64})
    assert wrong.rc != 0 and "expected " + "0" * 64 in wrong.failures(DEB)
    fleet.ssh(DEB, "mkdir /root/away && mv /etc/ld.so.conf.d/*cuda* /root/away && ldconfig")
    try:
        done = role(fleet, "all", **settings)
        for host in BOTH:
            assert steps(done, host) == ["cudnn.install", "cudnn.remove"]
            assert places(fleet, host) == {"12.9": "9.10.2"}
        own = "/etc/ld.so.conf.d/gpu-ready-cudnn.conf"
        assert fleet.ssh(DEB, f"cat {own}") == "/usr/local/cuda/lib64\n"
        assert fleet.ssh(RPM, f"ls {own}", check=False) == ""
        assert all("/usr/local/cuda/" in fleet.ssh(host, LINKER) for host in BOTH)
        assert steps(role(fleet, DEB, **settings), DEB) == []
        assert steps(role(fleet, DEB, cudnn_version=OLD, cudnn_toolkits=["13.0"]), DEB) == [
            "cudnn.install",
            "cudnn.remove",
        ]
        assert fleet.ssh(DEB, f"ls {own}", check=False) == ""
    finally:
        fleet.ssh(DEB, "mv /root/away/* /etc/ld.so.conf.d/ && rmdir /root/away && ldconfig")


@pytest.mark.long
def test_an_archive_of_old_releases_from_the_control_node(fleet: Fleet, old_toolkit: str, tmp_path: Path) -> None:
    settings = {"cuda_toolkit_source": "none", "cudnn_toolkits": [old_toolkit], "cudnn_version": ""}
    given = archive(tmp_path / "cudnn-8.0-linux-x64-v6.0.tgz", SIX)
    settings["cudnn_archive_sha256"] = hashlib.sha256(given.read_bytes()).hexdigest()
    other = role(fleet, DEB, **settings | {"cudnn_archive": str(tmp_path / "cudnn-10.0-linux-x64-v7.6.tgz")})
    assert other.rc != 0 and "made for CUDA 10.0, and CUDA 8.0 would get it" in other.failures(DEB)
    lost = role(fleet, DEB, **settings | {"cudnn_archive": str(tmp_path / "cudnn-8.0-linux-x64-v5.1.tgz")})
    assert lost.rc != 0 and "on the control node. Correct the path" in lost.failures(DEB)
    done = role(fleet, DEB, **settings | {"cudnn_archive": str(given)})
    assert "cudnn.install" in steps(done, DEB)
    listed = fleet.ssh(DEB, "cd /usr/local/cuda-8.0; ls -l include lib64; ls -A /var/lib/gpu-ready")
    assert "libcudnn.so.6 -> libcudnn.so.6.0.21" in listed and "cudnn.h" in listed and "cudnn-archive" not in listed
    assert json.loads(fleet.ssh(DEB, "cat /var/lib/gpu-ready/cudnn/8.0.json"))["version"] == "6.0.21"
    assert steps(role(fleet, DEB, **settings | {"cudnn_archive": str(given)}), DEB) == []


@pytest.mark.parametrize(
    "evil",
    [
        {"cuda/lib64/../../../../../root/libcudnn.so.6": b"x"},
        pytest.param({"cuda/extra": "../../root"}, marks=pytest.mark.long),
    ],
    ids=["traversal", "link out"],
)
def test_an_archive_that_reaches_out_of_itself_is_not_used(
    fleet: Fleet, old_toolkit: str, tmp_path: Path, evil: Any
) -> None:
    given = archive(tmp_path / "cudnn-8.0-linux-x64-v6.0.tgz", {**SIX, **evil})
    before = fleet.ssh(DEB, TREE)
    run = role(
        fleet, DEB, cuda_toolkit_source="none", cudnn_toolkits=[old_toolkit], cudnn_version="", cudnn_archive=str(given)
    )
    assert run.rc != 0 and "outside of its directory" in run.failures(DEB)
    assert fleet.ssh(DEB, TREE + "; ls -A /root | grep cudnn", check=False) == before


def test_files_of_somebody_else_are_never_overwritten(fleet: Fleet) -> None:
    settings = {"cudnn_version": OLD, "cudnn_toolkits": ["12.9"]}
    fleet.ssh(DEB, "echo mine >/usr/local/cuda-12.9/include/cudnn.h")
    run = role(fleet, DEB, **settings)
    assert run.rc != 0 and "include/cudnn.h was not installed by gpu-ready" in run.failures(DEB)
    assert fleet.ssh(DEB, "cat /usr/local/cuda-12.9/include/cudnn.h") == "mine\n"
    fleet.ssh(DEB, "rm /usr/local/cuda-12.9/include/cudnn.h")


@pytest.mark.long
def test_a_run_that_is_killed_while_placing_is_repaired_by_the_next(fleet: Fleet) -> None:
    settings = {"cudnn_version": NEW, "cudnn_toolkits": ["12.9", "13.0"]}
    # The last step before the record is complete; 13.0 changes from one version to the other.
    fleet.ssh(DEB, "mv /sbin/ldconfig /sbin/ldconfig.away; printf '#!/bin/sh\\nkill -9 $PPID\\n' >/sbin/ldconfig; chmod 755 /sbin/ldconfig")  # fmt: skip
    try:
        assert role(fleet, DEB, **settings).rc != 0
    finally:
        fleet.ssh(DEB, "mv /sbin/ldconfig.away /sbin/ldconfig")
    fleet.ssh(
        DEB, "mkdir /usr/local/cuda-13.0/.gpu-ready-cudnn-x; echo half >/usr/local/cuda-13.0/.gpu-ready-cudnn-x/0"
    )
    assert steps(role(fleet, DEB, **settings), DEB) == ["cudnn.install"]
    assert places(fleet, DEB) == {"12.9": NEW, "13.0": NEW}
    assert "17.0" not in fleet.ssh(DEB, FILES) and ".gpu-ready-cudnn" not in fleet.ssh(DEB, FILES)
    assert fleet.ssh(DEB, "ls -A /var/lib/gpu-ready/cudnn | grep -v lock").split() == ["12.9.json", "13.0.json"]
    assert steps(role(fleet, DEB, **settings), DEB) == []


# ---- packages -------------------------------------------------------------------------------------------------------


PACKAGED: dict[str, Any] = {"cudnn_source": "package", "cudnn_version": OLD, "cudnn_toolkits": ["12.9"]}


def test_from_archives_to_pinned_packages(fleet: Fleet) -> None:
    done = role(fleet, "all", holds=["cudnn.packages"], **PACKAGED)
    for host in BOTH:
        assert steps(done, host) == ["cudnn.packages", "cudnn.remove"]
        found = packages(fleet, host)
        assert len(found) == 3 and set(found.values()) == {"9.17.0.29-1"} and all("cuda-12" in name for name in found)
        assert all(name in fleet.ssh(host, HELD[host]) for name in found)
        assert places(fleet, host) == {} and "/usr/local" not in fleet.ssh(host, FILES + ";" + LINKER)


@pytest.mark.long
def test_from_pinned_packages_to_loose_ones_and_those_of_another_cuda(fleet: Fleet) -> None:
    loose = role(fleet, "all", **PACKAGED | {"cudnn_version": ""})
    for host in BOTH:
        assert steps(loose, host) == ["cudnn.packages"]
        assert set(packages(fleet, host).values()) == {"9.17.0.29-1"}
        assert "cudnn" not in fleet.ssh(host, HELD[host])
    settings = PACKAGED | {"cudnn_version": NEW, "cudnn_toolkits": ["13.0"]}
    other, second = role(fleet, "all", **settings), role(fleet, "all", **settings)
    for host in BOTH:
        assert steps(other, host) == ["cudnn.packages"] and steps(second, host) == []
        found = packages(fleet, host)
        assert set(found.values()) == {"9.28.0.42-1"} and all("cuda-13" in name for name in found)


@pytest.mark.long
def test_cudnn_8_is_a_package_whose_version_names_its_cuda(fleet: Fleet) -> None:
    settings = {"cudnn_source": "package", "cudnn_version": "8.9.7", "cudnn_toolkits": ["12.9"]}
    assert steps(role(fleet, RPM, **settings), RPM) == ["cudnn.packages"]
    assert packages(fleet, RPM) == dict.fromkeys(("libcudnn8", "libcudnn8-devel"), "8.9.7.29-1.cuda12.2")
    assert steps(role(fleet, RPM, **settings), RPM) == []
    # The lab's repository for Debian 12 has none.
    missing = role(fleet, DEB, **settings)
    assert missing.rc != 0 and "libcudnn8" in missing.failures(DEB)
    assert set(packages(fleet, DEB).values()) == {"9.28.0.42-1"}


@pytest.mark.long
def test_none_changes_nothing_and_archives_replace_packages(fleet: Fleet) -> None:
    left = role(fleet, "all", cudnn_source="none")
    assert [steps(left, host) for host in BOTH] == [[]] * len(BOTH)
    back = role(fleet, "all", holds=["cudnn.remove_packages"], cudnn_toolkits=["13.0"])
    for host in BOTH:
        assert steps(back, host) == ["cudnn.install", "cudnn.remove_packages"]
        assert packages(fleet, host) == {} and places(fleet, host) == {"13.0": NEWEST["13.0"]}
        assert not [
            name for name in fleet.ssh(host, FILES).split() if not name.startswith(("/usr/local/cuda-13.0", "/etc/apt"))
        ]


def test_uninstall_leaves_nothing(fleet: Fleet) -> None:
    removed = fleet.play(playbook="playbooks/uninstall.yml")
    assert removed.rc == 0, "\n".join(removed.failures(host) for host in BOTH)
    for host in BOTH:
        assert fleet.ssh(host, FILES) == "" and fleet.ssh(host, LINKER) == ""
        # The lab's RPMs own no directories.
        assert fleet.ssh(host, "find /usr/local/cuda* -type f", check=False) == ""
        assert fleet.ssh(host, "ls -d /var/lib/gpu-ready", check=False) == ""
