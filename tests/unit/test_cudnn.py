"""Reading the sources of a cuDNN version: its header, NVIDIA's manifest, gpu-ready's record."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import manifest
from plugins.module_utils.gpu_ready.cuda.cudnn import model as cudnn
from plugins.module_utils.gpu_ready.cuda.cudnn import redist_manifest
from plugins.module_utils.gpu_ready.facts import cudnn as cudnn_facts
from plugins.module_utils.gpu_ready.facts.model import CudnnPackageFacts, ToolkitFacts
from tests.unit.recorded import RecordedHost

SHA = "e62c9b4af62ea130765ea5b13244c05c9452edf1690072373d193d19766d9850"
PATH = "cudnn/linux-x86_64/cudnn-linux-x86_64-9.26.0.51_cuda13-archive.tar.xz"
HEADER = "#ifndef X\n#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 26\n  # define CUDNN_PATCHLEVEL 0\n#endif\n"


@pytest.mark.parametrize(
    ("text", "expect"),
    [(HEADER, "9.26.0"), ("", None), ("#define CUDNN_MAJOR 9\n", None), (HEADER.replace("26", "X"), None)],
)
def test_header(text: str, expect: str | None) -> None:
    assert cudnn.parse_header(text) == expect


@pytest.mark.parametrize(
    ("version", "name"),
    [
        ("9.26.0.51", "redistrib_9.26.0.json"),
        ("9.10.2", "redistrib_9.10.2.json"),
        ("8.9.7.29", "redistrib_8.9.7.29.json"),
    ],
)
def test_manifest_has_four_numbers_up_to_8(version: str, name: str) -> None:
    assert cudnn.manifest_path(version) == name


def test_redist_manifest() -> None:
    entry = {"relative_path": PATH, "sha256": SHA.upper(), "md5": "0" * 32, "size": "909961620"}
    text = json.dumps(
        {"release_date": "2026-09-01", "cudnn": {"version": "9.26.0.51", "linux-x86_64": {"cuda13": entry}}}
    )
    assert redist_manifest.parse_manifest(text, "cuda13", "M") == redist_manifest.RedistArchive(
        PATH, SHA, 909961620, "9.26.0.51"
    )
    with pytest.raises(cudnn.CudnnError, match=r"^M has no cuDNN for cuda11 on linux-x86_64 \(it has: cuda13\)"):
        redist_manifest.parse_manifest(text, "cuda11", "M")


@pytest.mark.parametrize(
    "text", ["<html>sign in</html>", "[]", "{}", '{"cudnn": 3}', '{"cudnn": {"linux-x86_64": {"cuda13": {}}}}']
)
def test_a_useless_manifest_is_one_message(text: str) -> None:
    with pytest.raises(cudnn.CudnnError) as caught:
        redist_manifest.parse_manifest(text, "cuda13", "http://m/redistrib.json")
    assert "http://m/redistrib.json" in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text())
def test_readers_survive_any_text(text: str) -> None:
    cudnn.parse_header(text)
    cudnn.parse_record(text)
    with pytest.raises(cudnn.CudnnError):
        redist_manifest.parse_manifest(text, "cuda12", "M")


@given(st.booleans(), st.dictionaries(st.text(), st.text()))
def test_record_round_trip(complete: bool, files: dict[str, str]) -> None:
    record = cudnn.CudnnRecord("12.9", "9.10.2.21", complete, files)
    assert cudnn.parse_record(cudnn.format_record(record)) == record


@pytest.mark.parametrize(
    ("complete", "present", "expect"),
    [(True, True, True), (False, True, False), (True, False, False)],
    ids=["complete", "interrupted", "a file is missing"],
)
def test_whether_our_cudnn_is_complete(complete: bool, present: bool, expect: bool) -> None:
    library = "/usr/local/cuda-12.9/lib64/libcudnn.so.9"
    record = cudnn.CudnnRecord("12.9", "9.26.0.51", complete, {library: SHA})
    files = {"/usr/local/cuda-12.9/version.json": "{}", cudnn.record_path("12.9"): cudnn.format_record(record)}
    if present:
        files[library] = ""
    toolkits = [ToolkitFacts("12.9", "/usr/local/cuda-12.9", None, "runfile")]
    by_toolkit, _ = cudnn_facts.collect(RecordedHost(files=files), {}, toolkits)
    found = by_toolkit["12.9"]
    assert (found.recorded, found.complete) == ("9.26.0.51", expect)
    assert found.missing == ([] if present else [library])


@pytest.mark.parametrize(
    ("name", "expect"),
    [
        ("cudnn-linux-x86_64-9.26.0.51_cuda13-archive.tar.xz", ("9.26.0.51", "13", "x86_64")),
        ("cudnn-linux-x86_64-8.3.3.40_cuda11.5-archive.tar.xz", ("8.3.3.40", "11.5", "x86_64")),
        ("cudnn-linux-sbsa-8.9.7.29_cuda12-archive.tar.xz", ("8.9.7.29", "12", "sbsa")),
        ("cudnn-8.0-linux-x64-v6.0.tgz", ("6.0", "8.0", "x86_64")),
        ("cudnn-10.0-linux-x64-v7.6.5.32.tgz", ("7.6.5.32", "10.0", "x86_64")),
        ("cudnn-9.0-linux-x64-v7.tgz", ("7", "9.0", "x86_64")),
        ("cudnn.tgz", None),
        ("cudnn-linux-x86_64-9.26.0.51_cuda13-archive.zip", None),
    ],
)
def test_parse_the_name_of_an_archive(name: str, expect: tuple[str, ...] | None) -> None:
    assert cudnn.parse_archive_name(name) == (expect and cudnn.ArchiveName(*expect))


@pytest.mark.parametrize(
    ("cuda", "toolkit", "expect"),
    [
        ("12", "12.9", True),
        ("12", "13.0", False),
        ("11.5", "11.8", True),
        ("8.0", "8.0", True),
        ("10.0", "10.2", False),
        ("10", "10.2", True),
    ],
)
def test_the_cuda_of_an_archive_and_a_toolkit(cuda: str, toolkit: str, expect: bool) -> None:
    assert cudnn.supports_toolkit(cuda, toolkit) is expect


def test_packages_of_cudnn_with_the_cuda_in_their_name_or_version() -> None:
    found = cudnn.find_packages(
        {
            "libcudnn9-cuda-12": "9.10.2.21-1",
            "libcudnn9-dev-cuda-12": "9.10.2.21-1",
            "cudnn9-cuda-12-9": "9.10.2.21-1",
            "libcudnn8": "8.9.7.29-1+cuda12.2",
            "libcudnn8-devel": "0:8.9.7.29-1.cuda11.8",
            "cudnn9": "9.10.2-1",
            "nvidia-cudnn": "9",
            "libcudnn9-samples": "9.10.2.21-1",
        }
    )
    assert found == [
        cudnn.CudnnPackage("cudnn9", "9", "", "9.10.2"),
        cudnn.CudnnPackage("cudnn9-cuda-12-9", "9", "12", "9.10.2.21"),
        cudnn.CudnnPackage("libcudnn8", "8", "12", "8.9.7.29"),
        cudnn.CudnnPackage("libcudnn8-devel", "8", "11", "8.9.7.29"),
        cudnn.CudnnPackage("libcudnn9-cuda-12", "9", "12", "9.10.2.21"),
        cudnn.CudnnPackage("libcudnn9-dev-cuda-12", "9", "12", "9.10.2.21"),
    ]
    assert cudnn.packaged_version(found, "12.9") == "9.10.2.21"
    assert cudnn.packaged_version(found, "11.8") is None


def test_which_packages_and_holds_are_ours() -> None:
    packages = {"libcudnn9-cuda-12": "9.10.2.21-1", "libcudnn9-dev-cuda-12": "9.10.2.21-1", "bash": "5"}
    recorded: dict[str, dict[str, dict[str, str]]] = {
        "packages": {"libcudnn9-cuda-12": {}, "bash": {}},
        "holds": {"libcudnn9-cuda-12": {}},
    }
    toolkits = [ToolkitFacts("12.9", "/usr/local/cuda-12.9", None, "runfile")]
    files = {"/var/lib/gpu-ready/manifest.json": json.dumps(recorded)}
    by_toolkit, found = cudnn_facts.collect(RecordedHost(files=files), packages, toolkits)
    assert found == CudnnPackageFacts(
        installed={name: version for name, version in packages.items() if name != "bash"},
        ours=["libcudnn9-cuda-12"],
        held_by_us=["libcudnn9-cuda-12"],
    )
    assert by_toolkit["12.9"].package == "9.10.2.21"
    host = RecordedHost(files={"/var/lib/gpu-ready/manifest.json": "{"})
    with pytest.raises(manifest.ManifestError, match="or move it away"):
        cudnn_facts.collect(host, packages, toolkits)


@pytest.mark.parametrize("size", ["9" * 5000, "-1", "1e9", "", None, 9.5, {}, "12 "])
def test_an_odd_size_counts_as_unknown(size: object) -> None:
    listed = {"relative_path": PATH, "sha256": SHA, "size": size}
    text = json.dumps({"cudnn": {"linux-x86_64": {"cuda13": listed}}})
    assert redist_manifest.parse_manifest(text, "cuda13", "M").size == 0


def test_a_manifest_that_nests_without_end_is_a_message() -> None:
    for text in ("[" * 200000, '{"cudnn":' * 100000):
        with pytest.raises(cudnn.CudnnError, match="not a cuDNN manifest"):
            redist_manifest.parse_manifest(text, "cuda13", "M")
