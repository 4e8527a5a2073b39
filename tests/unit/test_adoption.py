"""Repositories that a host has already: used as they are, or refused; never a second entry of the same URL."""

from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpu_ready.nodes.plugins.plugin_utils.shipped_keys import read_keys

from plugins.module_utils.gpu_ready.base import manifest, manifest_notes
from plugins.module_utils.gpu_ready.facts import apt as apt_facts
from plugins.module_utils.gpu_ready.facts import rpm as rpm_facts
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.packaging import apt, apt_entries, armor, openpgp, repositories, yum_repos
from plugins.module_utils.gpu_ready.packaging.manager import PackageError
from plugins.module_utils.gpu_ready.packaging.repository import parse_repository
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.plan import apt_repository, repository
from plugins.plugin_utils.gpu_ready.plan.model import RepositoryRequest
from tests.unit.apt_root import AptRoot, apt_is_here
from tests.unit.goldens import decide
from tests.unit.hosts import T4, bare, carried_out, having
from tests.unit.plans import settings
from tests.unit.recorded import RecordedHost

pytestmark = pytest.mark.host_io
DOCKER, TOOLKIT = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88", "C95B321B61E88C1809C4F759DDCAE044F796ECB0"
BODY = bytes([4, 0, 0, 0, 1, 1]) + b"the material of a key"
OTHER = bytes([0x98, len(BODY)]) + BODY
"""A key that no repository of the catalog has."""
KEYRING = "/usr/share/keyrings/nvidia-container-toolkit-keyring.gpg"
TOOLKIT_LIST = "/etc/apt/sources.list.d/nvidia-container-toolkit.list"
TOOLKIT_PAGE = f"deb [signed-by={KEYRING}] https://nvidia.github.io/libnvidia-container/stable/deb/$(ARCH) /\n#deb [signed-by={KEYRING}] https://nvidia.github.io/libnvidia-container/experimental/deb/$(ARCH) /\n"
"""As the container toolkit's installation guide writes it."""
DOCKER_PAGE = "Types: deb\nURIs: https://download.docker.com/linux/debian\nSuites: bookworm\nComponents: stable\nArchitectures: amd64\nSigned-By: /etc/apt/keyrings/docker.asc\n"
"""As Docker's installation page writes /etc/apt/sources.list.d/docker.sources."""
URL = "http://x.example/cuda"


def key(fingerprint: str) -> bytes:
    return openpgp.parse_keys(read_keys()[fingerprint].encode())[0].data


def request(identity: str, **given: Any) -> RepositoryRequest:
    return repository.parameters(identity, settings(**given))


def collected(files: dict[str, Any], distro: str = "debian12", version: str = "9.4") -> Facts:
    """The facts of a host with these package sources and keys."""
    host = RecordedHost(files=files)
    facts = bare(T4, distro=distro)
    if catalog.distro(distro)["package_manager"] == "apt":
        return facts._replace(apt=apt_facts.apt_facts(host))
    facts = having(facts, base={"os": facts.base.os._replace(version_id=version)})
    return facts._replace(yum=rpm_facts.yum_facts(host, version))


def judge(facts: Facts, one: RepositoryRequest) -> tuple[list[str], list[str]]:
    """What of a repository a step adds (a file's name or the entry that is used), and the refusals."""
    missing = repository.missing_repositories(facts, [one])
    return [each.adopted or each.list for each in missing], [
        refusal.message for refusal in repository.source_refusals(facts, missing)
    ]


# ---- what apt accepts -------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("[signed-by=/a.gpg] {url}/ /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg] https://x.example/cuda /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg] {url} /", "{url} /"),
        ("{url} /", "[signed-by=/a.gpg] {url} /"),
        ("[trusted=yes] {url} /", "[signed-by=/a.gpg] {url} /"),
        ("[trusted=no signed-by=/a.gpg] {url} /", "[signed-by=/a.gpg] {url} /"),
        ("[check-valid-until=no signed-by=/a.gpg] {url} /", "[signed-by=/a.gpg] {url} /"),
        ("[signed-by=/a.gpg] {url} /", "[signed-by=/b.gpg] {url} ./"),
        ("[signed-by=/a.gpg] http://X.example/cuda /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg] http://u:p@x.example/cuda /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg] http://x.example:80/cuda /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg] http://x.example//cuda /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg,/b.gpg] {url} /", "[signed-by=/b.gpg,/a.gpg] {url} /"),
        ("[signed-by=/a.gpg] {url}/$(ARCH) /", "[signed-by=/b.gpg] {url}/amd64 /"),
        ("[arch=arm64 signed-by=/a.gpg] {url} /", "[signed-by=/b.gpg] {url} /"),
        ("[signed-by=/a.gpg] {url} s main", "[signed-by=/b.gpg] {url} s other"),
        ("[signed-by=/a.gpg] {url} s main", "[signed-by=/b.gpg] {url} t main"),
    ],
)
def test_sources_that_apt_rejects_are_known_from_their_text(tmp_path: Path, first: str, second: str) -> None:
    for kind in ("deb", "deb-src"):
        root = AptRoot(tmp_path / kind)
        texts = {f"/etc/apt/sources.list.d/{name}.list": f"{prefix} {line.format(url=URL)}\n" for name, prefix, line in (("a", kind, first), ("b", "deb", second))}  # fmt: skip
        for path, text in texts.items():
            root.write(path, text)
        rejected = root.run(["apt-get", "indextargets"]).rc != 0
        assert (apt_entries.find_contradiction(apt_entries.parse_sources(texts)) is not None) == rejected


@pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")
@pytest.mark.parametrize("enabled", ["no", "No", "0", "off", "false", "without", "disable", "yes", "1", "maybe"])
def test_a_stanza_is_switched_off_by_the_words_that_apt_takes(tmp_path: Path, enabled: str) -> None:
    root = AptRoot(tmp_path / "root")
    text = f"Enabled: {enabled}\nTypes: deb\nURIs: {URL}\nSuites: /\n"
    root.write("/etc/apt/sources.list.d/a.sources", text)
    reads = URL in root.run(["apt-get", "update", "--print-uris"]).out
    assert bool(apt_entries.parse_entries("a.sources", text)) == reads


# ---- apt --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "keyring"),
    [
        (TOOLKIT_PAGE, key(TOOLKIT)),
        (TOOLKIT_PAGE.replace("https:", "http:").replace("/ ", " "), key(TOOLKIT)),
        (TOOLKIT_PAGE, armor.armor(key(TOOLKIT))),
        (TOOLKIT_PAGE, OTHER + key(TOOLKIT)),
    ],
)
def test_the_toolkits_own_page_is_used_as_it_is(lines: str, keyring: bytes) -> None:
    facts = collected({TOOLKIT_LIST: lines, KEYRING: keyring})
    assert judge(facts, request("container-toolkit")) == ([], [])


def test_dockers_own_page_is_used_as_it_is() -> None:
    files = {
        "/etc/apt/sources.list.d/docker.sources": DOCKER_PAGE,
        "/etc/apt/keyrings/docker.asc": armor.armor(key(DOCKER)),
    }
    facts = collected(files)
    assert judge(facts, request("docker-ce-debian12")) == ([], [])
    for change in (("bookworm", "trixie"), ("linux/debian", "linux/ubuntu")):
        other = collected({**files, "/etc/apt/sources.list.d/docker.sources": DOCKER_PAGE.replace(*change)})
        assert judge(other, request("docker-ce-debian12")) == (
            ["/etc/apt/sources.list.d/gpu-ready-docker-ce-debian12.sources"],
            [],
        )


def test_a_key_inside_of_the_file_counts() -> None:
    lines = armor.armor(key(DOCKER)).decode().strip().splitlines()
    inline = "\n " + "\n ".join(line or "." for line in lines)
    text = DOCKER_PAGE.replace(" /etc/apt/keyrings/docker.asc", inline)
    assert judge(collected({"/etc/apt/sources.list.d/x.sources": text}), request("docker-ce-debian12")) == ([], [])


def test_a_key_in_apts_common_keyrings_counts_where_the_entry_names_none() -> None:
    line = "deb [arch=amd64] https://download.docker.com/linux/debian bookworm stable\n"
    path = "/etc/apt/sources.list.d/download_docker_com_linux_debian.list"
    one = request("docker-ce-debian12")
    assert judge(collected({path: line, "/etc/apt/trusted.gpg.d/docker.gpg": key(DOCKER)}), one) == ([], [])
    adopted, (message,) = judge(collected({path: line, "/etc/apt/trusted.gpg.d/other.gpg": OTHER}), one)
    assert path in message and "apt's common keyrings" in message and DOCKER in message and adopted == [path]


@pytest.mark.parametrize(
    ("lines", "keyring", "words"),
    [
        (TOOLKIT_PAGE, OTHER, [openpgp.fingerprint(BODY), TOOLKIT]),
        (TOOLKIT_PAGE, b"", ["no key can be read there", KEYRING]),
        (TOOLKIT_PAGE.replace("[signed-by", "[trusted=yes signed-by"), key(TOOLKIT), ["checks no signature"]),
        (TOOLKIT_PAGE.replace("deb [", "deb-src ["), key(TOOLKIT), ["does not offer packages"]),
        (TOOLKIT_PAGE.replace("[signed-by", "[arch=arm64 signed-by"), key(TOOLKIT), ["does not offer packages"]),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_with_its_file(lines: str, keyring: bytes, words: list[str]) -> None:
    facts = collected({TOOLKIT_LIST: lines, KEYRING: keyring})
    _, (message,) = judge(facts, request("container-toolkit"))
    for word in [TOOLKIT_LIST, *words]:
        assert word in message


def test_an_entry_for_the_sites_mirror_is_used_and_one_for_the_vendor_is_another_repository() -> None:
    mirror = {"gpu_ready_mirror": "http://mirror.site/nvidia"}
    line = TOOLKIT_PAGE.replace("https://", "http://mirror.site/nvidia/")
    assert judge(collected({TOOLKIT_LIST: line, KEYRING: key(TOOLKIT)}), request("container-toolkit", **mirror)) == (
        [],
        [],
    )
    facts = collected({TOOLKIT_LIST: TOOLKIT_PAGE, KEYRING: OTHER})
    own = "/etc/apt/sources.list.d/gpu-ready-container-toolkit.sources"
    assert judge(facts, request("container-toolkit", **mirror)) == ([own], [])


CUDA_KEYRING = "/usr/share/keyrings/cuda-archive-keyring.gpg"
CUDA_PAGE = {
    "/etc/apt/sources.list.d/cuda-debian12-x86_64.list": f"deb [signed-by={CUDA_KEYRING}] https://developer.download.nvidia.com/compute/cuda/repos/debian12/x86_64/ /\n",
    "/etc/apt/preferences.d/cuda-repository-pin-600": "Package: *\nPin: release l=NVIDIA CUDA\nPin-Priority: 600\n",
}
"""What the package cuda-keyring installs."""


def with_cuda_page(**changes: str | None) -> Facts:
    """A host with cuda-keyring, whose key the catalog knows by its fingerprint only."""
    files = {path: text for path, text in CUDA_PAGE.items() if path not in changes}
    return having(
        collected(files), apt={"signers": {CUDA_KEYRING: [catalog.repository("cuda-debian12")["fingerprint"]]}}
    )


def test_the_package_cuda_keyring_is_used_with_its_own_pin() -> None:
    assert judge(with_cuda_page(), request("cuda-debian12")) == ([], [])


def test_only_the_pin_is_added_where_it_is_missing() -> None:
    facts = with_cuda_page(**{"/etc/apt/preferences.d/cuda-repository-pin-600": None})
    (path, *_) = CUDA_PAGE
    assert judge(facts, request("cuda-debian12")) == ([path], [])


@pytest.mark.parametrize("switch", ["Enabled: no\n", "#"])
def test_our_own_file_counts_only_when_it_is_enabled(switch: str) -> None:
    one = request("container-toolkit")
    text = f"Types: deb\nURIs: {one.url}\nSuites: /\nSigned-By: {one.keyring}\n"
    files = {one.list: text, one.keyring: key(TOOLKIT)}
    assert judge(collected(files), one) == ([], [])
    off = switch + text if switch != "#" else "".join("#" + line + "\n" for line in text.splitlines())
    assert judge(collected({**files, one.list: off}), one) == ([one.list], [])


@pytest.mark.parametrize(
    "paths",
    [
        ("/etc/apt/sources.list.d/a.list", "/etc/apt/sources.list.d/b.list"),
        ("/etc/apt/sources.list.d/b.list", "/etc/apt/sources.list.d/a.list"),
        ("/etc/apt/sources.list.d/z.list", "/etc/apt/sources.list"),
    ],
)
def test_two_entries_that_stop_apt_are_refused_with_both_files(paths: tuple[str, str]) -> None:
    """The page of today with cuda-keyring and that before 2022, which named no key."""
    (_, line), *_ = CUDA_PAGE.items()
    facts = collected({paths[0]: line, paths[1]: line.replace(CUDA_KEYRING, "/etc/apt/keyrings/old.gpg")})
    (refusal,) = apt_repository.contradiction_refusals(facts)
    assert all(path in refusal.message for path in paths) and "developer.download.nvidia.com" in refusal.message
    assert apt_repository.contradiction_refusals(with_cuda_page()) == []


def test_a_host_with_nothing_to_do_is_warned_of_them() -> None:
    (_, line), *_ = CUDA_PAGE.items()
    texts = {"/etc/apt/sources.list.d/a.list": line, "/etc/apt/sources.list.d/b.list": line.replace("cuda-arch", "x")}
    host = bare(T4)
    done = carried_out(host, decide(host))
    assert decide(done).warnings == []
    broken = having(done, apt={"sources": {**done.apt.sources, **texts}})
    found = decide(broken)
    assert [one.code for one in found.warnings] == ["package_sources_conflict"] and found.converged
    refused = decide(having(host, apt={"sources": {**host.apt.sources, **texts}}))
    assert "package_sources_conflict" in [one.code for one in refused.refusals] and not refused.steps


def test_a_pin_that_prefers_nvidia_to_the_drivers_source_is_a_warning_with_its_file() -> None:
    host = with_cuda_page()
    assert "repository_outranks" not in [one.code for one in decide(host).warnings]
    (warning,) = [
        one for one in decide(host, nvidia_driver_source="distro").warnings if one.code == "repository_outranks"
    ]
    assert "/etc/apt/preferences.d/cuda-repository-pin-600" in warning.message


# ---- dnf --------------------------------------------------------------------------------------------------------------

CUDA_REPO = """[cuda-rhel9-x86_64]
name=cuda-rhel9-x86_64
baseurl=https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64
enabled=1
gpgcheck=1
gpgkey=https://developer.download.nvidia.com/compute/cuda/repos/rhel9/x86_64/D42D0685.pub
"""
EPEL = """[epel]
name=Extra Packages for Enterprise Linux $releasever - $basearch
# It is much more secure to use the metalink, but a local mirror is possible too
#baseurl=https://download.example/pub/epel/$releasever${releasever_minor:+z}/Everything/$basearch/
metalink=https://mirrors.fedoraproject.org/metalink?repo=epel%s$releasever&arch=$basearch&infra=$infra&content=$contentdir
enabled=1
gpgcheck=1
gpgkey=file:///etc/pki/rpm-gpg/RPM-GPG-KEY-EPEL-$releasever
"""
REPO = "/etc/yum.repos.d/cuda-rhel9.repo"


@pytest.mark.parametrize(
    "text",
    [
        CUDA_REPO,
        CUDA_REPO.replace("[cuda-rhel9-x86_64]", "[nvidia-cuda]").replace("enabled=1", "enabled = True"),
        CUDA_REPO.replace("rhel9/x86_64\n", "rhel$releasever/$basearch/\n"),
        CUDA_REPO.replace("gpgcheck=1", "gpgcheck=0"),
        "".join(line for line in CUDA_REPO.splitlines(True) if not line.startswith("gpgkey")),
    ],
)
def test_nvidias_own_repo_file_is_used_with_the_pinned_key(text: str) -> None:
    """dnf would download its key, or check none: our calls use the pinned one."""
    facts, one = collected({REPO: text}, "el9"), request("cuda-rhel9")
    section = "nvidia-cuda" if "nvidia-cuda" in text else "cuda-rhel9-x86_64"
    assert judge(facts, one) == ([section], [])
    assert judge(collected({REPO: text, one.keyring: b"x"}, "el9"), one) == ([], [])


def test_a_repository_that_is_switched_off_is_not_there() -> None:
    one = request("cuda-rhel9")
    off = CUDA_REPO.replace("enabled=1", "enabled=0")
    assert judge(collected({REPO: off}, "el9"), one) == ([one.list], [])
    own = f"[gpu-ready-cuda-rhel9]\nbaseurl={one.url}\nenabled=%d\ngpgkey=file://{one.keyring}\n"
    for enabled, found in ((1, []), (0, [one.list])):
        assert judge(collected({one.list: own % enabled, one.keyring: b"x"}, "el9"), one) == (found, [])


@pytest.mark.parametrize("word", ["file:///etc/pki/rpm-gpg/mine", "https://elsewhere.example/key.pub"])
def test_a_section_with_another_key_is_refused_with_its_file(word: str) -> None:
    text = CUDA_REPO.rpartition("gpgkey=")[0] + f"gpgkey={word}\n"
    _, (message,) = judge(collected({REPO: text, "/etc/pki/rpm-gpg/mine": OTHER}, "el9"), request("cuda-rhel9"))
    assert REPO in message and word in message and catalog.repository("cuda-rhel9")["fingerprint"] in message


@pytest.mark.parametrize(("distro", "version", "part"), [("el9", "9.4", "-"), ("el8", "8.10", "-")])
def test_epel_is_known_by_its_list_of_mirrors(distro: str, version: str, part: str) -> None:
    identity = "epel-" + version.partition(".")[0]
    facts = collected({"/etc/yum.repos.d/epel.repo": EPEL % part}, distro, version)
    path = f"/etc/pki/rpm-gpg/RPM-GPG-KEY-EPEL-{version.partition('.')[0]}"
    facts = having(facts, yum={"keys": {path: [catalog.repository(identity)["fingerprint"]]}})
    assert judge(facts, request(identity)) == ([], [])


def test_epel_10_names_its_mirrors_by_the_minor_version() -> None:
    """As epel-release 10 writes it; libdnf expands ${name:+text} since 0.73."""
    metalink = "metalink=https://mirrors.fedoraproject.org/metalink?repo=epel${releasever_minor:+-z}-$releasever_major${releasever_minor:+.$releasever_minor}&arch=$basearch\n"
    for version, expected in (("10.0", "epel-z-10.0"), ("10", "epel-10")):
        (section,) = yum_repos.read_sections("x.repo", "[epel]\n" + metalink, version)
        assert f"https://mirrors.fedoraproject.org/metalink?repo={expected}&arch=x86_64" in section.urls
        facts = collected({"/etc/yum.repos.d/epel.repo": "[epel]\n" + metalink}, "el10", version)
        assert repository.find_entry(facts, request("epel-10")) is not None


# ---- the module -------------------------------------------------------------------------------------------------------


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AptRoot:
    path = str(tmp_path / "state/manifest.json")
    for function in (manifest.read, manifest_notes.note, manifest_notes.drop, manifest_notes.note_files):
        monkeypatch.setattr(function, "__defaults__", (path,))
    return AptRoot(tmp_path / "root")


class OfflineApt(apt.Apt):
    """The real apt without a network: lists are not read."""

    def update_only(self, path: str) -> None:
        pass


@pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")
@pytest.mark.parametrize("name", ["nvidia-container-toolkit.list", "a.list", "zz.list"])
def test_a_second_entry_that_stops_apt_is_removed_in_the_same_step(root: AptRoot, name: str) -> None:
    """The plan uses the entry that is present; the step guards against one that appeared since."""
    theirs = f"/etc/apt/sources.list.d/{name}"
    root.write(theirs, TOOLKIT_PAGE)
    assert root.is_healthy()
    one = request("container-toolkit")
    target = parse_repository(
        {**one._asdict(), "keyring": root.inside(one.keyring), "list": root.inside(one.list), "pin": None}
    )
    with pytest.raises(PackageError) as error:
        repositories.configure(root, OfflineApt(root), repositories.Request([], [], [target], read_keys()), False)
    assert theirs in str(error.value) and one.list in str(error.value) and "signed-by" in str(error.value)
    assert not Path(target.list_file).exists() and not Path(target.keyring).exists()
    assert root.is_healthy() and manifest.read() == {}


@pytest.mark.skipif(not apt_is_here(), reason="this machine has no apt")
def test_an_adopted_repository_gets_no_second_file(root: AptRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    root.write(TOOLKIT_LIST, TOOLKIT_PAGE)
    pins = root.inside("/etc/apt/preferences.d/") + "%s.pref"
    monkeypatch.setattr("plugins.module_utils.gpu_ready.packaging.repository.APT_PREFERENCES", pins)
    pin = {"package": "*", "pin": "release l=NVIDIA CUDA", "priority": 600}
    values = {**request("container-toolkit")._asdict(), "adopted": TOOLKIT_LIST, "pin": pin}
    found = repositories.configure(
        root, OfflineApt(root), repositories.Request([], [], [parse_repository(values)], read_keys()), False
    )
    assert found["paths"] == [pins % "gpu-ready-container-toolkit"] and root.is_healthy()
    assert not repositories.configure(
        root, OfflineApt(root), repositories.Request([], [], [parse_repository(values)], read_keys()), False
    )["changed"]
