"""docs/on-the-host.md against the catalog and the code: servers, units, modules, files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlsplit

from plugins.module_utils.gpu_ready.cuda.cudnn import model as cudnn
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog import settings as declared
from plugins.plugin_utils.gpu_ready.plan import compose
from tests.unit.hosts import H100, bare
from tests.unit.plans import all_todo, settings

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/on-the-host.md").read_text(encoding="utf-8")


def section(heading: str) -> str:
    return PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]


def servers() -> set[str]:
    """Every server from which the catalog downloads."""
    found = {urlsplit(cudnn.REDIST).netloc}
    for one in catalog.repositories().values():
        found |= {urlsplit(one[key]).netloc for key in ("url", "key_url") if one.get(key)}
    paths = [*(ROOT / "catalog/distros").glob("*.yml")]
    for path in [*paths, *(ROOT / "catalog" / name for name in ("bases.yml", "branches.yml", "cuda.yml"))]:
        text = "\n".join(line.split(" #")[0] for line in path.read_text().splitlines() if not line.startswith("#"))
        found |= {urlsplit(address).netloc for address in re.findall(r"https?://[^\s\"']+", text)}
    return found


def test_the_page_names_every_server_and_no_other() -> None:
    named = set(re.findall(r"`([a-z0-9-]+(?:\.[a-z0-9-]+)+)`", section("Network connections")))
    assert named == servers()


def test_every_unit_and_file_below_a_directory_of_gpu_ready_is_named() -> None:
    code = "".join(
        path.read_text(encoding="utf-8")
        for place in ("module_utils/gpu_ready", "plugins/plugin_utils/gpu_ready", "library", "roles", "playbooks")
        for path in [*(ROOT / place).rglob("*.py"), *(ROOT / place).rglob("*.yml")]
    )
    units = set(re.findall(r"\bgpu-ready-[a-z-]+\.service\b", code)) - {"gpu-ready-pull.service"}
    assert units and all(unit in PAGE for unit in units), units
    state = set(re.findall(r"/var/lib/gpu-ready/([a-z-]+(?:\.json)?)", code))
    missing = {name for name in state if name not in PAGE}
    assert not missing, missing


def test_no_user_or_group_is_created() -> None:
    for path in [*(ROOT / "module_utils/gpu_ready").rglob("*.py"), *(ROOT / "library").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\"(useradd|adduser|groupadd|usermod|gpasswd)\"", text), path
    for path in [*(ROOT / "roles").rglob("tasks/*.yml"), *(ROOT / "playbooks").rglob("*.yml")]:
        assert not re.search(r"ansible\.builtin\.(user|group):", path.read_text(encoding="utf-8")), path


def test_the_table_of_ansible_cfg_is_complete() -> None:
    import configparser

    read = configparser.ConfigParser()
    read.read(ROOT / "ansible.cfg")
    text = (ROOT / "docs/site.md").read_text(encoding="utf-8").split("## ansible.cfg")[1].split("\n## ")[0]
    assert all(f"`{name}" in text for part in read.sections() for name in read[part])


def rows_of_packages() -> dict[str, tuple[str, str]]:
    """``which`` and ``when`` by the first column of the table of packages."""
    lines = [line.strip("|").split("|") for line in section("Packages").splitlines() if line.startswith("| ")]
    return {cells[0].strip(): (cells[1], cells[2]) for cells in lines[1:]}


def planned(**given: str) -> dict[str, dict[str, object]]:
    """Steps of a new host with NVSwitches and docker 26, with the driver of each source that the settings allow."""
    return all_todo(compose.plan(bare(H100, distro="debian13", nvswitches=4), settings(**given)))


ROLES = {"driver": "nvidia_driver.", "CUDA toolkit": "cuda_toolkit.", "cuDNN": "cudnn.", "docker": "docker_engine."}


def test_packages_are_installed_under_the_conditions_of_the_table() -> None:
    rows = rows_of_packages()
    assert set(ROLES) < set(rows)
    for name, prefix in ROLES.items():
        switches = re.findall(r"`(\w+)` is not `none`", rows[name][1])
        assert len(switches) == 1, name
        assert [step for step in planned() if step.startswith(prefix)], name
        assert not [step for step in planned(**{switches[0]: "none"}) if step.startswith(prefix + "install")], name
    toolkit = rows["NVIDIA Container Toolkit"]
    stated = set(re.findall(r"`nvidia_container_runtime_mode` is `(\w+)`", toolkit[1]))
    package = re.findall(r"`([\w-]+)`", toolkit[0])[0]
    installing = {
        mode
        for mode in declared.RULES["nvidia_container_runtime_mode"][1]
        if package in json.dumps(planned(nvidia_container_runtime_mode=mode))
    }
    assert stated == installing


def test_every_page_gives_the_modes_without_the_toolkit() -> None:
    for name, words in (
        ("README.md", "modes `cdi` and `native` need no toolkit"),
        ("README.zh-CN.md", "`cdi` 和 `native` 模式不需要 toolkit"),
    ):
        assert words in (ROOT / name).read_text(encoding="utf-8"), name
