"""Which CUDA toolkits are planned, and that an executed plan leaves nothing to do."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import versions
from plugins.module_utils.gpu_ready.cuda import profile
from plugins.module_utils.gpu_ready.cuda import toolkit as cuda
from plugins.module_utils.gpu_ready.facts.model import CudaFacts, Facts, ToolkitFacts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan.cuda import choose
from plugins.plugin_utils.gpu_ready.plan.model import CudaChoice, Decision
from tests.unit.hosts import A100, B200, P40, T4, UNKNOWN, V100, bare, carried_out, having, with_packages
from tests.unit.plans import driver_choice, settings, todo

RELEASES = [f"{toolkit.version}.1" for toolkit in catalog.toolkits()]


def host(*devices: str, toolkits: dict[str, str] | None = None, **more: Any) -> Facts:
    """A host; ``toolkits`` maps versions (or releases) to their origin."""
    facts = bare(*devices, **more)
    found = [
        ToolkitFacts(
            version=cuda.series(version),
            path=cuda.toolkit_path(cuda.series(version)),
            release=version if version.count(".") == 2 else None,
            origin=origin,
        )
        for version, origin in (toolkits or {}).items()
    ]
    return facts._replace(cuda=CudaFacts(toolkits=found))


def test_a_card_passed_to_a_virtual_machine_does_not_limit_toolkits() -> None:
    facts = host(V100, T4, distro="ubuntu2404")
    assert set(choose.gpus_by_compute(facts)) == {"7.0", "7.5"}
    first, second = facts.base.gpus
    facts = having(facts, base={"gpus": [first._replace(driver="vfio-pci"), second]})
    assert set(choose.gpus_by_compute(facts)) == {"7.5"}
    assert not decide(facts, 580, "13.0").refusals


def decide(facts: Facts, branch: int, *requested: str, **given: Any) -> Any:
    values = {"cuda_toolkit_versions": list(requested), **given}
    return choose.plan_cuda(facts, settings(**values), driver_choice(branch))


def ids(decided: Decision[CudaChoice]) -> list[str]:
    return [step.id for step in decided.steps]


def chosen(decided: Decision[CudaChoice]) -> list[str]:
    return [toolkit.version for toolkit in decided.choice.toolkits] if decided.choice else []


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
    assert (
        choose.supported_toolkits(host(*devices), choose.driver_version(host(*devices), driver_choice(branch)))[-1:]
        == below[-1:]
    )


def test_plan_of_a_bare_host_has_only_toolkit_packages() -> None:
    decided = decide(host(P40), 580, "12.4", "12.9")
    assert ids(decided) == [
        "cuda_toolkit.repository",
        "cuda_toolkit.install",
        "cuda_toolkit.default",
        "cuda_toolkit.profile",
    ]
    params = {step.id: todo(step) for step in decided.steps}
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
    assert [todo(step)["versions"] for step in decided.steps if step.id == "cuda_toolkit.install"] == (
        [missing] if missing else []
    )
    assert ("cuda_toolkit.repository" in ids(decided)) is bool(missing)


@pytest.mark.parametrize(
    ("devices", "branch", "asked", "codes", "words"),
    [
        ([T4], 535, "13.0", ["cuda_above_driver"], ["13.0", "580", "12.9"]),
        ([P40], 580, "13.0", ["cuda_drops_gpu"], ["13.0", "P40", "12.9"]),
        ([P40], 535, "13.0", ["cuda_drops_gpu", "cuda_above_driver"], ["P40", "580", "12.9"]),
        ([T4], 580, "10.2", ["cuda_not_offered"], ["10.2", "12.9"]),
    ],
)
def test_what_cannot_work_is_refused_with_what_can(
    devices: list[str], branch: int, asked: str, codes: list[str], words: list[str]
) -> None:
    decided = decide(host(*devices), branch, asked)
    assert [refusal.code for refusal in decided.refusals] == codes
    text = " ".join(refusal.message + "; " + refusal.remedy for refusal in decided.refusals)
    assert [word for word in words if word not in text] == []
    assert decided.steps == []


def test_a_missing_default_is_refused() -> None:
    decided = decide(host(T4), 580, "12.9", cuda_toolkit_default="12.4")
    assert [refusal.code for refusal in decided.refusals] == ["cuda_default_missing"]
    facts = host(T4, toolkits={"12.4": "package"})
    assert decide(facts, 580, "12.9", cuda_toolkit_default="12.4").choice.default == "12.4"


def test_a_directory_in_place_of_the_link_is_refused() -> None:
    facts = host(T4)
    facts = having(facts, cuda={"default": {"kind": "directory"}})
    assert [refusal.code for refusal in decide(facts, 580, "12.9").refusals] == ["cuda_link_is_directory"]


def test_a_driver_from_the_same_repository_adds_it() -> None:
    facts = host(T4)
    given_settings = settings(cuda_toolkit_versions=["12.9"])
    for satisfied in (False, True):
        choices = driver_choice(580, source="cuda_repo", satisfied=satisfied)
        assert ("cuda_toolkit.repository" in ids(choose.plan_cuda(facts, given_settings, choices))) is satisfied


def test_source_none_leaves_toolkits_alone_and_names_them_for_cudnn() -> None:
    decided = decide(host(T4, toolkits={"12.4": "runfile", "11.8": "partial"}), 580, cuda_toolkit_source="none")
    assert (decided.steps, chosen(decided)) == ([], ["12.4"])


@pytest.mark.parametrize(
    ("default", "present"),
    [
        ({"target": "/usr/local/cuda-12.9", "kind": "alternatives", "mode": "manual"}, True),
        ({"target": "/usr/local/cuda-12.9", "kind": "link", "mode": None}, True),
        ({"target": "/usr/local/cuda-12.9", "kind": "alternatives", "mode": "auto"}, False),
        ({"target": "/usr/local/cuda-12.4", "kind": "alternatives", "mode": "manual"}, False),
        ({"target": None, "kind": "link", "mode": None}, False),
    ],
)
def test_when_the_default_link_is_set(default: dict[str, Any], present: bool) -> None:
    facts = host(T4, toolkits={"12.9": "package"})
    facts = having(facts, cuda={"default": default})
    assert ("cuda_toolkit.default" in ids(decide(facts, 580, "12.9"))) is not present


def test_the_default_is_set_after_packages_that_replace_a_plain_link() -> None:
    facts = host(T4, toolkits={"13.0.2": "runfile"})
    facts = having(facts, cuda={"default": {"target": "/usr/local/cuda-13.0", "kind": "link", "mode": None}})
    assert "cuda_toolkit.default" in ids(decide(facts, 580, "12.9", "13.0"))
    assert "cuda_toolkit.default" not in ids(decide(facts, 580, "12.9", "13.0", cuda_toolkit_source="runfile"))
    assert "cuda_toolkit.default" not in ids(decide(facts, 580, "13.0"))


def test_a_repository_without_a_fitting_toolkit_is_a_warning_and_nothing_is_installed() -> None:
    facts = host(P40, distro="debian13")
    decided = decide(facts, 580)
    assert (decided.steps, chosen(decided)) == ([], [])
    assert [warning.code for warning in decided.warnings] == ["cuda_none_fits"]
    (refusal,) = decide(facts, 580, "13.0").refusals
    assert "cuda_toolkit_source to none" in refusal.remedy
    (refusal,) = decide(facts, 580, "12.9").refusals
    assert refusal.code == "cuda_not_offered"
    assert decide(host(P40, distro="debian13", toolkits={"12.9": "runfile"}), 580, "12.9").refusals == []


# ---- exact releases ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("present", "asked", "packages"),
    [
        ({}, "12.9", [("cuda-toolkit-12-9", None)]),
        ({}, "12.9.1", [("cuda-toolkit-12-9", "12.9.1-*")]),
        ({"12.9.0": "package"}, "12.9.1", [("cuda-toolkit-12-9", "12.9.1-*")]),
        ({"12.9.1": "package"}, "12.9.0", [("cuda-toolkit-12-9", "12.9.0-*")]),
        ({"12.9.1": "package"}, "12.9.1", []),
        ({"12.9.0": "package"}, "12.9", []),
        ({"12.9.0": "runfile"}, "12.9", []),
        ({"12.9.0": "foreign"}, "12.9", []),
        ({"12.9.1": "runfile"}, "12.9.1", []),
        ({"12.9": "partial"}, "12.9", [("cuda-toolkit-12-9", None)]),
    ],
)
def test_a_plain_version_keeps_the_installed_toolkit_and_a_release_is_installed(
    present: dict[str, str], asked: str, packages: list[tuple[str, str | None]]
) -> None:
    decided = decide(host(T4, toolkits=present), 580, asked)
    assert decided.refusals == []
    steps = [step for step in decided.steps if step.id == "cuda_toolkit.install"]
    assert [(one["name"], one["version"]) for step in steps for one in todo(step)["packages"]] == packages
    assert chosen(decided) == ["12.9"]


@pytest.mark.parametrize(
    ("present", "source", "asked", "code", "words"),
    [
        ({"12.9.0": "runfile"}, "repo", "12.9.1", "cuda_other_source", ["12.9.0", "installer", "cuda_toolkit_remove"]),
        ({"12.9.0": "package"}, "runfile", "12.9.1", "cuda_other_source", ["12.9.0", "packages", "to repo"]),
        ({"12.9.0": "foreign"}, "repo", "12.9.1", "cuda_foreign", ["/usr/local/cuda-12.9", "by hand", "12.9.1"]),
        ({"12.9.0": "foreign"}, "runfile", "12.9.1", "cuda_foreign", ["by hand", "move it away"]),
    ],
)
def test_one_kind_of_installation_does_not_overwrite_another(
    present: dict[str, str], source: str, asked: str, code: str, words: list[str]
) -> None:
    decided = decide(host(T4, toolkits=present), 580, asked, cuda_toolkit_source=source)
    assert [refusal.code for refusal in decided.refusals] == [code]
    text = decided.refusals[0].message + "; " + decided.refusals[0].remedy
    assert [word for word in words if word not in text] == []


def test_an_installer_never_overwrites_single_packages_of_its_toolkit() -> None:
    facts = host(T4, toolkits={"12.9": "partial"})
    facts = with_packages(facts, **{"cuda-nvcc-12-9": "12.9.86-1"})
    (refusal,) = decide(facts, 580, "12.9", cuda_toolkit_source="runfile").refusals
    assert (refusal.code, "cuda-nvcc-12-9" in refusal.message) == ("cuda_other_source", True)
    assert decide(facts, 580, "12.9").refusals == []


def test_packages_never_overwrite_half_of_an_installers_toolkit() -> None:
    facts = host(T4, toolkits={"12.9": "partial"})
    facts = having(facts, cuda={"toolkits": [facts.cuda.toolkits[0]._replace(cut_off=True)]})
    (refusal,) = decide(facts, 580, "12.9").refusals
    assert (refusal.code, "was interrupted in /usr/local/cuda-12.9" in refusal.message) == ("cuda_other_source", True)
    assert decide(facts, 580, "12.9", cuda_toolkit_source="runfile").refusals == []


# ---- installers -------------------------------------------------------------------------------------------------------

NVIDIA = "https://developer.download.nvidia.com/compute/cuda"
SHA = "0f6d806ddd87230d2adbe8a6006a9d20144fdbda9de2d6acc677daa5d036417a"


def installers(decided: Decision[CudaChoice]) -> list[dict[str, str]]:
    assert decided.refusals == []
    return [one for step in decided.steps if step.id == "cuda_toolkit.runfile" for one in todo(step)["installers"]]


@pytest.mark.parametrize(
    ("asked", "files", "release", "source", "checksum"),
    [
        ("12.9", {}, "12.9.2", f"{NVIDIA}/12.9.2/local_installers/cuda_12.9.2_575.57.08_linux.run",
         f"{NVIDIA}/12.9.2/docs/sidebar/md5sum.txt"),
        ("12.9.1", {}, "12.9.1", f"{NVIDIA}/12.9.1/local_installers/cuda_12.9.1_575.57.08_linux.run", SHA),
        ("13.4.1", {}, "13.4.1", f"{NVIDIA}/13.4.1/local_installers/cuda_13.4.1_linux.run",
         f"{NVIDIA}/13.4.1/docs/sidebar/md5sum.txt"),
        ("12.9", {"12.9": "/srv/cuda_12.9.0_575.51.03_linux.run"}, "12.9.0", "/srv/cuda_12.9.0_575.51.03_linux.run", ""),
        ("12.9", {"12.9": {"file": "https://site.example/cuda.run", "sha256": SHA.upper()}}, "",
         "https://site.example/cuda.run", SHA),
        ("12.9", {"12.9.0": "/srv/a.run", "12.9.1": "/srv/b.run"}, "12.9.1", "/srv/b.run", ""),
        ("12.9.0", {"12.9.0": "/srv/a.run", "12.9": "/srv/b.run"}, "12.9.0", "/srv/a.run", ""),
        ("12.9.1", {"12.9": "/srv/cuda_12.9.0_575.51.03_linux.run"}, "12.9.1",
         f"{NVIDIA}/12.9.1/local_installers/cuda_12.9.1_575.57.08_linux.run", SHA),
        ("12.9.0", {"12.9": "/srv/cuda_12.9.0_575.51.03_linux.run"}, "12.9.0", "/srv/cuda_12.9.0_575.51.03_linux.run", ""),
    ],
)  # fmt: skip
def test_which_installer_a_request_gets_and_its_checksum(
    asked: str, files: dict[str, Any], release: str, source: str, checksum: str
) -> None:
    decided = decide(host(T4), 580, asked, cuda_toolkit_source="runfile", cuda_toolkit_runfiles=files)
    (one,) = installers(decided)
    assert (one["release"], one["source"], one["sha256"] or one["md5_url"]) == (release, source, checksum)
    assert one["version"] == "12.9" if asked.startswith("12.9") else "13.4"
    assert bool(one["file"]) is ("://" not in source)
    assert ids(decided) == ["cuda_toolkit.runfile", "cuda_toolkit.default", "cuda_toolkit.profile"]
    assert decided.choice.source == "runfile"


def test_the_sites_mirror_serves_nvidias_installers_and_not_the_operators() -> None:
    given_settings = {"cuda_toolkit_source": "runfile", "gpu_ready_mirror": "http://mirror.site"}
    (one,) = installers(decide(host(T4), 580, "12.9", **given_settings))
    assert one["source"].startswith("http://mirror.site/developer.download.nvidia.com/compute/cuda/12.9.2/")
    assert one["md5_url"].startswith("http://mirror.site/")
    given = {"12.9": "https://other.example/cuda.run"}
    (one,) = installers(decide(host(T4), 580, "12.9", **given_settings, cuda_toolkit_runfiles=given))
    assert one["source"] == "https://other.example/cuda.run"


def test_the_newest_supported_installer_is_the_default() -> None:
    (one,) = installers(decide(host(P40), 580, cuda_toolkit_source="runfile"))
    assert one["version"] == "12.9"
    (one,) = installers(decide(host(P40, distro="debian13"), 580, cuda_toolkit_source="runfile"))
    assert one["version"] == "12.9"  # which the distribution's repository does not have
    facts = host(T4)
    facts = with_packages(facts, **{"libxml2": "2.9"})
    (step,) = [step for step in decide(facts, 580, cuda_toolkit_source="runfile").steps if "runfile" in step.id]
    assert todo(step)["packages"] == []


@pytest.mark.parametrize(
    ("asked", "files", "code", "words"),
    [
        ("12.9.7", {}, "cuda_not_offered", ["12.9.7", "12.9.0, 12.9.1, 12.9.2", "cuda_toolkit_runfiles"]),
        ("13.0", {}, "cuda_above_driver", ["13.0", "580", 'set cuda_toolkit_versions to ["12.9"]']),
        ("12.9", {"12.9": 5}, "cuda_runfiles_wrong", ["12.9: it must be a URL, a path, or a mapping"]),
        ("12.9", {"12.9": {"file": "/a", "md5": "x"}}, "cuda_runfiles_wrong", ["mapping of file and sha256"]),
        ("12.9", {"12.9": {"file": "/a", "sha256": "x"}}, "cuda_runfiles_wrong", ["64 hexadecimal digits"]),
        ("12.9", {"newest": "/a"}, "cuda_runfiles_wrong", ["newest: its name must be a version"]),
        ("12.9", {"12.8": "/srv/cuda_12.9.0_575.51.03_linux.run"}, "cuda_runfiles_wrong", ["installer of CUDA 12.9.0"]),
        ("10.2", {}, "cuda_not_offered", ["10.2"]),
    ],
)
def test_an_impossible_installer_is_refused(asked: str, files: dict[str, Any], code: str, words: list[str]) -> None:
    decided = decide(host(T4), 535, asked, cuda_toolkit_source="runfile", cuda_toolkit_runfiles=files)
    assert [refusal.code for refusal in decided.refusals] == [code]
    text = decided.refusals[0].message + "; " + decided.refusals[0].remedy
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    ("source", "distro", "newer"), [("auto", "debian12", True), ("none", "debian12", False), ("auto", None, False)]
)
def test_a_newer_driver_is_a_remedy_where_the_host_can_have_one(source: str, distro: str | None, newer: bool) -> None:
    facts = having(host(T4), base={"distro": distro})
    (refusal,) = decide(facts, 535, "13.0", nvidia_driver_source=source, cuda_toolkit_source="runfile").refusals
    assert refusal.code == "cuda_above_driver" and ("nvidia_driver_branch" in refusal.remedy) is newer


def test_a_toolkit_unknown_to_the_catalog_is_installed_by_the_operators_installer_with_a_warning() -> None:
    files = {"10.2": "/srv/cuda_10.2.89_440.33.01_linux.run"}
    decided = decide(host(T4), 535, "10.2", cuda_toolkit_source="runfile", cuda_toolkit_runfiles=files)
    assert [one["release"] for one in installers(decided)] == ["10.2.89"]
    assert [warning.code for warning in decided.warnings] == ["not_in_catalog"]


# ---- removal ------------------------------------------------------------------------------------------------------


def removal(decided: Decision[CudaChoice]) -> dict[str, Any]:
    assert decided.refusals == []
    (step,) = [step for step in decided.steps if step.id == "cuda_toolkit.remove"]
    return todo(step)


def linked(facts: Facts, version: str, mode: str | None = "manual") -> Facts:
    kind = "alternatives" if mode else "link"
    return having(facts, cuda={"default": {"target": cuda.toolkit_path(version), "kind": kind, "mode": mode}})


def test_one_version_is_removed_and_no_package_of_another() -> None:
    facts = linked(host(T4, toolkits={"12.4.1": "package", "12.9.1": "package"}), "12.4")
    names = ["cuda-toolkit-12-4", "cuda-nvcc-12-4", "cuda-nvcc-12-9", "cuda-toolkit-12-9", "cuda-toolkit-config-common"]
    facts = with_packages(facts, **dict.fromkeys(names, "1-1"))
    decided = decide(facts, 580, "12.9", cuda_toolkit_remove=["12.4"])
    assert removal(decided) == {
        "packages": ["cuda-nvcc-12-4", "cuda-toolkit-12-4"],
        "toolkits": [{"version": "12.4", "path": "/usr/local/cuda-12.4"}],
    }
    # The link points to a toolkit that stays before the other one is removed.
    assert ids(decided) == ["cuda_toolkit.default", "cuda_toolkit.profile", "cuda_toolkit.remove"]
    assert chosen(decided) == ["12.9"]


@pytest.mark.parametrize(
    ("toolkits", "going", "present"),
    [
        ({"12.4.1": "runfile"}, ["12.4"], ["12.4"]),
        ({"12.4": "partial"}, ["12.4"], ["12.4"]),
        ({"12.4.1": "runfile", "12.8.1": "package"}, ["12.8", "12.4"], ["12.4", "12.8"]),
        ({}, ["12.4"], []),
        ({"12.9.1": "package"}, ["12.4"], []),
    ],
)
def test_only_existing_toolkits_are_removed(toolkits: dict[str, str], going: list[str], present: list[str]) -> None:
    decided = decide(host(T4, toolkits=toolkits), 580, "12.9", cuda_toolkit_remove=going)
    steps = [step for step in decided.steps if step.id == "cuda_toolkit.remove"]
    assert [one["version"] for step in steps for one in todo(step)["toolkits"]] == present


def test_a_toolkit_to_remove_is_never_chosen() -> None:
    assert chosen(decide(host(P40), 580, cuda_toolkit_remove=["12.9"])) == ["12.8"]
    facts = host(T4, toolkits={"12.9.1": "package"})
    (refusal,) = decide(facts, 580, "13.0", cuda_toolkit_default="12.9", cuda_toolkit_remove=["12.9"]).refusals
    assert refusal.code == "cuda_contradiction"


@pytest.mark.parametrize(
    "given_settings",
    [
        {"cuda_toolkit_versions": ["12.4", "12.9"]},
        {"cuda_toolkit_versions": ["12.4.1"]},
        {"cuda_toolkit_versions": ["12.9"], "cuda_toolkit_default": "12.4"},
        {"cuda_toolkit_versions": ["12.9"], "cuda_toolkit_profile": "12.4"},
    ],
)
def test_a_toolkit_requested_and_to_be_removed_is_a_contradiction(given_settings: dict[str, Any]) -> None:
    values = settings(**given_settings, cuda_toolkit_remove=["12.4"])
    (refusal,) = choose.plan_cuda(host(T4, toolkits={"12.4.1": "package"}), values, driver_choice(580)).refusals
    assert refusal.code == "cuda_contradiction"
    assert "12.4 is in cuda_toolkit_remove and in" in refusal.message


def test_two_releases_in_one_directory_are_a_contradiction_and_a_version_beside_its_release_is_none() -> None:
    (refusal,) = decide(host(T4), 580, "12.9.0", "12.9.1").refusals
    assert (refusal.code, "/usr/local/cuda-12.9" in refusal.message) == ("cuda_contradiction", True)
    decided = decide(host(T4), 580, "12.9", "12.9.1", "12.9.1")
    assert (decided.refusals, chosen(decided)) == ([], ["12.9"])


def test_a_toolkit_installed_by_hand_is_not_removed() -> None:
    for source in ("repo", "runfile", "none"):
        facts = host(T4, toolkits={"12.4.1": "foreign"})
        given_settings = {"cuda_toolkit_source": source, "cuda_toolkit_remove": ["12.4"]}
        (refusal,) = decide(facts, 580, **given_settings).refusals
        assert (refusal.code, "/usr/local/cuda-12.4" in refusal.message) == ("cuda_foreign", True)


def test_with_source_none_the_link_moves_to_a_toolkit_that_stays_or_is_removed_with_its_profile() -> None:
    given_settings = {"cuda_toolkit_source": "none", "cuda_toolkit_remove": ["12.9"]}
    two = linked(host(T4, toolkits={"12.4.1": "runfile", "12.9.1": "package"}), "12.9")
    decided = decide(two, 580, **given_settings)
    assert ids(decided) == ["cuda_toolkit.default", "cuda_toolkit.remove"]
    assert todo(decided.steps[0])["version"] == "12.4"
    assert chosen(decided) == ["12.4"]
    last = linked(host(T4, toolkits={"12.9.1": "package"}), "12.9")
    last = having(last, cuda={"profile": {**profile.files(cuda.LINK)}})
    decided = decide(last, 580, **given_settings)
    assert ids(decided) == ["cuda_toolkit.profile", "cuda_toolkit.remove"]
    assert {file["state"] for file in todo(decided.steps[0])["files"]} == {"absent"}
    after = carried_out(last, decided)
    assert decide(after, 580, **given_settings).steps == []
    other = linked(host(T4, toolkits={"12.4.1": "runfile", "12.9.1": "package"}), "12.4")
    assert ids(decide(other, 580, **given_settings)) == ["cuda_toolkit.remove"]


# ---- login shells -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("present", "setting", "files"),
    [
        ({}, "default", profile.files("/usr/local/cuda")),
        ({}, "", profile.files("/usr/local/cuda")),
        ({}, "12.9", profile.files("/usr/local/cuda-12.9")),
        (profile.files("/usr/local/cuda"), "12.9", profile.files("/usr/local/cuda-12.9")),
        (profile.files("/usr/local/cuda"), "default", {}),
        (profile.files("/usr/local/cuda"), "none", dict.fromkeys(profile.PATHS)),
        ({profile.SH: "export PATH=/opt/cuda/bin:$PATH\n"}, "none", {}),
        ({}, "none", {}),
    ],
)
def test_profile_of_login_shells(present: dict[str, str], setting: str, files: dict[str, str | None]) -> None:
    facts = host(T4, toolkits={"12.9.1": "package"})
    facts = having(facts, cuda={"profile": {**dict.fromkeys(profile.PATHS), **present}})
    decided = decide(facts, 580, "12.9", cuda_toolkit_profile=setting)
    steps = [step for step in decided.steps if step.id == "cuda_toolkit.profile"]
    assert {file["path"]: file.get("content") for step in steps for file in todo(step)["files"]} == files


def test_a_profile_of_a_missing_toolkit_is_refused() -> None:
    (refusal,) = decide(host(T4), 580, "12.9", cuda_toolkit_profile="12.4").refusals
    assert (refusal.code, "cuda_toolkit_profile is 12.4" in refusal.message) == ("cuda_default_missing", True)


# ---- any request ------------------------------------------------------------------------------------------------------


def test_no_plan_names_a_package_that_installs_a_driver() -> None:
    for toolkit in catalog.toolkits():
        for release in (toolkit.version, toolkit.version + ".1"):
            decided = decide(host(T4, distro="el9"), 620, release)
            for step in decided.steps:
                if step.id == "cuda_toolkit.install":
                    assert [one["name"] for one in todo(step)["packages"]] == [cuda.toolkit_package(toolkit.version)]


ARCHITECTURES = [P40, V100, T4, A100, B200, UNKNOWN]


@given(
    st.lists(st.sampled_from(ARCHITECTURES), min_size=1, max_size=4),
    st.sampled_from([branch.number for branch in catalog.branches()]),
    st.lists(st.sampled_from([*RELEASES, *(toolkit.version for toolkit in catalog.toolkits())]), max_size=3),
    st.dictionaries(
        st.sampled_from([toolkit.version for toolkit in catalog.toolkits()]),
        st.sampled_from(["package", "runfile", "partial", "foreign"]),
        max_size=3,
    ),
    st.fixed_dictionaries(
        {
            "cuda_toolkit_source": st.sampled_from(["repo", "runfile"]),
            "cuda_toolkit_remove": st.lists(st.sampled_from(["12.4", "12.8", "12.9", "13.0"]), max_size=2),
            "cuda_toolkit_profile": st.sampled_from(["default", "none", "12.9"]),
        }
    ),
)
def test_a_plan_suits_its_host_and_once_executed_there_is_nothing_to_do(
    devices: list[str], branch: int, asked: list[str], present: dict[str, str], more: dict[str, Any]
) -> None:
    facts = host(*devices, toolkits=present)
    if present:
        facts = having(
            facts, cuda={"default": {"target": cuda.toolkit_path(max(present)), "kind": "link", "mode": None}}
        )
    decided = decide(facts, branch, *asked, **more)
    assert vars(decided) == vars(decide(facts, branch, *asked, **more))
    if decided.refusals:
        assert decided.steps == []
        assert all(refusal.message and refusal.remedy for refusal in decided.refusals)
        return
    fitting = choose.supported_toolkits(facts, choose.driver_version(facts, driver_choice(branch)))
    assert set(chosen(decided)) <= set(fitting)
    after = carried_out(facts, decided)
    assert not set(chosen(decided)) & set(more["cuda_toolkit_remove"])
    second = decide(after, branch, *asked, **more)
    assert second.steps == []
    assert second.choice == decided.choice


def aliased() -> Facts:
    facts = host(T4, toolkits={"12.9.1": "runfile"})
    alias = ToolkitFacts("12.4", "/usr/local/cuda-12.4", "12.9.1", "alias")
    return having(facts, cuda={"toolkits": [alias, *facts.cuda.toolkits]})


@pytest.mark.parametrize("source", ["repo", "runfile"])
def test_a_link_to_another_toolkit_is_neither_installed_nor_removed(source: str) -> None:
    for words in ({"cuda_toolkit_versions": ["12.4"]}, {"cuda_toolkit_remove": ["12.4"]}):
        decided = choose.plan_cuda(aliased(), settings(cuda_toolkit_source=source, **words), driver_choice(580))
        assert not decided.steps
        (refusal,) = decided.refusals
        assert refusal.code == "cuda_foreign"
        assert "/usr/local/cuda-12.4" in refusal.message and "12.9.1" in refusal.message


def test_a_link_to_another_toolkit_does_not_count() -> None:
    assert [one.version for one in choose.complete_toolkits(aliased())] == ["12.9"]


@pytest.mark.parametrize(("stays", "leads"), [(["12.9.1"], profile.files(cuda.LINK)), ([], {})])
def test_a_profile_of_one_toolkit_is_removed_with_it(stays: list[str], leads: dict[str, str]) -> None:
    facts = host(T4, toolkits=dict.fromkeys(["12.4.1", *stays], "runfile"))
    facts = having(facts, cuda={"profile": profile.files("/usr/local/cuda-12.4")})
    target = "/usr/local/cuda-12.9" if stays else None
    facts = having(facts, cuda={"default": {"target": target, "kind": "link", "mode": None}})
    decided = decide(facts, 580, cuda_toolkit_source="none", cuda_toolkit_remove=["12.4"])
    assert ids(decided) == ["cuda_toolkit.profile", "cuda_toolkit.remove"]
    written = {entry["path"]: entry.get("content") for entry in todo(decided.steps[0])["files"]}
    assert {path: text for path, text in written.items() if text} == leads
    assert set(written) == set(profile.PATHS)
