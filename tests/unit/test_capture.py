"""Captures: what playbooks/capture.yml writes, without secrets, and that the plan from a file is the plan of the host."""

from __future__ import annotations

import json
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.gpu_ready.base import records
from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.base.recording import LONGEST, MOST, RecordingHost
from plugins.module_utils.gpu_ready.base.secret_values import mask_text, mask_texts
from plugins.module_utils.gpu_ready.facts import model
from plugins.module_utils.gpu_ready.facts.collected import collect_answer
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.plugin_utils.gpu_ready.completion.complete import collect_facts, complete
from plugins.plugin_utils.gpu_ready.completion.probes import probes_json
from plugins.plugin_utils.gpu_ready.explain import captures, fleet_plans
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings.variables import parse_settings
from tests.unit import past_hosts
from tests.unit.goldens import decide
from tests.unit.hosts import T4, bare
from tests.unit.lying_host import TRUTHFUL, calls, make_liar, run_playbook
from tests.unit.past_hosts import PASTS
from tests.unit.recorded import Content, RecordedHost
from tests.unit.test_plan_properties import HOSTS, REQUESTS

SECRET = "hunter2hunter2"
HEADER = captures.Header("gpu1", "2026-11-26T20:00:00Z", "0.1.0", "2.19.14", {})


class Recording(RecordingHost, RecordedHost):
    """A recorded host whose answers are recorded again."""


def recording(host: RecordedHost) -> Recording:
    made = Recording()
    made.__dict__.update(host.__dict__)
    return made


def captured(host: RecordedHost) -> tuple[Facts, dict[str, Any]]:
    """The facts and texts of a capture of this host, through JSON."""
    made = recording(host)
    answer = collect_answer(made, probes_json())
    facts, raw = json.loads(json.dumps([mask_texts(answer.facts), records.to_json(made.raw)]))
    return complete(model.from_json(facts)), raw


def through_a_file(directory: Path, facts: Facts) -> Facts:
    path = captures.write(str(directory), HEADER, facts, {})
    return captures.facts_of(captures.read(path))


def plans(facts: Facts, **requested: Any) -> tuple[object, ...]:
    decided = decide(facts, **requested)
    return compose.plan_json(decided), compose.todo_json(decided), compose.diff_json(decided)


@pytest.mark.parametrize("name", PASTS)
def test_the_plan_from_a_capture_is_the_plan_of_the_host(name: str, tmp_path: Path) -> None:
    past = PASTS[name]
    facts = collect_facts(past_hosts.recorded(past))
    found, raw = captured(past_hosts.recorded(past))
    read = through_a_file(tmp_path, found)
    for request in ({}, *past.requests):
        assert plans(read, **request) == plans(facts, **request)
        settings, refusals = parse_settings(request)
        assert not refusals
        assert fleet_plans.plan_of(read, dict(request)) == compose.plan(facts, settings)
    assert read == facts
    assert any("os-release" in path for path in raw["files"])


@given(HOSTS, REQUESTS)
def test_any_facts_give_the_same_plan_through_a_file(
    tmp_path_factory: pytest.TempPathFactory, facts: Facts, requested: dict[str, Any]
) -> None:
    read = through_a_file(tmp_path_factory.getbasetemp(), facts)
    assert plans(read, **requested) == plans(facts, **requested)


SECRETS: dict[str, str] = {
    "/etc/docker/daemon.json": json.dumps(
        {
            "proxies": {"http-proxy": f"http://me:{SECRET}@proxy:3128"},
            "registry-token": SECRET,
            "log-opts": {"splunk-token": SECRET, "env": f"A,DB_PASSWORD={SECRET}"},
        },
        indent=2,
    ),
    "/etc/apt/sources.list.d/site.sources": f"Types: deb\nURIs: https://me:{SECRET}@deb.example.org/x\nSuites: a\n",
    "/etc/apt/sources.list": f"deb https://me:{SECRET}@deb.example.org/ubuntu noble main\n",
    "/etc/containerd/config.toml": (
        'version = 2\n[plugins."io.containerd.grpc.v1.cri".registry.configs."r.example.org".auth]\n'
        f'  username = "me"\n  password = "{SECRET}"\n  auth = "{SECRET}"\n  identitytoken = \'{SECRET}\'\n'
        f'[x.header]\n  Authorization = "Basic {SECRET}"\n  x-header = "a"\n'
        f'[x]\n  y = {{ username = "u", password="{SECRET}" }}\n'
    ),
    "/boot/grub/grub.cfg": f"set superusers=root\npassword root {SECRET}\npassword_pbkdf2 root grub.{SECRET}\n",
    "/etc/systemd/system/docker.service.d/proxy.conf": (
        f'[Service]\nEnvironment="HTTPS_PROXY=http://me:{SECRET}@proxy:3128" REGISTRY_PASSWORD={SECRET}\n'
    ),
    "/proc/cmdline": f"root=/dev/sda1 rd.password={SECRET}\n",
}
RPM_SECRETS = {
    "/etc/yum.repos.d/site.repo": f"[site]\nname=x\nbaseurl=https://r.example.org/\nusername=me\npassword = {SECRET}\n"
    f"proxy_password={SECRET}\nsslclientkey=/etc/key.pem\n",
}


@pytest.mark.parametrize(
    ("past", "files"),
    [("ubuntu-drivers-desktop", SECRETS), ("cuda-repo-el9", {**SECRETS, **RPM_SECRETS})],
)
def test_a_capture_has_no_secret(past: str, files: Mapping[str, str], tmp_path: Path) -> None:
    host = past_hosts.recorded(PASTS[past])
    host.files.update(files)
    host.files["/usr/bin/dockerd"] = host.files["/usr/bin/containerd"] = ""
    plain = collect_facts(host)
    assert SECRET in json.dumps(model.to_json(plain))
    facts, raw = captured(host)
    path = captures.write(str(tmp_path), HEADER, facts, raw)
    text = Path(path).read_text()
    assert SECRET not in text and "me:***" not in text
    assert "/etc/docker/daemon.json" in text and "sources" in text
    decided, masked = decide(plain), decide(facts)
    assert [step.id for step in masked.steps] == [step.id for step in decided.steps]
    assert masked.refusals == decided.refusals


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password = x y\nc = d", "password = ***\nc = d"),
        ("Environment=A_TOKEN=x B=c", "Environment=A_TOKEN=*** B=c"),
        (
            "ExecStart=/bin/x --token x --token-file /y --no-password --z",
            "ExecStart=/bin/x --token *** --token-file /y --no-password --z",
        ),
        ("Authorization: Bearer x", "Authorization: ***"),
        ("token: 'x'\nother: y", "token: '***'\nother: y"),
        ('password="x"', 'password="***"'),
        ('a-token = """x\ny"""', 'a-token = "***"'),
        ("https://me:x@host/path?key=x", "https://***@host/path?***"),
    ],
)
def test_a_string_of_a_file_stays_one(text: str, masked: str) -> None:
    assert mask_text(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "Package: libsecret-1-0\nVersion: 0.20\n", "libsecret-1-0=0.20", "deb [signed-by=/etc/x.gpg] https://a/b c main",
        "/sys/module/secretmem/parameters", "Package: libsecret", "nvidia-open-580 (= 580.95.05)", "auto eth0\nauthentication = x",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_text(text) == text


def test_what_belongs_to_processes_and_containers_is_not_kept_and_the_rest_is_bounded() -> None:
    long = {f"/etc/long{number}": "x" * (LONGEST + 1) for number in range(2 * MOST // LONGEST)}
    programs: dict[tuple[str, ...], Result] = {("rpm", "-qa"): Result(0, "y" * (LONGEST + 1), "")}
    files: dict[str, Content] = {
        "/proc/7/comm": "train",
        "/sys/firmware/binary": b"\0\1",
        "/etc/os-release": "ID=debian\n",
    }
    host = recording(RecordedHost({**files, **long}, programs=programs))
    for path in ("/proc/7/comm", "/sys/firmware/binary", "/etc/os-release", "/etc/missing"):
        host.read(path)
    host.run(["rpm", "-qa"])
    assert host.raw.files == {"/etc/os-release": "ID=debian\n"}
    assert [(one.argv, one.rc, len(one.out)) for one in host.raw.programs] == [(["rpm", "-qa"], 0, LONGEST)]
    for path in long:
        assert host.read(path) == "x" * (LONGEST + 1)
    assert sum(map(len, host.raw.files.values())) <= MOST
    assert host.raw.cut["rpm -qa"] == LONGEST + 1 and host.raw.cut["/etc/long0"] == LONGEST + 1


@given(st.text(min_size=1, max_size=300), st.text(min_size=1, max_size=300))
def test_a_name_of_the_inventory_is_one_file_of_the_directory(one: str, other: str) -> None:
    try:
        name, second = captures.file_name(one), captures.file_name(other)
    except UnicodeEncodeError:  # half of a surrogate pair, which no inventory has
        return
    assert "/" not in name and not name.startswith(".") and name.isascii() and len(name) < 250
    assert (name == second) == (one == other)


@pytest.mark.parametrize("name", ["..", ".", "../../etc/cron.d/x", "/etc/passwd", "a/b", "x" * 400])
def test_no_name_leads_out_of_the_directory(name: str, tmp_path: Path) -> None:
    path = captures.write(str(tmp_path / "captures"), HEADER._replace(host=name), bare(T4), {})
    assert Path(path).resolve().parent == tmp_path / "captures"
    assert captures.paths_in(str(tmp_path / "captures")) == [path]
    assert captures.read(path).header.host == name


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda lines: [], "Header must be a mapping|Expecting value|it has no facts"),
        (lambda lines: lines[:1], "it has no facts"),
        (lambda lines: ['{"schema": 9}', *lines[1:]], "schema 9 is of another release"),
        (lambda lines: [lines[0], "{}"], "schema None is of another release"),
        (lambda lines: [lines[0], lines[1].replace('"gpus"', '"gpuz"')], "gpuz"),
        (lambda lines: [lines[0], lines[1].replace('"1eb8"', '"tesla"')], "four hexadecimal digits"),
        (lambda lines: [lines[0], "[" * 100000], "deep|Expecting"),
    ],
)
def test_another_file_is_refused_with_its_path(change: Any, what: str, tmp_path: Path) -> None:
    path = Path(captures.write(str(tmp_path), HEADER, bare(T4), {}))
    path.write_text("\n".join(change(path.read_text().splitlines())))
    with pytest.raises(captures.CaptureError, match=rf"^{path}: no capture .*({what})"):
        captures.facts_of(captures.read(str(path)))


WRITES = """
import os, sys

def note(event, args):
    name = None
    if event == "open" and isinstance(args[0], str):
        if args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            name = args[0]
    elif event in ("os.mkdir", "os.remove", "os.rename", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate"):
        name = args[0]
    if name is not None and any("AnsiballZ_gpu_capture" in word for word in sys.argv):
        os.write(log, ("%s %s\\n" % (event, name)).encode())

log = os.open({log!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
sys.addaudithook(note)
"""


@pytest.fixture
def hosts(tmp_path: Path) -> dict[str, dict[str, Any]]:
    """A host that answers what this machine does, one that cannot be reached, and one with a wrong answer."""
    wrong = {"facts": {"schema": 1}, "raw": {}}
    return {
        "gpu1": make_liar(tmp_path, "gpu1", {"gpu_capture": TRUTHFUL}) | {"nvidia_driver_branch": "580"},
        "gpu2": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        "gpu3": make_liar(tmp_path, "gpu3", {"gpu_capture": wrong}),
    }


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.host_io
def test_the_playbook_writes_one_file_for_each_host_that_answers(
    tmp_path: Path, hosts: dict[str, dict[str, Any]]
) -> None:
    (tmp_path / "python").mkdir()
    (tmp_path / "python/sitecustomize.py").write_text(WRITES.format(log=str(tmp_path / "writes")))
    done = run_playbook(
        tmp_path,
        "playbooks/capture.yml",
        hosts,
        ANSIBLE_STDOUT_CALLBACK="default",
        PYTHONPATH=str(tmp_path / "python"),
        TMPDIR=str(tmp_path / "gpu1/tmp"),
    )
    (path,) = (tmp_path / "captures").iterdir()
    assert (path.name, mode(path), mode(path.parent)) == ("gpu1.jsonl", 0o600, 0o700)
    read = captures.read(str(path))
    assert (read.header.host, read.header.settings) == ("gpu1", {"nvidia_driver_branch": "580"})
    assert captures.facts_of(read).base.kernel.running
    assert json.loads(path.read_text().splitlines()[2])["files"]["/etc/os-release"]
    assert calls(tmp_path, "gpu1") == calls(tmp_path, "gpu3") == ["gpu_capture"]
    shown = " ".join(done.stdout.split())
    assert "1 of 3 hosts captured in captures. Not captured: gpu2, gpu3. Next: gpu-explain fleet captures" in shown
    assert "the answer of this host to gpu_capture is not one that the module gives" in shown
    assert done.returncode == 2
    written = (tmp_path / "writes").read_text().splitlines()
    of_ansible = ("/dev/null", "/ansible", " ansible_gpu_ready", f"{tmp_path}/gpu1/", f"{tmp_path}/gpu3/")
    assert [line for line in written if not any(path in line for path in of_ansible)] == []


@pytest.mark.host_io
def test_under_check_no_file_is_written(tmp_path: Path, hosts: dict[str, dict[str, Any]]) -> None:
    only = {"gpu1": hosts["gpu1"]}
    done = run_playbook(tmp_path, "playbooks/capture.yml", only, "--check", ANSIBLE_STDOUT_CALLBACK="default")
    assert done.returncode == 0, done.stdout
    assert "1 of 1 hosts can be captured; nothing is written under --check." in " ".join(done.stdout.split())
    assert not (tmp_path / "captures").exists()


@pytest.mark.host_io
def test_a_directory_that_cannot_be_written_is_an_error_with_its_remedy(
    tmp_path: Path, hosts: dict[str, dict[str, Any]]
) -> None:
    (tmp_path / "file").write_text("")
    given = {"gpu1": {**hosts["gpu1"], "gpu_capture_directory": str(tmp_path / "file")}}
    done = run_playbook(tmp_path, "playbooks/capture.yml", given, ANSIBLE_STDOUT_CALLBACK="default")
    assert done.returncode == 2
    assert "Set gpu_capture_directory to a writable directory" in " ".join(done.stdout.split())
