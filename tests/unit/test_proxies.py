"""Messages of failed downloads name the configured proxy and its file; apt's own hooks make a file system writable."""

import os
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.base.validation import HIDDEN
from plugins.module_utils.gpu_ready.packaging import apt, apt_lists, dnf, proxies
from plugins.module_utils.gpu_ready.packaging.manager import PackageError
from tests.unit.apt_root import AptRoot, apt_is_here
from tests.unit.recorded import RecordedHost
from tests.unit.test_manager_commands import CalledHost

needs_apt = pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")
DEAD = "http://127.0.0.2:9"
SITE = "/etc/apt/apt.conf.d/95site-proxy"
FLAT = f'// The site\'s cache.\nAcquire::http::Proxy "{DEAD}";\n'
NESTED = f'Acquire {{\n  http {{\n    Proxy "{DEAD}";\n  }};\n}};\n'


@pytest.fixture(autouse=True)
def without_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in proxies.ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    host = AptRoot(tmp_path / "root")
    monkeypatch.setattr(apt_lists, "DIRECTORY", host.inside("/var/lib/apt/lists"))
    monkeypatch.setattr(apt, "OPTIONS", [*apt.OPTIONS, "-o", "Acquire::Retries=0"])
    host.write("/etc/apt/sources.list", "deb http://archive.example/debian stable main\n")
    return host


@needs_apt
@pytest.mark.host_io
@pytest.mark.parametrize(("text", "line"), [(FLAT, 2), (NESTED, 3)])
def test_the_real_apt_names_the_file_of_its_dead_proxy(root: AptRoot, text: str, line: int) -> None:
    root.write(SITE, text)
    found = apt.Apt(root, locks=(), wait=0.0)
    with pytest.raises(PackageError) as caught:  # the only source, and none of its lists was read before
        found.update()
    message = str(caught.value)
    assert message.startswith("reading the package lists: /etc/apt/sources.list: ") and "does not answer" in message
    assert message.endswith(f"The proxy of this host is {DEAD} (Acquire::http::Proxy, {SITE} line {line})")
    with pytest.raises(PackageError, match=f"{SITE} line {line}"):
        found.update(["archive.example/debian"])


@needs_apt
@pytest.mark.host_io
def test_the_real_apt_reports_its_hooks(root: AptRoot) -> None:
    """The form of Debian's securing manual, 4.10.1 (a read-only /usr)."""
    manager = apt.Apt(root, locks=(), wait=0.0)
    assert not manager.remounts()
    root.write("/etc/apt/apt.conf.d/10hook", 'DPkg { Pre-Invoke { "/usr/bin/true rw"; "logger remount"; }; };\n')
    assert not manager.remounts()
    root.write("/etc/apt/apt.conf.d/20mount", 'DPkg\n{\n Pre-Invoke { "mount /usr -o remount,rw"; };\n};\n')
    assert manager.remounts()


class ReadOnly(RecordedHost):
    """A host with apt's configuration ``dump``."""

    dump = ""

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        assert argv == ["apt-config", "dump", "DPkg::Pre-Invoke"]
        return Result(0, self.dump, "")


@pytest.mark.parametrize(
    ("dump", "refused"),
    [
        ('DPkg::Pre-Invoke "";\nDPkg::Pre-Invoke:: "mount /usr -o remount,rw";\n', False),
        ('DPkg::Pre-Invoke:: "/usr/local/sbin/remount-rw";\n', False),
        ('DPkg::Pre-Invoke:: "mount / -o remount,ro";\n', True),
        ("", True),
    ],
)
def test_a_file_system_that_apt_remounts_itself_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, dump: str, refused: bool
) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: path != "/usr")
    host = ReadOnly()
    host.dump = dump
    if refused:
        with pytest.raises(PackageError, match="/usr is read-only"):
            apt.Apt(host).check_free_space(3, [])
    else:
        apt.Apt(host).check_free_space(3, [])


def test_dnf_remounts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "access", lambda path, _mode: path != "/usr")
    with pytest.raises(PackageError, match="/usr is read-only"):
        dnf.Dnf(CalledHost("dnf"), wait=0.0).check_free_space(3, [])


@pytest.mark.parametrize(
    ("dump", "found"),
    [
        ("", []),
        ('Acquire::http::Proxy "DIRECT";\nAcquire::https::Proxy "false";\n', []),
        ('Acquire::http::Proxy "http://u:geheim@p:1";\n', [f"http://{HIDDEN}@p:1 (Acquire::http::Proxy, apt.conf)"]),
        ('Acquire::http::Proxy::m.example "http://p:1";\n', ["http://p:1 (Acquire::http::Proxy::m.example, apt.conf)"]),
        ('acquire::HTTP::proxy "http://p:1";\n', ["http://p:1 (acquire::HTTP::proxy, apt.conf)"]),
        ('Acquire::http::Proxy-Auto-Detect "/usr/bin/x";\n', ["/usr/bin/x (Acquire::http::Proxy-Auto-Detect, apt.conf)"]),
        ('Acquire::http::Proxy "http://p:1";\nAcquire::https::Proxy "http://p:1";\n', ["http://p:1 (Acquire::http::Proxy, apt.conf)"]),
    ],
)  # fmt: skip
def test_the_proxies_of_apt(dump: str, found: list[str]) -> None:
    assert proxies.find_apt_proxies(dump, {}) == found


FAILED = Result(
    1,
    "",
    "[MIRROR] a.rpm: Curl error (7): Could not connect to server for http://m/a.rpm [x]\nError: Error downloading packages",
)


@pytest.mark.parametrize("form", ["dnf", "dnf5", "yum"])
@pytest.mark.parametrize(
    ("files", "variables", "words"),
    [
        ({"/etc/dnf/dnf.conf": "[main]\n# proxy=http://old:1\nproxy=http://p:1\n"}, {}, "http://p:1 (/etc/dnf/dnf.conf line 3)"),
        ({"/etc/dnf/dnf.conf": "[main]\n#proxy=http://p:1\nproxy=http://p:1\n"}, {}, "http://p:1 (/etc/dnf/dnf.conf line 3)"),
        ({"/etc/yum.conf": "[main]\nproxy = http://p:1\n"}, {}, "http://p:1 (/etc/yum.conf line 2)"),
        ({"/etc/yum.repos.d/x.repo": "[x]\nproxy=http://p:1\n"}, {}, "http://p:1 (/etc/yum.repos.d/x.repo line 2)"),
        ({"/etc/yum.repos.d/x.repo": "[x]\nproxy=_none_\n"}, {}, ""),
        ({}, {"https_proxy": "http://p:1"}, "http://p:1 (environment variable https_proxy)"),
        ({}, {"HTTP_PROXY": "http://p:1"}, ""),
        ({}, {"HTTPS_PROXY": "http://p:1"}, "http://p:1 (environment variable HTTPS_PROXY)"),
        ({}, {}, ""),
    ],
)  # fmt: skip
def test_a_failed_download_of_dnf_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch, form: str, files: dict[str, str], variables: dict[str, str], words: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    program = "/usr/bin/yum" if form == "yum" else "/usr/bin/dnf"
    host = CalledHost(form, {program + " -y install": FAILED}, files=files)
    with pytest.raises(PackageError) as found:
        dnf.Dnf(host, wait=0.0).run_change("installing it", ["install", "a"])
    message = str(found.value)
    assert "does not answer: check network and proxy" in message
    assert message.endswith("The proxy of this host is " + words) if words else "The proxy of this host" not in message


def test_a_failure_that_is_no_download_names_no_proxy() -> None:
    files = {"/etc/dnf/dnf.conf": "[main]\nproxy=http://p:1\n"}
    failed = Result(1, "", "No match for argument: a\nError: Unable to find a match: a")
    with pytest.raises(PackageError) as found:
        dnf.Dnf(CalledHost("dnf", {"/usr/bin/dnf -y install": failed}, files=files), wait=0.0).run_change(
            "x", ["install"]
        )
    assert "http://p:1" not in str(found.value)


def test_the_proxy_is_named_with_a_repository_of_others_that_is_skipped() -> None:
    files = {"/etc/dnf/dnf.conf": "[main]\nproxy=http://p:1\n"}
    failed = "  - Curl error (7): Could not connect to server for http://m/r [x]\nError: Failed to download metadata for repo 'r': x"
    manager = dnf.Dnf(CalledHost("dnf", {"/usr/bin/dnf -y list": Result(0, "", failed)}, files=files), wait=0.0)
    manager.offers(["a"])
    assert manager.failed_sources[0].endswith("The proxy of this host is http://p:1 (/etc/dnf/dnf.conf line 2)")
