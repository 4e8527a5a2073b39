"""A host without a usable Python: which one is used, how one is installed, and the message where neither is possible."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.packaging import openpgp
from plugins.plugin_utils.gpu_ready.bootstrap import choose as bootstrap
from plugins.plugin_utils.gpu_ready.bootstrap import python_scripts
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from tests.unit.gpg_keys import GpgHome
from tests.unit.lying_host import run_playbook

CENTOS = 'system\nNAME="CentOS Linux"\nVERSION_ID="7"\nID="centos"\nID_LIKE="rhel fedora"\nPRETTY_NAME="CentOS Linux 7 (Core)"\n'
ROCKY = 'system\nID="rocky"\nVERSION_ID="8.10"\nID_LIKE="rhel centos fedora"\nPRETTY_NAME="Rocky Linux 8.10"\n'
DEBIAN = 'system\nID=debian\nVERSION_ID="12"\nPRETTY_NAME="Debian GNU/Linux 12 (bookworm)"\n'


def way(text: str, core: str, tried: str | None = None, check: bool = False, **expected: Any) -> bootstrap.PythonChoice:
    return bootstrap.choose_python(bootstrap.parse_found(text), core, expected, tried, check)


@pytest.mark.parametrize(
    ("text", "core", "interpreter"),
    [
        ("python 3.11 /usr/bin/python3\n" + DEBIAN, "2.19.14", "/usr/bin/python3"),
        ("python 3.6 /usr/libexec/platform-python\n" + ROCKY, "2.16.19", "/usr/libexec/platform-python"),
        ("python 3.6 /usr/bin/python3\r\npython 3.12 /usr/bin/python3.12\r\n" + ROCKY, "2.21.5", "/usr/bin/python3.12"),
    ],
)
def test_the_first_python_that_ansible_supports_is_used(text: str, core: str, interpreter: str) -> None:
    assert way(text, core) == bootstrap.PythonChoice(interpreter, None)


def test_centos_7_gets_its_python3_by_yum() -> None:
    install = way("manager yum\n" + CENTOS, "2.16.19").install
    assert install is not None
    assert "yum -y install python3" in install


@pytest.mark.parametrize(
    ("system", "vault"),
    [(CENTOS, False), (CENTOS, True), (ROCKY.replace("system", "manager dnf\nsystem"), False), (DEBIAN, False)],
)
def test_every_package_manager_call_has_a_limit(system: str, vault: bool) -> None:
    """dnf and yum wait forever for a lock, and `raw` has no limit of its own."""
    manager = "apt-get" if system == DEBIAN else "yum"
    install = way(f"manager {manager}\n" + system, "2.16.19", gpu_ready_vault=vault).install
    assert install is not None
    calls = [line for line in re.split(r"&&|\n", install) if re.search(r"\b(apt-get|dnf|yum) -", line)]
    assert calls
    assert all(re.match(r" *timeout -k \d+ \d+ ", call) for call in calls)


def test_the_archive_is_used_only_on_request_and_its_key_must_have_the_pinned_fingerprint() -> None:
    script = way(
        "manager yum\n" + CENTOS, "2.16.19", gpu_ready_vault=True, gpu_ready_mirror="http://mirror.site"
    ).install
    assert script is not None
    vault = catalog.repository("vault-centos7-os")
    assert "add vault-centos7-os http://mirror.site/vault.centos.org/7.9.2009/os/x86_64 http" in script
    assert f" {vault['fingerprint']}\n" in script


@pytest.mark.host_io
@pytest.mark.parametrize("vault", [False, True])
@pytest.mark.parametrize("system", [CENTOS, ROCKY, DEBIAN])
def test_the_scripts_are_what_a_posix_shell_can_read(system: str, vault: bool) -> None:
    manager = "apt-get" if system == DEBIAN else "yum"
    script = way(f"manager {manager}\n" + system, "2.16.19", gpu_ready_vault=vault).install
    for text in (script, python_scripts.FIND):
        subprocess.run(["/bin/sh", "-n"], input=text, text=True, check=True, timeout=300)


DOCKER, TOOLKIT = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88", "C95B321B61E88C1809C4F759DDCAE044F796ECB0"


NEEDS_GPG = pytest.mark.skipif(not shutil.which("gpg"), reason="no gpg on this machine")


def picked(directory: Path, served: bytes, pinned: str) -> tuple[bytes | None, str]:
    """The key file that yum gets where this key file is served, or None, and what is printed."""
    (directory / "served").write_bytes(served)
    (directory / "curl").write_text(f'#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done\ncp {directory}/served "$2"\n')
    (directory / "timeout").write_text(
        f"#!/bin/sh\nfor one; do case $one in */yum.conf) cp ${{one%/*}}/os.key {directory}/imported; esac; done\n"
    )
    for name in ("curl", "timeout"):
        (directory / name).chmod(0o755)
    text = python_scripts.VAULT.format(manager="yum", adds=f"add os http://x/ http://x/key {pinned}")
    path = f"{directory}:/usr/bin:/bin"
    done = subprocess.run(["/bin/sh", "-c", text], env={"PATH": path}, capture_output=True, text=True, timeout=300)
    imported = directory / "imported"
    assert imported.exists() == (done.returncode == 0)
    return imported.read_bytes() if imported.exists() else None, done.stderr


@pytest.mark.host_io
@NEEDS_GPG
@pytest.mark.parametrize(
    ("keys", "trusted"), [([DOCKER], True), ([TOOLKIT], False), ([DOCKER, TOOLKIT], True), ([TOOLKIT, DOCKER], True), ([], False)]
)  # fmt: skip
@pytest.mark.parametrize("before", ["", " "])
def test_exactly_the_pinned_key_of_an_archive_is_trusted(
    tmp_path: Path, keys: list[str], trusted: bool, before: str
) -> None:
    """A key beside the pinned one in the same file would be trusted too: yum imports all keys of a gpgkey file.

    A space before a block hides it from gpg, but not from rpm.
    """
    root = Path(__file__).resolve().parents[2]
    texts = [(root / f"catalog/keys/{name}.asc").read_text() for name in keys]
    served = "".join(text if number == 0 else before + text for number, text in enumerate(texts))
    imported, printed = picked(tmp_path, served.encode(), DOCKER)
    assert (imported is not None, "is not the pinned one" in printed) == (trusted, not trusted)
    if imported is not None:
        assert imported.count(b"BEGIN PGP") == 1 and openpgp.list_fingerprints(imported) == [DOCKER]


@pytest.mark.host_io
@NEEDS_GPG
def test_a_key_that_has_the_pinned_one_as_its_subkey_is_not_trusted(tmp_path: Path) -> None:
    """A subkey has the fingerprint of its material and its time, whoever binds it."""
    gpg = GpgHome(tmp_path / "gpg", "--faked-system-time", "20200101T000000!")
    try:
        pinned, evil = gpg.generate("vendor"), gpg.generate("evil")
        listed = gpg.run("--with-colons", "--with-keygrip", "--list-keys", pinned).decode()
        (grip,) = re.findall(r"^grp:*(\w+):", listed, re.MULTILINE)
        answers = f"addkey\n13\n{grip}\nq\n0\nsave\n".encode()
        gpg.run("--passphrase", "", "--expert", "--command-fd", "0", "--edit-key", evil, data=answers)
        assert pinned in gpg.fingerprints(evil)
        served = gpg.export(f"{evil}")
    finally:
        gpg.close()
    assert picked(tmp_path, served, pinned) == (None, f"the key http://x/key is not the pinned one ({pinned})\n")


@pytest.mark.host_io
@NEEDS_GPG
def test_a_subkey_that_the_pinned_key_did_not_sign_is_left_out(tmp_path: Path) -> None:
    gpg = GpgHome(tmp_path / "gpg")
    try:
        pinned, evil = gpg.generate("vendor"), gpg.generate("evil")
        own, foreign = gpg.add_subkey(pinned, usage="sign"), gpg.add_subkey(evil, usage="sign")
        subkey = [one for one in openpgp.parse_packets(gpg.export(evil)) if one.tag in (14, 2)][-2:]
        served = gpg.export(pinned) + b"".join(packet.raw for packet in subkey)
    finally:
        gpg.close()
    imported, _ = picked(tmp_path, served, pinned)
    assert imported is not None
    found = [
        openpgp.fingerprint(one.body) for one in openpgp.parse_packets(openpgp.dearmor(imported)) if one.tag in (6, 14)
    ]
    assert found == [pinned, own] and foreign not in found


@pytest.mark.host_io
def test_the_question_finds_the_python_of_this_machine() -> None:
    printed = subprocess.run(
        ["/bin/sh", "-c", python_scripts.FIND], capture_output=True, text=True, check=True, timeout=300
    )
    assert bootstrap.parse_found(printed.stdout).pythons


@pytest.mark.parametrize(
    ("text", "core", "options", "words"),
    [
        (
            "python 3.6 /usr/bin/python3\nmanager dnf\n" + ROCKY,
            "2.19.14",
            {},
            ["3.6", "Rocky Linux 8.10", "3.8", "2.16"],
        ),
        ("manager yum\n" + CENTOS, "2.19.14", {}, ["CentOS Linux 7", "3.6", "2.19.14", "2.16"]),
        (DEBIAN, "2.19.14", {}, ["Debian GNU/Linux 12", "no supported package manager", "ansible_python_interpreter"]),
        ("manager yum\n" + CENTOS, "2.16.19", {"check": True}, ["without --check"]),
        (
            "manager yum\n" + CENTOS,
            "2.16.19",
            {"tried": "x\nNo package python3\n"},
            ["No package python3", "gpu_ready_vault"],
        ),
        (
            "manager apt-get\n" + DEBIAN,
            "2.16.19",
            {"tried": "E: no route\r\nShared connection to h closed.\r\n"},
            ["(E: no route)", "package sources"],
        ),
        (
            "broken 127 /usr/bin/python3 error while loading shared libraries: libz.so.1\nmanager apt-get\n" + DEBIAN,
            "2.16.19",
            {},
            ["/usr/bin/python3", "does not start (exit status 127: error while loading", "apt-get install --reinstall"],
        ),
        (
            "broken 1 /usr/bin/python3 \r\nmanager dnf\n" + ROCKY,
            "2.16.19",
            {},
            ["does not start (exit status 1)", "rpm -Uvh --replacepkgs", "ansible_python_interpreter"],
        ),
    ],
)
def test_what_is_impossible_is_one_message_with_a_remedy(
    text: str, core: str, options: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(bootstrap.BootstrapError) as error:
        way(text, core, **options)
    for word in words:
        assert word in str(error.value)


def test_a_python_that_works_counts_more_than_one_that_does_not() -> None:
    text = "broken 1 /usr/bin/python3 x\npython 3.11 /usr/local/bin/python3\n" + DEBIAN
    assert way(text, "2.19.14") == bootstrap.PythonChoice("/usr/local/bin/python3", None)


@pytest.mark.host_io
def test_the_question_finds_a_python_that_does_not_start(tmp_path: Path) -> None:
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho first >&2\necho no libz >&2\nexit 3\n")
    broken.chmod(0o755)
    find = python_scripts.FIND.replace("/usr/bin/python3 ", f"{broken} ")
    printed = subprocess.run(["/bin/sh", "-c", find], capture_output=True, text=True, check=True, timeout=300)
    assert bootstrap.parse_found(printed.stdout).broken == [(3, str(broken), "no libz")]
    assert bootstrap.parse_found(printed.stdout).pythons


@pytest.mark.host_io
def test_the_playbook_names_the_python_that_a_host_has(tmp_path: Path) -> None:
    root = Path(__file__).resolve().parents[2]
    (tmp_path / "hosts").write_text("gpu1 ansible_connection=local ansible_become=false\n")
    program = str(Path(sys.executable).parent / "ansible-playbook")
    done = subprocess.run(
        [program, "-i", str(tmp_path / "hosts"), str(root / "playbooks/bootstrap_python.yml")],
        cwd=root, capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    assert re.search(r"msg: /usr/\S+", done.stdout)


@pytest.mark.parametrize("text", ["", "\x00", "system", "python x y\n", "manager\n"])
def test_garbled_answers_are_read_without_a_crash(text: str) -> None:
    assert bootstrap.parse_found(text).pythons == []


@pytest.mark.host_io
def test_a_host_whose_interpreter_is_missing_is_planned_with_the_python_that_it_has(tmp_path: Path) -> None:
    """Facts come from this machine; --check, so nothing of it is changed."""
    host = {"ansible_connection": "local", "ansible_become": False, "ansible_remote_tmp": str(tmp_path / "tmp")}
    done = run_playbook(
        tmp_path, "site.yml", {"n1": host | {"ansible_python_interpreter": "/nowhere/python3"}}, "--check"
    )
    assert "The module interpreter '/nowhere/python3' was not found" in done.stdout
    assert "  1 of 1 host planned" in done.stdout, done.stdout + done.stderr
