"""Dresses of lab hosts: every dress can be read, and agrees with the lab's mirror."""

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import dress, mirror
from gpu_ready_lab.say import LabError

RPM_NAMES = [name for name in dress.names() if dress.read(name).manager == "dnf"]


@pytest.mark.parametrize("name", dress.names())
def test_a_dress_can_be_read(name: str) -> None:
    read = dress.read(name)
    assert (read.os_release is None) == (read.kernel is None)
    texts = [*read.files.values(), *read.fetch.values(), *read.rpms]
    assert not [text for text in texts if "@" in text]


@pytest.mark.parametrize("name", ["debian12", "debian13"])
def test_debian_is_not_dressed(name: str) -> None:
    read = dress.read(name)
    assert read == dress.Dress(name, read.root, "apt")


@pytest.mark.parametrize("name", RPM_NAMES)
def test_initial_rpms_are_declared_for_the_mirror(name: str) -> None:
    read = dress.read(name)
    repositories = mirror.repositories()
    declared = {
        f"{repositories[repository]['path']}/{rpm.file_name}"
        for rpm in mirror.declared()[1]
        for repository in rpm.repositories
    }
    assert set(read.rpms) <= declared
    assert any(f"kernel-{read.kernel}.rpm" in path for path in read.rpms)


@pytest.mark.parametrize("name", RPM_NAMES)
def test_base_repositories_are_on_the_mirror(name: str) -> None:
    read = dress.read(name)
    offered = {
        path
        for repository in mirror.repositories().values()
        for path in (repository["path"], *repository.get("also", []))
    }
    asked = [
        line.removeprefix("baseurl=http://").rstrip("/")
        for path, text in read.files.items()
        if path.endswith(".repo")
        for line in text.splitlines()
        if line.startswith("baseurl=")
    ]
    assert asked
    assert set(asked) <= offered


@pytest.mark.parametrize("name", RPM_NAMES)
def test_os_release_has_what_real_ones_have(name: str) -> None:
    lines = (dress.read(name).os_release or "").splitlines()
    values = {key: yaml_load(value) for key, _, value in (line.partition("=") for line in lines)}
    assert {"NAME", "ID", "VERSION_ID", "PRETTY_NAME"} <= set(values)
    assert name == "centos7" or values["PLATFORM_ID"].startswith("platform:")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{root: buster, manager: apt}", ["root", "buster", "bookworm"]),
        ("{root: bookworm, manager: zypper}", ["manager", "zypper", "dnf"]),
        ("{root: bookworm, manager: apt, kernel: 6.1.0}", ["os_release", "kernel"]),
        ("{root: bookworm, manager: apt, colour: red}", ["colour", "known"]),
        ("{root: bookworm, manager: dnf, rpms: ['@where@/a.rpm']}", ["@where@", "kernel"]),
        ("{root: [", ["YAML"]),
    ],
)
def test_errors_are_named(text: str, words: list[str]) -> None:
    with pytest.raises(LabError) as error:
        dress.parse("x", text)
    for word in ["dress/x.yml", *words]:
        assert word in str(error.value)


def test_each_ubuntu_has_the_root_whose_apt_is_nearest_to_its_own() -> None:
    """Apt 2.6 of Debian 12 refuses transactions that 3.0 of Debian 13 resolves; Ubuntu 24.04 has 2.7 and 2.8."""
    roots = {name: dress.read(name).root for name in dress.names() if name.startswith("ubuntu")}
    assert roots == {"ubuntu2204": "bookworm", "ubuntu2404": "bookworm", "ubuntu2604": "trixie"}
