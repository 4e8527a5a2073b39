"""Hostile values in every public variable: refused with a message, or text that stays one argument, one value, one line."""

import json
import re
import shlex
from typing import Any

import pytest
from ansible.module_utils.common.yaml import yaml_load

from plugins.module_utils.gpu_ready.base import records, secret_values, validation
from plugins.module_utils.gpu_ready.containers import engine
from plugins.module_utils.gpu_ready.containers.daemon_json import merge as daemon_json
from plugins.module_utils.gpu_ready.packaging.repository import format_deb822, format_repo_file, parse_repository
from plugins.plugin_utils.gpu_ready.bootstrap import choose as bootstrap
from plugins.plugin_utils.gpu_ready.catalog.settings import DEFAULTS, Settings
from plugins.plugin_utils.gpu_ready.plan import compose, repository
from plugins.plugin_utils.gpu_ready.settings import variables
from tests.unit.hosts import P40, bare
from tests.unit.plans import all_todo
from tests.unit.test_module_docs import ROLES

HOSTILE = {
    "semicolon": "; touch /x",
    "substitution": "$(touch /x)",
    "backticks": "`touch /x`",
    "quotes": "'; touch /x; '\"",
    "template": "{{ lookup('pipe', 'touch /x') }}",
    "newline": "12.9\ntouch /x",
    "last newline": "12.9\n",
    "carriage return": "12.9\rtouch /x",
    "line separator": "12.9\u2028touch /x",
    "nul": "12.9\x00",
    "escape": "\x1b]0;x\x07",
    "path traversal": "../../etc/shadow",
    "option": "--privileged",
    "short option": "-v/:/host",
    "look-alike digits": "\uff11\uff12.\uff19",
    "arabic digits": "\u0661\u0662.\u0669",
    "look-alike letters": "\u0430uto",
    "long": "12.9" * 10000,
    "URL with password": "https://admin:hunter2@mirror.site/path",
    "URL that closes a quote": "http://mirror.site/';touch /x;'",
    "URL with a substitution": "http://mirror.site/$(touch /x)",
    "URL of a file": "file:///etc/shadow",
    "URL with a comma": "http://mirror.site/a b",
}
STRICT = sorted(set(Settings._fields) - {
    "nvidia_driver_runfile", "cudnn_archive", "gpu_verify_image", "gpu_verify_framework_image",
    "docker_engine_daemon_options", "docker_engine_log_options", "cuda_toolkit_runfiles",
})  # fmt: skip
"""Variables with a form of their own: nothing hostile fits it."""


def given(name: str, value: str) -> Any:
    """A value in the type of a variable."""
    kind = variables.rule_for(name).type
    if name == "gpu_ready_mirror_keys":
        return {"cuda-debian12": value}
    return {value: value} if kind == "dict" else [value] if kind in ("list", "devices") else value


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("name", STRICT)
def test_a_variable_with_a_form_refuses_hostile_values_with_one_message(name: str, value: str) -> None:
    # A value without the white space around it is the same value.
    if variables.rule_for(name).type == "str" and value.strip() == "12.9":
        assert variables.parse_settings({name: value}).settings._asdict()[name] in ("12.9", DEFAULTS[name])
        return
    wrong = variables.parse_settings({name: given(name, value)}).errors
    assert len(wrong) == 1
    assert wrong[0].startswith(f"{name} is ")
    assert "\n" not in wrong[0]
    assert "\x1b" not in wrong[0]
    assert "hunter2" not in wrong[0]
    assert len(wrong[0]) < 1000


FREE = {
    "nvidia_driver_runfile": {"nvidia_driver_source": "runfile", "nvidia_driver_version": "580.95.05"},
    "cudnn_archive": {"cudnn_archive_sha256": "ab" * 32},
    "gpu_verify_image": {},
    "gpu_verify_framework_image": {"gpu_verify_framework": "pytorch"},
}
REFUSED = {
    "newline", "carriage return", "line separator", "nul", "escape", "option", "short option", "long",
    "URL with password",
}  # fmt: skip
"""What no name and no path may hold."""


def texts(value: Any) -> list[str]:
    """Return every text in plain values, keys too."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in texts(part)]
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in texts(part)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("kind", HOSTILE)
@pytest.mark.parametrize("name", FREE)
def test_a_path_or_a_name_is_refused_or_stays_one_text(name: str, kind: str) -> None:
    value = HOSTILE[kind]
    reading = variables.parse_settings({name: value, "nvidia_driver_flavour": "proprietary", **FREE[name]})
    image = name.startswith("gpu_verify")
    if kind in REFUSED - ({"URL with password"} if image else set()) or (
        value.startswith(("http", "file:")) and not image
    ):
        assert len(reading.errors) == 1
        assert "hunter2" not in reading.errors[0]
        assert "\n" not in reading.errors[0]
        return
    assert not reading.errors
    text = value.strip()
    assert reading.settings._asdict()[name] == text
    decided = compose.plan(bare(P40), reading.settings)
    marked = [one for one in texts(all_todo(decided)) if "touch /x" in one]
    assert all(one in (text, f"file:{text.rpartition('/')[2]}") for one in marked)
    if image:
        argv = engine.run_command("docker", "n", [], ["--gpus", "all"], text, ["nvidia-smi"])
        assert argv.count(text) == 1
        assert argv[argv.index(text) + 1] == "nvidia-smi"


@pytest.mark.parametrize("kind", HOSTILE)
def test_an_installer_of_the_operator_is_refused_or_stays_one_text(kind: str) -> None:
    value = HOSTILE[kind]
    for entry in (value, {"file": value}, {"file": value, "sha256": "ab" * 32}):
        reading = variables.parse_settings(
            {
                "cuda_toolkit_source": "runfile",
                "cuda_toolkit_versions": ["12.9"],
                "cuda_toolkit_runfiles": {"12.9": entry},
            }
        )
        decided = compose.plan(bare(P40), reading.settings)
        if decided.refusals:
            text = " ".join(one.message for one in decided.refusals)
            assert "cuda_toolkit_runfiles" in text
            assert "hunter2" not in text
            assert "\n" not in text
            continue
        (installer,) = all_todo(decided)["cuda_toolkit.runfile"]["installers"]
        assert installer["source"] == value
        assert installer["file"] == "/var/lib/gpu-ready/cuda_12.9.run"
    assert decided.refusals or kind not in REFUSED


@pytest.mark.parametrize("kind", [kind for kind in HOSTILE if HOSTILE[kind] != "12.9"])
def test_no_version_names_a_file_of_somebody_else(kind: str) -> None:
    given = {"cuda_toolkit_source": "runfile", "cuda_toolkit_runfiles": {HOSTILE[kind]: "/srv/cuda.run"}}
    reading = variables.parse_settings(given)
    refusals = reading.errors or [one.message for one in compose.plan(bare(P40), reading.settings).refusals]
    assert len(refusals) == 1
    assert "\n" not in refusals[0]
    assert "hunter2" not in refusals[0]


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_an_option_of_docker_stays_one_value_of_its_json(value: str) -> None:
    for name in ("docker_engine_daemon_options", "docker_engine_log_options"):
        reading = variables.parse_settings({name: {"title": value}})
        assert not reading.errors
        setting = reading.settings._asdict()[name]
        merged = daemon_json.merge(b'{"debug": true}', {"log-opts": setting}, [])
        assert json.loads(merged.after) == {"debug": True, "log-opts": {"title": value}}


MIRRORS = [
    "http://mirror.site",
    "https://mirror.site:8443/a/b",
    "http://[2001:db8::1]/x",
    "http://10.0.0.1:3142/~x/%20",
]


@pytest.mark.parametrize("mirror", MIRRORS)
def test_an_accepted_mirror_is_one_line_of_every_file_and_one_word_of_the_shell(mirror: str) -> None:
    parsed = variables.parse_settings({"gpu_ready_mirror": mirror})
    assert not parsed.errors
    for name in ("cuda-debian12", "cuda-rhel9"):
        request = repository.parameters(name, parsed.settings)
        added = parse_repository(records.to_json(request))
        if added.kind == "rpm":
            lines = format_repo_file(added).splitlines()
            assert "baseurl=" + request.url in lines
        else:
            lines = format_deb822(added, "amd64").splitlines()
            assert "URIs: " + request.url in lines
        assert request.url.startswith(mirror)


CENTOS = "manager yum\nsystem\n" + 'ID="centos"\nVERSION_ID="7"\nID_LIKE="rhel fedora"\n'


@pytest.mark.parametrize("value", [*HOSTILE.values(), *MIRRORS])
def test_the_only_script_built_from_variables_quotes_them_or_is_not_built(value: str) -> None:
    found = bootstrap.parse_found(CENTOS)
    for settings in (
        {"gpu_ready_vault": True, "gpu_ready_mirror": value, "gpu_ready_mirror_keys": {}},
        {"gpu_ready_vault": True, "gpu_ready_mirror": "", "gpu_ready_mirror_keys": {"vault-centos7-os": value}},
    ):
        try:
            script = bootstrap.choose_python(found, "2.16.19", settings).install
        except bootstrap.BootstrapError as error:
            assert "gpu_ready_mirror" in str(error)  # noqa: PT017 - both outcomes are right ones
            continue
        lines = [line for line in str(script).splitlines() if line.startswith("add ")]
        for line in lines:
            words = shlex.split(line)
            assert len(words) == 5
            assert shlex.join(words) == line
            assert validation.fingerprint_fault(words[4]) == ""


def test_every_variable_of_every_role_is_tested() -> None:
    specified = {
        name
        for role in ROLES
        for name in yaml_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]["main"].get("options")
        or {}
    }
    tested = (
        set(STRICT) | set(FREE) | {"cuda_toolkit_runfiles", "docker_engine_daemon_options", "docker_engine_log_options"}
    )
    # Whole numbers, booleans, and what the control node reads or writes: no host sees them.
    other = {
        name
        for name in specified - tested
        if not name.startswith(
            (
                "gpu_report_",
                "gpu_audit_",
                "gpu_capture_",
                "gpu_upgrade_",
                "gpu_drain_",
                "gpu_undrain_",
                "gpu_kubernetes",
            )
        )
    }
    assert other == {
        "gpu_ready_batch", "gpu_ready_hosts", "gpu_ready_part", "gpu_ready_reboot_timeout", "gpu_ready_state_dir", "gpu_ready_take_over", "gpu_ready_uninstall", "gpu_verify_timeout",
    }  # fmt: skip
    assert tested == set(Settings._fields)


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("deb http://me:s3cret@mirror/debian sid", "deb http://***@mirror/debian sid"),
        ("curl https://token@host/x failed", "curl https://***@host/x failed"),
        ("proxy http://u:p%40ss@10.0.0.1:3128, http://b", "proxy http://***@10.0.0.1:3128, http://b"),
        ('{"log-opts": {"splunk-token": "A\\"B", "tag": "x"}}', '{"log-opts": {"splunk-token": "***", "tag": "x"}}'),
        ("mail me@host about http://plain/path", "mail me@host about http://plain/path"),
        ("ssh user@host: http://a.b/c?x=y@z", "ssh user@host: http://a.b/c?x=y@z"),
        ("proxy http://me:a/b'c@d@10.0.0.1:3128/ refused", "proxy http://***@10.0.0.1:3128/ refused"),
        ("curl: proxy me:a/b@proxy.site:3128 refused", "curl: proxy ***@proxy.site:3128 refused"),
        ("http://mirror:8080/a@b, ['http://h:80/','u@x']", "http://mirror:8080/a@b, ['http://h:80/','u@x']"),
        ("cuda:12@sha256:" + "1" * 64, "cuda:12@sha256:" + "1" * 64),
        ("proxy=user:pw@proxy", "proxy=***@proxy"),
        ('proxy = "user:pw@proxy.site"', 'proxy = "***@proxy.site"'),
        ("fetch http://u:p w@h/x failed", "fetch http://***@h/x failed"),
        ("http://u:p w@[::1]:3128 refused", "http://***@[::1]:3128 refused"),
        ("GET https://h/x?a=1&sig=Zm9v%3D&b=2 403", "GET https://h/x?a=1&sig=***&b=2 403"),
        ("AccountKey=abc==;x", "AccountKey=***"),
        ("password=hunter2 rejected", "password=*** rejected"),
        ('DB_PASSWORD="a b" set', "DB_PASSWORD=*** set"),
        ('["api_key=X", "rack=12"]', '["api_key=***", "rack=12"]'),
        # What looks like it and is none.
        ("image=cuda:12@sha256:" + "1" * 64, "image=cuda:12@sha256:" + "1" * 64),
        ("apt-get install libsecret-1-0=0.20.4-1", "apt-get install libsecret-1-0=0.20.4-1"),
        ("http://mirror:8080 or ask me@site", "http://mirror:8080 or ask me@site"),
        ("http://mirror: connection refused, ask me@site", "http://mirror: connection refused, ask me@site"),
        ("--max-tokens=4096 --config=x", "--max-tokens=4096 --config=x"),
        ("native.cgroupdriver=systemd", "native.cgroupdriver=systemd"),
        ("Maintainer: me@site: x=y@z", "Maintainer: me@site: x=y@z"),
    ],
)
def test_passwords_are_hidden_in_what_is_printed(text: str, printed: str) -> None:
    assert validation.mask_secrets(text) == printed


def test_secrets_in_texts_of_docker_options_are_hidden() -> None:
    options = {
        "labels": ["api_key=X1", "rack=12"],
        "exec-opts": ["password=X2", "native.cgroupdriver=systemd"],
        "log-opts": {"env": "TOKEN=X3", "splunk-url": "https://h/?sig=X4", "gelf-address": "https://h/x?k=X5"},
        "registry-mirrors": ["https://mirror.site/v2"],
    }
    shown = secret_values.mask_options(json.dumps(options, indent=1))
    assert not re.search("X[1-5]", shown)
    masked = json.loads(shown)
    assert masked["labels"][1] == "rack=12" and masked["exec-opts"][1] == "native.cgroupdriver=systemd"
    assert masked["registry-mirrors"] == options["registry-mirrors"]
    assert masked["log-opts"]["splunk-url"] == "https://h/?***"
    assert secret_values.find_secrets(options) == ["0", "0", "env", "splunk-url"]


def test_secrets_are_found_and_hidden_in_plain_values() -> None:
    value = {
        "log-opts": {"splunk-token": "t", "tag": "x"},
        "proxies": {"http-proxy": "http://u:p@proxy"},
        "list": ["http://u:p@one", 1, None],
    }
    assert secret_values.find_secrets(value) == ["splunk-token", "http-proxy", "0"]
    hidden = {"log-opts": {"splunk-token": "***", "tag": "x"}, "proxies": {"http-proxy": "http://***@proxy"}}
    assert secret_values.mask_values(value) == {**hidden, "list": ["http://***@one", 1, None]}
    assert secret_values.find_secrets({"log-driver": "journald", "mirrors": ["https://m"]}) == []


@pytest.mark.parametrize(
    ("words", "printed"),
    [
        (["docker", "run", "-e", "OPENAI_API_KEY=sk-1"], "docker run -e OPENAI_API_KEY=***"),
        (["serve", "--api_key", "sk-1", "--port", "80"], "serve --api_key *** --port 80"),
        (["curl", "-H", "Authorization: Bearer abc", "http://h/x"], "curl -H Authorization: *** http://h/x"),
        (["curl", "http://h/x?a=1&token=abc"], "curl http://h/x?a=***"),
        (["serve", "--config", '{"password": "abc", "port": 80}'], 'serve --config {"password": "***", "port": 80}'),
        (["docker", "login", "-u", "me", "-p", "PW", "registry"], "docker login -u me -p *** registry"),
        (["/usr/bin/podman", "--log-level", "error", "login", "-pPW"], "/usr/bin/podman --log-level error login -p***"),
        (["mysql", "-uroot", "-pPW", "db"], "mysql -uroot -p*** db"),
        (["sudo", "mysqldump", "-pPW", "db"], "sudo mysqldump -p*** db"),
        (["sshpass", "-p", "PW", "ssh", "h"], "sshpass -p *** ssh h"),
        (["sh", "-c", "mysql -pPW db"], "sh -c mysql -p*** db"),
        (["redis-cli", "-a", "PW", "get", "x"], "redis-cli -a *** get x"),
        (["curl", "-u", "me:PW", "http://h"], "curl -u *** http://h"),
        (["docker", "run", "-p", "8080:80", "nginx"], "docker run -p 8080:80 nginx"),
        (["docker", "run", "-p3306:3306", "mysql", "mysqld"], "docker run -p3306:3306 mysql mysqld"),
        (["mysql", "-p", "db"], "mysql -p db"),
        (["mkdir", "-p", "/x"], "mkdir -p /x"),
        (["python", "serve.py", "-p", "8080"], "python serve.py -p 8080"),
        (["sh", "-c", "mkdir -p /x && serve -p 80"], "sh -c mkdir -p /x && serve -p 80"),
        (["train", "--passes", "3", "--epochs=4", "--tokenizer=bpe"], "train --passes 3 --epochs=4 --tokenizer=***"),
    ],
)
def test_a_command_line_is_printed_without_its_secrets(words: list[str], printed: str) -> None:
    assert " ".join(validation.mask_command(words)) == printed
