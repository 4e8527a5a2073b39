"""The mirror's archives with suites and components, and the catalog's packages in Ubuntu's."""

import re
from pathlib import Path

import pytest
from gpu_ready_lab import mirror, packages

from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog

pytestmark = pytest.mark.usefixtures("catalog_of_the_lab")

RELEASES = ("ubuntu2204", "ubuntu2404", "ubuntu2604")


class Unsigned(packages.Key):
    """In place of the key: gpg is tested elsewhere."""

    def __init__(self) -> None: ...

    def sign(self, directory: Path) -> None:
        (directory / "InRelease").write_text("")


@pytest.fixture(scope="module")
def declared() -> dict[str, dict[str, packages.Package]]:
    found: dict[str, dict[str, packages.Package]] = {}
    for package in mirror.declared()[0]:
        for repository in package.repositories:
            found.setdefault(repository, {})[package.name] = package
    return found


def package(name: str, section: str) -> packages.Package:
    fields = (("Section", section), ("Description", "x"))
    return packages.Package(name, "1", "amd64", fields, (), (), ("here",))


def test_packages_go_to_the_component_of_their_section_and_to_the_first_suite(tmp_path: Path) -> None:
    deb = tmp_path / "x.deb"
    deb.write_bytes(b"x")
    content = [(package("open", "libs"), deb), (package("closed", "restricted/libs"), deb)]
    root = tmp_path / "archive"
    suites, components = ["one", "one-updates"], ["main", "restricted"]
    packages.write_repository(root, content, {"Origin": "X"}, Unsigned(), suites, components)
    index = (root / "dists/one/restricted/binary-amd64/Packages").read_text()
    assert re.findall(r"(?m)^(?:Package|Filename): (.*)$", index) == ["closed", "pool/restricted/c/closed_1_amd64.deb"]
    assert "Package: open" in (root / "dists/one/main/binary-amd64/Packages").read_text()
    assert not (root / "dists/one-updates/main/binary-amd64/Packages").read_text()
    assert "Components: main restricted" in (root / "dists/one/Release").read_text()
    assert (root / "pool/main/o/open_1_amd64.deb").exists()


@pytest.mark.parametrize("distribution", RELEASES)
def test_ubuntus_archive_has_what_the_catalog_installs_from_the_components_it_enables(
    declared: dict[str, dict[str, packages.Package]], distribution: str
) -> None:
    source = catalog.distro(distribution)["driver_sources"]["distro"]
    offered = declared[distribution]
    kernel = next(name[14:] for name in offered if re.match(r"linux-headers-.*-\d+-generic$", name))
    for branch in source["branches"]:
        for kind in (source, source["precompiled"]):
            for flavours in kind["packages"].values():
                for flavour, names in flavours.items():
                    if (flavour == "open" and branch < 515) or driver_sources.is_absent(source, branch, flavour):
                        continue
                    for name in names:
                        found = offered[name.format(branch=branch, kernel=kernel)]
                        component = dict(found.fields)["Section"].partition("/")[0]
                        assert component in ("main", *source["components"])
