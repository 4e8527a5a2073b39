"""Reading CUDA toolkits, and collecting facts of a host with toolkits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.cuda import toolkit as cuda
from plugins.module_utils.gpu_ready.facts import cuda as cuda_facts
from plugins.module_utils.gpu_ready.facts.model import CudaFacts, DefaultToolkitFacts
from tests.unit.recorded import RecordedHost

AUTO = """auto
/usr/local/cuda

/usr/local/cuda-12.9
129
/usr/local/cuda-13.0
130

"""
SLAVE = "manual\n/usr/local/cuda\ndoc\n/usr/share/cuda-doc\n\n/usr/local/cuda-12.4\n124\n/usr/local/cuda-12.4/doc\n\n"


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ('{"cuda": {"name": "CUDA SDK", "version": "12.9.1"}, "cuda_cudart": {"version": "12.9.79"}}', "12.9.1"),
        ('{"cuda": {"version": 12}}', None),
        ('{"cuda": []}', None),
        ("[]", None),
        ("", None),
        ("CUDA Version 10.2.89", None),
    ],
)
def test_version_json(text: str, expect: str | None) -> None:
    assert cuda.parse_version_json(text) == expect


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        ("CUDA Version 10.2.89\nCUDA Patch Version 10.2.1\n", "10.2.89"),
        ("", None),
        ("10.2", None),
        ("CUDA Version", None),
    ],
)
def test_version_txt(text: str, expect: str | None) -> None:
    assert cuda.parse_version_txt(text) == expect


@pytest.mark.parametrize(
    ("text", "expect"),
    [
        (AUTO, cuda.AlternativesGroup("auto", cuda.LINK, ("/usr/local/cuda-12.9", "/usr/local/cuda-13.0"))),
        (SLAVE, cuda.AlternativesGroup("manual", cuda.LINK, ("/usr/local/cuda-12.4",))),
        ("auto\n/usr/local/cuda\n\n", cuda.AlternativesGroup("auto", cuda.LINK, ())),
        ("", None),
        ("auto\n", None),
        ("auto\nrelative\n\n", None),
    ],
)
def test_alternatives(text: str, expect: cuda.AlternativesGroup | None) -> None:
    assert cuda.parse_alternatives(text) == expect


@given(st.text())
def test_readers_survive_any_text(text: str) -> None:
    cuda.parse_version_json(text)
    cuda.parse_version_txt(text)
    cuda.parse_alternatives(text)


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("cuda-toolkit-12-9", "12.9"),
        ("cuda-toolkit-13", None),
        ("cuda-toolkit-12-9-config-common", None),
        ("cuda-12-9", None),
        ("cuda", None),
        ("nvidia-cuda-toolkit", None),
    ],
)
def test_only_a_complete_toolkit_counts(name: str, version: str | None) -> None:
    assert cuda.version_of_package(name) == version


def test_package_and_directory_of_a_version() -> None:
    assert cuda.toolkit_package("12.9") == "cuda-toolkit-12-9"
    assert cuda.version_of_package(cuda.toolkit_package("12.9")) == "12.9"
    assert cuda.version_of_directory(cuda.toolkit_path("12.9").rpartition("/")[2]) == "12.9"


@pytest.mark.parametrize(
    ("name", "release"),
    [
        ("cuda_12.9.1_575.57.08_linux.run", "12.9.1"),
        ("/srv/cuda_11.1.0_455.23.05_linux.run", "11.1.0"),
        ("https://site.example/nvidia/cuda_13.4.2_linux.run", "13.4.2"),
        ("cuda_13.4.2_linux_sbsa.run", "13.4.2"),
        ("cuda.run", None),
        ("cuda-repo-debian12-12-9-local_12.9.1_amd64.deb", None),
        ("NVIDIA-Linux-x86_64-580.178.04.run", None),
    ],
)
def test_the_release_in_an_installers_name(name: str, release: str | None) -> None:
    assert cuda.release_of_file(name) == release


@pytest.mark.parametrize(
    ("found", "requested", "same"),
    [
        ("12.9.1", "12.9.1", True),
        ("12.9.0", "12.9.1", False),
        ("12.9.10", "12.9.1", False),
        ("12.9.1", "12.9", True),
        ("12.90.1", "12.9", False),
        ("11.4.20210728", "11.4.1", False),
        (None, "12.9", False),
    ],
)
def test_a_release_and_a_version(found: str | None, requested: str, same: bool) -> None:
    assert cuda.is_release(found, requested) is same
    assert cuda.series("12.9.1") == cuda.series("12.9") == "12.9"
    assert [cuda.is_dated(one) for one in ("11.4.20210728", "12.9.1", "10.2.89")] == [True, False, False]


def test_packages_of_one_toolkit_only() -> None:
    """Names from NVIDIA's repositories for Debian 12 and EL 9."""
    ours = [
        "cuda-12-4",
        "cuda-nvcc-12-4",
        "cuda-runtime-12-4",
        "cuda-toolkit-12-4",
        "cuda-toolkit-12-4-config-common",
        "gds-tools-12-4",
        "libcublas-dev-12-4",
        "libcublas-devel-12-4",
        "libnpp-12-4",
        "libnvjitlink-12-4",
    ]
    others = [
        "cuda",
        "cuda-drivers",
        "cuda-keyring",
        "cuda-nvcc-12-5",
        "cuda-nvcc-2-4",
        "cuda-toolkit-12",
        "cuda-toolkit-12-40",
        "cuda-toolkit-config-common",
        "libcudnn9-cuda-12",
        "libfoo-12-4",
        "linux-headers-6.12-4",
        "nsight-compute-2024.1.1",
        "nvidia-driver-12-4",
    ]
    assert cuda.packages_of_toolkit("12.4", [*others, *ours]) == ours


def test_a_record_reads_as_it_was_written() -> None:
    record = cuda.ToolkitRecord("12.9.1", False)
    assert cuda.parse_record(cuda.format_record(record)) == record
    damaged = [cuda.parse_record(text) for text in ("", "[]", "{}", "null", '{"release": 1}')]
    assert damaged == [cuda.ToolkitRecord("", False)] * 5


def test_a_bare_host_has_nothing() -> None:
    profile: dict[str, str | None] = {"/etc/profile.d/cuda.sh": None, "/etc/profile.d/cuda.csh": None}
    assert cuda_facts.collect(RecordedHost(), {}) == CudaFacts(profile=profile)


def test_complete_toolkits_and_leftovers_are_distinguished_without_a_program() -> None:
    host = RecordedHost(
        files={
            "/usr/local/cuda-12.9/version.json": '{"cuda": {"version": "12.9.1"}}',
            "/usr/local/cuda-10.2/version.txt": "CUDA Version 10.2.89\n",
            "/usr/local/cuda-10.2/bin/nvcc": "",
            "/usr/local/cuda-10.2/bin/cuda-uninstaller": "",
            "/usr/local/cuda-11.4/version.json": '{"cuda": {"version": "11.4.20210728"}}',
            "/usr/local/cuda-11.4/bin/nvcc": "",
            "/usr/local/cuda-11.4/bin/cuda-uninstaller": "",
            "/var/lib/gpu-ready/cuda/11.4.json": '{"release": "11.4.1", "complete": true}',
            "/usr/local/cuda-12.4/version.json": '{"cuda": {"version": "12.4.1"}}',
            "/usr/local/cuda-12.4/bin/nvcc": "",
            "/usr/local/cuda-12.8/version.json": '{"cuda": {"version": "12.8.1"}}',
            "/usr/local/cuda-12.8/bin/nvcc": "",
            "/usr/local/cuda-12.8/bin/cuda-uninstaller": "",
            "/var/lib/gpu-ready/cuda/12.8.json": '{"release": "12.8.1", "complete": false}',
            "/usr/local/cuda-11.8/targets/x86_64-linux/lib/libcudart.so.11.0": "",
            "/usr/local/cuda-notes/readme": "",
            "/var/lib/dpkg/alternatives/cuda": AUTO,
            "/etc/profile.d/cuda.sh": "x",
        },
        links={"/usr/local/cuda": "/etc/alternatives/cuda", "/etc/alternatives/cuda": "/usr/local/cuda-12.9"},
    )
    found = cuda_facts.collect(host, {"cuda-toolkit-12-9": "12.9.1-1", "bash": "5.2"})
    assert [(t.version, t.origin, t.release) for t in found.toolkits] == [
        ("10.2", "runfile", "10.2.89"),
        ("11.4", "runfile", "11.4.1"),
        ("11.8", "partial", None),
        ("12.4", "foreign", "12.4.1"),
        ("12.8", "partial", "12.8.1"),
        ("12.9", "package", "12.9.1"),
    ]
    assert [t.version for t in found.toolkits if t.cut_off] == ["12.8"]
    assert found.default == DefaultToolkitFacts("/usr/local/cuda-12.9", "alternatives", "auto")
    assert found.profile == {"/etc/profile.d/cuda.sh": "x", "/etc/profile.d/cuda.csh": None}
    assert host.asked == []


def test_a_plain_link_and_one_of_update_alternatives_are_distinguished() -> None:
    host = RecordedHost(files={"/usr/local/cuda-12.4/bin/nvcc": ""}, links={"/usr/local/cuda": "cuda-12.4"})
    assert cuda_facts.collect(host, {}).default == DefaultToolkitFacts("/usr/local/cuda-12.4", "link", None)


@pytest.mark.parametrize(
    "links",
    [
        {"/usr/local/cuda": "cuda-12.4", "/usr/local/cuda-12.4": "/data/cuda-12.4"},
        {"/usr/local/cuda": "/usr/local/cuda-12.4/", "/usr/local/cuda-12.4": "/data/cuda-12.4"},
        {
            "/usr/local/cuda": "/etc/alternatives/cuda",
            "/etc/alternatives/cuda": "/usr/local/cuda-12.4",
            "/usr/local/cuda-12.4": "/data/cuda-12.4",
        },
    ],
)
def test_a_default_toolkit_on_another_disk_is_identified_by_its_name(links: dict[str, str]) -> None:
    host = RecordedHost(files={"/data/cuda-12.4/bin/nvcc": ""}, links=links)
    assert cuda_facts.collect(host, {}).default.target == "/usr/local/cuda-12.4"


def test_circular_links_have_no_target() -> None:
    host = RecordedHost(links={"/usr/local/cuda": "cuda-now", "/usr/local/cuda-now": "cuda"})
    assert cuda_facts.collect(host, {}).default.target is None


def test_a_link_to_another_toolkit_is_not_a_toolkit() -> None:
    host = RecordedHost(
        files={
            "/usr/local/cuda-12.9/version.json": '{"cuda": {"version": "12.9.1"}}',
            "/usr/local/cuda-12.9/bin/nvcc": "",
            "/usr/local/cuda-12.9/bin/cuda-uninstaller": "",
        },
        links={"/usr/local/cuda-12.4": "cuda-12.9"},
    )
    toolkits = cuda_facts.collect(host, {}).toolkits
    assert [(t.version, t.origin, t.release) for t in toolkits] == [
        ("12.4", "alias", "12.9.1"),
        ("12.9", "runfile", "12.9.1"),
    ]
