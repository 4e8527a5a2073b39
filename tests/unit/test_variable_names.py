"""Variables that nobody reads: misspelt ones and those of other projects are named, those of a site are not."""

from pathlib import Path

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.variables import names as plugin

from tests.unit.lying_host import READY, make_liar, run_playbook

ROOT = Path(__file__).resolve().parents[2]
KNOWN = sorted(plugin.NAMES.known)


def misspellings(name: str) -> set[str]:
    """Two letters in the wrong order, one missing, one twice, an underscore missing, British and American."""
    middle = len(name) // 2
    found = {
        name[:middle] + name[middle + 1] + name[middle] + name[middle + 2 :],
        name[:middle] + name[middle + 1 :],
        name[:middle] + name[middle] + name[middle:],
        name[::-1].replace("_", "", 1)[::-1],
        name.replace("flavour", "flavor"),
    }
    return {one for one in found if one not in plugin.NAMES.known}


@pytest.mark.parametrize("name", KNOWN)
def test_a_misspelt_variable_is_named_with_the_right_one(name: str) -> None:
    for wrong in misspellings(name):
        if wrong.startswith(plugin.NAMES.prefixes):
            (message,) = plugin.unread_variables([wrong])
            assert wrong in message
            right = message.rpartition("Did you mean ")[2].rstrip("?")
            assert right == name or len(set(right.split("_")) ^ set(name.split("_"))) <= 2, message


def test_what_we_and_a_site_set_is_no_mistake() -> None:
    assert plugin.unread_variables([*KNOWN, *plugin.NAMES.own]) == []
    site = ["gpu_hosts", "gpu_rack", "nvidia_licence_server", "docker_users", "cuda_home", "gpu_ready_site_team"]
    assert plugin.unread_variables(site) == []


@pytest.mark.parametrize("name", sorted(plugin.NAMES.foreign))
def test_variables_of_other_projects(name: str) -> None:
    """What replaces each is a variable that exists."""
    message = plugin.NAMES.foreign[name]
    assert name in message and "docs/migrating.md" in message
    assert plugin.unread_variables([name]) == ([message] if name.startswith(plugin.NAMES.prefixes) else [])


def test_the_variables_that_replace_those_of_others_exist() -> None:
    text = (ROOT / "docs/migrating.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[1] for line in text.splitlines() if line.startswith("| `")]
    words = [word.partition(":")[0] for row in rows for word in row.split("`")[1::2]]
    assert len(words) > 15
    assert {word for word in words if "_" in word} <= plugin.NAMES.known | {"cuda_repo"}


@pytest.mark.host_io
def test_a_run_names_them_once(tmp_path: Path) -> None:
    wrong = {"nvidia_driver_brnach": "580", "nvidia_driver_skip_reboot": True, "gpu_rack": 7}
    hosts = {name: make_liar(tmp_path, name, {"gpu_node_plan": READY}) | wrong for name in ("n1", "n2", "n3")}
    done = run_playbook(tmp_path, "site.yml", hosts)
    shown = " ".join((done.stdout + done.stderr).split())
    assert shown.count("nvidia_driver_brnach is not read by gpu-ready. Did you mean nvidia_driver_branch?") == 1, shown
    assert shown.count("nvidia_driver_skip_reboot of nvidia.nvidia_driver is not read") == 1
    assert "gpu_rack" not in shown
