"""The command lines of the package managers: one table per verb, what is requested and which programs are called how."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.packaging import apt, apt_lists, dnf, install, repositories, rpm, yum_repos
from plugins.module_utils.gpu_ready.packaging.dpkg_status import STATUS
from plugins.module_utils.gpu_ready.packaging.manager import (
    Manager,
    PackageChange,
    PackageError,
    PackageSpec,
    Simulation,
)
from tests.unit.recorded import RecordedHost

PROGRAMS = {
    "dnf": ("/usr/bin/dnf-3", "/usr/bin/dnf"),
    "dnf5": ("/usr/bin/dnf5", "/usr/bin/dnf"),
    "yum": ("/usr/bin/yum", ""),
}
"""Program and link by form (dnf(8): /usr/bin/dnf is a link on all that have it)."""
ASKED = r"dpkg-query -W -f ${Package}\t${Version}\t${db:Status-Status}\t${db:Status-Want}\t${Architecture}\n"
WITHOUT = "-o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts=-"
ANSWERED = "Installing:\n new x86_64 1-1 r 1 k\nOperation aborted.\n"


class CalledHost(RecordedHost):
    """A host whose programs answer by the beginning of their command line, which is shown without common options."""

    def __init__(self, form: str, answers: dict[str, Result] | None = None, rows: str = "", **more: Any) -> None:
        super().__init__(**more)
        program, link = PROGRAMS.get(form, ("/usr/bin/apt-get", ""))
        self.files[program] = ""
        self.links.update({link: Path(program).name} if link else {})
        self.answers = answers or {}
        self.rows = rows or "bash\t(none)\t5\t1\tx86_64\n"
        self.called: list[str] = []

    def run(self, argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        words = list(argv)
        if words == rpm.QUERY:
            return Result(0, self.rows, "") if self.rows != "unreadable" else Result(1, "", "rpmdb open failed")
        if words[0] == "apt-get" and words[1 : 1 + len(apt.OPTIONS)] == apt.OPTIONS:
            words[1 : 1 + len(apt.OPTIONS)] = ["*"]
        line = " ".join(word for word in words if not word.startswith("--setopt=")).replace(WITHOUT, "WITHOUT")
        self.called.append(line)
        self.asked.append(tuple(argv))
        found = [answer for start, answer in self.answers.items() if line.startswith(start)]
        return found[0] if found else Result(0, "", "")


def manager(form: str, host: CalledHost) -> Manager:
    if form == "apt":
        return apt.Apt(host, locks=(), wait=0.0)
    found = dnf.Dnf(host, wait=0.0)
    assert found.form == form
    return found


def without_sync(called: list[str]) -> list[str]:
    return [line for line in called if not line.startswith("sync")]


VERBS: list[tuple[str, Callable[[Any], object], dict[str, list[str]]]] = [
    (
        "hold",
        lambda one: one.hold(["a", "b"]),
        {
            "apt": ["apt-mark WITHOUT hold a b"],
            "dnf": ["/usr/bin/dnf -y versionlock add a b"],
            "dnf5": ["/usr/bin/dnf -y versionlock add a b"],
            "yum": ["/usr/bin/yum -y versionlock add a b"],
        },
    ),
    (
        "unhold",
        lambda one: one.unhold(["a", "b"]),
        {
            "apt": ["apt-mark WITHOUT unhold a b"],
            "dnf": ["/usr/bin/dnf -y versionlock delete a b"],
            "dnf5": ["/usr/bin/dnf -y versionlock delete a b"],
            "yum": ["/usr/bin/yum -y versionlock delete a b"],
        },
    ),
    (
        "remove",
        lambda one: one.run_change("x", one.removal_command(["a", "b"])),
        {
            "apt": ["apt-get * WITHOUT purge --allow-change-held-packages --ignore-hold a b"],
            "dnf": ["/usr/bin/dnf -y remove a b"],
            "dnf5": ["/usr/bin/dnf -y remove a b"],
            "yum": ["/usr/bin/yum -y remove a b"],
        },
    ),
    (
        "install what was planned",
        lambda one: one.apply_change("x", [["install", "a"], ["remove", "b"]], Simulation({}, [])),
        {
            "apt": [ASKED, "apt-get * install a", "apt-get * remove b"],  # to undo it if it fails
            "dnf": ["/usr/bin/dnf -y install a", "/usr/bin/dnf -y remove b"],
            "dnf5": ["/usr/bin/dnf -y install a", "/usr/bin/dnf -y remove b"],
            "yum": ["/usr/bin/yum -y install a", "/usr/bin/yum -y remove b"],
        },
    ),
    (
        "read the lists",
        lambda one: one.update(),
        {
            "apt": ["apt-get * update"],
            "dnf": ["/usr/bin/dnf -y makecache --refresh"],
            "dnf5": ["/usr/bin/dnf -y makecache --refresh"],
            "yum": ["/usr/bin/yum -y clean expire-cache", "/usr/bin/yum -y makecache"],
        },
    ),
    (
        "check the sources",
        lambda one: one.check_sources(),
        {
            "apt": ["apt-cache policy"],
            "dnf": ["/usr/bin/dnf -y -C repolist"],
            "dnf5": ["/usr/bin/dnf -y -C repolist"],
            "yum": ["/usr/bin/yum -y -C repolist"],
        },
    ),
    (
        "ask for offers",
        lambda one: one.offers(["a", "b"]),
        {
            "apt": ["apt-cache madison a b"],
            "dnf": ["/usr/bin/dnf -y list --showduplicates a b"],
            "dnf5": ["/usr/bin/dnf -y list --showduplicates a b"],
            "yum": ["/usr/bin/yum -y list --showduplicates a b"],
        },
    ),
    ("ask for no offers", lambda one: one.offers([]), {"apt": [], "dnf": [], "dnf5": [], "yum": []}),
    (
        "ask for dependencies",
        lambda one: one.lowest_versions([("a", "1-1"), ("b", "2-1")]),
        {
            "apt": ["apt-cache show a=1-1 b=2-1"],
            "dnf": ["/usr/bin/dnf -y repoquery --requires a-1-1 b-2-1"],
            "dnf5": ["/usr/bin/dnf -y repoquery --requires a-1-1 b-2-1"],
            "yum": ["/usr/bin/yum -y deplist a-1-1 b-2-1"],
        },
    ),
    (
        "ask what a user requested",
        lambda one: one.user_installed(),
        {
            "apt": ["apt-mark WITHOUT showmanual"],
            "dnf": ["/usr/bin/dnf -y repoquery --userinstalled --qf %{name}\\n"],
            "dnf5": ["/usr/bin/dnf -y repoquery --userinstalled --qf %{name}\\n"],
            "yum": [],
        },
    ),
    (
        "simulate",
        lambda one: one.simulate("x", ["install", "a"]),
        {
            "apt": ["apt-get * -s -o Debug::NoLocking=1 install a"],
            "dnf": ["/usr/bin/dnf --assumeno install a"],
            "dnf5": ["/usr/bin/dnf --assumeno install a"],
            "yum": ["/usr/bin/yum --assumeno install a"],
        },
    ),
    (
        "enable a module stream",
        lambda one: one.enable_streams({"m": "2", "n": "1"}),
        {
            "dnf": ["/usr/bin/dnf -y module enable m:2", "/usr/bin/dnf -y module enable n:1"],
            "dnf5": ["/usr/bin/dnf -y module enable m:2", "/usr/bin/dnf -y module enable n:1"],
        },
    ),
    (
        "read one repository",
        lambda one: one.read_repository("r"),
        {
            "dnf": ["/usr/bin/dnf -y --repo=r --refresh makecache"],
            "dnf5": ["/usr/bin/dnf -y --repo=r --refresh makecache"],
            "yum": ["/usr/bin/yum -y --disablerepo=* --enablerepo=r makecache"],
        },
    ),
    ("repair a complete host", lambda one: one.repair(["a"]), {"apt": [], "dnf": [], "dnf5": [], "yum": []}),
]
CASES = [(verb, form, call, lines) for verb, call, forms in VERBS for form, lines in forms.items()]


@pytest.mark.parametrize(("verb", "form", "call", "lines"), CASES, ids=[f"{verb}, {form}" for verb, form, *_ in CASES])
def test_a_verb_is_these_command_lines(verb: str, form: str, call: Callable[[Any], object], lines: list[str]) -> None:
    host = CalledHost(form)
    call(manager(form, host))
    assert without_sync(host.called) == lines


@pytest.mark.parametrize("form", ["apt", *PROGRAMS])
def test_a_failed_call_of_each_verb_is_an_error(form: str) -> None:
    """None of these failures may pass for "nothing is held" or "nothing is offered"."""
    calls = [call for verb, call, forms in VERBS if forms.get(form) and verb != "ask for offers"]
    if form == "apt":  # apt-cache ends with 100 where one of several packages is unknown
        calls = [
            call for verb, call, _ in VERBS if verb in ("hold", "unhold", "remove", "check the sources", "simulate")
        ]
    for call in calls:
        host = CalledHost(form, dict.fromkeys(("apt", "/usr/bin/"), Result(100, "", "E: broken\nError: broken")))
        with pytest.raises(PackageError, match="broken"):
            call(manager(form, host))


@pytest.mark.parametrize("form", ["apt", "yum"])
def test_a_manager_without_module_streams_says_so(form: str) -> None:
    host = CalledHost(form)
    with pytest.raises(PackageError, match="has no module streams, but m:2 is requested"):
        manager(form, host).enable_streams({"m": "2"})
    assert host.called == []


@pytest.mark.parametrize("form", PROGRAMS)
def test_a_repository_that_is_read_alone_may_not_fail(form: str) -> None:
    """dnf would take an empty repository for a read one otherwise (dnf.conf(5), skip_if_unavailable)."""
    host = CalledHost(form)
    dnf.Dnf(host, wait=0.0).read_repository("r")
    assert "--setopt=r.skip_if_unavailable=0" in host.asked[0]
    assert ("--setopt=*.skip_if_unavailable=1" in host.asked[0]) is (form != "yum")


@pytest.mark.parametrize("form", PROGRAMS)
def test_the_repository_that_cannot_be_read_is_named(form: str) -> None:
    program = "/usr/bin/yum" if form == "yum" else "/usr/bin/dnf"
    host = CalledHost(form, {program: Result(1, "", "Error: broken")})
    with pytest.raises(PackageError, match=r"^reading the repository gpu-ready-x: .*broken"):
        dnf.Dnf(host, wait=0.0).read_repository("gpu-ready-x")


# ---- changes --------------------------------------------------------------------------------------------------------

MADISON = Result(0, "new | 2.0-1 | http://m x Packages\nnew | 1.0-1 | http://m x Packages\n", "")
LISTED = Result(0, "new.x86_64 2.0-1 r\nnew.x86_64 1.0-1 r\n", "")


def test_apt_installs_and_removes_in_one_call() -> None:
    host = CalledHost(
        "apt", {"apt-cache madison": MADISON, "apt-get * -s": Result(0, "Inst new (1.0-1 m)\nRemv old [1]\n", "")}
    )
    change = PackageChange([PackageSpec("new", "1.*"), PackageSpec("any")], ["old"], [])
    calls, simulation = manager("apt", host).plan_change("x", change)
    assert calls == [["--allow-downgrades", "install", "new=1.0-1", "any", "old-"]]
    assert (simulation.new, simulation.remove) == (["new"], ["old"])
    assert host.called == [
        "apt-cache madison new any",
        "apt-get * -s -o Debug::NoLocking=1 --allow-downgrades install new=1.0-1 any old-",
        "apt-cache show new=1.0-1",
    ]


@pytest.mark.parametrize(
    ("form", "remove", "allowed", "calls"),
    [
        ("dnf", [], [], [["install", "any", "new-1.0-1"]]),
        ("dnf", [], ["other"], [["install", "--allowerasing", "any", "new-1.0-1"]]),
        ("dnf", ["old"], [], [["remove", "old"], ["install", "--allowerasing", "any", "new-1.0-1"]]),
        ("dnf5", ["old"], [], [["remove", "old"], ["install", "--allowerasing", "any", "new-1.0-1"]]),
        ("yum", ["old"], [], [["remove", "old"], ["install", "any", "new-1.0-1"]]),
    ],
)
def test_dnf_installs_and_removes(form: str, remove: list[str], allowed: list[str], calls: list[list[str]]) -> None:
    program = "/usr/bin/yum" if form == "yum" else "/usr/bin/dnf"
    answers = {
        f"{program} -y list": LISTED,
        f"{program} --assumeno install": Result(1, ANSWERED, ""),
        f"{program} --assumeno remove": Result(1, "Removing:\n old x86_64 1-1 @r 1 k\nOperation aborted.\n", ""),
    }
    host = CalledHost(form, answers)
    change = PackageChange([PackageSpec("new", "1.*"), PackageSpec("any")], remove, allowed)
    assert manager(form, host).plan_change("x", change)[0] == calls
    assert host.called[0] == f"{program} -y list --showduplicates new"


@pytest.mark.parametrize("form", ["dnf", "dnf5"])
@pytest.mark.parametrize(
    ("present", "before", "lines"),
    [
        ({}, {"m": None}, []),
        ({"m": "2"}, {"m": "2"}, []),
        ({"m": "2"}, {"m": None}, ["module reset m"]),
        ({"m": "2"}, {"m": "1"}, ["module reset m", "module enable m:1"]),
        ({}, {"m": "1"}, ["module enable m:1"]),
    ],
)
def test_streams_are_restored(
    form: str, present: dict[str, str], before: dict[str, str | None], lines: list[str]
) -> None:
    files = {
        f"{rpm.MODULES}/{name}.module": f"[{name}]\nstream={one}\nstate=enabled\n" for name, one in present.items()
    }
    host = CalledHost(form, files=files)
    manager(form, host).restore_streams(before)
    assert host.called == ["/usr/bin/dnf -y " + line for line in lines]


# ---- repairs --------------------------------------------------------------------------------------------------------


def test_apt_finishes_what_was_interrupted_and_unpacks_again_what_was_damaged() -> None:
    stanza = "Package: {0}\nStatus: install {1} {2}\nVersion: 1\n\n"
    broken = stanza.format("a", "ok", "half-configured") + stanza.format("b", "reinstreq", "half-installed")
    host = CalledHost("apt", files={STATUS: broken})
    whole = stanza.format("a", "ok", "installed") + stanza.format("b", "ok", "installed")
    run = host.run

    def repaired(argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if "--fix-broken" in argv:
            host.files[STATUS] = whole
        return run(argv, timeout, env)

    host.run = repaired  # type: ignore[method-assign]
    assert manager("apt", host).repair([]) == ["a", "b"]
    assert host.called == [
        "dpkg --force-confdef --force-confold --configure -a",
        "apt-get * install --fix-broken --reinstall b",
    ]


@pytest.mark.parametrize(
    ("rows", "files", "owned", "lines"),
    [
        (
            "a\t(none)\t1\t1\tx86_64\na\t(none)\t2\t1\tx86_64\n",
            {},
            [],
            ["/usr/bin/yum --assumeno remove a-1-1.x86_64", "/usr/bin/yum -y remove a-1-1.x86_64"],
        ),
        (
            "a\t(none)\t1\t1\tx86_64\n",
            {"/x/pending.json": '["a"]'},
            [],
            ["/usr/bin/yum --assumeno reinstall a", "/usr/bin/yum -y reinstall a"],
        ),
        ("unreadable", {}, [], ["rpm --rebuilddb", "rpm -qa"]),
        (
            "",
            {"/var/lib/yum/transaction-all.1": "", "/usr/sbin/yum-complete-transaction": ""},
            [],
            ["/usr/sbin/yum-complete-transaction -y"],
        ),
    ],
)
def test_yum_repairs(tmp_path: Path, rows: str, files: dict[str, str], owned: list[str], lines: list[str]) -> None:
    """The recorded host stays as it is, so each repair ends with what is left."""
    mark = tmp_path / "pending.json"
    host = CalledHost(
        "yum", rows=rows, files={path.replace("/x/", f"{tmp_path}/"): text for path, text in files.items()}
    )
    if str(mark) in host.files:
        mark.write_text(str(host.files[str(mark)]))
    with pytest.raises(
        PackageError, match=r"stayed half installed after the repair\. See `rpm -qa` and `/usr/bin/yum check`"
    ):
        dnf.Dnf(host, wait=0.0, pending=str(mark)).repair(owned)
    assert host.called == lines and not mark.exists()


def test_what_yum_could_not_finish_is_an_error_and_what_it_finished_is_none() -> None:
    files = {"/usr/sbin/yum-complete-transaction": ""}
    dnf.Dnf(CalledHost("yum", files=files), wait=0.0).finish_yum()
    failed = {"/usr/sbin/yum-complete-transaction": Result(1, "", "Error: broken")}
    with pytest.raises(PackageError, match="finishing the interrupted transaction of yum: .*broken"):
        dnf.Dnf(CalledHost("yum", failed, files=files), wait=0.0).finish_yum()
    with pytest.raises(PackageError, match="Install yum-utils"):
        dnf.Dnf(CalledHost("yum"), wait=0.0).finish_yum()


@pytest.mark.parametrize(("rebuild", "query", "fails"), [(0, 0, False), (1, 0, True), (0, 1, True)])
def test_a_database_that_stays_unreadable_is_an_error(rebuild: int, query: int, fails: bool) -> None:
    answers = {"rpm --rebuilddb": Result(rebuild, "", "a"), "rpm -qa": Result(query, "", "b")}
    one = dnf.Dnf(CalledHost("dnf", answers), wait=0.0)
    if fails:
        with pytest.raises(PackageError, match="stayed unreadable"):
            one.rebuild_database()
    else:
        one.rebuild_database()


@pytest.mark.parametrize(("owned", "lines"), [(["a"], 4), ([], 2), (["b"], 2)])
def test_a_package_of_ours_that_cannot_be_reinstalled_is_removed(owned: list[str], lines: int) -> None:
    answers = {
        "/usr/bin/dnf --assumeno reinstall": Result(1, "Operation aborted.\n", ""),
        "/usr/bin/dnf -y reinstall": Result(1, "", "Error: broken"),
        "/usr/bin/dnf --assumeno remove": Result(1, "Removing:\n a x86_64 1-1 @r 1 k\nOperation aborted.\n", ""),
    }
    host = CalledHost("dnf", answers)
    one = dnf.Dnf(host, wait=0.0)
    if lines == 4:
        one.reinstall(["a"], owned)
    else:
        with pytest.raises(PackageError, match="broken"):
            one.reinstall(["a"], owned)
    assert (
        host.called
        == [
            "/usr/bin/dnf --assumeno reinstall a",
            "/usr/bin/dnf -y reinstall a",
            "/usr/bin/dnf --assumeno remove a",
            "/usr/bin/dnf -y remove a",
        ][:lines]
    )


STANZA = "Package: %s\nStatus: install ok %s\nVersion: 1\n\n"


@pytest.mark.parametrize("after", ["installed", "half-installed"])
def test_what_apt_repairs_in_two_calls_or_not_at_all(after: str) -> None:
    host = CalledHost("apt", files={STATUS: STANZA % ("a", "half-installed")})
    run = host.run

    def repaired(argv: list[str], timeout: float = 30.0, env: dict[str, str] | None = None) -> Result:
        if argv[-2:] == ["--reinstall", "a"]:
            host.files[STATUS] = STANZA % ("a", after)
        return run(argv, timeout, env)

    host.run = repaired  # type: ignore[method-assign]
    if after == "installed":
        assert manager("apt", host).repair([]) == ["a"]
    else:
        with pytest.raises(PackageError, match=r"a stayed half installed after .*See `dpkg --audit` on this host"):
            manager("apt", host).repair([])
    assert host.called[1:] == ["apt-get * install --fix-broken", "apt-get * install --reinstall a"]


def test_a_journal_of_dpkg_is_an_interrupted_run() -> None:
    """dpkg(1): a killed run leaves numbered files in the directory, which --configure reads."""
    one = STANZA % ("a", "installed")
    for names, found in ((["0001"], ["dpkg"]), (["tmp.i"], []), ([], [])):
        files = {STATUS: one, **{f"/var/lib/dpkg/updates/{name}": "" for name in names}}
        assert manager("apt", CalledHost("apt", files=files)).find_interrupted() == found
    assert manager("apt", CalledHost("apt", files={STATUS: STANZA % ("b", "unpacked")})).find_interrupted() == ["b"]


def test_lists_of_apt_that_are_missing_damaged_or_old_are_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Old ones are read again, for what was published meanwhile."""
    name = "m_InRelease"
    monkeypatch.setattr(apt_lists, "DIRECTORY", str(tmp_path))
    whole = "-----BEGIN PGP SIGNED MESSAGE-----\nSHA256:\n-----END PGP SIGNATURE-----\n"
    printed = Result(0, f"'http://m/InRelease' {name} 0\n", "")
    for lists, answer, age, stale in (
        ({name: whole}, printed, 0, False),
        ({name: whole}, printed, 2 * apt.DAY, True),
        ({name: ""}, printed, 0, True),
        ({}, printed, 0, True),
        ({name: whole}, Result(100, "", "E: broken"), 0, True),
    ):
        os.utime(tmp_path, (time.time() - age, time.time() - age))
        host = CalledHost(
            "apt",
            {"apt-get update --print-uris": answer},
            files={f"{tmp_path}/{one}": text for one, text in lists.items()},
        )
        assert manager("apt", host).lists_are_stale() is stale, (lists, answer, age)


def test_damaged_lists_are_deleted_before_apt_reads_them_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(apt_lists, "DIRECTORY", str(tmp_path))
    (tmp_path / "m_InRelease").write_text("")
    host = CalledHost("apt", files={f"{tmp_path}/m_InRelease": ""})
    manager("apt", host).update()
    assert list(tmp_path.iterdir()) == [] and host.called == ["apt-get * update"]


@pytest.mark.parametrize("form", ["apt", "dnf"])
def test_marks_that_cannot_be_read_are_an_error(form: str) -> None:
    host = CalledHost(form, dict.fromkeys(("apt-mark", "/usr/bin/"), Result(100, "", "E: broken")))
    with pytest.raises(PackageError, match="reading .*broken"):
        manager(form, host).user_installed()


def test_a_disk_that_is_too_small_is_named_before_anything_is_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two directories of one device need the sum."""
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    host = CalledHost("apt")
    host.free = lambda path: 1_000_000_000  # type: ignore[method-assign]
    one = manager("apt", host)
    one.check_free_space(3, [("/usr", 600_000_000), ("/nowhere", 600_000_000)])
    message = r"3 packages need 1\d\d\d MB in /usr, but only 1000 MB are free\. Free space there, then run again"
    with pytest.raises(PackageError, match=message):
        one.check_free_space(3, [("/usr", 600_000_000), ("/usr/lib", 600_000_000)])


# ---- package sources ------------------------------------------------------------------------------------------------

DEBIAN = "ID=debian\nVERSION_CODENAME=bookworm\n"
MINT = "ID=linuxmint\nVERSION_CODENAME=xia\nUBUNTU_CODENAME=noble\n"
LIST = "deb http://deb.example/debian %s main\n"
REPO = "[baseos]\nenabled=1\n[crb]\nname=x\nenabled=0\n"


def request(**given: list[str]) -> repositories.Request:
    return repositories.Request(given.get("components", []), given.get("sections", []), [])


@pytest.mark.parametrize(
    ("release", "suite", "after"),
    [
        (DEBIAN, "bookworm", "deb http://deb.example/debian bookworm main contrib non-free\n"),
        (MINT, "noble", "deb http://deb.example/debian noble main contrib non-free\n"),
    ],
)
def test_components_are_enabled_in_the_distributions_own_source(release: str, suite: str, after: str) -> None:
    files = {
        "/etc/os-release": release,
        "/etc/apt/sources.list": LIST % suite,
        "/etc/apt/sources.list.d/x.list": LIST % "site",
    }
    edits = repositories.plan_edits(RecordedHost(files=files), request(components=["contrib", "non-free"]))
    assert {path: data.decode() for path, data in edits.files.items()} == {"/etc/apt/sources.list": after}
    assert edits.codename == suite and edits.component_files == ["/etc/apt/sources.list"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"/etc/os-release": "ID=debian\n", "/etc/apt/sources.list": LIST % "bookworm"}, "names no VERSION_CODENAME"),
        (
            {"/etc/os-release": DEBIAN, "/etc/apt/sources.list": LIST % "trixie"},
            "no package source of the distribution",
        ),
    ],
)
def test_components_without_a_source_of_the_distribution_are_an_error(files: dict[str, str], words: str) -> None:
    with pytest.raises(PackageError, match=words):
        repositories.plan_components(RecordedHost(files=files), ["contrib"])


def test_components_that_are_enabled_change_nothing() -> None:
    files = {"/etc/os-release": DEBIAN, "/etc/apt/sources.list": LIST % "bookworm"}
    assert repositories.plan_components(RecordedHost(files=files), ["main"]) == ({}, "bookworm")


def test_sections_are_enabled_where_they_are_disabled() -> None:
    host = RecordedHost(files={"/etc/yum.repos.d/base.repo": REPO, "/etc/yum.repos.d/other.txt": REPO})
    edits = repositories.plan_edits(host, request(sections=["crb", "baseos"]))
    assert edits.sections == {"/etc/yum.repos.d/base.repo": ["crb"]}
    assert edits.files["/etc/yum.repos.d/base.repo"].decode() == REPO.replace("enabled=0", "enabled=1")
    with pytest.raises(PackageError, match="powertools: in no file of /etc/yum.repos.d"):
        repositories.plan_sections(host, ["crb", "powertools"])


@pytest.mark.parametrize("verb", ["enable", "disable"])
def test_repositories_of_a_subscription_are_switched_by_its_own_program(verb: str) -> None:
    host = CalledHost("dnf")
    repositories.switch_subscriptions(host, verb, ["a", "b"])
    assert host.called == [f"subscription-manager repos --{verb}=a --{verb}=b"]
    with pytest.raises(PackageError, match="ended with 1 .no such repository"):
        repositories.switch_subscriptions(
            CalledHost("dnf", {"subscription-manager": Result(1, "", "no such repository")}), verb, ["a"]
        )


@pytest.mark.parametrize(
    ("form", "edits", "lines"),
    [
        (
            "apt",
            repositories.Edits({}, ["/etc/apt/sources.list"], "bookworm", {}, []),
            ["apt-get * update"],
        ),
        (
            "dnf",
            repositories.Edits({}, [], "", {"/etc/yum.repos.d/base.repo": ["crb"]}, []),
            ["/usr/bin/dnf -y --repo=crb --refresh makecache"],
        ),
        (
            "yum",
            repositories.Edits({}, [], "", {"/etc/yum.repos.d/base.repo": ["crb"]}, []),
            ["/usr/bin/yum -y --disablerepo=* --enablerepo=crb makecache"],
        ),
    ],
)
def test_what_was_enabled_is_read(form: str, edits: repositories.Edits, lines: list[str]) -> None:
    host = CalledHost(form, files={"/etc/apt/sources.list": LIST % "bookworm"})
    repositories.read_lists(host, manager(form, host), request(components=["contrib"]), edits)
    assert host.called == lines


@pytest.mark.parametrize(
    ("text", "release", "words"),
    [
        ("https://m/$releasever/$basearch", "9.4", ["https://m/9/x86_64", "https://m/9.4/x86_64"]),
        ("https://m/x", "9.4", ["https://m/x"]),
        ("https://m/${releasever_major}/${releasever_minor}/$other", "9.4", ["https://m/9/4/$other"]),
        ("https://m/a${releasever_minor:+-z}", "9", ["https://m/a"]),
        ("https://m/a${releasever_minor:+-z}", "9.4", ["https://m/a-z"]),
    ],
)
def test_variables_of_dnf_are_expanded_once(text: str, release: str, words: list[str]) -> None:
    assert yum_repos.expand(text, release) == words


def test_a_value_of_a_section_is_continued_on_indented_lines() -> None:
    text = "[r]\nbaseurl=http://a\n  http://b\n\thttp://c\n# x\nenabled = 0\n[s]\nbaseurl=http://d\n"
    assert yum_repos.parse_values(text) == {
        "r": {"baseurl": "http://a http://b http://c", "enabled": "0"},
        "s": {"baseurl": "http://d"},
    }


def test_a_failure_names_its_purpose() -> None:
    names = ("names", "optional", "remove", "hold", "unhold", "allow_remove")
    params: dict[str, Any] = {
        **dict.fromkeys(names, []),
        "streams": None,
        "purge": False,
        "update_cache": False,
        "purpose": "docker",
    }
    assert install.parse_transaction(params).what == "installing docker"


def test_only_the_own_list_of_a_third_party_repository_is_read() -> None:
    host = CalledHost("apt")
    apt.Apt(host, locks=(), wait=0.0).update_only("/etc/apt/sources.list.d/x.sources")
    assert host.called == [
        "apt-get * -o Dir::Etc::sourcelist=/etc/apt/sources.list.d/x.sources -o Dir::Etc::sourceparts=- "
        "-o APT::Get::List-Cleanup=0 -o APT::Update::Error-Mode=any update"
    ]
