"""Which lines of modprobe.d keep a module from being loaded: by our reader, and by the real modprobe of the same files."""

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from plugins.module_utils.gpu_ready.system import modprobe, modprobe_files
from plugins.module_utils.gpu_ready.system.modprobe_files import ModprobeLine
from tests.unit.real_programs import need_on_path, need_programs
from tests.unit.recorded import RecordedHost

RELEASE = "6.1.0-1-lab"
GPU = "pci:v000010DEd00001EB8sv000010DEsd000012A2bc03sc02i00"
DEP = "kernel/drm.ko:\nkernel/nvidia.ko.xz: kernel/drm.ko\nkernel/nvidia-uvm.ko: kernel/nvidia.ko kernel/drm.ko\n"
BUILT_IN = "kernel/fs/ext4.ko\n"


def loader(text: str, command_line: str = "", dep: str = DEP) -> modprobe.Loader:
    config = modprobe_files.parse({"/etc/modprobe.d/x.conf": text}, command_line)
    return modprobe.Loader(config, modprobe.Modules(dep, BUILT_IN), modprobe.MAIN, [GPU])


# -------------------------------------------------------------------------------------------------------- the reader


def test_a_file_hides_those_of_its_name_in_later_directories_and_links_to_nothing_do_not() -> None:
    files = {
        "/etc/modprobe.d/b.conf": "etc",
        "/run/modprobe.d/b.conf": "run",
        "/run/modprobe.d/a.conf": "run",
        "/usr/local/lib/modprobe.d/a.conf": "local",
        "/usr/lib/modprobe.d/c.conf": "usr",
        "/lib/modprobe.d/c.conf": "lib",
        "/usr/lib/modprobe.d/d.conf": "usr",
        "/etc/modprobe.d/.e.conf": "hidden",
        "/etc/modprobe.d/f.conf.bak": "no",
        "/etc/modprobe.d/g.conf/x": "a directory",
        "/lib/modprobe.d/g.conf": "lib",
    }
    host = RecordedHost(files=files, links={"/etc/modprobe.d/d.conf": "/nowhere"})
    assert list(modprobe_files.read_files(host).items()) == [
        ("/run/modprobe.d/a.conf", "run"),
        ("/etc/modprobe.d/b.conf", "etc"),
        ("/usr/lib/modprobe.d/c.conf", "usr"),
        ("/usr/lib/modprobe.d/d.conf", "usr"),
        ("/lib/modprobe.d/g.conf", "lib"),
    ]


@pytest.mark.parametrize(
    ("text", "name", "line"),
    [
        ("\n\nblacklist nvidia", "nvidia", 3),
        ("  blacklist\tnvidia-uvm # and more", "nvidia_uvm", 1),
        ("# a\nblack\\\nlist nvi\\\ndia\n", "nvidia", 4),
        ("blacklist nvid\\ia", "nvidia", 1),
        ("blacklist nvidia\r\n", "nvidia\r", 1),
        ("blacklist a[b-c]-d", "a[b-c]_d", 1),
    ],
)
def test_a_command_has_its_line(text: str, name: str, line: int) -> None:
    [(found, where)] = modprobe_files.parse({"/etc/modprobe.d/x.conf": text}).blacklist
    assert (found, where.number) == (name, line)


@pytest.mark.parametrize(
    "text", ["#blacklist nvidia", " # blacklist nvidia", "blacklist", "blacklist a]b", "blacklisted a"]
)
def test_what_is_no_command_has_no_effect(text: str) -> None:
    assert modprobe_files.parse({"/etc/modprobe.d/x.conf": text}) == ([], [], [], [], [])


# --------------------------------------------------------------------------------------------------- what it prevents

NVIDIA_CURRENT = (  # of Debian's nvidia-kernel-common: the module has another file name there
    "install nvidia modprobe -i nvidia-current $CMDLINE_OPTS\n"
    "install nvidia-uvm modprobe nvidia ; modprobe -i nvidia-current-uvm $CMDLINE_OPTS\n"
    "alias pci:v000010DEd*sv*sd*bc03sc02i00* nvidia\n"
)
DEBIAN_DEP = "updates/dkms/nvidia-current.ko:\nupdates/dkms/nvidia-current-uvm.ko: updates/dkms/nvidia-current.ko\n"


@pytest.mark.parametrize(
    ("text", "command_line", "at_boot", "by_name"),
    [
        ("", "quiet", None, None),
        ("blacklist nvidia", "", "blacklist nvidia", None),
        ("alias nvidia off", "", None, "alias nvidia off"),
        ("alias pci:v000010DEd* off", "", "alias pci:v000010DEd* off", None),
        ("install nvidia /bin/false", "", "install nvidia /bin/false", "install nvidia /bin/false"),
        ("install nvidia /bin/true", "", "install nvidia /bin/true", "install nvidia /bin/true"),
        ("install nvidia exit 0 # not here", "", "install nvidia exit 0 # not here", "install nvidia exit 0 # not here"),
        ("install nvidia /sbin/modprobe -i nvidia; /sbin/modprobe nvidia-uvm", "", None, None),
        ("install nvidia /opt/site/load-driver", "", None, None),
        ("install drm /bin/false", "", "install drm /bin/false", "install drm /bin/false"),
        ("install cramfs /bin/false", "", None, None),
        ("", "module_blacklist=a,nvidia quiet", "module_blacklist=a,nvidia", "module_blacklist=a,nvidia"),
        ("", "module_blacklist=nvidia module_blacklist=a", None, None),
        ("", "modprobe.blacklist=nouveau,nvidia", "modprobe.blacklist=nouveau,nvidia", None),
        ("", "rd.driver.blacklist=nvidia", None, None),  # of dracut's initial RAM disk only
        ("softdep nvidia pre: no-such-module", "", None, None),
        ("install other /bin/false\nsoftdep nvidia pre: other", "", None, None),
    ],
)  # fmt: skip
def test_a_line_that_keeps_the_module_away(text: str, command_line: str, at_boot: str, by_name: str) -> None:
    answers = [loader(text, command_line).request(GPU, True), loader(text, command_line).request("nvidia", False)]
    assert [answer.line.text if answer.line else None for answer in answers] == [at_boot, by_name]
    assert [answer.loaded for answer in answers] == [at_boot is None, by_name is None]


@pytest.mark.parametrize(
    ("text", "command_line", "loaded"),
    [
        ("", "", True),
        ("blacklist nvidia\n", "", False),
        ("blacklist nvidia-current\n", "", True),
        ("alias nvidia-current off\n", "", False),
        ("install nvidia-current /bin/false\n", "", True),  # Debian's line runs modprobe with -i
    ],
)
def test_debians_name_of_the_module_is_followed(text: str, command_line: str, loaded: bool) -> None:
    of_debian = loader(text + NVIDIA_CURRENT, command_line, dep=DEBIAN_DEP)
    assert of_debian.request(GPU, True).loaded is loaded


def test_the_kernel_knows_debians_module_by_its_own_name() -> None:
    assert not loader("", "module_blacklist=nvidia", dep=DEBIAN_DEP).request(GPU, True).loaded


def test_debians_line_loads_nothing_where_another_driver_is_installed() -> None:
    assert not loader(NVIDIA_CURRENT, dep=DEP).request("nvidia", False).loaded


def test_an_install_line_that_calls_itself_ends() -> None:
    assert loader("install nvidia modprobe nvidia").request("nvidia", False).loaded


# ------------------------------------------------------------------------------------------------ the real modprobe

OF_SOFTDEP = 3
"""Exit status of the command for a soft dependency that does not load."""
SNIPPETS = (
    "blacklist nvidia",
    "blacklist nvidia-uvm",
    "  blacklist nvidia # with a comment",
    "blacklist nvidia\r",
    "#blacklist nvidia",
    "black\\\nlist nvid\\\nia",
    "blacklist drm",
    "blacklist nvidia*",
    "alias nvidia off",
    "alias nvidia-uvm off",
    "alias nvidia-uvm nvidia",
    "alias nvidia nvidia-uvm",
    "alias n* off",
    "alias pci:v000010DEd*sv*sd*bc03sc0[0-2]i00* off",
    "alias pci:v000010DEd*sv*sd*bc03sc02i00* nvidia",
    "alias pci:v00008086d* off",
    "install nvidia /bin/false",
    "install nvidia-uvm /bin/false",
    "install nvidia modprobe -i nvidia",
    "install nvidia-uvm modprobe nvidia; modprobe -i nvidia-uvm $CMDLINE_OPTS",
    "install nv* /bin/false",
    "install drm /bin/false",
    f"install other exit {OF_SOFTDEP}",
    "remove nvidia /bin/false",
    "softdep nvidia pre: drm",
    "softdep nvidia post: nvidia-uvm",
    "softdep nvidia pre: nosuch",
    "softdep nvidia pre: ext4 post: nosuch",
    "softdep nvidia pre: other",
    "softdep nvidia pre: ecdh_generic,ecdsa_generic",  # of NVIDIA's open module, internal_crypt_lib
    "softdep drm pre: nvidia-uvm",
    "weakdep nvidia nosuch",
    "options nvidia NVreg_DeviceFileMode=0666",
)
REQUESTS = ((GPU, True), ("nvidia", True), ("nvidia", False), ("nvidia-uvm", True), ("nvidia_uvm", False))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """/lib/modules of a kernel with nvidia, nvidia-uvm and drm, which nvidia needs, as depmod describes them."""
    need_programs({"/usr/sbin/modprobe": "kmod"})
    need_on_path("gcc", "gcc")
    root = tmp_path_factory.mktemp("modules")
    directory = root / "lib/modules" / RELEASE
    (directory / "kernel").mkdir(parents=True)
    for name, tags, exported, needed in (
        ("drm", [], "drm_a", ""),
        ("nvidia", ["alias=pci:v000010DEd*sv*sd*bc03sc02i00*"], "nv_a", "drm_a"),
        ("nvidia-uvm", [], "", "nv_a"),
    ):
        section = 'static const char i{}[] __attribute__((used, section("{}"), aligned(1))) = "{}";\n'
        infos = [".modinfo", f"name={name.replace('-', '_')}"], *([".modinfo", tag] for tag in tags)
        names = [["__ksymtab_strings", exported]] if exported else []
        code = "".join(section.format(number, *row) for number, row in enumerate([*infos, *names]))
        call = f"int {needed}(void);\nint init_module(void) {{ return {needed}(); }}\n" if needed else ""
        (root / "module.c").write_text(code + call)
        argv = ["gcc", "-c", "-o", str(directory / f"kernel/{name}.ko"), str(root / "module.c")]
        subprocess.run(argv, check=True, timeout=60)
    (directory / "modules.builtin").write_text(BUILT_IN)
    (directory / "modules.order").write_text("")
    subprocess.run(["/usr/sbin/depmod", "-b", str(root), RELEASE], check=True, timeout=60, capture_output=True)
    (root / "bin").mkdir()
    (root / "conf").mkdir()
    wrapper = root / "bin/modprobe"
    wrapper.write_text(
        f'#!/bin/sh\nexec /usr/sbin/modprobe -C "{root}/conf" -d "{root}" -S {RELEASE} --show-depends "$@" 2>/dev/null\n'
    )
    wrapper.chmod(0o755)
    return root


def printed(tree: Path, argv: list[str]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": f"{tree}/bin:/usr/bin:/bin"}
    return subprocess.run(argv, capture_output=True, text=True, env=env, timeout=20, check=False)


class EndlessError(Exception):
    """An `install` line runs modprobe for its own module."""


def loads(tree: Path, output: str, target: str, depth: int = 0) -> bool:
    """True if what modprobe would do loads a module: commands of `install` lines are run, with it in this tree."""
    if depth > 4:
        raise EndlessError
    for line in output.splitlines():
        action, _, rest = line.partition(" ")
        if action == "insmod" and Path(rest.split()[0]).stem.replace("-", "_") == target:
            return True
        if action == "install":
            answer = printed(tree, ["sh", "-c", rest])
            if loads(tree, answer.stdout, target, depth + 1):
                return True
            if answer.returncode not in (0, OF_SOFTDEP):
                return False  # ends modprobe, unless it is of a softdep (kmod_module_probe_insert_module: "required")
    return False


@pytest.mark.host_io
def test_the_real_modprobe_agrees(tree: Path) -> None:
    """For every pair of lines: what ``modprobe --show-depends -b`` does for the GPU, and for names of modules."""
    dep = (tree / "lib/modules" / RELEASE / "modules.dep").read_text()
    first_counts = [text for text in SNIPPETS if text.startswith(("install", "softdep"))]
    different = []
    for pair in [*itertools.combinations(SNIPPETS, 2), *itertools.combinations(reversed(first_counts), 2)]:
        text = "\n".join(pair) + "\n"
        (tree / "conf/x.conf").write_text(text, newline="")
        for name, blacklist in REQUESTS:
            argv = [str(tree / "bin/modprobe"), *(["-b"] if blacklist else []), name]
            try:
                expected = loads(tree, printed(tree, argv).stdout, "nvidia")
            except EndlessError:
                continue
            found = loader(text, dep=dep).request(name, blacklist).loaded
            if found is not expected:
                different.append((pair, name, blacklist, "modprobe loads it" if expected else "modprobe does not"))
    assert not different


@pytest.mark.host_io
def test_the_real_modprobe_reads_the_kernels_command_line_as_we_do(tree: Path, tmp_path: Path) -> None:
    if os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "true"], check=False, capture_output=True).returncode:
        pytest.skip("only root can give a program another /proc/cmdline")
    (tree / "conf/x.conf").write_text("")
    for text in ("quiet", "modprobe.blacklist=nvidia", "modprobe.blacklist=a,nvidia quiet", "rd.driver.blacklist=nvidia",
                 "modprobe.blacklist=nvidia-uvm modprobe.blacklist=nvidia", "xmodprobe.blacklist=nvidia"):  # fmt: skip
        (tmp_path / "cmdline").write_text(text + "\n")
        script = 'mount --bind "$1" /proc/cmdline && exec "$2" -b "$3"'
        argv = [
            "unshare",
            "--mount",
            "sh",
            "-c",
            script,
            "-",
            str(tmp_path / "cmdline"),
            str(tree / "bin/modprobe"),
            GPU,
        ]
        assert loads(tree, printed(tree, argv).stdout, "nvidia") is loader("", text).request(GPU, True).loaded, text


def test_a_line_can_be_left_out() -> None:
    config = modprobe_files.parse({"/etc/modprobe.d/x.conf": "blacklist nvidia\nalias nvidia off\n"})
    assert config.without(ModprobeLine("/etc/modprobe.d/x.conf", 1, "blacklist nvidia")).blacklist == []
    assert len(config.without(ModprobeLine("/etc/modprobe.d/y.conf", 1, "blacklist nvidia")).blacklist) == 1
