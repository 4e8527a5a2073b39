"""Which cuDNN each toolkit gets."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import versions
from plugins.module_utils.gpu_ready.cuda.cudnn import model as cudnn
from plugins.module_utils.gpu_ready.facts.model import CudnnFacts, Facts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan.cuda import cudnn as planner
from plugins.plugin_utils.gpu_ready.plan.model import Choices, CudaChoice, ToolkitChoice
from tests.unit.hosts import A100, B200, P40, T4, UNKNOWN, V100, carried_out, having, with_packages
from tests.unit.plans import driver_choice, settings, todo
from tests.unit.test_plan_cuda import host

MIRROR = "http://mirror.example:8080"


def decide(facts: Facts, *toolkits: str, **given: Any) -> Any:
    chosen = [ToolkitChoice(version, f"/usr/local/cuda-{version}") for version in toolkits]
    return planner.plan_cudnn(facts, settings(**given), Choices(cuda=CudaChoice("repo", chosen)))


def installs(decided: Any) -> list[dict[str, Any]]:
    return todo(decided.steps[0])["installs"] if decided.steps else []


def seen(version: str | None, recorded: str | None = None, complete: bool = False) -> CudnnFacts:
    return CudnnFacts(version=version, recorded=recorded, complete=complete)


def newest(major: str, oldest: str = "9.0") -> str:
    """Return the newest release for a CUDA major and a card of a compute capability."""
    fitting = [one for one in catalog.cudnns() if major in one.cuda and versions.compare(one.compute[0], oldest) <= 0]
    return fitting[-1].version


def test_newest_cudnn_for_the_major_of_each_toolkit_and_the_oldest_gpu() -> None:
    decided = decide(host(P40), "12.9")
    assert decided.choice.versions == {"12.9": newest("12", "6.1")}
    decided = decide(host(T4, A100), "12.9", "13.0")
    assert decided.choice.versions == {
        "12.9": newest("12", "7.5"),
        "13.0": newest("13", "7.5"),
    }
    assert [step.id for step in decided.steps] == ["cudnn.install"]


def test_an_install_step_has_all_parameters_of_its_module() -> None:
    (install,) = installs(decide(host(P40), "12.9", cudnn_version="9.10.2", gpu_ready_mirror=MIRROR + "/"))
    base = MIRROR + "/developer.download.nvidia.com/compute/cudnn/redist/"
    assert install["manifest_url"] == base + "redistrib_9.10.2.json"
    assert install["archive_url"] == "" or install["archive_url"].startswith(base + "cudnn/linux-x86_64/")
    assert (install["cuda"], install["key"], install["cuda_path"]) == ("12.9", "cuda12", "/usr/local/cuda-12.9")
    assert cudnn.is_version(install["version"], "9.10.2")


@pytest.mark.parametrize(
    ("devices", "toolkit", "asked", "code", "words"),
    [
        ([P40], "13.0", "9.10.2", "cudnn_without_cuda", ["9.10.2", "13.0"]),
        ([V100], "12.9", newest("12"), "cudnn_drops_gpu", ["V100", newest("12", "7.0")]),
        ([T4], "12.9", "9", "cudnn_version_wrong", ["9"]),
    ],
)
def test_unsupported_versions_are_refused(
    devices: list[str], toolkit: str, asked: str, code: str, words: list[str]
) -> None:
    decided = decide(host(*devices), toolkit, cudnn_version=asked)
    assert [refusal.code for refusal in decided.refusals] == [code]
    text = decided.refusals[0].message + decided.refusals[0].remedy
    assert [word for word in words if word not in text] == []
    assert decided.steps == []


def test_a_version_newer_than_the_catalog_is_tried_with_a_warning() -> None:
    decided = decide(host(A100), "13.0", cudnn_version="99.1.0.7")
    assert [warning.code for warning in decided.warnings] == ["not_in_catalog"]
    assert installs(decided)[0]["manifest_url"].endswith("/redistrib_99.1.0.json")


VERSION = newest("12", "7.5")


@pytest.mark.parametrize(
    ("found", "placed"),
    [
        (seen(None), True),
        (seen(cudnn.release(VERSION), VERSION, True), False),
        (seen(cudnn.release(VERSION), VERSION, False), True),
        (seen("8.9.7", "8.9.7.29", True), True),
        (seen(cudnn.release(VERSION)), False),
    ],
    ids=["none", "ours", "killed while placing", "ours, older", "the same, placed by hand"],
)
def test_when_an_archive_is_placed(found: CudnnFacts, placed: bool) -> None:
    facts = host(T4)
    facts = having(facts, cudnn={"12.9": found})
    assert bool(decide(facts, "12.9").steps) is placed


def test_a_foreign_cudnn_is_left_alone_unless_another_is_requested() -> None:
    facts = host(T4)
    facts = having(facts, cudnn={"12.9": seen("8.9.7")})
    decided = decide(facts, "12.9")
    assert (decided.steps, [warning.code for warning in decided.warnings]) == ([], ["cudnn_foreign"])
    decided = decide(facts, "12.9", cudnn_version=VERSION)
    assert [refusal.code for refusal in decided.refusals] == ["cudnn_foreign"]


def test_without_a_toolkit_or_with_source_none_there_is_no_cudnn() -> None:
    assert decide(host(T4)).steps == []
    assert decide(host(T4), "12.9", cudnn_source="none").steps == []


@given(
    st.lists(st.sampled_from([P40, V100, T4, A100, B200, UNKNOWN]), min_size=1, max_size=4),
    st.lists(st.sampled_from([toolkit.version for toolkit in catalog.toolkits()]), unique=True, max_size=3),
    st.sampled_from(["", *(one.version for one in catalog.cudnns())]),
)
def test_an_executed_plan_leaves_nothing_to_do(devices: list[str], toolkits: list[str], asked: str) -> None:
    facts = host(*devices)
    decided = decide(facts, *toolkits, cudnn_version=asked)
    if decided.refusals:
        assert decided.steps == []
        return
    done = {
        install["cuda"]: seen(cudnn.release(install["version"]), install["version"], True)
        for install in installs(decided)
    }
    second = decide(having(facts, cudnn={**facts.cudnn, **done}), *toolkits, cudnn_version=asked)
    assert second.steps == []
    assert second.choice == decided.choice


# --- an archive of the operator's --------------------------------------------------------------------------------

TWELVE = "/srv/cudnn-linux-x86_64-9.10.2.21_cuda12-archive.tar.xz"


def test_the_operators_archive_is_for_the_toolkits_it_is_made_for() -> None:
    decided = decide(host(T4), "12.9", cudnn_archive=TWELVE)
    (install,) = installs(decided)
    assert todo(decided.steps[0])["file"] == TWELVE
    assert (install["version"], install["archive_url"], install["origin"]) == (
        "9.10.2.21",
        "",
        "file:cudnn-linux-x86_64-9.10.2.21_cuda12-archive.tar.xz",
    )
    url = "https://site.example/" + TWELVE.rpartition("/")[2]
    decided = decide(host(T4), "12.9", cudnn_archive=url, cudnn_archive_sha256="A" * 64)
    assert todo(decided.steps[0])["file"] == ""
    assert installs(decided)[0]["origin"] == "sha256:" + "a" * 64


@pytest.mark.parametrize(
    ("devices", "given_settings", "code", "words"),
    [
        ([T4], {"cudnn_archive": "https://s/" + TWELVE}, "cudnn_archive_unverified", ["cudnn_archive_sha256"]),
        ([T4], {"cudnn_archive": TWELVE}, "cudnn_archive_cuda", ["13.0", 'set cudnn_toolkits to ["12.9"]']),
        ([T4], {"cudnn_archive": "/a/cudnn-8.0-linux-x64-v6.0.tgz"}, "cudnn_archive_cuda", ["8.0", "archive for CUDA"]),
        ([T4], {"cudnn_archive": TWELVE.replace("x86_64", "sbsa")}, "cudnn_archive_machine", ["sbsa", "x86_64"]),
        ([T4], {"cudnn_archive": TWELVE, "cudnn_version": "9.17.0"}, "cudnn_contradiction", ["9.17.0", "9.10.2.21"]),
        ([T4], {"cudnn_archive": TWELVE, "cudnn_source": "package"}, "cudnn_contradiction", ["package"]),
        ([T4], {"cudnn_toolkits": ["12.4"]}, "cudnn_toolkit_missing", ["12.4", "12.9, 13.0"]),
        (
            [V100],
            {"cudnn_archive": TWELVE.replace("9.10.2.21", "9.28.0.42"), "cudnn_toolkits": ["12.9"]},
            "cudnn_drops_gpu",
            ["V100", newest("12", "7.0")],
        ),
    ],
)
def test_refusals_of_an_operators_archive(
    devices: list[str], given_settings: dict[str, Any], code: str, words: list[str]
) -> None:
    decided = decide(host(*devices), "12.9", "13.0", **given_settings)
    assert {refusal.code for refusal in decided.refusals} == {code}
    text = " ".join(one.message + " " + one.remedy for one in decided.refusals)
    assert [word for word in words if word not in text] == []


def test_an_operators_archive_is_placed_unless_exactly_it_is_installed() -> None:
    facts = host(T4)
    request = {"cudnn_archive": "/srv/our_names.tgz", "cudnn_archive_sha256": "a" * 64}
    first = decide(facts, "12.9", **request)
    assert [step.id for step in first.steps] == ["cudnn.install"]
    assert [warning.code for warning in first.warnings] == ["not_in_catalog"]
    # Its version is not known before it is unpacked: the plan names the checksum.
    assert first.choice is not None and first.choice.versions == {"12.9": "sha256:" + "a" * 64}
    found = seen("6.0.21", "6.0.21", True)._replace(origin="sha256:" + "a" * 64)
    facts = having(facts, cudnn={"12.9": found})
    second = decide(facts, "12.9", **request)
    assert (second.steps, second.warnings, second.choice) == ([], [], first.choice)
    assert decide(facts, "12.9", **{**request, "cudnn_archive_sha256": "b" * 64}).steps
    assert decide(facts, "12.9", cudnn_version="6.0.21").steps


# --- which toolkits ----------------------------------------------------------------------------------------------


def test_installed_toolkits_get_a_cudnn_if_one_is_supported() -> None:
    facts = host(T4, toolkits={"11.8": "package", "12.4": "partial"})
    decided = decide(facts, "12.9", cudnn_version="9.17.0")
    assert [install["cuda"] for install in installs(decided)] == ["12.9"]
    assert [(warning.code, "cudnn_toolkits" in warning.remedy) for warning in decided.warnings] == [
        ("cudnn_without_cuda", True)
    ]
    assert [install["cuda"] for install in installs(decide(facts, "12.9"))] == ["11.8", "12.9"]
    assert [install["cuda"] for install in installs(decide(facts, "12.9", cudnn_toolkits=["11.8"]))] == ["11.8"]


def test_own_cudnn_is_removed_from_toolkits_that_are_not_listed() -> None:
    facts = host(T4)
    facts = having(facts, cudnn={name: seen("9.17.0", "9.17.0.29", True) for name in ("12.4", "12.9", "13.0")})
    decided = decide(facts, "12.9", "13.0", cudnn_toolkits=["12.9"], cudnn_version="9.17.0")
    assert [(step.id, todo(step)) for step in decided.steps] == [
        ("cudnn.remove", {"installs": [{"cuda": "12.4"}, {"cuda": "13.0"}]})
    ]
    with_toolkit = decide(facts, "12.9", "13.0", cudnn_version="9.17.0", cuda_toolkit_remove=["12.4"])
    assert with_toolkit.steps == []


# --- packages ----------------------------------------------------------------------------------------------------

DEB = ["libcudnn9-cuda-12", "libcudnn9-dev-cuda-12", "libcudnn9-headers-cuda-12"]
RPM = ["libcudnn9-cuda-12", "libcudnn9-devel-cuda-12", "libcudnn9-headers-cuda-12"]


def packaged(facts: Facts, held: bool = False, ours: bool = True, **versions: str) -> Facts:
    """The host with these packages (underscores for hyphens)."""
    installed = {name.replace("_", "-"): version for name, version in versions.items()}
    facts = with_packages(facts, **installed)
    facts = having(facts, packages={"held": list(installed) if held else []})
    our_names = list(installed) if ours else []
    return having(
        facts, cudnn_packages={"installed": installed, "ours": our_names, "held_by_us": our_names if held else []}
    )


def packages(facts: Facts, *toolkits: str, **given_settings: Any) -> Any:
    return decide(facts, *toolkits, cudnn_source="package", **given_settings)


def by_id(decided: Any, name: str = "cudnn.packages") -> dict[str, Any]:
    return next(todo(step) for step in decided.steps if step.id == name)


@pytest.mark.parametrize(
    ("distro", "devices", "given_settings", "names", "version", "held"),
    [
        ("debian12", [T4], {}, DEB, "9.*", False),
        ("el9", [T4], {}, RPM, "9.*", False),
        ("debian12", [P40], {}, DEB, "9.10.2.21-*", True),
        ("debian12", [T4], {"cudnn_version": "9.17.0"}, DEB, "9.17.0.29-*", True),
        ("el9", [T4], {"cudnn_version": "9.17.0.29"}, RPM, "9.17.0.29-*", True),
        ("debian12", [T4], {"cudnn_version": "9.99.1"}, DEB, "9.99.1.*", True),
        ("debian12", [T4], {"cudnn_version": "8.9.7"}, ["libcudnn8", "libcudnn8-dev"], "8.9.7.29-1+cuda12.*", True),
        ("el9", [T4], {"cudnn_version": "8.9.7"}, ["libcudnn8", "libcudnn8-devel"], "8.9.7.29-1.cuda12.*", True),
    ],
    ids=["deb", "rpm", "the last one for a GPU", "asked", "asked in full", "newer than the catalog", "8 deb", "8 rpm"],
)
def test_names_versions_and_holds_of_packages(
    distro: str, devices: list[str], given_settings: dict[str, Any], names: list[str], version: str, held: bool
) -> None:
    decided = packages(host(*devices, distro=distro), "12.9", **given_settings)
    assert [step.id for step in decided.steps] == ["cudnn.packages"]  # the repository is added with the toolkit
    params = by_id(decided)
    assert params["packages"] == [{"name": name, "version": version} for name in names]
    assert params["hold"] == (names if held else [])
    assert bool(params["tools"]) is (held and distro == "el9")


def test_the_repository_is_added_where_no_toolkit_adds_it() -> None:
    facts = host(T4, toolkits={"12.9": "runfile"})
    assert [step.id for step in packages(facts, "12.9").steps] == ["cudnn.repository", "cudnn.packages"]


@pytest.mark.parametrize(
    ("source", "satisfied", "toolkits", "adds"),
    [("cuda_repo", False, "runfile", False), ("cuda_repo", True, "runfile", True), ("distro", False, "runfile", True),
     ("distro", True, "repo", True)],
)  # fmt: skip
def test_the_repository_is_added_once(source: str, satisfied: bool, toolkits: str, adds: bool) -> None:
    """The driver's installation adds it, too; a toolkit that is there adds nothing."""
    facts = host(T4, toolkits={"12.9": "package" if toolkits == "repo" else "runfile"})
    cuda_choice = CudaChoice(toolkits, [ToolkitChoice("12.9", "/usr/local/cuda-12.9")])
    choices = driver_choice(580, source=source, satisfied=satisfied)._replace(cuda=cuda_choice)
    found = [step.id for step in planner.plan_cudnn(facts, settings(cudnn_source="package"), choices).steps]
    assert found == ["cudnn.repository"] * adds + ["cudnn.packages"]


def test_without_a_repository_of_nvidia_there_are_no_packages() -> None:
    facts = having(host(T4, toolkits={"12.9": "runfile"}), base={"distro": None})
    (refusal,) = packages(facts, "12.9").refusals
    assert (refusal.code, refusal.remedy) == ("cudnn_without_packages", "set cudnn_source to archive")
    assert "no repository for this distribution" in refusal.message


def test_packages_that_are_no_longer_needed_are_removed_with_that_reason() -> None:
    facts = packaged(host(T4, toolkits={"12.9": "package", "13.0": "package"}), libcudnn9_cuda_12="9.10.2.21-1")
    others = {name.replace("-12", "-13"): f"{newest('13', '7.5')}.1-1" for name in DEB}
    facts = having(
        facts, cudnn_packages={"installed": {**facts.cudnn_packages.installed, **others}, "ours": [*others, DEB[0]]}
    )
    decided = packages(facts, "13.0")
    assert decided.steps[-1].why == "libcudnn9-cuda-12 is no longer needed"
    assert by_id(decided)["remove"] == ["libcudnn9-cuda-12"]


@pytest.mark.parametrize(
    ("facts", "toolkits", "given_settings", "code", "words"),
    [
        (host(T4), ["12.9", "13.0"], {}, "cudnn_one_cuda", ["12.9 and 13.0", "12 and 13", "cudnn_toolkits"]),
        (host(T4), ["13.0"], {"cudnn_version": "8.9.7"}, "cudnn_without_cuda", ["8.9.7", newest("13")]),
        (host(T4), ["12.9"], {"cudnn_version": "8.9.6"}, "cudnn_version_wrong", ["four"]),
        (host(T4), ["12.9"], {"cudnn_version": "7.6.5"}, "cudnn_without_packages", ["cuDNN 7"]),
        (
            packaged(host(T4), ours=False, libcudnn9_cuda_13="9.17.0.29-1"),
            ["12.9"],
            {},
            "cudnn_foreign",
            ["libcudnn9-cuda-13", "remove"],
        ),
    ],
)
def test_impossible_packages_are_refused(
    facts: Facts, toolkits: list[str], given_settings: dict[str, Any], code: str, words: list[str]
) -> None:
    decided = packages(facts, *toolkits, **given_settings)
    assert [refusal.code for refusal in decided.refusals] == [code]
    text = decided.refusals[0].message + " " + decided.refusals[0].remedy
    assert [word for word in words if word not in text] == [] and decided.steps == []


THREE: dict[str, Any] = {"libcudnn9_cuda_12": "9.17.0.29-1", "libcudnn9_dev_cuda_12": "9.17.0.29-1", "libcudnn9_headers_cuda_12": "9.17.0.29-1"}  # fmt: skip


def test_installed_packages_stay_and_a_metapackage_is_updated() -> None:
    assert packages(packaged(host(T4), **THREE), "12.9").steps == []
    assert packages(packaged(host(T4), ours=False, **THREE), "12.9").steps == []
    assert packages(packaged(host(T4), held=True, **THREE), "12.9", cudnn_version="9.17.0").steps == []
    hold = by_id(packages(packaged(host(T4), **THREE), "12.9", cudnn_version="9.17.0"))
    assert (hold["hold"], hold["unhold"], hold["remove"]) == (DEB, [], [])
    loose = by_id(packages(packaged(host(T4), held=True, **THREE), "12.9"))
    assert (loose["hold"], loose["unhold"]) == ([], DEB)
    # A hold that somebody else set stays.
    theirs = packaged(host(T4), held=True, **THREE)
    theirs = having(theirs, cudnn_packages={"held_by_us": []})
    assert packages(theirs, "12.9").steps == []
    upgrade = packaged(host(T4), held=True, cudnn9_cuda_12="9.17.0.29-1", **THREE)
    moved = by_id(packages(upgrade, "12.9", cudnn_version="9.28.0"))
    assert [one["name"] for one in moved["packages"]] == [*DEB, "cudnn9-cuda-12"]
    assert moved["unhold"] == sorted([*DEB, "cudnn9-cuda-12"])


def test_our_packages_of_another_cuda_or_major_version_are_removed_and_those_of_others_stay() -> None:
    other = packaged(host(T4), held=True, libcudnn9_cuda_13="9.28.0.42-1")
    params = by_id(packages(other, "12.9"))
    assert (params["remove"], params["unhold"]) == (["libcudnn9-cuda-13"], ["libcudnn9-cuda-13"])
    eight = packaged(host(T4), libcudnn8="8.9.7.29-1+cuda12.2")
    assert by_id(packages(eight, "12.9"))["remove"] == ["libcudnn8"]
    theirs = packaged(host(T4), ours=False, libcudnn8="8.9.7.29-1+cuda12.2")
    assert by_id(packages(theirs, "12.9"))["remove"] == []
    assert packages(packaged(host(T4), **THREE)).steps == []  # without a toolkit nothing shows that they are not needed


def test_one_source_replaces_the_other_and_none_keeps_both() -> None:
    facts = packaged(host(T4), held=True, **THREE)
    facts = having(facts, cudnn={"12.9": seen("9.17.0", "9.17.0.29", True)})
    to_packages = packages(facts, "12.9", cudnn_version="9.17.0")
    assert [(step.id, todo(step)) for step in to_packages.steps] == [("cudnn.remove", {"installs": [{"cuda": "12.9"}]})]
    to_archives = decide(facts, "12.9", cudnn_version="9.17.0")
    assert [(step.id, todo(step)) for step in to_archives.steps] == [
        ("cudnn.remove_packages", {"packages": DEB, "unhold": DEB})
    ]
    assert decide(facts, "12.9", cudnn_source="none").steps == []


def test_an_archive_of_others_before_packages_is_a_warning() -> None:
    facts = packaged(host(T4), **THREE)
    facts = having(facts, cudnn={"12.9": seen("8.9.7")})
    decided = packages(facts, "12.9")
    assert (decided.steps, [warning.code for warning in decided.warnings]) == ([], ["cudnn_foreign"])


@given(
    st.sampled_from(["debian12", "el9"]),
    st.sampled_from([P40, T4, A100]),
    st.sampled_from(["11.8", "12.9", "13.0"]),
    st.sampled_from(["", "8.9.7", "9.10.2", "9.28.0"]),
    st.sampled_from(["", "libcudnn9-cuda-12", "libcudnn9-cuda-13", "libcudnn8"]),
)
def test_executed_plan_of_packages_leaves_nothing_to_do(
    distro: str, device: str, toolkit: str, asked: str, before: str
) -> None:
    facts = host(device, distro=distro, toolkits={toolkit: "package"})
    if before:
        version = "8.9.7.29-1+cuda12.2" if "8" in before else "9.10.2.21-1"
        present: dict[str, Any] = {before.replace("-", "_"): version}
        facts = packaged(facts, held=True, **present)
    decided = packages(facts, toolkit, cudnn_version=asked)
    if decided.refusals:
        assert decided.steps == []
        return
    second = packages(carried_out(facts, decided), toolkit, cudnn_version=asked)
    assert [step.id for step in second.steps if step.id != "cudnn.repository"] == []
    assert second.choice == decided.choice
