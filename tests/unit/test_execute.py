"""How the steps of a role are carried out: the calls of each, their order, waits, failures and what comes after one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.execute import copies, model, steps
from plugins.plugin_utils.gpu_ready.execute.reboot import restart, waits_for_reboot
from tests.unit import step_calls
from tests.unit.step_calls import CALLS, MORE, SETTINGS, Recorded

UNIT = "ansible.builtin.systemd_service"
URI = "ansible.builtin.uri"
FAILURE = "gpu_ready.nodes.gpu_service_failure"


class Failing(Recorded):
    """Modules of which some fail: `failing` has the number of times by module, -1 for always."""

    def __init__(self, failing: dict[str, int], settings: Mapping[str, Any] = SETTINGS, **result: Any) -> None:
        super().__init__(settings)
        self.failing = failing
        self.result = {"failed": True, "msg": "it fails", **result}

    def run(self, module: str, arguments: Mapping[str, Any], seconds: int, check: bool) -> dict[str, Any]:
        answer = super().run(module, arguments, seconds, check)
        left = self.failing.get(module.rpartition(".")[2], 0)
        if left:
            self.failing[module.rpartition(".")[2]] = left - 1
            raise model.StepFailed(self.result)
        return answer


def execute(modules: Recorded, **todo: dict[str, Any]) -> model.Execution:
    """Carry out steps of one part; two underscores in a name are a dot."""
    named = {name.replace("__", "."): parameters for name, parameters in todo.items()}
    return steps.execute(next(iter(named)).partition(".")[0], named, modules, lambda _: None)


def names(modules: Recorded) -> list[str]:
    return [module.rpartition(".")[2] for module, *_ in modules.calls]


def test_the_calls_of_every_step_are_the_recorded_ones() -> None:
    assert step_calls.text() == CALLS.read_text(), "golden/calls.txt: see tests/unit/step_calls.py"


def test_every_step_is_in_the_record() -> None:
    planned = set(step_calls.planned()) - {"gpu_plan.repair_packages"}
    assert planned <= set(steps.STEPS)
    assert planned | set(MORE) == set(steps.STEPS)


def test_commands_get_a_list_of_arguments_and_files_their_mode() -> None:
    """A list is not split and needs no quotes; without a mode the umask of the host would decide."""
    commands, written = 0, 0
    for module, arguments, *_ in step_calls.every():
        if module == "ansible.builtin.command":
            commands += 1
            assert set(arguments) == {"argv"} and all(isinstance(word, str) for word in arguments["argv"])
        elif module in ("ansible.builtin.copy", "ansible.builtin.file") and arguments.get("state") != "absent":
            written += 1
            assert arguments["mode"] in ("0755", "0600", "preserve")
            assert arguments.get("owner", "root") == "root"
    assert commands and written


def test_the_steps_of_the_part_are_carried_out_in_the_order_of_the_plan() -> None:
    begun: list[str] = []
    other: dict[str, Any] = {"docker_engine.repository": {"repositories": []}}
    first: dict[str, Any] = {"gpu_monitoring.remove": {}}
    second = {"gpu_monitoring.remove_node_exporter": {"packages": ["p"]}}
    for todo in (first | other | second, second | other | first):
        steps.execute("gpu_monitoring", todo, Recorded(SETTINGS), begun.append)
    assert begun == [*first, *second, *second, *first]


def test_a_failed_step_ends_the_plan_and_has_its_name() -> None:
    modules = Failing({"gpu_revert": -1})
    with pytest.raises(model.StepFailed) as caught:
        execute(modules, gpu_monitoring__remove_node_exporter={"packages": []}, gpu_monitoring__remove={})
    assert caught.value.result == {"failed": True, "msg": "it fails", "step": "gpu_monitoring.remove_node_exporter"}
    assert names(modules) == ["gpu_revert"]


@pytest.mark.parametrize("answer", [{"json": "x"}, {"json": {"Runtimes": 1}}, {"json": [1]}])
def test_an_answer_of_another_form_fails_the_step(answer: dict[str, Any]) -> None:
    """Of a module of Ansible's own, whose answers nothing else bounds."""

    class Lying(Recorded):
        def run(self, *arguments: Any) -> dict[str, Any]:
            return {**super().run(*arguments), **answer}

    with pytest.raises(model.StepFailed, match="has not the form") as caught:
        execute(Lying(SETTINGS), nvidia_container_runtime__configure=DOCKER)
    assert caught.value.result["step"] == "nvidia_container_runtime.configure"


DOCKER = {"daemon_json": MORE["docker_engine.configure"][0]["daemon_json"], "activation": "restart"}


def test_a_service_gets_time_to_answer() -> None:
    modules = Failing({"uri": 5})
    execute(modules, docker_engine__configure=DOCKER)
    assert names(modules) == ["gpu_daemon_json", "systemd_service", *["uri"] * 6]
    assert modules.clock == 5 * model.DELAY


@pytest.mark.parametrize(("slow", "asked"), [(0, model.ATTEMPTS), (200, 2)])
def test_a_service_that_does_not_answer_in_time_is_explained(slow: int, asked: int) -> None:
    """By attempts, and by the clock where each question takes long."""

    class Slow(Failing):
        def now(self) -> float:
            self.clock += slow
            return self.clock

    modules = Slow({"uri": -1})
    with pytest.raises(model.StepFailed, match="it fails"):
        execute(modules, docker_engine__configure=DOCKER)
    assert names(modules).count("uri") == asked
    assert modules.calls[-1][:2] == [FAILURE, {"name": "docker", "message": "it fails"}]


def test_docker_has_to_list_the_runtime() -> None:
    class Without(Recorded):
        def run(self, *arguments: Any) -> dict[str, Any]:
            return {**super().run(*arguments), "json": {"Runtimes": {"runc": {}}}}

    modules = Without(SETTINGS)
    with pytest.raises(model.StepFailed, match="docker does not list the runtime nvidia"):
        execute(modules, nvidia_container_runtime__configure=DOCKER)
    assert names(modules)[-1] == "gpu_service_failure"


RUNFILE = MORE["nvidia_driver.runfile"][1]


@pytest.mark.parametrize("failing", [{}, {"gpu_driver_runfile": -1}, {"copy": -1}])
def test_a_copied_installer_is_deleted_whatever_happens(failing: dict[str, int]) -> None:
    modules = Failing(dict(failing), {**SETTINGS, "nvidia_driver_runfile": RUNFILE["source"]})
    if failing:
        with pytest.raises(model.StepFailed):
            execute(modules, nvidia_driver__runfile=RUNFILE)
    else:
        execute(modules, nvidia_driver__runfile=RUNFILE)
    assert modules.calls[-1][:2] == [
        "ansible.builtin.file",
        {"path": "/var/lib/gpu-ready/installer.run", "state": "absent"},
    ]


def test_a_file_that_cannot_be_deleted_does_not_hide_why_the_step_failed() -> None:
    modules = Failing({"gpu_driver_runfile": -1, "file": -1}, msg="full")
    with pytest.raises(model.StepFailed, match="full"):
        execute(modules, nvidia_driver__runfile=RUNFILE)
    assert modules.warnings == ["full; delete the file yourself"]


def test_only_files_of_the_operator_are_copied(tmp_path: Path) -> None:
    given, absent = tmp_path / "given", tmp_path / "absent"
    given.write_text("x")
    modules = Recorded(SETTINGS)
    part = model.Execution(modules)
    for files, requested, message in (
        ([str(given)], "/etc/shadow", "/etc/shadow from the control node"),
        (["", None], str(given), "no variable set for this host names that file"),
        ([str(absent)], str(absent), "there is no such file on the control node"),
        ([str(given)], "x" * 300, "x{190}[.]{3} from"),
    ):
        with pytest.raises(model.StepFailed, match=message):
            copies.copy_files(files, {requested: "/var/x"}, part)
    assert modules.calls == []
    copies.copy_files([str(given), str(given), str(absent)], {str(given): "/var/x/y"}, part)
    assert [(name, arguments.get("src"), arguments.get("dest")) for name, arguments, *_ in modules.calls] == [
        ("ansible.builtin.file", None, None),
        ("ansible.builtin.copy", str(given), "/var/x/y"),
    ]


@pytest.mark.parametrize(
    ("answer", "state"), [({"reboot_required": True, "held_by": "process 1"}, "unchanged"), ({}, "started")]
)
def test_a_service_waits_for_the_reboot_that_the_new_module_needs(answer: dict[str, Any], state: str) -> None:
    class Module(Recorded):
        def run(self, *arguments: Any) -> dict[str, Any]:
            return {**super().run(*arguments), **answer}

    modules = Module(SETTINGS)
    daemon = {"packages": [{"name": "p", "version": None}], "hold": [], "remove": [], "service": "nvidia-persistenced"}
    part = execute(
        modules, nvidia_driver__activate=MORE["nvidia_driver.activate"][1], nvidia_driver__persistenced=daemon
    )
    assert modules.calls[-1][1] == {"name": "nvidia-persistenced", "state": state, "persistence": True}
    assert (part.reboot_required, part.held_by) == (bool(answer), answer.get("held_by", ""))


PROCESS, CONSOLE = "process 7 (python3)", "an unknown user of the module nvidia"
NO: dict[str, Any] = {}
REBOOT, WORK = {"gpu_ready_reboot_ok": True}, {"gpu_ready_disrupt": ["reboot"]}
DRAINED: dict[str, Any] = {"drained": True}
"""No setting: what a turn says."""


@pytest.mark.parametrize(
    ("held_by", "given", "refused"),
    [
        ("", NO, "A reboot is required: the loaded"),
        (CONSOLE, NO, f"in use; held by {CONSOLE}. Set gpu_ready_reboot_ok=true"),
        (PROCESS, WORK | DRAINED, f"in use; held by {PROCESS}. Set gpu_ready_reboot_ok=true"),
        ("", {"gpu_ready_reboot_ok": "no"}, "A reboot is required"),
        ("", REBOOT, ""),
        ("", {"gpu_ready_reboot_ok": "yes"}, ""),
        (CONSOLE, REBOOT, ""),
        (PROCESS, REBOOT, f"which stops {PROCESS}: it took a GPU after the plan"),
        (PROCESS, REBOOT | {"gpu_ready_disrupt": ["docker_restart"]}, f"which stops {PROCESS}"),
        (PROCESS, REBOOT | WORK, ""),
        (PROCESS, REBOOT | DRAINED, ""),
    ],
)
def test_a_host_is_rebooted_with_permission_and_not_under_new_work(
    held_by: str, given: dict[str, Any], refused: str
) -> None:
    class Module(Recorded):
        def run(self, *arguments: Any) -> dict[str, Any]:
            return {**super().run(*arguments), "reboot_required": True, "held_by": held_by}

    reload = {**MORE["nvidia_driver.activate"][1], "why": ""}
    modules, drained = Module({**SETTINGS, "gpu_ready_reboot_timeout": 1200, **given}), "drained" in given
    part = steps.execute("nvidia_driver", {"nvidia_driver.activate": reload}, modules, lambda _: None, drained)
    assert part.reboot_required and bool(part.reboot_refused) is bool(refused) and refused in part.reboot_refused
    begun: list[str] = []
    if refused:
        with pytest.raises(model.StepFailed, match=re.escape(refused)) as caught:
            restart(part, begun.append)
        assert caught.value.result["step"] == "reboot"
    else:
        restart(part, begun.append)
        restart(part, begun.append)
    assert names(modules).count("reboot") == len(begun) == (not refused)


@pytest.mark.parametrize(
    ("action", "planned", "idle", "busy"),
    [(None, False, False, True), ("load", False, False, True), ("reload", False, False, True)]
    + [("reboot", True, False, True), ("none", True, True, True)],
)
def test_a_host_waits_for_a_reboot_as_planned_or_as_its_driver_needs(
    action: str | None, planned: bool, idle: bool, busy: bool
) -> None:
    """``idle``, ``busy``: after the steps of the driver, whose module could be replaced or not."""
    answer = {"plan": {"choice": {"activation": {"action": action}}}}
    part = model.Execution(Recorded(SETTINGS))
    assert waits_for_reboot(answer) is planned
    assert waits_for_reboot(answer, part) is idle
    part.reboot_required = True
    assert waits_for_reboot(answer, part) is busy
    assert not waits_for_reboot({"plan": {"choice": {}}}) and not waits_for_reboot({})


def test_a_reboot_that_the_plan_knows_has_its_reason() -> None:
    reboot = {**MORE["nvidia_driver.activate"][1], "action": "reboot", "why": "nouveau has the GPU"}
    part = execute(Recorded(SETTINGS), nvidia_driver__activate=reboot)
    assert part.reboot_refused.startswith("A reboot is required: nouveau has the GPU. Set gpu_ready_reboot_ok=true")
    loaded = execute(Recorded(SETTINGS), nvidia_driver__activate={**reboot, "action": "load"})
    assert not loaded.reboot_required and loaded.reboot_refused == ""


STEP = {"expect": {"engines": {"names": ["docker", "containerd", "none"]}}, "digest": "d"}


@pytest.mark.parametrize(
    ("status", "printed", "copied"),
    [(0, "image", False), (0, "", True), (1, "image", True), (125, "image", True), (2, "image", True)],
)
def test_an_image_of_the_control_node_is_copied_to_engines_without_it(
    tmp_path: Path, status: int, printed: str, copied: bool
) -> None:
    class Engines(Recorded):
        def run(self, module: str, *more: Any) -> dict[str, Any]:
            answer = super().run(module, *more)
            if module == "ansible.builtin.command" and status:
                raise model.StepFailed({"failed": True, "msg": "x", "rc": status})
            return {**answer, "stdout": printed}

    image = tmp_path / "image.tar.xz"
    image.write_bytes(b"x")
    modules = Engines({**SETTINGS, "gpu_verify_image": str(image), "gpu_verify_devices": [0, 1]})
    execute(modules, gpu_verify__verify=STEP)
    assert names(modules) == ["command", "command", *(["copy"] if copied else []), "gpu_verify"]
    given = modules.calls[-1][1]
    assert given["image"] == "gpu-ready/verify:2d711642b726"
    assert (given["archive"], given["remove_archive"]) == ("/var/lib/gpu-ready/verify/image.tar.xz", True)
    assert given["devices"] == "0,1"


def test_an_engine_whose_question_fails_fails_the_step(tmp_path: Path) -> None:
    image = tmp_path / "image.tar"
    image.write_bytes(b"x")
    modules = Failing({"command": 1}, {**SETTINGS, "gpu_verify_image": str(image)}, rc=77)
    with pytest.raises(model.StepFailed):
        execute(modules, gpu_verify__verify=STEP)
    assert names(modules) == ["command"]


@pytest.mark.parametrize("image", ["/images/on-the-host.tar", "/images/on-the-host.tar.gz"])
def test_an_image_of_the_host_is_not_copied(image: str) -> None:
    modules = Recorded({**SETTINGS, "gpu_verify_image": image})
    execute(modules, gpu_verify__verify=STEP)
    assert names(modules) == ["gpu_verify"]
    given = modules.calls[-1][1]
    assert (given["image"], given["archive"], given["remove_archive"]) == ("", image, False)
