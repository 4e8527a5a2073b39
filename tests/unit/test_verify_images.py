"""What an image asks of the driver, and what a framework saw in its own."""

import json

import pytest

from plugins.module_utils.gpu_ready.base.host import TIMED_OUT, Result
from plugins.module_utils.gpu_ready.verify import frameworks as programs
from plugins.module_utils.gpu_ready.verify import requirement as environment
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.verdict import checks, frameworks, requirement
from tests.unit import test_verify as verdicts
from tests.unit.recorded import RecordedHost

KNOWN = {"cuda": "13.0", "driver": "580.178.04"}
REAL = (
    "cuda>=12.4 brand=tesla,driver>=470,driver<471 brand=unknown,driver>=470,driver<471 brand=nvidia,driver>=470,driver<471"
    " brand=tesla,driver>=525,driver<526 brand=tesla,driver>=535,driver<536"
)


@pytest.mark.parametrize(
    ("expression", "known", "answer"),
    [
        (REAL, KNOWN, True),
        (REAL, {"cuda": "12.2", "driver": "535.261.03"}, None),  # of the brand tesla it is fine
        (REAL, {"cuda": "12.1", "driver": "530.30.02"}, False),
        ("cuda>=13.0", KNOWN, True),
        ("cuda>=13.1", KNOWN, False),
        ("cuda>13.0", KNOWN, False),
        ("cuda<13.1,driver>=580", KNOWN, True),
        ("driver!=580.178.04", KNOWN, False),
        ("arch>=9.0", KNOWN, None),
        ("arch>=9.0 cuda>=12.0", KNOWN, True),
        ("nonsense", KNOWN, None),
    ],
)
def test_expressions(expression: str, known: dict[str, str], answer: bool | None) -> None:
    assert requirement.expression_met(expression, known) is answer


@pytest.mark.parametrize(
    ("variables", "expressions"),
    [
        ({}, []),
        ({"PATH": "/bin"}, []),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4"}, ["cuda>=12.4"]),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "NVIDIA_REQUIRE_SITE": "driver>=550"}, ["cuda>=12.4", "driver>=550"]),
        ({"NVIDIA_REQUIRE_CUDA": "cuda>=12.4", "NVIDIA_DISABLE_REQUIRE": "true"}, []),
        ({"NVIDIA_REQUIRE_CUDA": ""}, []),
        ({"CUDA_VERSION": "9.0.176", "NVIDIA_VISIBLE_DEVICES": "all"}, ["cuda>=9.0"]),
        ({"CUDA_VERSION": "9.0.176"}, []),
    ],
)
def test_what_an_image_asks_for(variables: dict[str, str], expressions: list[str]) -> None:
    assert requirement.requirements(variables) == expressions


def test_an_image_is_asked_and_one_that_is_not_there_says_nothing() -> None:
    argv = ("docker", "image", "inspect", "--format", "{{json .Config.Env}}", "i:1")
    text = json.dumps(["PATH=/bin", "NVIDIA_REQUIRE_CUDA=cuda>=12.4 brand=tesla,driver>=535"])
    host = RecordedHost(programs={argv: Result(0, text + "\n", "")})
    assert (
        environment.query_environment(host, "docker", "i:1")["NVIDIA_REQUIRE_CUDA"]
        == "cuda>=12.4 brand=tesla,driver>=535"
    )
    assert environment.query_environment(RecordedHost(), "docker", "i:1") == {}
    assert environment.query_environment(host, "containerd", "i:1") == {}
    assert environment.parse_environment("null") == {} and environment.parse_environment("<no value>") == {}


def judged(expression: str = "", mode: str = "toolkit") -> list[checks.Check]:
    variables = {"NVIDIA_REQUIRE_CUDA": expression} if expression else {}
    return requirement.check(variables, "580.178.04", "13.0", mode)


def test_an_unmet_requirement_has_three_remedies() -> None:
    [check] = judged("cuda>=99.0")
    assert check.ok is False and "cuda>=99.0" in check.expected and "CUDA 13.0" in check.found
    assert all(word in check.remedy for word in ("newer driver", "older CUDA", "NVIDIA_DISABLE_REQUIRE"))


def test_a_requirement_that_nobody_enforces_does_not_fail() -> None:
    [check] = judged("cuda>=99.0", "cdi")
    assert check.ok is None and "may fail" in check.found


def test_a_met_requirement_passes_and_an_image_without_one_has_no_check() -> None:
    assert judged("cuda>=12.4")[0].ok
    assert judged() == []


def test_a_requirement_on_a_cuda_that_nobody_knows_is_not_judged() -> None:
    assert requirement.check({"NVIDIA_REQUIRE_CUDA": "cuda>=99.0"}, "9999.1", None, "toolkit")[0].ok is not False


def test_the_probes_have_the_cuda_of_every_branch() -> None:
    assert make_probes().cuda == {str(branch.number): branch.cuda for branch in catalog.branches()}


NO_PULL = "Unable to find image 'x:1' locally\ndocker: Error response from daemon: manifest for x:1 not found: manifest unknown."


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (Result(125, "", NO_PULL), ("could not be pulled", "gpu_verify_framework_image")),
        (Result(127, "", 'exec: "python3": executable file not found in $PATH: unknown.'), ("has no python3",)),
        (Result(1, "", "Traceback\nModuleNotFoundError: No module named 'torch'"), ("pytorch is not installed",)),
        (Result(TIMED_OUT, "", "docker: no answer in 5 s"), ("gpu_verify_timeout",)),
        (Result(1, "", "RuntimeError: odd"), ("pytorch failed",)),
        (Result(0, "", ""), ("printed no number",)),
    ],
)
def test_every_failure_of_a_framework_is_red_and_reported(result: Result, words: tuple[str, ...]) -> None:
    answer = frameworks.parse_result("pytorch", "x:1", result)
    [check] = frameworks.check(answer, verdicts.GPUS)
    assert check.ok is False and check.found and check.cause and check.remedy
    assert all(word in check.cause + check.remedy for word in words)


def test_a_framework_that_sees_all_gpus_is_green() -> None:
    noise = "2026-11-21 tensorflow: This binary is optimised\n"
    answer = frameworks.parse_result(
        "tensorflow", "x:1", Result(0, noise + '{"version": "2.20.0", "count": 2}\n', "warning")
    )
    [check] = frameworks.check(answer, verdicts.GPUS)
    assert check.ok and "2.20.0" in check.found
    assert frameworks.check(answer, verdicts.GPUS[:1])[0].ok is False
    assert frameworks.check(None, verdicts.GPUS) == []


def test_programs_are_python() -> None:
    for framework, program in programs.PROGRAMS.items():
        compile(program, framework, "exec")
        assert programs.IMAGES[framework] and frameworks.MODULES[framework] in program
