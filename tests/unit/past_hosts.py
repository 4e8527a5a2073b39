"""Hosts that somebody else set up, as files and answers of programs; their plans are golden files in pasts/.

``.venv/bin/python -m tests.unit.past_hosts`` writes pasts/*.txt again: read the difference. Each past names the page or
project whose result it is; the packages and paths are those of that page.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]

from plugins.module_utils.gpu_ready.base.host import Result
from plugins.module_utils.gpu_ready.facts import driver_origin
from plugins.module_utils.gpu_ready.facts import rpm as rpm_facts
from plugins.module_utils.gpu_ready.facts.model import Facts
from plugins.module_utils.gpu_ready.packaging import rpm
from plugins.plugin_utils.gpu_ready.catalog import model as catalog
from plugins.plugin_utils.gpu_ready.completion import complete
from plugins.plugin_utils.gpu_ready.completion.probes import make_probes
from plugins.plugin_utils.gpu_ready.plan import audit, compose
from plugins.plugin_utils.gpu_ready.plan.answer import plan_audited
from plugins.plugin_utils.gpu_ready.plan.driver import parts
from plugins.plugin_utils.gpu_ready.settings.variables import parse_settings
from tests.unit import catalogs
from tests.unit.goldens import DRIVER, decide, step
from tests.unit.hosts import CARDS
from tests.unit.recorded import RecordedHost

DIRECTORY = Path(__file__).parent / "pasts"
SYSTEMS = {
    "debian12": ("6.1.0-50-amd64", 'ID=debian\nVERSION_ID="12"\nVERSION_CODENAME=bookworm\n'),
    "debian13": ("6.12.48+deb13-amd64", 'ID=debian\nVERSION_ID="13"\nVERSION_CODENAME=trixie\n'),
    "ubuntu2204": ("6.8.0-60-generic", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n'),
    "ubuntu2404": ("6.8.0-88-generic", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\nVERSION_CODENAME=noble\n'),
    "pop2204": (
        "6.17.4-76061704-generic",
        'ID=pop\nID_LIKE="ubuntu debian"\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\nUBUNTU_CODENAME=jammy\n',
    ),
    "el9": (
        "5.14.0-687.5.1.el9_8.x86_64",
        'ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.8"\nPLATFORM_ID="platform:el9"\n',
    ),
    "amzn2023": ("6.1.158-178.288.amzn2023.x86_64", 'ID="amzn"\nID_LIKE="fedora"\nVERSION_ID="2023"\n'),
    "fedora43": ("6.17.4-300.fc43.x86_64", 'ID=fedora\nVERSION_ID=43\nPLATFORM_ID="platform:f43"\n'),
}
CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/%s/x86_64"
UBUNTU = "http://archive.ubuntu.com/ubuntu noble-updates/restricted amd64"
DEBIAN = "http://mirror.example.org/debian bookworm/non-free amd64"
PPA = "https://ppa.launchpadcontent.net/graphics-drivers/ppa/ubuntu noble/main amd64"
OTHERS = {"nvidia_driver_branch": "595"}
REPLACE = {"nvidia_driver_replace_foreign": True}


class Past(NamedTuple):
    """``driver``: version and flavour on disk and of the libraries; ``loaded``: the same of the loaded module.

    ``place``: what apt-cache says of the driver's packages, or the section and vendor of RPMs; "" for dpkg's database
    alone. ``module``: directory of the module below that of the kernel. ``companions``: packages that are no driver.
    ``unoffered``: packages of services beside the driver that the driver's repository does not have.
    ``own_kernel``: /lib/modules has the running kernel.
    """

    title: str
    source: str
    system: str
    packages: Mapping[str, str] = {}
    companions: Mapping[str, str] = {}
    place: str = ""
    vendor: str = "(none)"
    urls: Mapping[str, str] = {}
    driver: tuple[str, str] | None = ("580.95.05", "open")
    loaded: tuple[str, str] | None = ("580.95.05", "open")
    libraries: tuple[str, ...] | None = None
    module: str = "updates/dkms"
    dkms: str = "nvidia"
    card: str = "T4"
    smi: bool = True
    without: tuple[str, ...] = ()
    switches: int = 0
    fabricmanager: bool = False
    own_kernel: bool = True
    files: Mapping[str, str] = {}
    requests: tuple[Mapping[str, Any], ...] = (OTHERS,)
    unoffered: tuple[str, ...] = ()


def ubuntu(branch: str, version: str, series: str = "", flavour: str = "-open", kind: str = "dkms") -> dict[str, str]:
    """Return what `apt install nvidia-driver-BRANCH...` leaves of Ubuntu's packaging."""
    name, kernel = branch + series, SYSTEMS["ubuntu2404"][0]
    names = [
        f"libnvidia-{part}-{name}" for part in ("cfg1", "common", "compute", "decode", "encode", "extra", "fbc1", "gl")
    ]
    names += [f"nvidia-{part}-{name}" for part in ("kernel-common", "compute-utils", "utils")]
    names += [f"nvidia-firmware-{name}-{version.partition('-')[0]}", f"nvidia-driver-{name}{flavour}"]
    names += [f"nvidia-kernel-source-{name}{flavour}", f"xserver-xorg-video-nvidia-{name}"]
    found = dict.fromkeys(names, version)
    if kind == "dkms":
        return {**found, f"nvidia-dkms-{name}{flavour}": version}
    modules = [f"linux-{part}-nvidia-{name}{flavour}-{kernel}" for part in ("modules", "objects")]
    modules += [f"linux-modules-nvidia-{name}{flavour}-generic", f"linux-signatures-nvidia-{kernel}"]
    return {**found, **dict.fromkeys(modules, "6.8.0-88.89")}


def gpgpu(version: str) -> dict[str, str]:
    """Return what `ubuntu-drivers install --gpgpu` leaves: no nvidia-utils, thus no nvidia-smi."""
    kernel = SYSTEMS["ubuntu2404"][0]
    names = ["nvidia-headless-no-dkms-580-server-open", "libnvidia-compute-580-server", "libnvidia-cfg1-580-server"]
    names += [
        "nvidia-compute-utils-580-server",
        "nvidia-kernel-common-580-server",
        "nvidia-firmware-580-server-580.95.05",
    ]
    modules = [f"linux-modules-nvidia-580-server-open-{kernel}", f"linux-objects-nvidia-580-server-open-{kernel}"]
    return {**dict.fromkeys(names, version), **dict.fromkeys(modules, "6.8.0-88.89")}


def debian(version: str, *more: str) -> dict[str, str]:
    """Return what `apt install nvidia-driver` leaves on Debian."""
    names = "nvidia-driver nvidia-driver-bin nvidia-driver-libs nvidia-kernel-dkms nvidia-kernel-support nvidia-alternative "
    names += (
        "nvidia-legacy-check nvidia-smi nvidia-vdpau-driver libcuda1 libnvidia-ml1 libnvidia-cfg1 libnvidia-glcore "
    )
    names += (
        "libnvidia-ptxjitcompiler1 libgl1-nvidia-glvnd-glx libegl-nvidia0 firmware-nvidia-gsp xserver-xorg-video-nvidia"
    )
    return dict.fromkeys([*names.split(), *more], version)


def rpms(version: str, names: str) -> dict[str, str]:
    return dict.fromkeys(names.split(), version)


CUDA_DEBS = {**ubuntu("580", "580.95.05-0ubuntu1"), "nvidia-persistenced": "580.95.05-0ubuntu1"}
CUDA_RPMS = "nvidia-driver nvidia-driver-cuda nvidia-driver-cuda-libs nvidia-driver-libs libnvidia-ml libnvidia-cfg "
CUDA_RPMS += "libnvidia-gpucomp nvidia-kmod-common nvidia-persistenced kmod-nvidia-open-dkms"
FUSION_RPMS = "akmod-nvidia kmod-nvidia-6.17.4-300.fc43.x86_64 xorg-x11-drv-nvidia xorg-x11-drv-nvidia-cuda "
FUSION_RPMS += (
    "xorg-x11-drv-nvidia-cuda-libs xorg-x11-drv-nvidia-libs xorg-x11-drv-nvidia-kmodsrc xorg-x11-drv-nvidia-power"
)
NEGATIVO_RPMS = (
    "nvidia-driver nvidia-driver-cuda nvidia-driver-cuda-libs nvidia-driver-libs libnvidia-ml nvidia-kmod-common "
)
RUNFILE = {
    "/usr/bin/nvidia-uninstall": "",
    "/usr/bin/nvidia-installer": "",
    "/var/lib/nvidia/log": "1.0-5809505 (580.95.05)\n",
}
DGX = (
    "nvidia-system-core nvidia-system-utils nvidia-system-extra nvidia-crashdump nvidia-acs-disable nvidia-raid-config "
)
DGX += "nvidia-repo-keys nvidia-mig-manager nvidia-fs-dkms nvidia-fs nvidia-gds nvidia-conf-cachefilsd nvidia-nvme-options "
DGX += "nvidia-peermem-loader nv-persistence-mode nvidia-fs-loader dgx-release dgx-repo nvidia-fabricmanager-580"
ELREPO = "kmod-nvidia-580xx nvidia-x11-drv-580xx nvidia-x11-drv-580xx-libs"
HPC = {"nvidia-fs-dkms": "2.25-1", "nvidia-gds-13-0": "13.0.1-1", "mlnx-ofed-kernel-dkms": "24.10-1"}
HPC |= {"gdrdrv-dkms": "2.5-1", "nvidia-peermem-loader": "1.0-1", "nvidia-fabricmanager-580": "580.95.05-1"}

PRIME_INTEL = (
    "# Do not modify\n# This file was generated by nvidia-prime\nblacklist nvidia\nblacklist nvidia-drm\n"
    "blacklist nvidia-modeset\nalias nvidia off\nalias nvidia-drm off\nalias nvidia-modeset off\n"
)
PASTS = {
    "bare-ubuntu": Past(
        "a bare host", "the image of the distribution", "ubuntu2404", driver=None, loaded=None, smi=False
    ),
    "cuda-keyring-ubuntu": Past(
        "NVIDIA's page: cuda-keyring, then nvidia-open",
        "docs.nvidia.com, CUDA installation guide",
        "ubuntu2404",
        CUDA_DEBS | {"nvidia-open": "580.95.05-0ubuntu1"},
        {"cuda-keyring": "1.1-1", "nvidia-driver-pinning-580": "580-1", "nvidia-settings": "580.95.05-0ubuntu1"},
        CUDA % "ubuntu2404",
    ),
    "cuda-keyring-debian": Past(
        "NVIDIA's page: cuda-keyring, then cuda-drivers",
        "docs.nvidia.com, CUDA installation guide",
        "debian12",
        debian("580.95.05-1", "cuda-drivers", "nvidia-driver-cuda", "libcudadebugger1", "nvidia-persistenced"),
        {"cuda-keyring": "1.1-1"},
        CUDA % "debian12",
        driver=("580.95.05", "proprietary"),
        loaded=("580.95.05", "proprietary"),
    ),
    "cuda-version-left-the-repository": Past(
        "the same, of a version that the repository no longer has, recognised by its revision",
        "NVIDIA/ansible-role-nvidia-driver#60",
        "ubuntu2404",
        CUDA_DEBS,
    ),
    "cuda-repository-removed": Past(
        "an image with the compute packages of NVIDIA's repository, which was removed so that no update moves them",
        "NVIDIA/ansible-role-nvidia-driver#60",
        "ubuntu2404",
        {name: version for name, version in CUDA_DEBS.items() if name != "nvidia-persistenced"},
    ),
    "local-repository-without-persistenced": Past(
        "a site's repository of the driver alone",
        "general knowledge",
        "ubuntu2404",
        {name: version for name, version in CUDA_DEBS.items() if name != "nvidia-persistenced"},
        place="file:/var/cuda-repo-ubuntu2404-13-0-local",
        unoffered=("nvidia-persistenced", "nvidia-fabricmanager"),
    ),
    "cuda-repository-removed-nvswitch": Past(
        "the same image on a host with NVSwitches, which needs a fabric manager",
        "general knowledge",
        "ubuntu2404",
        CUDA_DEBS,
        card="H100",
        switches=4,
        requests=(OTHERS, {"nvidia_driver_version": "580.105.08"}),
    ),
    "cuda-repository-removed-el9": Past(
        "the same image on Enterprise Linux",
        "general knowledge",
        "el9",
        rpms("3:580.95.05-1.el9", CUDA_RPMS.replace("nvidia-persistenced ", "")),
        place="cuda-rhel9-x86_64",
        urls={"baseos": "http://mirror.example/rocky/9/BaseOS/x86_64/os/"},
        module="extra",
        files={
            "/etc/dnf/modules.d/nvidia-driver.module": "[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nstate=enabled\n"
        },
    ),
    "cuda-local-repository": Past(
        "NVIDIA's local repository",
        "docs.nvidia.com, CUDA installation guide, local installer",
        "ubuntu2404",
        CUDA_DEBS,
        {
            "cuda-repo-ubuntu2404-13-0-local": "13.0.2-580.95.05-1",
            "nvidia-driver-local-repo-ubuntu2404-580.95.05": "1.0-1",
        },
        "file:/var/cuda-repo-ubuntu2404-13-0-local",
    ),
    "ubuntu-drivers-gpgpu": Past(
        "ubuntu-drivers install --gpgpu",
        "ubuntu-drivers-common @ d3d7856",
        "ubuntu2404",
        gpgpu("580.95.05-0ubuntu0.24.04.1"),
        place=UBUNTU,
        module="kernel/nvidia-580srv-open",
        dkms="",
        smi=False,
    ),
    "ubuntu-drivers-gpgpu-outdated": Past(
        "the same, of a version that the archive no longer has: nothing can be added in that version",
        "ubuntu-drivers-common @ d3d7856",
        "ubuntu2404",
        gpgpu("580.95.05-0ubuntu0.24.04.1"),
        module="kernel/nvidia-580srv-open",
        dkms="",
        smi=False,
    ),
    "ubuntu-drivers-server": Past(
        "apt install nvidia-driver-580-server-open",
        "ubuntu-drivers-common @ d3d7856",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0.24.04.1", "-server", kind="precompiled"),
        place=UBUNTU,
        module="kernel/nvidia-580srv-open",
        dkms="",
    ),
    "ubuntu-drivers-desktop": Past(
        "ubuntu-drivers install",
        "ubuntu-drivers-common @ d3d7856",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0.24.04.1", kind="precompiled"),
        {"nvidia-prime": "0.8.17.2", "nvidia-settings": "510.47.03-0ubuntu4"},
        UBUNTU,
        module="kernel/nvidia-580-open",
        dkms="",
        requests=(OTHERS, {"nvidia_driver_source": "distro"}),
    ),
    "ubuntu-prime-select-intel": Past(
        "ubuntu-drivers install, then prime-select intel and a reboot",
        "canonical/nvidia-prime issue 20",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0.24.04.1", kind="precompiled"),
        {"nvidia-prime": "0.8.17.2", "nvidia-settings": "510.47.03-0ubuntu4"},
        UBUNTU,
        loaded=None,
        module="kernel/nvidia-580-open",
        dkms="",
        files={"/lib/modprobe.d/blacklist-nvidia.conf": PRIME_INTEL},
        requests=({"nvidia_driver_source": "none"},),
    ),
    "ubuntu-desktop-dkms": Past(
        "apt install nvidia-driver-580-open with DKMS",
        "ubuntu-drivers-common @ d3d7856",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0.24.04.1"),
        {"nvidia-prime": "0.8.17.2"},
        UBUNTU,
    ),
    "ubuntu-half-upgraded": Past(
        "unattended-upgrades replaced module and libraries under the loaded module",
        "canonical/nvidia-graphics-drivers#78",
        "ubuntu2404",
        ubuntu("580", "580.178.04-0ubuntu0.24.04.1", "-server", kind="precompiled"),
        place=UBUNTU,
        driver=("580.178.04", "open"),
        module="kernel/nvidia-580srv-open",
        dkms="",
    ),
    "ubuntu-libraries-only-upgraded": Past(
        "unattended-upgrades replaced the libraries alone",
        "canonical/nvidia-graphics-drivers#79",
        "ubuntu2404",
        ubuntu("580", "580.178.04-0ubuntu0.24.04.1", "-server", kind="precompiled"),
        place=UBUNTU,
        libraries=("580.178.04",),
        module="kernel/nvidia-580srv-open",
        dkms="",
    ),
    "debian-nvidia-driver": Past(
        "Debian's page: apt install nvidia-driver",
        "wiki.debian.org/NvidiaGraphicsDrivers",
        "debian12",
        debian("535.261.03-1"),
        {"nvidia-settings": "535.171.04-1", "nvidia-support": "20220217+3~deb12u1", "nvidia-modprobe": "535.161.07-1"},
        DEBIAN,
        driver=("535.261.03", "proprietary"),
        loaded=("535.261.03", "proprietary"),
        dkms="nvidia-current",
        requests=(
            {"nvidia_driver_branch": "580"},
            {"nvidia_driver_branch": "580", "nvidia_driver_source": "cuda_repo"},
        ),
    ),
    "debian-nvidia-driver-without-recommends": Past(
        "the same with --no-install-recommends: libcuda1, nvidia-smi and nvidia-modprobe are missing",
        "wiki.debian.org/NvidiaGraphicsDrivers",
        "debian12",
        {name: version for name, version in debian("535.261.03-1").items() if name not in ("libcuda1", "nvidia-smi")},
        {},
        DEBIAN,
        driver=("535.261.03", "proprietary"),
        loaded=("535.261.03", "proprietary"),
        dkms="nvidia-current",
        without=("libcuda",),
        smi=False,
    ),
    "graphics-drivers-ppa": Past(
        "the graphics-drivers PPA",
        "launchpad.net/~graphics-drivers",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0~gpu24.04.1"),
        {"nvidia-prime": "0.8.17.2"},
        PPA,
    ),
    "graphics-drivers-ppa-half-upgraded": Past(
        "the same after an upgrade whose module was not built",
        "launchpad.net/~graphics-drivers",
        "ubuntu2404",
        ubuntu("580", "580.178.04-0ubuntu0~gpu24.04.1"),
        {},
        PPA,
        libraries=("580.178.04",),
    ),
    "graphics-drivers-ppa-removed": Past(
        "the same after the PPA was removed, recognised by its revision",
        "launchpad.net/~graphics-drivers",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0~gpu24.04.1"),
    ),
    "pop-os": Past(
        "Pop!_OS with system76-driver-nvidia",
        "pop-os/system76-driver @ 95f75c2",
        "pop2204",
        ubuntu("580", "580.95.05-1pop0~1760000000~22.04~abcdef0"),
        {"system76-driver-nvidia": "20.04.99", "pop-default-settings": "5.1.0"},
        "http://apt.pop-os.org/release jammy/main amd64",
        files={"/etc/apt/preferences.d/system76-apt-preferences": "Pin-Priority: 1001\n"},
    ),
    "lambda-stack": Past(
        "Lambda Stack",
        "lambdal/lambda-stack-dockerfiles",
        "ubuntu2204",
        ubuntu("580", "580.95.05-0lambda0.22.04.1", "-server"),
        {"lambda-stack-cuda": "0.1.15", "nvidia-container-toolkit": "1.18.1-0lambda0.22.04.1"},
        "http://archive.lambdalabs.com/ubuntu jammy/main amd64",
        files={"/etc/apt/preferences.d/lambda": "Package: *\nPin: origin archive.lambdalabs.com\nPin-Priority: 1001\n"},
    ),
    "dgx-os": Past(
        "DGX OS 7",
        "docs.nvidia.com/dgx/dgx-os-7-user-guide",
        "ubuntu2404",
        ubuntu("580", "580.95.05-0ubuntu0.24.04.1"),
        dict.fromkeys(DGX.split(), "24.04-1"),
        "https://repo.download.nvidia.com/baseos/ubuntu/noble/x86_64 noble/common amd64",
        card="H100",
        switches=4,
        fabricmanager=True,
        files={"/etc/dgx-release": 'DGX_NAME="DGX Server"\n'},
    ),
    "gds-ofed-peermem": Past(
        "GDS, OFED, GDRCopy and fabric manager beside NVIDIA's driver",
        "Azure/azhpc-images @ 8e9d055f, Ubuntu",
        "ubuntu2404",
        CUDA_DEBS | {"nvidia-open": "580.95.05-0ubuntu1"},
        HPC,
        CUDA % "ubuntu2404",
        card="H100",
        switches=4,
        fabricmanager=True,
    ),
    "runfile": Past(
        "NVIDIA's .run installer, without DKMS",
        "NVIDIA/nvidia-installer @ 00aaa9f",
        "el9",
        module="kernel/drivers/video",
        dkms="",
        files=RUNFILE,
        requests=(OTHERS, {"nvidia_driver_source": "runfile", "nvidia_driver_version": "580.95.05"}),
    ),
    "runfile-dkms-nvidia-packages": Past(
        "the same with --dkms, beside GDS, MIG manager, settings and a local repository",
        "NVIDIA/nvidia-installer @ 00aaa9f",
        "ubuntu2404",
        {},
        {
            "nvidia-driver-local-repo-ubuntu2404-580.95.05": "1.0-1",
            "nvidia-fs-dkms": "2.25-1",
            "nvidia-mig-manager": "0.5.5-1",
            "nvidia-settings": "1-1",
        },
        files=RUNFILE,
    ),
    "runfile-fabricmanager": Past(
        "the image of Azure HPC for EL: .run driver, fabric manager as RPM",
        "Azure/azhpc-images @ 8e9d055f",
        "el9",
        {},
        {"nvidia-fabricmanager": "580.95.05-1", "datacenter-gpu-manager-4-core": "1:4.4.1-1"},
        module="extra",
        files=RUNFILE,
        card="H100",
        switches=4,
        fabricmanager=True,
    ),
    "runfile-over-packages": Past(
        "a .run installer over the packages of the distribution",
        "NVIDIA/nvidia-installer @ 00aaa9f",
        "ubuntu2404",
        ubuntu("535", "535.261.03-0ubuntu0.24.04.1", "-server"),
        {},
        UBUNTU,
        libraries=("580.95.05", "535.261.03"),
        files=RUNFILE,
    ),
    "cuda-repo-el9": Past(
        "NVIDIA's page: cuda-rhel9.repo, nvidia-driver:580-open",
        "docs.nvidia.com, driver installation guide",
        "el9",
        rpms("3:580.95.05-1.el9", CUDA_RPMS),
        place="cuda-rhel9-x86_64",
        urls={"cuda-rhel9-x86_64": CUDA % "rhel9"},
        module="extra",
        files={
            "/etc/dnf/modules.d/nvidia-driver.module": "[nvidia-driver]\nname=nvidia-driver\nstream=580-open\nstate=enabled\n"
        },
    ),
    "nvidia-role-el9": Past(
        "the role nvidia.nvidia_driver: section [cuda] of a file of its own",
        "NVIDIA/ansible-role-nvidia-driver @ f68d4a7",
        "el9",
        rpms("3:580.95.05-1.el9", CUDA_RPMS),
        place="cuda",
        urls={"cuda": CUDA % "rhel9"},
        module="extra",
    ),
    "rpmfusion": Past(
        "RPM Fusion: akmod-nvidia",
        "rpmfusion/xorg-x11-drv-nvidia @ 46fcdbf",
        "fedora43",
        rpms("3:580.95.05-1.fc43", FUSION_RPMS),
        {"rpmfusion-nonfree-release": "43-1", "nvidia-settings": "3:580.95.05-1.fc43"},
        "rpmfusion-nonfree-nvidia-driver",
        "RPM Fusion",
        module="extra/nvidia",
        dkms="",
    ),
    "rpmfusion-nvswitch": Past(
        "RPM Fusion on a host with NVSwitches, where it has no fabric manager",
        "rpmfusion/xorg-x11-drv-nvidia @ 46fcdbf",
        "fedora43",
        rpms("3:580.95.05-1.fc43", FUSION_RPMS),
        {},
        "rpmfusion-nonfree-nvidia-driver",
        "RPM Fusion",
        module="extra/nvidia",
        dkms="",
        card="H100",
        switches=4,
    ),
    "negativo17": Past(
        "negativo17: dkms-nvidia",
        "negativo17/nvidia-driver @ f769f88",
        "fedora43",
        rpms("3:580.95.05-1.fc43", NEGATIVO_RPMS + "dkms-nvidia"),
        place="fedora-nvidia",
        urls={"fedora-nvidia": "https://negativo17.org/repos/nvidia/fedora-43/x86_64/"},
        module="extra",
    ),
    "elrepo": Past(
        "ELRepo: kmod-nvidia-580xx",
        "elrepo/packages @ 0479b660",
        "el9",
        rpms("580.95.05-1.el9.elrepo", ELREPO),
        {"elrepo-release": "9.1-1.el9.elrepo"},
        "elrepo",
        "The ELRepo Project (https://elrepo.org)",
        driver=("580.95.05", "proprietary"),
        loaded=("580.95.05", "proprietary"),
        module="weak-updates/nvidia",
        dkms="",
    ),
    "site-packages": Past(
        "packages that the site built itself: nobody is named",
        "no page: the case that no rule knows",
        "ubuntu2404",
        ubuntu("580", "580.95.05+site3"),
        {},
        "https://apt.site.example/gpu stable/main amd64",
    ),
    "eks": Past(
        "Amazon EKS, AL2023, before its unit chose a module",
        "awslabs/amazon-eks-ami @ 81fec2e8",
        "amzn2023",
        rpms("3:580.95.05-1.amzn2023", CUDA_RPMS.replace("-open-dkms", "-latest-dkms")),
        {"nvidia-fabricmanager": "580.95.05-1"},
        "cuda-amzn2023-x86_64",
        driver=None,
        loaded=None,
        libraries=("580.95.05",),
        files={"/etc/eks/nvidia-kmod-load.sh": "", "/etc/eks/release": ""},
    ),
    "ecs": Past(
        "Amazon ECS, AL2023, open module loaded",
        "aws/amazon-ecs-ami @ a2532d3",
        "amzn2023",
        rpms("3:580.95.05-1.amzn2023", CUDA_RPMS),
        {"nvidia-release": "2023-1"},
        "amazonlinux-nvidia",
        "Amazon Linux",
        module="extra",
        files={"/var/lib/dkms-archive/nvidia/580.95.05.tar.gz": "", "/etc/yum.repos.d/amazonlinux-nvidia.repo": ""},
    ),
    "gpu-operator": Past(
        "a driver container of the GPU Operator",
        "NVIDIA/gpu-driver-container @ 06a208c",
        "ubuntu2404",
        driver=None,
        smi=False,
        files={"/run/nvidia/driver/usr/bin/nvidia-smi": "", "/run/nvidia/validations/driver-ready": ""},
    ),
    "vgpu-manager": Past(
        "NVIDIA's vGPU manager for KVM",
        "NVIDIA vGPU user guide",
        "ubuntu2404",
        {},
        {"nvidia-vgpu-ubuntu-580": "580.95.02"},
        driver=("580.95.02", "proprietary"),
        loaded=("580.95.02", "proprietary"),
        libraries=(),
        files={"/sys/module/nvidia_vgpu_vfio/refcnt": "0\n", "/usr/bin/nvidia-vgpud": ""},
    ),
    "lxc-guest": Past(
        "a container of Proxmox with the libraries of a .run installer (--no-kernel-modules)",
        "NVIDIA/nvidia-container-runtime#25",
        "debian12",
        driver=None,
        libraries=("580.95.05",),
        files={"/run/systemd/container": "lxc\n", **RUNFILE},
    ),
    "kernel-from-outside": Past(
        "a microVM, or a container that is none of LXC: the kernel and its driver are of the machine that starts it",
        "firecracker-microvm/firecracker, docs/rootfs-and-kernel-setup.md; the environment of NVIDIA's CUDA images",
        "ubuntu2404",
        driver=None,
        own_kernel=False,
        smi=False,
        files={
            "/usr/local/nvidia/lib64/libcuda.so.580.95.05": "",
            "/usr/local/nvidia/lib64/libnvidia-ml.so.580.95.05": "",
            "/usr/local/nvidia/bin/nvidia-smi": "",
        },
    ),
    "wsl2": Past(
        "WSL2",
        "NVIDIA/nvidia-container-toolkit @ d34b3046",
        "ubuntu2404",
        driver=None,
        loaded=None,
        card="",
        files={"/dev/dxg": "", "/usr/lib/wsl/lib/nvidia-smi": ""},
    ),
    "base-command-manager": Past(
        "a node of Base Command Manager, whose image has the libraries elsewhere",
        "public node images",
        "el9",
        driver=None,
        smi=False,
        files={"/cm/local/apps/cuda-driver/libs/580.95.05/lib64/libcuda.so.1": ""},
    ),
}
"""The states in which hosts come, by the name of their golden file."""


# ---- the host -------------------------------------------------------------------------------------------------------


def recorded(past: Past) -> RecordedHost:
    """Return the host of a past."""
    kernel, release = SYSTEMS[past.system]
    is_rpm = past.system in ("el9", "fedora43", "amzn2023")
    files = {"/etc/os-release": release, "/proc/sys/kernel/osrelease": kernel + "\n", f"/boot/vmlinuz-{kernel}": ""}
    if past.own_kernel:
        files |= {f"/lib/modules/{kernel}/kernel/fs/x.ko": "", f"/lib/modules/{kernel}/build/Makefile": ""}
    files["/usr/bin/gcc"] = ""
    files |= {"/usr/sbin/dracut": "", "/usr/sbin/update-initramfs": "", "/proc/sys/kernel/random/boot_id": "b0\n"}
    files["/etc/modprobe.d/blacklist-nouveau.conf"] = "blacklist nouveau\n"
    devices = [("0000:3b:00.0", CARDS[past.card], "030200")] if past.card else []
    devices += [(f"0000:0{number}:00.0", "22a3", "068000") for number in range(past.switches)]
    for address, device, kind in devices:
        values = {"vendor": "0x10de", "device": "0x" + device, "class": "0x" + kind}
        files |= {f"/sys/bus/pci/devices/{address}/{name}": value + "\n" for name, value in values.items()}
    programs: dict[tuple[str, ...], Result] = {}
    if past.driver:
        path = f"/lib/modules/{kernel}/{past.module}/nvidia.ko"
        files[path] = "module"
        programs["modinfo", path] = Result(0, modinfo(*past.driver), "")
    if past.driver and past.dkms:
        files[f"/var/lib/dkms/{past.dkms}/{past.driver[0]}/{kernel}/x86_64/module/nvidia.ko"] = ""
    if past.loaded:
        kind = " Open Kernel Module for x86_64" if past.loaded[1] == "open" else " x86_64 Kernel Module"
        files["/proc/driver/nvidia/version"] = f"NVRM version: NVIDIA UNIX{kind}  {past.loaded[0]}  Release Build\n"
        files["/sys/module/nvidia/version"] = past.loaded[0] + "\n"
    directory = "/usr/lib64/" if is_rpm else "/usr/lib/x86_64-linux-gnu/"
    versions = past.libraries if past.libraries is not None else (past.driver[0],) if past.driver else ()
    files |= {
        f"{directory}{name}.so.{one}": "" for one in versions for name in {"libcuda", "libnvidia-ml"} - {*past.without}
    }
    if past.smi:
        files["/usr/bin/nvidia-smi"] = ""
    programs["systemctl", "is-active", "--quiet", "nvidia-fabricmanager"] = Result(
        0 if past.fabricmanager else 3, "", ""
    )
    packages = {**past.packages, **past.companions}
    if is_rpm:
        rows, answers = rpm_database(past, packages)
        files |= rows
        programs |= answers
    else:
        stanza = "Package: %s\nStatus: install ok installed\nArchitecture: amd64\nVersion: %s\n"
        files["/var/lib/dpkg/status"] = "\n".join(stanza % pair for pair in sorted(packages.items()))
        files["/etc/apt/sources.list"] = "deb http://deb.example/os suite main contrib non-free restricted multiverse\n"
        probes = make_probes()
        deciding = driver_origin.deciding_versions(probes, dict(past.packages))
        named = driver_origin.companion_names(probes.companions, deciding) if past.packages else []
        asked = sorted({*probes.deciding_packages(past.packages), *named})
        programs["apt-cache", "policy", *asked] = Result(0, policy(past, asked), "")
    return RecordedHost(files={**files, **past.files}, programs=programs)


def modinfo(version: str, flavour: str) -> str:
    licence = "Dual MIT/GPL" if flavour == "open" else "NVIDIA"
    return f"version:        {version}\nlicense:        {licence}\n"


def policy(past: Past, names: list[str]) -> str:
    """Return what apt-cache policy prints of these packages (tested with the real one in test_driver_origin.py)."""
    text = ""
    for name in names:
        version = {**past.packages, **past.companions}.get(name, "")
        if not version and past.place and name not in past.unoffered:
            text += (
                f"{name}:\n  Installed: (none)\n  Version table:\n     {past.driver[0] if past.driver else 1}-1 500\n"
            )
            text += f"        500 {past.place} Packages\n"
        if not version:
            continue
        text += f"{name}:\n  Installed: {version}\n  Candidate: {version}\n  Version table:\n *** {version} 500\n"
        text += f"        500 {past.place} Packages\n" if past.place else ""
        text += "        100 /var/lib/dpkg/status\n"
    return text


def rpm_database(past: Past, packages: Mapping[str, str]) -> tuple[dict[str, str], dict[tuple[str, ...], Result]]:
    """Return the files and answers by which RPMs, their vendor and the section that dnf recorded are known."""
    rows = ""
    for name, evr in {**packages, "bash": "5.2-1"}.items():
        epoch, version, release = rpm.split_evr(evr)
        rows += f"{name}\t{epoch}\t{version}\t{release}\tx86_64\n"
    asked = make_probes().deciding_packages(past.packages)
    vendors = "".join(f"{name}\t{past.vendor}\t(none)\n" for name in asked)
    nevras = "".join(
        f'"{name}-{past.packages[name]}.x86_64" = {{from_repo="{past.place}"}}\n' for name in asked if past.place
    )
    files = {"/usr/lib/sysimage/libdnf5/nevras.toml": 'version = "1.0"\n[nevras]\n' + nevras}
    sections = "".join(f"[{name}]\nbaseurl={url}\nenabled=1\n" for name, url in past.urls.items())
    files["/etc/yum.repos.d/past.repo"] = sections
    return files, {
        tuple(rpm.QUERY): Result(0, rows, ""),
        ("rpm", "-q", "--qf", rpm_facts.VENDOR, *asked): Result(0, vendors, ""),
    }


# ---- the plan -------------------------------------------------------------------------------------------------------


def verdict(facts: Facts, decided: compose.Plan) -> str:
    """Return what happens to the driver in one word, with the message of a refusal."""
    if decided.refusals:
        return "\n".join(f"REFUSE {one.code}: {one.message}\n  remedy: {one.remedy}" for one in decided.refusals)
    if not decided.gpu_host:
        return decided.summary
    chosen = decided.choices.driver
    assert chosen
    name = f"{chosen.source} {chosen.version or chosen.branch} {chosen.flavour} {chosen.kind}"
    if chosen.satisfied:
        return f"ADOPT {name}"
    if chosen.extends:
        return f"EXTEND {name}"
    if facts.driver.origin is None:
        return f"INSTALL {name}"
    return ("REPLACE by " if parts.is_foreign(facts, chosen) else "CHANGE to ") + name


def block(facts: Facts, title: str, request: Mapping[str, Any]) -> list[str]:
    """Return the plan for a request: the verdict, the driver's steps, the warnings."""
    decided, state = decide(facts, **request), set(facts.driver.packages)
    lines = ["", f"## {title}", verdict(facts, decided)]
    for one in decided.steps:
        if one.role in DRIVER:
            lines += [shorten(line, state) for line in step(one)]
    return lines + [f"  warning {one.code}: {one.message}" for one in decided.warnings]


def shorten(line: str, packages: set[str]) -> str:
    """Return a list of most driver packages of the host as those that it leaves out."""
    key, _, names = line.partition("=")
    listed = set(names.split())
    if len(listed) < 6 or not listed <= packages:
        return line
    left = sorted(packages - listed)
    return f"{key}=all driver packages" + (f" but {' '.join(left)}" if left else "")


def text(name: str) -> str:
    """Return the golden file of a past."""
    past = PASTS[name]
    facts = complete.collect_facts(recorded(past))
    state = facts.driver
    shown = {"system": catalog.distro(facts.base.distro or "")["pretty"], "gpus": compose.gpus_text(facts.base)}
    shown["on disk"] = f"{state.on_disk.version} {state.on_disk.flavour}" if state.on_disk else "nothing"
    shown["loaded"] = f"{state.loaded.version} {state.loaded.flavour}" if state.loaded else "nothing"
    shown["libraries"] = ", ".join(state.userspace) or "none"
    shown["missing"] = ", ".join(state.missing_parts) or "nothing"
    shown["origin"] = (state.origin or "no driver") + (f" ({state.repository})" if state.repository else "")
    shown["managed by"] = facts.base.managed_by or "nobody"
    lines = [f"# {past.title}", f"# {past.source}", ""] + [f"{key}: {value}" for key, value in shown.items()]
    lines += ["driver packages:", *(f"  {one} {version}" for one, version in sorted(state.packages.items()))]
    lines += ["never touched:", *(f"  {one}" for one in sorted({*past.companions, *past.packages} - {*state.packages}))]
    lines += block(facts, "default variables", {})
    for request in past.requests:
        lines += block(facts, ", ".join(f"{key}: {value}" for key, value in request.items()), request)
    if any(one.refusals for one in (decide(facts), *(decide(facts, **request) for request in past.requests))):
        request = {**past.requests[-1], **REPLACE}
        lines += block(facts, ", ".join(f"{key}: {value}" for key, value in request.items()), request)
    return "\n".join(lines + audit_block(past)) + "\n"


def audit_block(past: Past) -> list[str]:
    """Return the audit against the default variables: the state, and each check that is not fine."""
    facts = complete.collect_facts(recorded(past))
    answer: dict[str, Any] = audit.answer_json(facts, plan_audited(facts, parse_settings({}).settings, []))
    lines = ["", "## audit", answer["state"], *(f"  {line}" for line in answer["why"] if answer["state"] == "refused")]
    for one in answer["checks"]:
        found = f"{one['found']}, desired: {one['desired']}" if one["found"] != one["desired"] else one["found"]
        words = {True: "ok", False: "DRIFT", None: "info"}[one["ok"]]
        lines.append(f"  {words} {one['name']}: {found}" + (f": {one['why']}" if one["why"] else ""))
    return lines + [f"  holder {one['pid']} {one['name']}" for one in answer["holders"]]


def main() -> None:
    """Write every golden file; a branch that came after 620 changes none of them."""
    for path in DIRECTORY.glob("*.txt"):
        path.unlink()
    with catalogs.until(620):
        for name in PASTS:
            (DIRECTORY / f"{name}.txt").write_text(text(name))


if __name__ == "__main__":
    main()
