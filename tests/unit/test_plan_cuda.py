"""Which CUDA toolkits a host gets, and that doing so leaves nothing to do."""

import copy
from typing import Any

import pytest
from gpu_ready import catalog, cuda, versions
from gpu_ready.plan import cuda as room
from gpu_ready.plan.steps import Decision
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hosts import A100, B200, P40, T4, UNKNOWN, V100, bare

WANTED: dict[str, Any] = {"cuda_toolkit_source": "repo", "cuda_toolkit_versions": [], "cuda_toolkit_default": ""}
NEWEST = catalog.toolkits()[-1].version


def host(*devices: str, toolkits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    """Return an observed host; ``toolkits`` maps versions to their origin."""
    observed = bare(*devices, **more)
    observed["cuda"] = {
        "toolkits": [
            {"version": version, "path": cuda.folder(version), "release": None, "origin": origin}
            for version, origin in (toolkits or {}).items()
        ],
        "default": {"target": None, "kind": "absent", "mode": None},
        "profile": {},
    }
    observed["cudnn"] = {}
    return observed


def driver(branch: int, version: str | None = None, source: str = "distro") -> dict[str, Any]:
    chosen = {"source": source, "branch": branch, "version": version, "flavour": "open", "satisfied": False}
    return {"driver": chosen}


def decide(observed: dict[str, Any], branch: int, *asked: str, **wanted: Any) -> Decision:
    values = {**WANTED, "cuda_toolkit_versions": list(asked), **wanted}
    return room.decide(observed, values, driver(branch))


def ids(decided: Decision) -> list[str]:
    return [step.id for step in decided.steps]


def chosen(decided: Decision) -> list[str]:
    return [toolkit["version"] for toolkit in decided.choice["toolkits"]]


def carried_out(observed: dict[str, Any], decided: Decision) -> dict[str, Any]:
    after = copy.deepcopy(observed)
    found = after["cuda"]
    for step in decided.steps:
        if step.id == "cuda_toolkit.repository":
            (third,) = step.params["repositories"]
            after["apt"]["sources"][third["list"]] = "URIs: " + third["url"]
            after["apt"]["keyrings"].append(third["keyring"].rpartition("/")[2])
            if third["pin"]:
                after["apt"]["preferences"].append(third["pin"]["path"].rpartition("/")[2])
        elif step.id == "cuda_toolkit.install":
            new = step.params["versions"]
            found["toolkits"] = [one for one in found["toolkits"] if one["version"] not in new] + [
                {"version": one, "path": cuda.folder(one), "release": None, "origin": "package"} for one in new
            ]
        elif step.id == "cuda_toolkit.default":
            found["default"] = {"target": step.params["path"], "kind": "alternatives", "mode": "manual"}
        elif step.id == "cuda_toolkit.profile":
            found["profile"].update({file["path"]: file["content"] for file in step.params["files"]})
        else:
            raise AssertionError(step.id)
    return after


@pytest.mark.parametrize(
    ("devices", "branch", "newest_below"),
    [
        ([T4], 535, "13.0"),
        ([T4], 575, "13.0"),
        ([P40], 580, "13.0"),
        ([V100, A100], 580, "13.0"),
        ([P40], 535, "13.0"),
        ([A100], 470, "12.0"),
        ([B200], 580, None),
        ([UNKNOWN], 580, None),
    ],
)
def test_the_default_is_the_newest_that_driver_and_oldest_gpu_allow(
    devices: list[str], branch: int, newest_below: str | None
) -> None:
    known = [toolkit.version for toolkit in catalog.toolkits()]
    below = [v for v in known if newest_below is None or versions.compare(v, newest_below) < 0]
    assert room.fits(host(*devices), room.driver_version(host(*devices), driver(branch)))[-1:] == below[-1:]


def test_a_bare_host_gets_everything_and_only_toolkit_packages() -> None:
    decided = decide(host(P40), 580, "12.4", "12.9")
    assert ids(decided) == [
        "cuda_toolkit.repository",
        "cuda_toolkit.install",
        "cuda_toolkit.default",
        "cuda_toolkit.profile",
    ]
    params = {step.id: step.params for step in decided.steps}
    assert params["cuda_toolkit.install"] == {
        "packages": [{"name": "cuda-toolkit-12-4", "version": None}, {"name": "cuda-toolkit-12-9", "version": None}],
        "versions": ["12.4", "12.9"],
    }
    assert params["cuda_toolkit.default"] == {"version": "12.9", "path": "/usr/local/cuda-12.9"}
    assert [file["path"] for file in params["cuda_toolkit.profile"]["files"]] == [
        "/etc/profile.d/cuda.csh",
        "/etc/profile.d/cuda.sh",
    ]
    assert {step.disruption for step in decided.steps} == {"none"}


@pytest.mark.parametrize(
    ("toolkits", "missing"),
    [
        ({"12.4": "package"}, ["12.9"]),
        ({"12.4": "runfile", "12.9": "partial"}, ["12.9"]),
        ({"12.4": "runfile", "12.9": "package"}, []),
    ],
)
def test_only_what_is_missing_is_installed(toolkits: dict[str, str], missing: list[str]) -> None:
    decided = decide(host(P40, toolkits=toolkits), 580, "12.4", "12.9")
    assert [step.params["versions"] for step in decided.steps if step.id == "cuda_toolkit.install"] == (
        [missing] if missing else []
    )
    assert ("cuda_toolkit.repository" in ids(decided)) is bool(missing)


@pytest.mark.parametrize(
    ("devices", "branch", "asked", "codes", "words"),
    [
        ([T4], 535, "13.0", ["cuda_above_driver"], ["13.0", "580", "12.9"]),
        ([P40], 580, "13.0", ["cuda_drops_gpu"], ["13.0", "P40", "12.9"]),
        ([P40], 535, "13.0", ["cuda_drops_gpu", "cuda_above_driver"], ["P40", "580", "12.9"]),
        ([T4], 580, "99.9", ["cuda_unknown"], ["99.9", catalog.DATE, "12.9"]),
    ],
)
def test_what_cannot_work_is_refused_and_told_what_can(
    devices: list[str], branch: int, asked: str, codes: list[str], words: list[str]
) -> None:
    decided = decide(host(*devices), branch, asked)
    assert [refusal.code for refusal in decided.refusals] == codes
    text = " ".join(refusal.message + "; " + refusal.remedy for refusal in decided.refusals)
    assert [word for word in words if word not in text] == []
    assert decided.steps == []


def test_a_default_that_is_nowhere_is_refused() -> None:
    decided = decide(host(T4), 580, "12.9", cuda_toolkit_default="12.4")
    assert [refusal.code for refusal in decided.refusals] == ["cuda_default_missing"]
    observed = host(T4, toolkits={"12.4": "package"})
    assert decide(observed, 580, "12.9", cuda_toolkit_default="12.4").choice["default"] == "12.4"


def test_a_folder_in_place_of_the_link_is_refused() -> None:
    observed = host(T4)
    observed["cuda"]["default"]["kind"] = "folder"
    assert [refusal.code for refusal in decide(observed, 580, "12.9").refusals] == ["cuda_link_is_folder"]


def test_a_driver_from_the_same_repository_brings_it() -> None:
    observed = host(T4)
    wanted = {**WANTED, "cuda_toolkit_versions": ["12.9"]}
    assert "cuda_toolkit.repository" not in ids(room.decide(observed, wanted, driver(580, source="cuda_repo")))
    there = driver(580, source="cuda_repo")
    there["driver"]["satisfied"] = True
    assert "cuda_toolkit.repository" in ids(room.decide(observed, wanted, there))


def test_source_none_leaves_toolkits_alone_and_names_them_for_cudnn() -> None:
    decided = decide(host(T4, toolkits={"12.4": "runfile", "11.8": "partial"}), 580, cuda_toolkit_source="none")
    assert (decided.steps, chosen(decided)) == ([], ["12.4"])


@pytest.mark.parametrize(
    ("default", "there"),
    [
        ({"target": "/usr/local/cuda-12.9", "kind": "alternatives", "mode": "manual"}, True),
        ({"target": "/usr/local/cuda-12.9", "kind": "link", "mode": None}, True),
        ({"target": "/usr/local/cuda-12.9", "kind": "alternatives", "mode": "auto"}, False),
        ({"target": "/usr/local/cuda-12.4", "kind": "alternatives", "mode": "manual"}, False),
        ({"target": None, "kind": "link", "mode": None}, False),
    ],
)
def test_when_the_default_link_is_set(default: dict[str, Any], there: bool) -> None:
    observed = host(T4, toolkits={"12.9": "package"})
    observed["cuda"]["default"] = default
    assert ("cuda_toolkit.default" in ids(decide(observed, 580, "12.9"))) is not there


def test_a_repository_without_a_fitting_toolkit_is_said_and_nothing_is_offered() -> None:
    observed = host(P40, distro="debian13")
    decided = decide(observed, 580)
    assert (decided.steps, chosen(decided)) == ([], [])
    assert [warning.code for warning in decided.warnings] == ["cuda_none_fits"]
    (refusal,) = decide(observed, 580, "13.0").refusals
    assert "cuda_toolkit_source to none" in refusal.remedy
    (refusal,) = decide(observed, 580, "12.9").refusals
    assert refusal.code == "source_impossible"
    assert decide(host(P40, distro="debian13", toolkits={"12.9": "runfile"}), 580, "12.9").refusals == []


ARCHITECTURES = [P40, V100, T4, A100, B200, UNKNOWN]


@given(
    st.lists(st.sampled_from(ARCHITECTURES), min_size=1, max_size=4),
    st.sampled_from([branch.number for branch in catalog.branches()]),
    st.lists(st.sampled_from([toolkit.version for toolkit in catalog.toolkits()]), max_size=3),
    st.dictionaries(
        st.sampled_from([toolkit.version for toolkit in catalog.toolkits()]),
        st.sampled_from(["package", "runfile", "partial"]),
        max_size=3,
    ),
)
def test_a_plan_fits_its_host_and_once_done_there_is_nothing_to_do(
    devices: list[str], branch: int, asked: list[str], there: dict[str, str]
) -> None:
    observed = host(*devices, toolkits=there)
    decided = decide(observed, branch, *asked)
    assert decided == decide(observed, branch, *asked)
    if decided.refusals:
        assert decided.steps == []
        assert all(refusal.message and refusal.remedy for refusal in decided.refusals)
        return
    fitting = room.fits(observed, room.driver_version(observed, driver(branch)))
    assert set(chosen(decided)) <= set(fitting)
    after = carried_out(observed, decided)
    again = decide(after, branch, *asked)
    assert again.steps == []
    assert again.choice == decided.choice
