import re
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpu_ready_lab import declarations, dress, mirror, packages, rpms
from gpu_ready_lab.say import LabError

from plugins.plugin_utils.gpu_ready.catalog import data as catalog_data
from plugins.plugin_utils.gpu_ready.catalog import driver_sources
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from tests.unit.real_programs import RPM, need_programs

pytestmark = pytest.mark.usefixtures("catalog_of_the_lab")

DISTRIBUTIONS = [
    name
    for name in catalog.distros()
    if catalog.distro(name)["family"] != "debian" and name not in ("fedora42", "fedora44")
]
Declared = dict[str, list[rpms.Rpm]]
# The repositories of the distributions themselves; those of the vendors are in the catalog.
OWN = {
    "centos7": ["vault-centos7-os", "vault-centos7-updates", "vault-centos7-extras"],
    "el8": ["rocky8-baseos", "rocky8-appstream", "rocky8-powertools"],
    "el9": ["rocky9-baseos", "rocky9-appstream", "rocky9-crb"],
    "el10": ["rocky10-baseos", "rocky10-appstream", "rocky10-crb"],
    "fedora43": ["fedora43", "fedora43-updates"],
    "amzn2023": ["amzn2023"],
}


@pytest.fixture(scope="module")
def declared() -> Declared:
    found: Declared = {}
    for rpm in mirror.declared()[1]:
        for repository in rpm.repositories:
            found.setdefault(repository, []).append(rpm)
    return found


def read_rpms(path: Path, *repositories: str) -> list[rpms.Rpm]:
    return [rpms.from_declared(one) for one in declarations.read(path, dict.fromkeys(repositories, declarations.RPM))]


def of_distribution(declared: Declared, key: str) -> list[rpms.Rpm]:
    """Everything that a host of a distribution may install."""
    distro = catalog.distro(key)
    names = [*OWN[key], *distro.get("build_repositories", []), distro["container_toolkit"]]
    names += [source["repository"] for source in distro["driver_sources"].values() if "repository" in source]
    names += [source["repository"] for source in distro["docker"].values() if "repository" in source]
    return [rpm for name in names for rpm in declared.get(name, [])]


def provided(packages_: list[rpms.Rpm]) -> set[str]:
    found = {"/bin/sh", "/sbin/ldconfig"}
    for rpm in packages_:
        found |= {rpm.name, f"{rpm.name}(x86-64)", *(file.path for file in rpm.files)}
        found |= {value.split(" ")[0] for tag, value in rpm.tags if tag == "Provides"}
    return found


def test_only_the_distributions_own_repositories_are_not_in_the_catalog() -> None:
    for name, repository in mirror.repositories().items():
        if repository.get("kind") == "rpm":
            assert repository.get("own", False) != (name in catalog_data.REPOSITORIES), name


@pytest.mark.parametrize("name", [name for name in dress.names() if dress.read(name).manager == "dnf"])
def test_the_kernel_of_every_host_has_headers(name: str) -> None:
    kernel = dress.read(name).kernel
    offered = {f"{rpm.version}-{rpm.release}.x86_64" for rpm in mirror.declared()[1] if rpm.name == "kernel-devel"}
    assert kernel in offered


@pytest.mark.parametrize("key", DISTRIBUTIONS)
def test_requirements_of_packages_are_available(declared: Declared, key: str) -> None:
    content = of_distribution(declared, key)
    available = provided(content)
    for rpm in content:
        for tag, value in rpm.tags:
            if tag == "Requires" and " if " not in value:
                names = (
                    [part.split()[0] for part in re.split(r" or ", value.strip("()"))]
                    if value[0] == "("
                    else [value.split()[0]]
                )
                assert available & set(names), f"{rpm.file_name} requires {value}"


@pytest.mark.parametrize("key", DISTRIBUTIONS)
def test_the_vendors_offer_no_kernel(declared: Declared, key: str) -> None:
    for rpm in of_distribution(declared, key):
        if not any(name in OWN[key] for name in rpm.repositories):
            assert rpm.name not in ("kernel", "kernel-core", "kernel-devel")
            for tag, value in rpm.tags:
                assert (
                    tag not in ("Requires", "Recommends") or not re.match(r"\(?kernel", value) or " if kernel)" in value
                ), rpm.file_name


def flavours_of(number: int) -> Sequence[str]:
    branch = catalog.branch(number)
    assert branch
    return branch.flavours


def package_sets(distro: dict[str, Any], source: str) -> Iterator[tuple[int, str, set[str]]]:
    """Return (branch, flavour, names) of all package sets of a driver source, DKMS and precompiled."""
    for kind in driver_sources.module_kinds(distro, source):
        for branch in driver_sources.branches(distro, source, kind):
            for profile in driver_sources.PROFILES:
                for flavour in flavours_of(branch):
                    yield branch, flavour, {*driver_sources.packages(distro, source, branch, profile, flavour, kind)}


@pytest.mark.parametrize("key", DISTRIBUTIONS)
def test_the_mirror_has_what_the_catalog_installs(declared: Declared, key: str) -> None:
    distro = catalog.distro(key)
    for name, source in distro["driver_sources"].items():
        if name == "runfile":
            continue
        offered = declared[source["repository"]]
        for branch, flavour, names in package_sets(distro, name):
            of_branch = {rpm.name for rpm in offered if rpm.version.split(".")[0] == str(branch)}
            assert names <= of_branch, f"{name} {branch} {flavour}"
        names = {rpm.name for rpm in offered}
        assert {"cuda-toolkit-" + version.replace(".", "-") for version in source.get("toolkits", [])} <= names
        assert not {source["detect"]} - names if "detect" in source else True
        fabricmanager = source.get("fabricmanager")
        if fabricmanager:
            assert set(fabricmanager.values() if isinstance(fabricmanager, dict) else [fabricmanager]) & names
    content = of_distribution(declared, key)
    available = {rpm.name for rpm in content} | {f"{rpm.name} {rpm.version}-{rpm.release}" for rpm in content}
    assert {*distro["build_tools"], *distro["hold_tools"]} <= available
    for source in distro["docker"].values():
        for package in source["packages"]:
            assert (f"{package['name']} {package['version']}" if isinstance(package, dict) else package) in available


@pytest.mark.parametrize(
    "key",
    [
        key
        for key in DISTRIBUTIONS
        if catalog.repository(catalog.distro(key)["driver_sources"]["cuda_repo"]["repository"]).get("modular")
    ],
)
def test_a_stream_has_one_branch_in_one_flavour(declared: Declared, key: str) -> None:
    source = catalog.distro(key)["driver_sources"]["cuda_repo"]
    documents = rpms.module_documents(
        "nvidia-driver", mirror.streams()["nvidia-driver"], declared[source["repository"]]
    )
    found = {
        document["data"]["stream"]: document["data"] for document in documents if document["document"] == "modulemd"
    }
    for branch in source["branches"]:
        for flavour, pattern in source["streams"].items():
            if flavour in flavours_of(branch):
                artifacts = found[pattern.format(branch=branch)]["artifacts"]["rpms"]
                kmods = {name.split("-3:")[0] for name in artifacts if name.startswith("kmod-")}
                assert kmods == {"kmod-nvidia-open-dkms" if flavour == "open" else "kmod-nvidia-latest-dkms"}
                assert {name.split(":")[1].split(".")[0] for name in artifacts} == {str(branch)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("packages: {a: {version: 1-1, requires: b}}", "expected a list"),
        ("packages: {a: {version: '1'}}", "EPOCH"),
    ],
)
def test_a_wrong_declaration_is_refused_with_its_place(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "rpm-wrong.yml").write_text(f"repositories: [r]\n{text}\n")
    with pytest.raises(LabError, match=words) as error:
        read_rpms(tmp_path / "rpm-wrong.yml", "r")
    assert "rpm-wrong.yml" in str(error.value)


def test_values_are_combined_and_limited(tmp_path: Path) -> None:
    (tmp_path / "rpm-some.yml").write_text(
        """
each:
  - [{v: 1, only: {d: [x]}}, {v: 2}]
  - [{d: x, repositories: [rx]}, {d: "y", repositories: [ry]}]
packages:
  some: {version: "@v@-1.@d@"}
  other: {version: "@v@-1.@d@", only: {v: [2]}, but: {d: ["y"]}}
"""
    )
    found = [(rpm.file_name, rpm.repositories) for rpm in read_rpms(tmp_path / "rpm-some.yml", "rx", "ry")]
    assert found == [
        ("some-1-1.x.x86_64.rpm", ("rx",)),
        ("some-2-1.x.x86_64.rpm", ("rx",)),
        ("other-2-1.x.x86_64.rpm", ("rx",)),
        ("some-2-1.y.x86_64.rpm", ("ry",)),
    ]


def test_a_signed_module_ends_as_the_kernel_expects() -> None:
    data = packages.signature("NVIDIA")
    assert data.endswith(packages.MODULE_SIGNED)
    assert data.startswith(b"NVIDIA")
    assert packages.signature(None) == b""


@pytest.mark.host_io
def test_a_signed_repository(tmp_path: Path) -> None:
    need_programs(rpms.NEEDS | RPM)
    (tmp_path / "rpm-some.yml").write_text(
        """
repositories: [here]
module: mod
each: [{v: "1.0"}, {v: "2.0"}]
packages:
  some:
    version: "3:@v@-1.el9"
    requires: ["other >= 3:1", (this or that)]
    provides: [some(virtual) = 7]
    files:
      /etc/some.conf: "v = 100% @v@\\n"
      /usr/bin/some: "#!/bin/sh\\n"
      /usr/lib64/some: {link: ../bin/some}
    scripts: {post: "echo 100% of $1\\n"}
    triggers: [{paths: [/usr/lib64], text: ldconfig}]
  clash: {version: "1-@v@", architecture: noarch, module: null, files: {/etc/some.conf: other}}
  bare: {version: "1-@v@", signed: false, module: null}
"""
    )
    declared_packages = read_rpms(tmp_path / "rpm-some.yml", "here")
    key = packages.Key(tmp_path / "key")
    built = rpms.build_all(declared_packages, tmp_path / "cache", lambda *_: b"", key)
    streams = {
        "streams": {"1": {"branch": 1, "without": []}, "newest": {"without": []}},
        "default": "1",
        "profiles": {"default": ["some"]},
    }
    documents = rpms.module_documents("mod", streams, declared_packages)
    rpms.write_repository(tmp_path / "repo", built.items(), key, tmp_path / "metadata", documents)
    repo = tmp_path / "repo"

    def ask(*words: str) -> str:
        argv = ["/usr/bin/rpm", "--dbpath", str(tmp_path / "db"), *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True).stdout

    ask("--import", str(key.public))
    some = str(repo / "some-2.0-1.el9.x86_64.rpm")
    assert "signatures OK" in ask("-K", some)
    assert "signatures" not in ask("-K", str(repo / "bare-1-1.0.x86_64.rpm"))
    assert ask("-qp", "--qf", "%{epoch} %{version} %{release}", some) == "3 2.0 1.el9"
    assert {"other >= 3:1", "(this or that)"} <= set(ask("-qpR", some).splitlines())
    assert "some(virtual) = 7" in ask("-qp", "--provides", some)
    assert "echo 100% of $1" in ask("-qp", "--scripts", some)
    assert "-- /usr/lib64" in ask("-qp", "--filetriggers", some)
    assert ask("-qpc", some).strip() == "/etc/some.conf"
    assert "/usr/lib64/some -> ../bin/some" in ask("-qplv", some)
    [modules] = repo.glob("repodata/*modules.yaml.gz")
    text = subprocess.run(["/usr/bin/zcat", str(modules)], capture_output=True, timeout=30, check=True).stdout
    found = list(yaml.safe_load_all(text))
    assert [document["document"] for document in found] == ["modulemd", "modulemd", "modulemd-defaults"]
    assert found[1]["data"]["artifacts"]["rpms"] == ["some-3:2.0-1.el9.x86_64"]
    with key.home() as home:
        packages.gpg(home, "--verify", str(repo / "repodata/repomd.xml.asc"), str(repo / "repodata/repomd.xml"))


def test_one_declaration_makes_a_deb_and_an_rpm(tmp_path: Path) -> None:
    (tmp_path / "both.yml").write_text(
        """
each: [{v: "1.0", version: "1.0", repositories: [d, r]}]
packages:
  some-@dev@:
    version: "@v@-1"
    architecture: "@all@"
    parts: [persistenced]
    depends: ["a >= 2 | b"]
    same: [c]
    instead_of: [e]
    libraries: [libx.so.1]
debs:
  only-deb: {version: "@v@"}
"""
    )
    deb, rpm, only = declarations.read(tmp_path / "both.yml", {"d": declarations.DEB, "r": declarations.RPM})
    assert [deb.name, rpm.name, only.name, only.kind] == ["some-dev", "some-devel", "only-deb", declarations.DEB]
    fields = dict(packages.from_declared(deb).fields)
    assert (fields["Depends"], fields["Provides"], fields["Replaces"]) == ("a (>= 2) | b, c (= 1.0-1)", "e", "e")
    assert rpms.from_declared(rpm).tags == (("Requires", "a >= 2 | b"), ("Requires", "c = 1.0-1"))
    assert {"/usr/lib/x86_64-linux-gnu/libx.so.1", "/usr/lib/x86_64-linux-gnu/libx.so.1.0"} <= {
        file.path for file in deb.files
    }
    assert "/usr/lib64/libx.so.1" in {file.path for file in rpm.files}
    assert [name for name, _ in deb.scripts] == ["postinst", "postrm", "prerm"]
    assert [name for name, _ in rpm.scripts] == ["post", "postun", "preun"]
    assert "nvidia-persistenced.service" in dict(rpm.scripts)["post"]
