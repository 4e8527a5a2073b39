"""The layers of a reading: other programs' messages, status words, unread lines; and one action in line 1."""

import re
import shlex
from typing import Any

import pytest

from plugins.plugin_utils.gpu_ready.catalog import messages as data
from plugins.plugin_utils.gpu_ready.diagnostics import layers, message_table, messages, programs, status_words
from plugins.plugin_utils.gpu_ready.explain import cli as explain
from plugins.plugin_utils.gpu_ready.explain import verdict
from tests.corpus.samples import SAMPLES, Sample

READ = {"nvidia_smi", "container_errors", "installer_logs", "dmesg"}
SEEN = [sample for sample in SAMPLES if sample.kind in READ]
ERROR = "\nAug 30 11:02:51 gpu1 frobnicatord[77]: ERROR: cannot frob the gizmo\n"
CLEAR = re.compile(r"no problem|not (?:about|related to) (?:a )?GPUs?|answered|was completed|shows no failure")


def shown(kind: str, text: str) -> list[str]:
    reader = explain.KINDS[kind]
    return reader.describe(reader.read(text.encode()))


@pytest.mark.parametrize("sample", SEEN, ids=lambda sample: sample.name)
def test_an_unknown_error_of_another_program_is_never_passed_over(sample: Sample) -> None:
    kind, text = explain.kind_of(sample.kind), sample.path.read_text(errors="replace")
    before, after = shown(kind, text), shown(kind, text + ERROR)
    if CLEAR.search(" ".join(before)):
        assert "frobnicatord" in " ".join(after), after
    if CLEAR.search(" ".join(after)):
        assert re.search(r"Read in part|Not read", " ".join(after)), after
    assert all(len(lines) <= verdict.LONGEST for lines in (before, after))


@pytest.mark.parametrize(
    ("kind", "text", "clear"),
    [
        ("nvidia-smi", "GPU 0: NVIDIA L4 (UUID: GPU-1)", "nvidia-smi answered"),
        ("dmesg", "[    5.123456] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05", "reports no problem"),
        ("installer-log", "NVIDIA driver version 580.95.05\nInstallation of the NVIDIA driver (version: 580.95.05) is now complete.", "was completed"),
        ("container-error", "docker: Error response from daemon: port is already allocated.", "not related to GPUs"),
    ],
)  # fmt: skip
def test_what_is_in_order_is_reported_until_an_unread_line_is_beside_it(kind: str, text: str, clear: str) -> None:
    assert clear in " ".join(shown(kind, text)) and not re.search("Read in part|Not read", " ".join(shown(kind, text)))
    after = shown(kind, text + ERROR)
    assert "frobnicatord" in " ".join(after)
    if kind == "container-error":  # the known message comes first
        assert after[-1].startswith("Not read")
    else:
        assert after[0].startswith("Read in part")


@pytest.mark.parametrize(
    "line",
    [
        "Aug 30 11:02:51 gpu1 systemd[1]: frob.service: Failed with result 'exit-code'.",
        "[    9.123456] EXT4-fs error (device sda1): ext4_find_entry: reading directory lblock 0, Permission denied",
    ],
)
def test_an_error_that_concerns_no_gpu_asks_for_nothing_but_is_mentioned(line: str) -> None:
    log = "[    5.123456] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  580.95.05\n" + line
    lines = shown("dmesg", log)
    assert not lines[0].startswith("Do now") and re.search("Read in part|Not read", " ".join(lines))


def test_a_module_that_only_registered_with_nvlink_is_not_called_loaded() -> None:
    log = "[    5.123456] nvidia-nvlink: Nvlink Core is being initialized, major device number 236\n"
    assert "no problem" not in " ".join(shown("dmesg", log))


@pytest.mark.parametrize(
    ("line", "program"),
    [
        ("Jul 01 10:00:01 n1 nv-fabricmanager[4177]: anything", "fabric_manager"),
        ("Jul 01 10:00:01 n1 systemd[1]: nvidia-fabricmanager.service: anything", "fabric_manager"),
        ("slurmstepd: error: pyxis: nvidia-container-cli: anything", "toolkit"),
        ('time="2026-02-01T12:00:00Z" level=info msg="Error: error validating driver installation: x"', "validator"),
        ("E0914 10:11:12.123456 1 main.go:220] Error: error getting cliqueID", "dra_driver"),
        ("[   12.345678] NVRM: anything", "kernel"),
        ("frobnicatord[77]: anything", None),
    ],
)
def test_the_program_of_a_line(line: str, program: str | None) -> None:
    assert programs.program_of(line) == program


@pytest.mark.parametrize(
    ("line", "program", "word"),
    [
        ("Failed to allocate: In use [NV_ERR_IN_USE]", "imex", "ERR_IN_USE"),
        ("NVRM: kbusInitBar2: failed with status 0x65", "kernel", "ERR_TIMEOUT"),
        ("frobnicatord: failed with status 0x65", None, None),
        ("error initializing NVML: ERROR_LIBRARY_NOT_FOUND", None, "LIBRARY_NOT_FOUND"),
        ("RuntimeError: CUDA error: no kernel image is available", None, "NO_BINARY_FOR_GPU"),
        ("cudaGetDeviceCount returned 802", None, "SYSTEM_NOT_READY"),
        ("rpc error: code = DeadlineExceeded desc = x", None, "DeadlineExceeded"),
        ("x.service: Failed with result 'oom-kill'.", "systemd", "oom-kill"),
        ("open /dev/x: device or resource busy", None, "EBUSY"),
    ],
)
def test_a_status_word_is_found_in_its_program(line: str, program: str | None, word: str | None) -> None:
    found = status_words.find(line, program)
    assert (found[0].word if found else None) == word


def test_the_words_of_the_driver_are_named_with_their_program_and_what_to_do() -> None:
    lines = shown(
        "dmesg", "[Aug 30 2026 11:02:51] [ERROR] [tid 39] nvidia-imex: call failed [NV_ERR_INSUFFICIENT_PERMISSIONS]"
    )
    assert lines[0].startswith("Do now: run it as root") and "nvidia-imex" in lines[1] and "NV_ERR_INSUFF" in lines[1]


def test_a_text_that_nobody_knows_is_quoted_with_its_program_and_its_log() -> None:
    lines = shown("container-error", "Jul 01 10:00:01 n1 nvidia-persistenced[9]: Failed to frob the device table")
    assert "journalctl -u nvidia-persistenced" in lines[0] and "nvidia-persistenced reports" in lines[1]
    assert "Failed to frob" in lines[2]


XID = "Aug 30 11:02:5%d h kernel: NVRM: Xid (PCI:0000:%s:00): %s\n"


def test_xid_154_decides_what_its_gpu_needs() -> None:
    log = XID % (1, "2d", "119, pid=1, name=x, Timeout") + XID % (
        2,
        "2d",
        "154, GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)",
    )
    lines = shown("dmesg", log)
    assert lines[0].startswith("Do now: reboot the host") and "nvidia-smi -r" not in " ".join(lines)


def test_xid_154_decides_also_where_it_asks_for_less() -> None:
    log = XID % (1, "2d", "79, GPU has fallen off the bus.")
    assert shown("dmesg", log)[0].startswith("Do now: reboot")
    reset = XID % (2, "2d", "154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)")
    assert "nvidia-smi -r -i 0000:2d:00.0" in shown("dmesg", log + reset)[0]


def test_equal_causes_of_several_gpus_are_reported_once_with_one_command() -> None:
    log = "".join(XID % (number, f"{number}d", "120, pid=1, name=x, GSP task timeout") for number in range(1, 5))
    lines = shown("dmesg", log)
    assert "nvidia-smi -r -i 0000:1d:00.0,0000:2d:00.0,0000:3d:00.0,0000:4d:00.0" in lines[0]
    assert len(lines) == 2 and all(f"0000:{number}d:00" in lines[1] for number in range(1, 5))


def test_each_gpu_gets_its_own_action_and_the_strongest_is_the_first() -> None:
    log = XID % (1, "1d", "94, pid=1, name=x, Contained ECC error") + XID % (2, "2d", "79, GPU has fallen off the bus.")
    first, second = shown("dmesg", log)[:2]
    assert first.startswith("Do now for GPU 0000:2d:00: reboot") and second.startswith(
        "Also for GPU 0000:1d:00: restart"
    )


@pytest.mark.parametrize(
    ("head", "words", "without"),
    [
        ("docker: Error response from daemon: ", "config.toml", "enroot"),
        ("slurmstepd: error: pyxis: ", "libnvidia-container", "config.toml"),
        (
            "lxc c1 20250817083514.939 ERROR conf - ../src/lxc/conf.c:run_buffer:571 - ",
            "libnvidia-container",
            "config.toml",
        ),
    ],
)
def test_a_remedy_fits_the_program_that_called(head: str, words: str, without: str) -> None:
    (found,) = messages.explain(
        "container-error",
        head + "nvidia-container-cli: ldcache error: process /sbin/ldconfig failed with error code: 1",
    )
    assert words in found.remedy and without not in found.remedy


def test_enroot_and_incus_are_not_sent_to_a_file_that_they_do_not_read() -> None:
    of_engines = re.compile("runtime|containerd|hook_failed|docker|cri_")
    for row in data.MESSAGES["container_error"]:
        if "config.toml" in row["remedy"] and not of_engines.search(row["code"]):
            other = row.get("remedies", {})
            assert "config.toml" not in other.get("incus", "config.toml"), row["code"]
            assert row["code"] == "driver_capabilities_wrong" or "config.toml" not in other["enroot"], row["code"]


def test_a_remedy_names_what_the_text_names() -> None:
    log = "Error! Bad return status for module build on kernel: 6.1\nConsult /var/lib/dkms/nvidia-current/580.95/build/make.log for more information."
    (found,) = messages.explain("installer-log", log)
    assert "/var/lib/dkms/nvidia-current/580.95/build/make.log" in found.remedy
    (found,) = messages.explain(
        "container-error", "slurmd: fatal: can't stat gres.conf file /dev/nvidia7: No such file or directory"
    )
    assert "/dev/nvidia7" in found.cause


def remedies() -> list[tuple[str, str]]:
    """All remedies of the catalogs with values in their places, each with where it is from."""
    rows: list[tuple[str, str]] = []
    for kind, entries in data.MESSAGES.items():
        for row in entries if kind != "harmless" else []:
            rows += [(f"{kind} {row['code']}", text) for text in [row["remedy"], *row.get("remedies", {}).values()]]
    rows += [(f"Xid class {name}", row["remedy"]) for name, row in data.XID_CLASSES.items()]
    rows += [(f"recovery {number}", row["remedy"]) for number, row in data.RECOVERY_ACTIONS.items()]
    rows += [(f"status {name}", row["remedy"]) for name, row in data.STATUS_WORDS["actions"].items()]
    rows += [
        (f"program {one.key}", "; ".join(filter(None, (one.log, one.check)))) for one in programs.PROGRAMS.values()
    ]
    return [(name, message_table.fill(text, {})) for name, text in rows]


QUOTED = re.compile(
    r"'((?:sudo )?(?:nvidia-|systemctl|journalctl|dmesg|modprobe|kubectl|fuser|dnf|apt|dpkg|docker|scontrol|sinfo|dcgmi|lspci|cat|ls|grep|incus|lxc)[^']*)'"
)
OBJECTS = {
    r"nvidia-smi .*(?:-r|--gpu-reset)\b": r" -i \S",
    r"nvidia-ctk cdi generate": r"--output=/\S+\.yaml",
    r"nvidia-ctk runtime configure": r"--runtime=\w",
    r"systemctl (?:re)?start|systemctl (?:status|cat|enable|disable)": r"(?:re)?(?:start|status|cat|enable|disable)(?: --now)? \S",
    r"journalctl -u": r"-u \S",
    r"kubectl (?:describe|logs)": r"",
    r"modprobe": r"modprobe (?:-v )?\w",
    r"fuser": r"/dev/nvidia",
}
"""Commands and what each needs to do what the remedy wants."""


@pytest.mark.parametrize(
    ("name", "text"), remedies(), ids=[f"{name}-{number}" for number, (name, _) in enumerate(remedies())]
)
def test_every_command_of_a_remedy_parses_and_has_its_object(name: str, text: str) -> None:
    assert "{" not in re.sub(r'"features": \{"cdi": true\}|\{[A-Za-z_]+\}', "", text), text
    for command in QUOTED.findall(text):
        assert shlex.split(command)
        for pattern, needed in OBJECTS.items():
            if re.match(pattern, command):
                assert re.search(needed, command), command
    assert not re.search(r"nvidia-smi -r(?! -i )", text), text


def test_every_program_and_action_of_the_catalogs_exists() -> None:
    assert {row["program"] for row in data.MESSAGES["service"]} <= set(programs.PROGRAMS)
    assert {one.kind for one in programs.PROGRAMS.values()} - {None} <= set(layers.SEARCHED)
    used = {row[1] for one in data.STATUS_WORDS["vocabularies"].values() for row in one["words"].values()}
    assert used == set(data.STATUS_WORDS["actions"])
    asked = {row["asks"] for row in data.STATUS_WORDS["actions"].values()}
    asked |= {entry.action for kind in layers.SEARCHED.values() for entry in message_table.table(kind)}
    assert asked | {row["action"] for row in data.XID_CLASSES.values()} <= set(message_table.ACTIONS)


def test_kind_auto_reads_what_each_program_wrote() -> None:
    def code(text: str) -> Any:
        answer = explain.KINDS["auto"].read(text.encode())
        return answer["problems"][0]["code"] if answer.get("problems") else None

    assert code("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.") == "xid"
    assert (
        code("slurmd: fatal: can't stat gres.conf file /dev/nvidia0: No such file or directory")
        == "slurm_device_missing"
    )
    assert code("Error! Your kernel headers for kernel 6.1 cannot be found") == "kernel_headers_missing"
    assert code("Failed to initialize NVML: Driver/library version mismatch") == "driver_library_mismatch"
    assert code('could not select device driver "" with capabilities: [[gpu]]') == "toolkit_missing"
    answer = explain.KINDS["auto"].read(b'ID=debian\nVERSION_ID="12"\n')
    assert answer["id"] == "debian" and "Debian" not in answer["kind"]
    assert "family debian" in " ".join(explain.KINDS["auto"].describe(answer))
