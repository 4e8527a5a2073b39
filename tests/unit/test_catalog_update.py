"""gpu-catalog diff, update and show: files in the vendors' formats, and plans with the rows that are written from them."""

import hashlib
import io
import json
import lzma
import tarfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpu_ready_lab import packages, rpms

from plugins.plugin_utils.gpu_ready.catalog import driver_sources, overlay
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.catalog.files import CATALOG
from plugins.plugin_utils.gpu_ready.plan import compose
from plugins.plugin_utils.gpu_ready.settings import variables
from plugins.plugin_utils.gpu_ready.vendors import check, cli, indexes, news, overlay_file, published
from plugins.plugin_utils.gpu_ready.vendors.indexes import IndexUnread, Tree
from tests.unit import web_server
from tests.unit.hosts import H100, V100, bare
from tests.unit.real_programs import RPM, need_programs

LAST = catalog.branches()[-1]
NEXT = LAST.number + 5
"""The next new feature branch, and the long-term branch after it."""
LTS = LAST.number + 10
KNOWN = next(one for one in reversed(catalog.branches()) if one.kind == "production")
LATER = f"{KNOWN.number}.999.01"
MAJOR, MINOR = (int(one) for one in catalog.toolkits()[-1].version.split("."))
MINOR_TOOLKIT, MAJOR_TOOLKIT = f"{MAJOR}.{MINOR + 1}", f"{MAJOR + 1}.0"
CUDNN = int(catalog.cudnns()[-1].version.split(".")[0])
NEW_CUDNNS = [f"{CUDNN}.99.0.4", f"{CUDNN + 1}.0.0.1"]
CARD = "3abc"
SUMMED = "a" * 64


class Vendors:
    """A directory that mirrors what the vendors publish, files as HOST/PATH."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def lay(self, url: str, data: bytes | str | dict[str, Any]) -> None:
        path = self.root / url.split("://")[1]
        path.parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps(data, indent=4) if isinstance(data, dict) else data
        path.write_bytes(text.encode() if isinstance(text, str) else text)

    def releases(self, branches: dict[int, tuple[str, list[tuple[str, str]]]]) -> None:
        self.lay(published.RELEASES, {
            str(number): {
                "type": kind,
                "driver_info": [
                    {
                        "release_version": version, "release_date": day,
                        "release_notes": "https://docs.nvidia.com/datacenter/tesla/index.html",
                        "architectures": ["x86_64", "aarch64"],
                        "runfile_url": {"x86_64": f"https://us.download.nvidia.com/tesla/{version}/x.run"},
                    }
                    for version, day in releases
                ],
            }
            for number, (kind, releases) in branches.items()
        })  # fmt: skip

    def manifest(self, base: str, label: str, day: str, **components: Any) -> None:
        product = base.split("/")[-2]
        head = {"release_date": day, "release_label": label, "release_product": product}
        self.lay(f"{base}/redistrib_{label}.json", head | components)

    def driver(self, version: str, day: str, cuda: str, chips: list[dict[str, Any]]) -> None:
        """Lay the manifest of a driver, and its driver_assistant."""
        name, file = "driver_assistant-0.1", io.BytesIO()
        with tarfile.open(fileobj=file, mode="w:xz") as archive:
            data = json.dumps({"chips": chips}).encode()
            member = tarfile.TarInfo(f"{name}-archive/supported-gpus/supported-gpus.json")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        path = f"driver_assistant/source/{name}-{version}-archive.tar.xz"
        self.lay(f"{published.DRIVERS}/{path}", file.getvalue())
        digest = hashlib.sha256(file.getvalue()).hexdigest()
        self.manifest(
            published.DRIVERS, version, day,
            driver_assistant={
                "name": "NVIDIA Driver Assistant", "version": "0.1",
                "linux-all": {"relative_path": path, "sha256": digest, "size": str(len(file.getvalue()))},
            },
            cuda_compat={"version": version, "cuda_variant": [cuda]},
        )  # fmt: skip

    def cudnn(self, version: str, day: str, majors: list[int]) -> None:
        archives = {
            f"cuda{major}": {"relative_path": f"cudnn/x_cuda{major}.tar.xz", "sha256": SUMMED} for major in majors
        }
        label = ".".join(version.split(".")[:3])
        self.manifest(published.CUDNN, label, day, cudnn={"version": version, "linux-x86_64": archives})

    def apt(self, url: str, names: dict[str, str]) -> None:
        text = "\n".join(f"Package: {name}\nVersion: {version}\nDescription: x\n" for name, version in names.items())
        self.lay(f"{url.rstrip('/')}/Packages.xz", lzma.compress(text.encode()))


def package_names(distro: str, source: str, branches: list[int], kind: str = "dkms") -> dict[str, str]:
    """Return the packages of branches as a repository has them, with the newest version of each."""
    data = catalog.distro(distro)
    return {
        name: f"{branch}.10.01-0ubuntu1"
        for branch in branches
        for flavour in driver_sources.FLAVOURS
        for name in driver_sources.packages(data, source, branch, "compute", flavour, kind, "6.8.0-1-generic")
    }


@pytest.fixture
def vendors(tmp_path: Path) -> Vendors:
    """What the vendors have half a year after the catalog: branches, a point release, toolkits, cuDNN, a card."""
    found = Vendors(tmp_path / "mirror")
    known = {"devid": "0x" + H100.upper(), "name": "NVIDIA H100", "features": ["kernelopen"]}
    old = {"devid": "0x" + V100.upper(), "name": "Tesla V100", "features": ["kernelopen"], "legacybranch": "580.xx"}
    card = {"devid": "0x" + CARD.upper(), "name": "NVIDIA RTX 9000", "features": ["kernelopen"]}
    found.releases({
        LTS: ("lts branch", [(f"{LTS}.20.02", "2027-05-10"), (f"{LTS}.10.01", "2027-04-20")]),
        NEXT: ("new feature branch", [(f"{NEXT}.10.01", "2027-01-20")]),
        KNOWN.number: ("production branch", [(LATER, "2027-02-01"), (KNOWN.newest, "")]),
    })  # fmt: skip
    found.driver(f"{NEXT}.10.01", "2027-01-20", MINOR_TOOLKIT, [known, old])
    found.driver(f"{LTS}.20.02", "2027-05-10", MAJOR_TOOLKIT, [known, old, card])
    for toolkit in (MINOR_TOOLKIT, MAJOR_TOOLKIT):
        found.manifest(published.CUDA, toolkit + ".0", "2027-02-02", cuda_nvcc={"version": toolkit + ".55"})
    for version in NEW_CUDNNS:
        found.cudnn(version, "2027-03-03", [MAJOR, MAJOR + 1])
    found.lay(
        published.PCI_IDS,
        f"10dd  Other\n10de  NVIDIA Corporation\n\t{CARD}  GR102 [RTX 9000]\n\t3fff  GR200\n10df  X\n",
    )
    return found


@pytest.fixture(autouse=True)
def catalog_itself() -> Iterator[None]:
    yield
    overlay.use("")


def rows(vendors: Vendors, *distros: str) -> dict[tuple[str, Any], news.CatalogRow]:
    found = news.Vendors(check.Checker(Tree(str(vendors.root))), list(distros))
    found.read()
    assert found.unread == []
    return {(row.section, row.key): row for row in news.find_news(found, "", "2027-05-27").rows}


def decide(given: dict[str, Any], distro: str = "el9", device: str = H100) -> compose.Plan:
    return compose.plan(bare(device, distro=distro), variables.settings_for_plan(given).settings)


# ---- what is found ---------------------------------------------------------------------------------------------------


def test_a_new_branch_has_what_is_published_and_says_what_is_not(vendors: Vendors) -> None:
    found = rows(vendors)
    lts, later = found["branches", LTS], found["branches", NEXT]
    assert lts.values == {
        "newest": f"{LTS}.20.02", "kind": "lts", "since": "2027-04-20", "eol": "2030-04", "cuda": MAJOR_TOOLKIT,
        "flavours": ["open"],
    }  # fmt: skip
    assert lts.review == ("eol",)
    assert later.values["kind"] == "new_feature" and later.values["eol"] is None and later.review == ()


def test_a_point_release_and_another_kind_change_a_branch(vendors: Vendors) -> None:
    assert rows(vendors)["branches", KNOWN.number][2:] == ({"newest": LATER}, (), {"newest": KNOWN.newest})
    vendors.releases({LAST.number: ("production branch", [(LAST.newest, "")])})
    changed = rows(vendors)["branches", LAST.number]
    assert changed.values["kind"] == "production" and changed.review == ("eol",) and changed.old["kind"] == LAST.kind


def test_a_branch_that_the_catalog_left_out_and_a_release_for_another_machine_are_no_news(vendors: Vendors) -> None:
    vendors.releases({565: ("production branch", [("565.57.01", "2024-10-22")])})
    assert ("branches", 565) not in rows(vendors)
    data = {
        str(NEXT): {"type": "x", "driver_info": [{"release_version": f"{NEXT}.99.1", "architectures": ["aarch64"]}]}
    }
    assert published.parse_releases(json.dumps(data).encode(), "x")[NEXT] == published.PublishedBranch("", {})


def test_what_has_ended_is_not_classified_again_and_a_transitional_package_is_no_release(vendors: Vendors) -> None:
    ended = next(one for one in catalog.branches() if one.kind == "production" and catalog.has_ended(one.number, ""))
    vendors.releases({ended.number: ("lts branch", [(ended.newest, "")])})
    text = f"Package: libnvidia-compute\nVersion: {NEXT + 1}.1.1-1\nDescription: transitional package\nDepends: x\n"
    vendors.lay(catalog.repository("cuda-ubuntu2404")["url"] + "Packages", text)
    found = rows(vendors, "ubuntu2404")
    assert ("branches", ended.number) not in found and ("branches", NEXT + 1) not in found


def test_toolkits_of_a_known_major_have_its_driver_and_a_new_major_its_first_one(vendors: Vendors) -> None:
    found, last = rows(vendors), catalog.toolkits()[-1]
    assert found["toolkits", MINOR_TOOLKIT].values == {"min_driver": last.min_driver, "compute": list(last.compute)}
    assert found["toolkits", MAJOR_TOOLKIT].values["min_driver"] == f"{LTS}.10.01"
    assert found["toolkits", MAJOR_TOOLKIT].review == ("compute", "min_driver")
    assert ("installers", MINOR_TOOLKIT + ".0") in found and ("toolkits", last.version) not in found


def test_packages_alone_show_the_cuda_of_a_driver_and_the_first_driver_of_a_toolkit(tmp_path: Path) -> None:
    vendors, number = Vendors(tmp_path), NEXT
    packages_of = {"libnvidia-compute": f"{number}.41.03-1", f"cuda-toolkit-{MAJOR + 1}-0": f"{MAJOR_TOOLKIT}.0-1"}
    vendors.apt(catalog.repository("cuda-ubuntu2404")["url"], packages_of)
    found = rows(vendors, "ubuntu2404")
    assert found["toolkits", MAJOR_TOOLKIT].values["min_driver"] == f"{number}.41.03"
    assert found["branches", number].review == ("kind", "since", "cuda")
    packages_of[f"cuda-compat-{MAJOR + 1}-0"] = f"{number}.41.03-1"
    vendors.apt(catalog.repository("cuda-ubuntu2404")["url"], packages_of)
    found = rows(vendors, "ubuntu2404")
    assert found["branches", number].values["cuda"] == MAJOR_TOOLKIT
    assert found["branches", number].review == ("kind", "since")


def test_releases_of_cudnn_have_their_checksums_and_a_known_one_what_is_missing(vendors: Vendors) -> None:
    known = catalog.cudnns()[-1]
    vendors.cudnn(known.version, "2026-11-06", [int(known.cuda[-1]), MAJOR + 1])
    found = rows(vendors)
    same, newer = (found["cudnn", version] for version in NEW_CUDNNS)
    assert same.values["cuda"] == [str(MAJOR), str(MAJOR + 1)] and same.values["sha256"] == dict.fromkeys(
        same.values["cuda"], SUMMED
    )
    assert same.review == () and newer.review == ("compute",)
    assert found["cudnn", known.version].values == {"cuda": sorted({*known.cuda, str(MAJOR + 1)}, key=int)}


def test_a_card_has_its_architecture_from_pci_ids_and_its_branch_from_the_list(vendors: Vendors) -> None:
    found = rows(vendors)
    assert found["gpus", CARD].values == {
        "name": "RTX 9000", "architecture": "rubin", "first_branch": LTS, "last_branch": None, "flavours": ["open"],
        "compute": None, "verified": f"supported-gpus.json of driver {LTS}",
    }  # fmt: skip
    assert [key for section, key in found if section == "gpus"] == [CARD]
    card = {"devid": "0x" + CARD, "name": "NVIDIA RTX 9000", "features": ["kernelopen"]}
    vendors.driver(f"{NEXT}.10.01", "2027-01-20", MINOR_TOOLKIT, [card])
    assert rows(vendors)["gpus", CARD].values["first_branch"] == NEXT


def test_a_chip_that_only_pci_ids_has_is_a_note(vendors: Vendors) -> None:
    found = news.Vendors(check.Checker(Tree(str(vendors.root))), [])
    found.read()
    assert [one for one in news.find_news(found, "", "2027-05-27").notes if "3fff GR200" in one and CARD not in one]


def test_a_closed_list_gets_what_the_index_has_and_an_open_one_needs_nothing(vendors: Vendors) -> None:
    """Ubuntu's archive: its list names branches, and a branch that the catalog knows by then is none of them."""
    archive = indexes_of_archive(vendors, "ubuntu2404", [LTS])
    vendors.apt(catalog.repository("cuda-ubuntu2404")["url"], package_names("ubuntu2404", "cuda_repo", [LTS]))
    found = rows(vendors, "ubuntu2404")["distros", "ubuntu2404"].values["driver_sources"]
    assert archive and found == {"distro": {"branches": [{"of": "ubuntu", "from": 470}, LTS]}}
    assert LTS not in driver_sources.branches(catalog.distro("ubuntu2404"), "distro")  # as it was


def indexes_of_archive(vendors: Vendors, distro: str, branches: list[int]) -> int:
    names, codename = package_names(distro, "distro", branches), catalog.distro(distro)["codename"]
    text = "\n".join(f"Package: {name}\nVersion: {version}\n" for name, version in names.items())
    for suite in ("", "-updates", "-security"):
        for component in ("main", "restricted", "universe", "multiverse"):
            place = f"http://archive.ubuntu.com/ubuntu/dists/{codename}{suite}/{component}/binary-amd64/Packages"
            vendors.lay(place, text if (suite, component) == ("-updates", "restricted") else "")
    return len(names)


# ---- the file, and plans with it -------------------------------------------------------------------------------------

REQUESTS: list[tuple[str, str, dict[str, Any]]] = [
    ("el9", H100, {"nvidia_driver_branch": str(LTS)}),
    ("el9", H100, {"nvidia_driver_branch": str(NEXT)}),
    ("el9", H100, {"nvidia_driver_version": f"{LTS}.20.02"}),
    ("debian13", H100, {"nvidia_driver_version": LATER}),
    ("ubuntu2404", H100, {"nvidia_driver_branch": str(LTS)}),
    ("el9", H100, {"cuda_toolkit_versions": [MINOR_TOOLKIT]}),
    ("el9", H100, {"cuda_toolkit_versions": [MAJOR_TOOLKIT], "nvidia_driver_branch": str(LTS)}),
    ("ubuntu2404", H100, {"cuda_toolkit_versions": [MINOR_TOOLKIT + ".0"], "cuda_toolkit_source": "runfile"}),
    *(("el9", H100, {"cudnn_version": version}) for version in NEW_CUDNNS),
    ("debian12", H100, {"cudnn_version": NEW_CUDNNS[1], "cudnn_source": "package"}),
]


def codes(decided: compose.Plan, *of: str) -> list[str]:
    return [one.code for one in decided.warnings if one.code in of]


@pytest.mark.parametrize("form", ["directory", "server"])
def test_with_the_written_file_no_plan_says_not_in_catalog(
    vendors: Vendors, tmp_path: Path, capsys: pytest.CaptureFixture[str], form: str
) -> None:
    indexes_of_archive(vendors, "ubuntu2404", [LTS])
    own = tmp_path / "own.yml"
    for distro, device, given in REQUESTS:
        decided = decide(given, distro, device)
        assert codes(decided, "not_in_catalog") and not decided.refusals, (distro, given)
    assert codes(decide({}, device=CARD), "gpu_unknown", "gpu_unverified")
    if form == "directory":
        assert (
            cli.main(["update", "--tree", str(vendors.root), "--overlay", str(own), "--check", "ubuntu2404", "el9"])
            == 1
        )
    else:
        with web_server.serve_directory(vendors.root) as url:
            assert cli.main(["update", "--tree", url, "--overlay", str(own), "ubuntu2404", "el9"]) == 0
    assert f"set gpu_ready_catalog_overlay to {own}" in capsys.readouterr().out
    for distro, device, given in REQUESTS:
        decided = decide({**given, "gpu_ready_catalog_overlay": str(own)}, distro, device)
        assert not codes(decided, "not_in_catalog") and not decided.refusals, (distro, given)
    assert not codes(decide({"gpu_ready_catalog_overlay": str(own)}, device=CARD), "gpu_unknown", "gpu_unverified")
    refused = decide({"gpu_ready_catalog_overlay": str(own), "nvidia_driver_branch": str(LTS)}, device=V100)
    assert [one.code for one in refused.refusals] == ["branch_above_ceiling"]


def test_a_second_update_finds_nothing_and_keeps_rows_and_notes(
    vendors: Vendors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yml"
    update = ["update", "--tree", str(vendors.root), "--overlay", str(own), "--check", "el9"]
    own.write_text(
        "bulletins:\n  '5999': {date: 2026-12, component: driver, cves: [CVE-2026-9], fixed: ['580.190.02']}\n"
    )
    assert cli.main(update) == 1
    text = own.read_text()
    assert "review: eol" in text and "CVE-2026-9" in text and cli.main(update) == 0
    assert own.read_text() == text
    vendors.releases({LTS: ("lts branch", [(f"{LTS}.30.01", "2027-06-06")])})
    assert cli.main(update) == 1
    assert f"changed  branches {LTS}" in capsys.readouterr().out
    after = yaml.safe_load(own.read_text())
    assert after["branches"][LTS]["newest"] == f"{LTS}.30.01" and after["bulletins"]
    line = next(line for line in own.read_text().splitlines() if line.startswith(f"  {LTS}:"))
    assert line.endswith("# review: eol") and len(after["branches"]) == 3


def test_a_diff_writes_nothing_and_fails_a_job_with_check(vendors: Vendors, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(vendors.root.rglob("*"))
    assert cli.main(["diff", "--tree", str(vendors.root), "el9"]) == 0
    assert cli.main(["diff", "--tree", str(vendors.root), "--check", "el9"]) == 1
    shown = capsys.readouterr().out
    assert (
        f"new  branches {LTS}: " in shown and f"changed  branches {KNOWN.number}: " in shown and "catalog of" in shown
    )
    assert sorted(vendors.root.rglob("*")) == before


def test_nothing_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["diff", "--tree", str(tmp_path / "absent"), "el9"]) == 2
    assert "absent: nothing of this is there" in capsys.readouterr().out
    assert cli.main(["diff", "--tree", str(tmp_path), "el99"]) == 2
    assert "el99 is no distribution of the catalog. Remedy: use amzn2023, " in capsys.readouterr().err


def test_a_file_that_is_no_overlay_stays_as_it_is(
    vendors: Vendors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yml"
    own.write_text("all:\n  hosts: {}\n")
    assert cli.main(["update", "--tree", str(vendors.root), "--overlay", str(own), "el9"]) == 2
    assert own.read_text() == "all:\n  hosts: {}\n" and "all is no section" in capsys.readouterr().err


def test_values_of_every_type_are_yaml() -> None:
    value: dict[Any, Any] = {
        "a": "580.10",
        "b": None,
        "c": True,
        "d": [1, "x: y # z"],
        620: {},
        ">=590": {},
        "no": "on",
    }
    text = overlay_file.format_value(value)
    assert yaml.safe_load(text)["d"] == value["d"] and yaml.safe_load(text)[620] == {}
    assert yaml.safe_load(text) == value


@pytest.mark.parametrize(
    ("kind", "name", "part"),
    [
        ("branch", str(LAST.number), "el9 cuda_repo"),
        ("distribution", "el9", "cuda-rhel9"),
        ("gpu", "10de:2330", "architecture: hopper"),
        ("toolkit", catalog.toolkits()[-1].version, "min_driver"),
    ],
)
def test_show(capsys: pytest.CaptureFixture[str], kind: str, name: str, part: str) -> None:
    assert cli.main(["show", kind, name]) == 0
    shown = capsys.readouterr().out
    assert part in shown and shown.startswith(f"catalog of {catalog.DATE}")
    assert yaml.safe_load(shown.split("\n", 1)[1])
    assert cli.main(["show", kind, "999"]) == 1


def test_show_has_the_rows_of_the_operator(
    vendors: Vendors, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = tmp_path / "own.yml"
    assert cli.main(["update", "--tree", str(vendors.root), "--overlay", str(own), "el9"]) == 0
    capsys.readouterr()
    assert cli.main(["show", "--overlay", str(own), "gpu", CARD]) == 0
    assert "RTX 9000" in capsys.readouterr().out


# ---- what is damaged, or hostile -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"\xff", b'{"595": []}', b'{"595": {"driver_info": {}}}', b'{"x": {"driver_info": []}}',
        b'{"595": {"driver_info": [{"release_version": "580.1.1"}]}}',
        b'{"595": {"driver_info": [{"release_version": "595.1; rm"}]}}', b"[" * 100000,
    ],
)  # fmt: skip
def test_a_damaged_list_of_releases_is_none(data: bytes) -> None:
    with pytest.raises(IndexUnread):
        published.parse_releases(data, "releases.json")


def test_a_damaged_file_ends_with_2_and_the_rest_is_read(vendors: Vendors, capsys: pytest.CaptureFixture[str]) -> None:
    vendors.lay(published.RELEASES, "<html>Sign in</html>")
    assert cli.main(["diff", "--tree", str(vendors.root), "el9"]) == 2
    shown = capsys.readouterr().out
    assert "unread  " + published.RELEASES in shown and f"new  toolkits {MINOR_TOOLKIT}" in shown


def test_nothing_of_an_index_controls_the_terminal(vendors: Vendors, capsys: pytest.CaptureFixture[str]) -> None:
    vendors.lay(published.RELEASES, '{"\\u001b[2J": []}')
    card = {"devid": "0x" + CARD, "name": "RTX\x1b[31m\n" + "9" * 9000, "features": ["kernelopen"]}
    vendors.driver(f"{LTS}.20.02", "2027-05-10", MAJOR_TOOLKIT, [card])
    assert cli.main(["diff", "--tree", str(vendors.root), "el9"]) == 2
    shown = capsys.readouterr().out
    assert "\x1b" not in shown and "is no branch" in shown and max(map(len, shown.splitlines())) < 500


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"sha256": "0" * 64}, "has not the checksum of its manifest"),
        ({"relative_path": "../../../etc/passwd.tar.xz"}, "not below it"),
        ({"relative_path": "/etc/x.tar.xz"}, "not below it"),
    ],
)
def test_a_list_of_gpus_that_the_manifest_does_not_describe_is_not_used(
    vendors: Vendors, change: dict[str, str], reason: str
) -> None:
    manifest = published.read_manifest(Tree(str(vendors.root)), published.DRIVERS, f"{LTS}.20.02")
    manifest.components["driver_assistant"]["linux-all"].update(change)
    with pytest.raises(IndexUnread, match=reason):
        published.read_supported_gpus(Tree(str(vendors.root)), manifest)


def test_what_unpacks_to_more_than_the_limit_is_not_unpacked() -> None:
    packed = lzma.compress(bytes(3 << 20))
    with pytest.raises(IndexUnread, match="more than 1048576 bytes"):
        indexes.unpack(packed, "x.xz", 1 << 20)
    assert len(indexes.unpack(packed, "x.xz", 3 << 20)) == 3 << 20


def test_a_file_above_the_limit_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    (tmp_path / "host/x").write_bytes(bytes(11))
    assert len(Tree(str(tmp_path)).read("https://host/x", 11)) == 11
    with pytest.raises(IndexUnread, match="more than 10 bytes"):
        Tree(str(tmp_path)).read("https://host/x", 10)


def test_a_listing_has_names_only(tmp_path: Path) -> None:
    """A server's own page: of it only links to names in this directory count."""
    page = """<html><h1>Index of /redist</h1><a href='..'>..</a><a href="redistrib_1.2.3.json">x</a>
    <a href='redistrib_2.0.0.json'>x</a><a href="../redistrib_3.0.0.json">x</a><a href="https://x/redistrib_4.0.0.json">"""
    place = tmp_path / "host/redist"
    place.mkdir(parents=True)
    (place / "index.html").write_text(page)
    with web_server.serve_directory(tmp_path) as url:
        assert published.read_labels(Tree(url), "https://host/redist") == ["1.2.3", "2.0.0"]


def test_only_http_is_read() -> None:
    with pytest.raises(IndexUnread, match="neither http nor https"):
        Tree("ftp://127.0.0.1").read("https://etc/passwd")


def test_no_redirection_leaves_tls() -> None:
    request = urllib.request.Request("https://developer.download.nvidia.com/x")
    with pytest.raises(urllib.error.URLError, match="redirects from https to http://elsewhere"):
        indexes.NoDowngrade().redirect_request(request, None, 302, "", {}, "http://elsewhere/x")
    followed = indexes.NoDowngrade().redirect_request(request, None, 302, "", {}, "https://elsewhere/x")
    assert followed.full_url == "https://elsewhere/x"


def test_a_file_that_does_not_end_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "WHOLE", -1.0)
    (tmp_path / "host").mkdir()
    (tmp_path / "host/x").write_bytes(b"x")
    with pytest.raises(IndexUnread, match="not complete after"):
        Tree(str(tmp_path)).read("https://host/x")


def test_a_repository_without_a_signature_is_read_and_named(
    vendors: Vendors, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its key is there and pinned, and signs nothing."""
    key = next((CATALOG / "keys").glob("*.asc"))
    entry = catalog.repository("cuda-ubuntu2404")
    vendors.apt(entry["url"], package_names("ubuntu2404", "cuda_repo", [LTS]))
    vendors.lay(entry["key_url"], key.read_bytes())
    assert cli.main(["diff", "--tree", str(vendors.root), "--mirror-key", key.stem, "ubuntu2404"]) == 0
    assert "note    cuda-ubuntu2404: not verified by a signature: it has no signature" in capsys.readouterr().out
    assert cli.main(["diff", "--tree", str(vendors.root), "ubuntu2404"]) == 2
    assert f"is not the pinned key: it holds the key {key.stem}" in capsys.readouterr().out


# ---- real repositories, signed -----------------------------------------------------------------------------------------


def fetched(*_: str) -> bytes:
    raise AssertionError


@pytest.fixture(scope="module")
def signed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """An rpm repository of createrepo_c and an apt repository at the vendors' paths, and the fingerprint of their key."""
    need_programs(
        {
            **RPM,
            "/usr/bin/createrepo_c": "createrepo-c",
            "/usr/bin/modifyrepo_c": "createrepo-c",
            "/usr/bin/gpgv": "gpgv",
        }
    )
    cache, root = tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("signed")
    key = packages.Key(cache / "key")
    entry, apt = catalog.repository("cuda-rhel9"), catalog.repository("cuda-ubuntu2404")
    made = [
        rpms.Rpm(name, "3", f"{NEXT}.10.01", "1", "x86_64", "x", (), (), (), None, True, ())
        for name in ("nvidia-driver-cuda", "kmod-nvidia-open-dkms")
    ]
    made.append(
        rpms.Rpm(
            f"cuda-toolkit-{MAJOR}-{MINOR + 1}",
            "0",
            MINOR_TOOLKIT + ".0",
            "1",
            "x86_64",
            "x",
            (),
            (),
            (),
            None,
            True,
            (),
        )
    )
    streams = [{"document": "modulemd", "version": 2, "data": {
        "name": "nvidia-driver", "stream": f"{NEXT}-open", "version": 1, "context": "x", "arch": "x86_64", "summary": "x",
        "description": "x", "license": {"module": ["MIT"]},
    }}]  # fmt: skip
    built = rpms.build_all(made, cache / "rpms", fetched, key)
    rpms.write_repository(root / entry["url"].split("://")[1], built.items(), key, cache / "metadata", streams)
    deb = packages.Package("libnvidia-compute", f"{NEXT}.10.01-1ubuntu1", "amd64", (("Description", "x"),), (), (), ())
    debs = packages.build_all([deb], cache / "debs", fetched)
    packages.write_repository(root / apt["url"].split("://")[1], debs.items(), {"Label": "NVIDIA CUDA"}, key)
    for one in (entry, apt):
        (root / one["key_url"].split("://")[1]).write_bytes(key.binary)
    return root, key.fingerprint


@pytest.mark.host_io
def test_real_repositories_are_read_and_verified(signed: tuple[Path, str]) -> None:
    root, fingerprint = signed
    checker = check.Checker(Tree(str(root)), fingerprint)
    index = checker.repository("cuda-rhel9")
    assert index.signed == "" and index.streams == {"nvidia-driver": {f"{NEXT}-open"}}
    assert [one.version for one in index.packages["nvidia-driver-cuda"]] == [f"{NEXT}.10.01-1"]
    apt = checker.repository("cuda-ubuntu2404")
    assert apt.signed == "" and list(apt.packages) == ["libnvidia-compute"]
    found = news.Vendors(checker, ["el9", "ubuntu2404"])
    found.read()
    keys = {(row.section, row.key) for row in news.find_news(found, "", "2027-05-27").rows}
    assert {("branches", NEXT), ("toolkits", MINOR_TOOLKIT), ("installers", MINOR_TOOLKIT + ".0")} <= keys


@pytest.mark.host_io
@pytest.mark.parametrize("name", ["cuda-rhel9", "cuda-ubuntu2404"])
def test_an_index_of_another_key_is_not_read(signed: tuple[Path, str], name: str) -> None:
    with pytest.raises(IndexUnread, match="is not the pinned key: it holds the key"):
        check.Checker(Tree(str(signed[0]))).repository(name)


@pytest.mark.host_io
@pytest.mark.parametrize(
    ("name", "file", "reason"),
    [
        ("cuda-rhel9", "repodata/repomd.xml", "is not signed by the pinned key"),
        ("cuda-ubuntu2404", "InRelease", "is not signed by the pinned key"),
        ("cuda-ubuntu2404", "Packages", "has not the checksum of the signed list"),
    ],
)
def test_a_changed_index_is_not_read(
    signed: tuple[Path, str], tmp_path: Path, name: str, file: str, reason: str
) -> None:
    root = tmp_path / "copy"
    for path in signed[0].rglob("*"):
        if path.is_file():
            target = root / path.relative_to(signed[0])
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    place = root / catalog.repository(name)["url"].split("://")[1]
    for path in place.glob(file + "*") if file == "Packages" else [place / file]:
        data = path.read_bytes()
        path.write_bytes(data.replace(b"1", b"2", 1) if file != "Packages" else data + b"\n")
    with pytest.raises(IndexUnread, match=reason):
        check.Checker(Tree(str(root)), signed[1]).repository(name)
