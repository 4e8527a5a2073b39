"""Which cuDNN goes into which toolkit."""

import copy
from typing import Any

import pytest
from gpu_ready import catalog, cudnn
from gpu_ready.plan import cudnn as room
from gpu_ready.plan.steps import Decision
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.hosts import A100, B200, P40, T4, UNKNOWN, V100
from tests.unit.test_plan_cuda import host

MIRROR = "http://mirror.example:8080"


def decide(observed: dict[str, Any], *toolkits: str, **wanted: Any) -> Decision:
    rows = [{"version": version, "path": f"/usr/local/cuda-{version}"} for version in toolkits]
    values = {"cudnn_source": "archive", "cudnn_version": "", **wanted}
    return room.decide(observed, values, {"cuda": {"toolkits": rows}})


def installs(decided: Decision) -> list[dict[str, Any]]:
    return decided.steps[0].params["installs"] if decided.steps else []


def seen(version: str | None, recorded: str | None = None, complete: bool = False) -> dict[str, Any]:
    return {"version": version, "recorded": recorded, "complete": complete, "missing": []}


def newest(major: str, *architectures: str) -> str:
    fitting = [one for one in catalog.cudnns() if major in one.cuda and set(architectures) <= set(one.architectures)]
    return fitting[-1].version


def test_each_toolkit_gets_the_newest_for_its_major_and_the_oldest_gpu() -> None:
    decided = decide(host(P40), "12.9")
    assert decided.choice["versions"] == {"12.9": newest("12", "pascal")}
    decided = decide(host(T4, A100), "12.9", "13.0")
    assert decided.choice["versions"] == {
        "12.9": newest("12", "turing", "ampere"),
        "13.0": newest("13", "turing", "ampere"),
    }
    assert [step.id for step in decided.steps] == ["cudnn.install"]


def test_an_install_names_everything_that_its_module_needs() -> None:
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
        ([V100], "12.9", newest("13"), "cudnn_drops_gpu", ["V100", newest("12", "volta")]),
        ([T4], "12.9", "9", "cudnn_unknown", ["9"]),
    ],
)
def test_what_cannot_work_is_refused(devices: list[str], toolkit: str, asked: str, code: str, words: list[str]) -> None:
    decided = decide(host(*devices), toolkit, cudnn_version=asked)
    assert [refusal.code for refusal in decided.refusals] == [code]
    text = decided.refusals[0].message + decided.refusals[0].remedy
    assert [word for word in words if word not in text] == []
    assert decided.steps == []


def test_a_version_newer_than_the_catalog_is_tried_with_a_warning() -> None:
    decided = decide(host(A100), "13.0", cudnn_version="99.1.0.7")
    assert [warning.code for warning in decided.warnings] == ["cudnn_unknown"]
    assert installs(decided)[0]["manifest_url"].endswith("/redistrib_99.1.0.json")


VERSION = newest("12", "turing")


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
def test_when_an_archive_is_placed(found: dict[str, Any], placed: bool) -> None:
    observed = host(T4)
    observed["cudnn"] = {"12.9": found}
    assert bool(decide(observed, "12.9").steps) is placed


def test_somebody_elses_cudnn_is_left_alone_unless_asked_for_another() -> None:
    observed = host(T4)
    observed["cudnn"] = {"12.9": seen("8.9.7")}
    decided = decide(observed, "12.9")
    assert (decided.steps, [warning.code for warning in decided.warnings]) == ([], ["cudnn_foreign"])
    decided = decide(observed, "12.9", cudnn_version=VERSION)
    assert [refusal.code for refusal in decided.refusals] == ["cudnn_foreign"]


def test_no_toolkit_or_no_wish_means_no_cudnn() -> None:
    assert decide(host(T4)).steps == []
    assert decide(host(T4), "12.9", cudnn_source="none").steps == []


@given(
    st.lists(st.sampled_from([P40, V100, T4, A100, B200, UNKNOWN]), min_size=1, max_size=4),
    st.lists(st.sampled_from([toolkit.version for toolkit in catalog.toolkits()]), unique=True, max_size=3),
    st.sampled_from(["", *(one.version for one in catalog.cudnns())]),
)
def test_once_done_there_is_nothing_to_do(devices: list[str], toolkits: list[str], asked: str) -> None:
    observed = host(*devices)
    decided = decide(observed, *toolkits, cudnn_version=asked)
    if decided.refusals:
        assert decided.steps == []
        return
    after = copy.deepcopy(observed)
    for install in installs(decided):
        after["cudnn"][install["cuda"]] = seen(cudnn.release(install["version"]), install["version"], True)
    again = decide(after, *toolkits, cudnn_version=asked)
    assert again.steps == []
    assert again.choice == decided.choice
