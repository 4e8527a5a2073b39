"""The catalog's distributions: every file is complete, and everything that it names exists."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from plugins.plugin_utils.gpu_ready.catalog import driver_sources, expand
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.data import REPOSITORIES, read_rows
from plugins.plugin_utils.gpu_ready.catalog.files import read

NEEDED = {
    "family": str,
    "ids": list,
    "versions": list,
    "pretty": str,
    "package_manager": str,
    "headers": list,
    "build_tools": list,
    "initramfs": list,
    "driver_sources": dict,
    "docker": dict,
    "container_toolkit": str,
}
OPTIONAL = {
    "codename",
    "key",
    "relatives",
    "headers_by_kernel",
    "matched",
    "build_repositories",
    "build_enable",
    "vault",
    "hold_tools",
    "node_exporter",
}
SOURCE_KEYS = {
    "absent",
    "branches",
    "branches_from",
    "components",
    "detect",
    "fabricmanager",
    "imex",
    "kernels",
    "unverified",
    "persistenced",
    "ids",
    "kernel_modules",
    "only_when_asked",
    "packages",
    "packages_of",
    "patched",
    "kernel_max",
    "pinning",
    "precompiled",
    "repository",
    "signed_by",
    "streams",
    "subnet_manager",
    "toolkits",
    "toolkits_from",
    "with_repositories",
    "url",
}
WITHOUT_NVIDIAS_REPOSITORY = ("ubuntu2610",)
ROOT = Path(__file__).resolve().parents[2]
ROWS = read_rows()
KERNELS = {"rhel": "5.14.0-570.12.1.el9_6.x86_64", "debian": "6.8.0-45-generic"}
NAME = re.compile(r"[a-z0-9][A-Za-z0-9+._-]*\Z")
each = pytest.mark.parametrize("key", catalog.distros())


def kinds() -> list[Any]:
    """Return (distribution, source, kind of kernel module) of the catalog, installers left out."""
    return [
        pytest.param(key, source, kind, id=f"{key}-{source}-{kind}")
        for key in catalog.distros()
        for source in catalog.distro(key)["driver_sources"]
        if source != driver_sources.RUNFILE
        for kind in driver_sources.module_kinds(catalog.distro(key), source)
    ]


def repositories_of(data: dict[str, Any]) -> set[str]:
    """Return every repository that a distribution names."""
    named = [data["container_toolkit"], *data.get("build_repositories", []), *data.get("vault", [])]
    named += [entry.get("repository") for entry in [*data["driver_sources"].values(), *data["docker"].values()]]
    return {name for name in named if name}


@each
def test_a_distribution_has_every_key_and_no_other(key: str) -> None:
    data = catalog.distro(key)
    assert set(data) - OPTIONAL == set(NEEDED)
    for name, kind in NEEDED.items():
        assert isinstance(data[name], kind) and data[name], name
    assert data["family"] in catalog.families()["families"]
    assert data["package_manager"] == {"debian": "apt"}.get(data["family"], "yum" if key == "centos7" else "dnf")
    assert all(isinstance(version, str) for version in data["versions"])
    assert data["initramfs"][0] == ("update-initramfs" if data["family"] == "debian" else "dracut")
    assert {"dkms", "gcc", "make"} <= set(data["build_tools"])
    # Suites of an archive are called by the code name.
    assert ("codename" in data) == (data["family"] == "debian")
    assert data["pretty"].endswith(f"({data.get('codename')})") or data["family"] != "debian"
    # A hold of RPM packages needs versionlock, which dnf 5 (Fedora) has built in.
    assert bool(data.get("hold_tools")) == (data["family"] in ("rhel", "amazon"))


@each
def test_the_headers_are_of_one_kernel(key: str) -> None:
    data = catalog.distro(key)
    special = list(data.get("headers_by_kernel", {}).values())
    special += [names for one in special if isinstance(one, dict) for names in one.values()]
    for names in [data["headers"], *(one for one in special if not isinstance(one, dict))]:
        assert names and all(name.format(kernel="K", release="K", series="1.2").endswith("K") for name in names)
    assert all(re.compile(pattern) for pattern in data.get("headers_by_kernel", {}))


@each
def test_its_repositories_exist_and_are_of_its_kind(key: str) -> None:
    data = catalog.distro(key)
    for name in repositories_of(data):
        kind = catalog.repository(name).get("kind", "deb")
        assert kind == ("deb" if data["family"] == "debian" else "rpm"), name


@each
def test_sources_are_complete(key: str) -> None:
    data = catalog.distro(key)
    assert driver_sources.automatic_sources(data), "auto needs a source"
    known = {branch.number for branch in catalog.branches()}
    for name, entry in data["driver_sources"].items():
        assert name in ("distro", "cuda_repo", "elrepo", "runfile")
        assert set(entry) <= SOURCE_KEYS and set(entry.get("precompiled", {})) <= SOURCE_KEYS
        assert bool(entry.get("only_when_asked")) == (name in ("elrepo", "runfile"))
        for kind in driver_sources.module_kinds(data, name):
            listed = driver_sources.branches(data, name, kind)
            assert listed and set(listed) <= known
        assert {str(version) for version in entry.get("toolkits", [])} <= {one.version for one in catalog.toolkits()}
        assert "fabricmanager" in entry
        for branch in driver_sources.branches(data, name):
            package = driver_sources.fabricmanager_package(data, name, branch)
            assert package is None or NAME.match(package)
            imex = driver_sources.companion_package(data, name, "imex", branch)
            assert imex in (None, "nvidia-imex", f"nvidia-imex-{branch}")
    assert "cuda_repo" in data["driver_sources"] or key in WITHOUT_NVIDIAS_REPOSITORY


@each
def test_installers_are_named_by_their_version(key: str) -> None:
    assert catalog.distro(key)["driver_sources"]["runfile"]["url"].format(version="1.2.3").count("1.2.3") == 2


@pytest.mark.parametrize(("key", "source", "kind"), kinds())
def test_every_flavour_of_a_branch_is_offered_or_declared_absent(key: str, source: str, kind: str) -> None:
    data = catalog.distro(key)
    listed = ROWS["distros"][key]["driver_sources"][source]
    absent = (listed.get("precompiled", {}) if kind == driver_sources.PRECOMPILED else {}).get("absent")
    absent = absent or listed.get("absent") or {}
    kernel = KERNELS.get(data["family"], KERNELS["rhel"])
    for number in driver_sources.branches(data, source, kind):
        branch = catalog.branch(number)
        assert branch is not None
        carried = set()
        for profile in driver_sources.PROFILES:
            for flavour in driver_sources.FLAVOURS:
                names = driver_sources.packages(data, source, number, profile, flavour, kind, kernel)
                assert all(NAME.match(name) for name in names) and len(names) == len(set(names)), names
                if names:
                    carried.add((profile, flavour))
        for flavour in branch.flavours:
            both = {(profile, flavour) for profile in driver_sources.PROFILES}
            assert both <= carried or (not both & carried and absent.get(flavour)), (
                number,
                flavour,
            )


@pytest.mark.parametrize(("key", "source", "kind"), kinds())
def test_modular_repositories_have_streams(key: str, source: str, kind: str) -> None:
    data = catalog.distro(key)
    entry = driver_sources.source_entry(data, source, kind)
    modular = "repository" in entry and catalog.repository(entry["repository"]).get("modular", False)
    assert bool(entry.get("streams")) == bool(modular)
    for flavour, pattern in (entry.get("streams") or {}).items():
        assert flavour in driver_sources.FLAVOURS
        assert re.fullmatch(r"\d+(-open|-dkms)?", pattern.format(branch=580))
        assert pattern.format(branch=580).endswith("-dkms" if flavour == "proprietary" else "-open") or kind != "dkms"


@pytest.mark.parametrize(("key", "source", "kind"), kinds())
def test_precompiled_modules_name_their_signer(key: str, source: str, kind: str) -> None:
    entry = driver_sources.source_entry(catalog.distro(key), source, kind)
    if kind == driver_sources.PRECOMPILED:
        assert entry["signed_by"] in ("distribution", "nvidia", "elrepo")


@each
def test_docker_has_a_source(key: str) -> None:
    for name, entry in catalog.distro(key)["docker"].items():
        assert name in ("distro", "docker_ce")
        assert set(entry) <= {"repository", "packages", "engine", "version", "conflicts", "kernel_packages"}
        names = [one["name"] if isinstance(one, dict) else one for one in entry["packages"]]
        assert names and not set(names) & set(entry.get("conflicts", []))
        assert entry["engine"] and set(entry["engine"]) <= set(names)
        assert ("repository" in entry) == (name == "docker_ce")


def test_names_before_and_after_590_in_nvidias_repository_for_ubuntu() -> None:
    data = catalog.distro("ubuntu2404")
    assert "nvidia-dkms-580-open" in driver_sources.packages(data, "cuda_repo", 580, "compute", "open")
    assert "nvidia-dkms-open" in driver_sources.packages(data, "cuda_repo", 595, "compute", "open")


def test_ubuntu_has_modules_of_both_kinds() -> None:
    data = catalog.distro("ubuntu2204")
    assert driver_sources.module_kinds(data, "distro") == [driver_sources.DKMS, driver_sources.PRECOMPILED]
    assert driver_sources.packages(
        data, "distro", 580, "compute", "open", driver_sources.PRECOMPILED, "5.15.0-91-generic"
    )[0] == ("linux-modules-nvidia-580-server-open-5.15.0-91-generic")


def test_centos7_stays_at_what_its_kernel_can_load() -> None:
    data = catalog.distro("centos7")
    for source in data["driver_sources"]:
        for kind in driver_sources.module_kinds(data, source):
            assert max(driver_sources.branches(data, source, kind)) == 550


def repositories() -> dict[str, Any]:
    """Return the repositories of the catalog by name."""
    found: dict[str, Any] = REPOSITORIES
    return found


@pytest.mark.parametrize("name", sorted(repositories()))
def test_repositories_are_complete(name: str) -> None:
    data = repositories()[name]
    assert data["url"].startswith("https://") and data["key_url"].startswith("https://")
    assert "$" not in data["url"]
    assert data["fingerprint"] is None or re.fullmatch(r"[0-9A-F]{40}", data["fingerprint"])
    assert re.fullmatch(r"[0-9a-f]{64}", data.get("key_sha256", "0" * 64))
    if data.get("kind") == "rpm":
        assert data["gpgcheck"] or data["repo_gpgcheck"], "nothing in it would be signed"
    else:
        assert "kind" not in data and data["suites"]


def test_every_repository_is_used() -> None:
    used = set().union(*(repositories_of(catalog.distro(key)) for key in catalog.distros()))
    assert set(repositories()) == used


def test_only_these_keys_are_unknown() -> None:
    assert {name for name, data in repositories().items() if not data["fingerprint"]} == {
        "cuda-rhel10",
        "cuda-fedora43",
    }


def test_the_key_of_a_cuda_repository_is_the_one_its_file_is_named_after() -> None:
    for name, data in repositories().items():
        if name.startswith("cuda-") and data["fingerprint"]:
            file = data["key_url"].rpartition("/")[2]
            assert data["fingerprint"].endswith(file.partition(".")[0].upper()), name


def test_the_data_is_plain() -> None:
    """Hosts read it with Python 3.6: texts, numbers, lists and mappings; versions are texts."""
    text = yaml.safe_dump({key: catalog.distro(key) for key in catalog.distros()})
    assert not re.search(r"!!|: \d+\.\d+$", text, re.M)


# --- inheritance -----------------------------------------------------------------------------------------------------


def raw_distributions() -> dict[str, Any]:
    """Return the files of the distributions as they are written."""
    return {path.stem: read(path) for path in sorted((ROOT / "catalog/distros").glob("*.yml"))}


def names_of(row: dict[str, Any]) -> list[str]:
    names = row.get("like", [])
    return [names] if isinstance(names, str) else list(names)


@pytest.mark.parametrize("file", ["bases.yml", "repositories.yml"])
def test_every_base_is_used_and_exists(file: str) -> None:
    data = read(file)
    bases = data if file == "bases.yml" else data["bases"]
    rows = raw_distributions() if file == "bases.yml" else data["repositories"]
    assert {name for row in [*rows.values(), *bases.values()] for name in names_of(row)} == set(bases)


def test_a_row_has_what_its_bases_have_and_its_own_on_top() -> None:
    bases: dict[str, dict[str, Any]] = {
        "low": {"a": {"x": 1, "y": [1]}, "b": "{key} of {number}"},
        "high": {"like": "low", "a": {"y": [2], "z": {"x": 3}}},
        "other": {"a": {"x": 4}},
    }
    row = {"like": ["high", "other"], "versions": ["9"], "a": {"z": {"w": "{branch}"}}, "b2": {"{key}": ["{codename}"]}}
    found = expand.complete_distribution("el9", row, bases)
    assert found == {
        "versions": ["9"],
        "a": {"x": 4, "y": [2], "z": {"x": 3, "w": "{branch}"}},
        "b": "el9 of 9",
        "b2": {"{key}": [""]},
    }
    assert bases["low"] == {"a": {"x": 1, "y": [1]}, "b": "{key} of {number}"}


def test_the_fingerprint_of_a_repository_is_that_of_its_key() -> None:
    data = {
        "keys": {"AB": "CD" * 20, "EF": None},
        "bases": {"vendor": {"url": "https://x/{release}/", "key_url": "https://x/{key}.pub"}},
        "repositories": {
            "one": {"like": "vendor", "key": "AB", "words": {"release": "r1"}},
            "two": {"like": "vendor", "key": "EF", "words": {"release": "r2"}},
        },
    }
    assert expand.complete_repositories(data) == {
        "one": {"url": "https://x/r1/", "key_url": "https://x/AB.pub", "fingerprint": "CD" * 20},
        "two": {"url": "https://x/r2/", "key_url": "https://x/EF.pub", "fingerprint": None},
    }


def stated(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, str]]:
    """Yield each list of names in a file, with the keys that lead to it."""
    if isinstance(value, dict):
        for key, one in value.items():
            yield from stated(one, (*path, str(key)))
    elif isinstance(value, list) and {"packages", "conflicts", "headers", "build_tools", "initramfs"} & set(path):
        yield "/".join(path), repr(value)


def test_what_three_distributions_share_is_stated_once() -> None:
    rows = {**raw_distributions(), **read("bases.yml")}
    found = Counter(one for row in rows.values() for one in set(stated(row)))
    assert [(path, value, count) for (path, value), count in found.items() if count > 2] == []
