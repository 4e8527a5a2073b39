"""The mirror's RPM repositories, read by a real dnf in a temporary root: what a host would install, and from where."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.module_utils.common.yaml import yaml_load
from gpu_ready_lab import engine, mirror, packages, paths
from gpu_ready_lab.say import run

INCLUDE = ("dnf", "python3-dnf", "dnf-plugins-core", "rpm", "gnupg", "kmod", "pciutils")
# Platform of the dnf module, release, and the repositories that a host of the distribution has.
HOSTS = {
    "el8": ("el8", "8", ["rocky8-baseos", "rocky8-appstream", "rocky8-powertools", "epel-8", "docker-ce-el8"]),
    "el9": ("el9", "9", ["rocky9-baseos", "rocky9-appstream", "rocky9-crb", "epel-9", "docker-ce-el9"]),
    "el10": ("el10", "10", ["rocky10-baseos", "rocky10-appstream", "rocky10-crb", "epel-10", "docker-ce-el10"]),
    "fedora43": ("f43", "43", ["fedora43", "fedora43-updates", "docker-ce-fedora43"]),
    "amzn2023": ("al2023", "2023", ["amzn2023"]),
    "centos7": ("el7", "7", ["vault-centos7-os", "vault-centos7-updates", "epel-7", "docker-ce-el7"]),
}
CUDA_OF = {
    "el8": "cuda-rhel8",
    "el9": "cuda-rhel9",
    "el10": "cuda-rhel10",
    "fedora43": "cuda-fedora43",
    "amzn2023": "cuda-amzn2023",
    "centos7": "cuda-rhel7",
}


pytestmark = [pytest.mark.lab, pytest.mark.long]


@pytest.fixture(scope="module")
def dnf_root(lab_machine: None) -> Iterator[Path]:
    """A Debian root with dnf; the tarball is kept in the lab's cache."""
    engine.need_packages(engine.NEEDS, "the test of the mirror's RPM repositories")
    tree = mirror.build(paths.cache())
    tarball = paths.cache() / "dnf" / f"bookworm-{'-'.join(INCLUDE)}.tar"
    if not tarball.exists():
        tarball.parent.mkdir(parents=True, exist_ok=True)
        new = tarball.with_name(f"{tarball.name}.{os.getpid()}.new")
        argv = ["/usr/bin/mmdebstrap", "--quiet", "--variant=minbase", "--format=tar", f"--include={','.join(INCLUDE)}"]
        run([*argv, "bookworm", str(new)], limit=600, what="make a root with dnf")
        new.replace(tarball)
    root = paths.cache() / "tmp" / f"dnf-{os.getpid()}"
    root.mkdir(parents=True)
    try:
        run(["/usr/bin/tar", "-C", str(root), "-xf", str(tarball)], limit=120, what="unpack the root with dnf")
        # The same file system: links instead of copies.
        run(["/usr/bin/cp", "-al", str(tree), str(root / "mirror")], limit=120, what="link the mirror's tree")
        key = packages.Key(paths.cache() / "mirror" / "key")
        (root / "etc/pki/rpm-gpg").mkdir(parents=True)
        shutil.copy(key.public, root / "etc/pki/rpm-gpg/LAB")
        (root / "etc/dnf/plugins/local.conf").write_text("[main]\nenabled = false\n")
        yield root
    finally:
        shutil.rmtree(root)


class Dnf:
    """dnf of a new host: an RPM database with nothing but the packages in place of the installed system."""

    def __init__(self, root: Path, platform: str, release: str, repositories: list[str], key: str = "") -> None:
        self.root = root
        self.key = key
        for name in ("var/lib/rpm", "var/lib/dnf", "var/cache/dnf", "etc/dnf/modules.d", "etc/yum.repos.d"):
            shutil.rmtree(root / name, ignore_errors=True)  # missing before the first host
            (root / name).mkdir(parents=True)
        (root / "etc/rpm").mkdir(exist_ok=True)
        (root / "etc/rpm/macros").write_text("%_dbpath /var/lib/rpm\n")
        lines = ["[main]", "gpgcheck=1", "best=True", "installonly_limit=3", f"module_platform_id=platform:{platform}"]
        (root / "etc/dnf/dnf.conf").write_text("\n".join([*lines, f"releasever={release}", ""]))
        for name in repositories:
            self.add(name)
        self.install("gpu-ready-lab-base")

    def add(self, name: str) -> None:
        """Add a repository, with the checks that the vendor's own .repo file sets."""
        checks = "gpgcheck=0\nrepo_gpgcheck=1" if name == "container-toolkit-rpm" else "gpgcheck=1\nrepo_gpgcheck=0"
        text = f"[{name}]\nname={name}\nbaseurl=file:///mirror/{mirror.repositories()[name]['path']}\nenabled=1\n"
        text += f"{checks}\ngpgkey=file:///etc/pki/rpm-gpg/LAB\n"
        (self.root / f"etc/yum.repos.d/{name}.repo").write_text(text)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        argv = ["/usr/sbin/chroot", str(self.root), "/usr/bin/dnf", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=300, check=False, env=env)

    def install(self, *names: str) -> None:
        done = self.run("-y", "install", *names)
        assert done.returncode == 0, done.stdout + done.stderr

    def would_install(self, *names: str) -> dict[str, str]:
        """The versions of what would be installed, by name; fails if it cannot be installed."""
        done = self.run("-y", "--assumeno", "install", *names)
        assert "Operation aborted" in done.stdout + done.stderr, done.stdout + done.stderr
        rows = re.findall(r"^ (\S+)\s+(?:x86_64|noarch)\s+(\S+)\s+\S+\s+[\d.]+ [kM]$", done.stdout, re.MULTILINE)
        return dict(rows)

    def stream(self, name: str) -> None:
        self.run("-y", "module", "reset", "nvidia-driver")
        done = self.run("-y", "module", "enable", f"nvidia-driver:{name}")
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=list(HOSTS))
def host(request: pytest.FixtureRequest, dnf_root: Path) -> Dnf:
    platform, release, repositories = HOSTS[request.param]
    return Dnf(
        dnf_root, platform, release, [*repositories, CUDA_OF[request.param], "container-toolkit-rpm"], request.param
    )


def branch(found: dict[str, str], name: str) -> str:
    return found[name].split(":")[1].split(".")[0]


def test_the_important_sets(host: Dnf) -> None:
    kernel = next(
        rpm.evr + ".x86_64"
        for rpm in mirror.declared_rpms()
        if rpm.name == "kernel-devel" and HOSTS[host.key][2][0][:7] in " ".join(rpm.repositories)
    )
    assert "kernel-devel" in host.would_install(f"kernel-devel-{kernel}", "kernel-headers", "gcc", "make", "dkms")
    docker = {"amzn2023": ["docker"]}.get(host.key, ["docker-ce", "docker-ce-cli", "containerd.io"])
    assert set(docker) <= set(host.would_install(*docker))
    toolkit = host.would_install("nvidia-container-toolkit")
    assert toolkit["nvidia-container-toolkit"] == "1.20.0-1"
    assert "nvidia-container-toolkit-base" in toolkit
    cuda = {"centos7": "cuda-toolkit-12-4", "fedora43": "cuda-toolkit-13-1"}.get(host.key, "cuda-toolkit-12-9")
    found = host.would_install(cuda)
    assert cuda in found
    assert not [name for name in found if "driver" in name or "kmod" in name or "kernel" in name]


def test_a_driver_is_installed_with_its_modules_and_without_a_kernel(host: Dnf) -> None:
    if host.key == "centos7":
        found = host.would_install("nvidia-driver-latest-dkms-cuda", "kmod-nvidia-latest-dkms")
        assert branch(found, "nvidia-driver-latest-dkms-cuda") == "550"
        ready = host.would_install("nvidia-driver-branch-470-cuda", "kmod-nvidia-branch-470")
        assert branch(ready, "kmod-nvidia-branch-470") == "470"
        assert "dkms" not in ready
    elif host.key in ("el10", "fedora43"):
        found = host.would_install("nvidia-driver-cuda", "kmod-nvidia-open-dkms")
        assert branch(found, "nvidia-driver-cuda") == ("615" if host.key == "el10" else "595")
        older = host.would_install("nvidia-driver-cuda-3:580.95.05", "kmod-nvidia-latest-dkms-3:580.95.05")
        # nvidia-kmod-common requires no version of nvidia-modprobe, so the newest is installed.
        kept = {older[name] for name in older if name.startswith("nvidia-") and name != "nvidia-modprobe"}
        assert {version.rsplit(".", 1)[0] for version in kept} == {"3:580.95.05-1"}
        assert "kmod-nvidia-latest-dkms" in host.would_install("cuda-drivers")
    else:
        host.stream("580-open")
        found = host.would_install("nvidia-driver-cuda", "kmod-nvidia-open-dkms")
        assert branch(found, "nvidia-driver-cuda") == branch(found, "kmod-nvidia-open-dkms") == "580"
        assert "kmod-nvidia-open-dkms" in host.would_install("nvidia-open")
        host.stream("580-dkms")
        assert branch(host.would_install("cuda-drivers"), "kmod-nvidia-latest-dkms") == "580"
    assert "dkms" in found
    assert not [name for name in found if name.startswith("kernel")]


@pytest.mark.parametrize("key", ["el8", "el9"])
def test_a_precompiled_stream_needs_no_dkms(dnf_root: Path, key: str) -> None:
    platform, release, repositories = HOSTS[key]
    host = Dnf(dnf_root, platform, release, [*repositories, CUDA_OF[key]])
    host.stream("580")
    found = host.would_install("nvidia-driver-cuda")
    assert not {"dkms", "gcc", "kernel-core"} & set(found)
    assert [name for name in found if re.match(r"kmod-nvidia-580\.178\.04-\d", name)]


@pytest.mark.parametrize("key", ["el8", "el9", "el10"])
def test_elrepo_and_what_nvidia_detect_names(dnf_root: Path, key: str) -> None:
    platform, release, repositories = HOSTS[key]
    host = Dnf(dnf_root, platform, release, [*repositories, f"elrepo-{release}"])
    legacy = ["580xx"] if key == "el10" else ["580xx", "470xx"]
    for suffix in ["", *(f"-{name}" for name in legacy)]:
        found = host.would_install(f"kmod-nvidia{suffix}", f"nvidia-x11-drv{suffix}")
        assert f"nvidia-x11-drv{suffix}-libs" in found
    assert "kmod-nvidia" not in host.would_install("kmod-nvidia-open", "nvidia-x11-drv")
    host.install("nvidia-detect")
    env = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}
    output = subprocess.run(
        ["/usr/sbin/chroot", str(dnf_root), "/usr/bin/nvidia-detect", "-V"], capture_output=True, text=True,
        timeout=30, check=True, env=env,
    )  # fmt: skip
    assert output.stdout == "Version: 595.91.07\n"


def test_packages_are_installed_with_their_scripts(dnf_root: Path) -> None:
    platform, release, repositories = HOSTS["el9"]
    host = Dnf(dnf_root, platform, release, [*repositories, "cuda-rhel9", "container-toolkit-rpm"])
    host.stream("580-open")
    host.install(
        "nvidia-driver-cuda", "kmod-nvidia-open-dkms", "nvidia-container-toolkit", "cuda-toolkit-12-9", "docker-ce"
    )
    assert (dnf_root / "usr/src/nvidia-open-580.178.04/dkms.conf").exists()
    assert str((dnf_root / "etc/alternatives/cuda-12").readlink()) == "/usr/local/cuda-12.9"
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}
    chroot = ["/usr/sbin/chroot", str(dnf_root)]
    cache = subprocess.run([*chroot, "ldconfig", "-p"], capture_output=True, text=True, timeout=30, check=True, env=env)
    assert "libcuda.so.1 (libc6,x86-64) => /usr/lib64/libcuda.so.1" in cache.stdout
    for program in ("dockerd", "containerd", "runc", "docker"):
        assert subprocess.run([*chroot, program, "--version"], capture_output=True, timeout=30, env=env).returncode == 0


def test_modified_files_are_refused(dnf_root: Path) -> None:
    """gpgcheck for the packages of NVIDIA, repo_gpgcheck for the metadata of the container toolkit."""
    platform, release, repositories = HOSTS["el9"]
    host = Dnf(dnf_root, platform, release, [*repositories, "cuda-rhel9"])
    directory = dnf_root / "mirror" / mirror.repositories()["cuda-rhel9"]["path"]
    unsigned = dnf_root / "unsigned"
    shutil.copytree(directory, unsigned)
    for name in ("libnvidia-cfg-610.57.04-1.el9.x86_64.rpm",):
        run(["/usr/bin/rpmsign", "--delsign", str(unsigned / name)], limit=30, what="take a signature away")
    shutil.rmtree(unsigned / "repodata")
    run(["/usr/bin/createrepo_c", "-q", str(unsigned)], limit=60, what="write metadata")
    text = (dnf_root / "etc/yum.repos.d/cuda-rhel9.repo").read_text()
    (dnf_root / "etc/yum.repos.d/cuda-rhel9.repo").write_text(re.sub(r"file:.*rhel9.*", "file:///unsigned", text))
    done = host.run("-y", "install", "libnvidia-cfg-610.57.04")
    shutil.rmtree(unsigned)
    assert done.returncode == 1
    assert "is not signed" in done.stdout + done.stderr
    toolkit = dnf_root / "mirror" / mirror.repositories()["container-toolkit-rpm"]["path"] / "repodata"
    changed = dnf_root / "changed"
    shutil.copytree(toolkit.parent, changed)
    repomd = changed / "repodata/repomd.xml"
    data = repomd.read_text().replace("<revision>", "<revision>1")
    repomd.unlink()  # the file is a link to the tree's
    repomd.write_text(data)
    host.add("container-toolkit-rpm")
    file = dnf_root / "etc/yum.repos.d/container-toolkit-rpm.repo"
    file.write_text(re.sub(r"file:.*nvidia.github.*", "file:///changed", file.read_text()))
    done = host.run("-y", "install", "nvidia-container-toolkit")
    shutil.rmtree(changed)
    assert done.returncode == 1
    assert "signature" in done.stdout + done.stderr


def test_every_stream_of_the_catalogs_is_offered(dnf_root: Path) -> None:
    platform, release, repositories = HOSTS["el9"]
    host = Dnf(dnf_root, platform, release, [*repositories, "cuda-rhel9"])
    listed = host.run("-q", "module", "list", "nvidia-driver").stdout
    for stream in mirror.streams()["nvidia-driver"]["streams"]:
        if not str(stream).startswith("470"):
            assert re.search(rf"^nvidia-driver {stream} ", listed, re.MULTILINE), stream
    assert "latest-dkms [d]" in listed
    assert yaml_load((mirror.DECLARATIONS / "streams.yml").read_text())
