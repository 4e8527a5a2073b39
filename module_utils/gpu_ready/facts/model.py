"""The facts of a host as records. The collectors of this package make them, the planners of ``plan/`` read them.

Absent is None. The defaults describe a host on which nothing is installed.
"""

from typing import Dict, List, NamedTuple, Optional, Tuple

from ..base import records
from ..check import pci
from ..check.model import Finding, GpuIdentity, XidFacts
from ..containers.containerd.config import ConfigFile
from ..containers.docker import DockerdFlag, EngineInfo
from ..driver.persistence_state import Persistence
from ..packaging.index_record import PackageIndex
from ..system.model import OsRelease
from ..system.modprobe_files import ModprobeLine
from ..upgrade.model import UpgradeJournal

SCHEMA = 1
"""Of facts as JSON. Recorded facts with another one are refused."""


# ---- the system ----------------------------------------------------------------------------------------------------


class KernelFacts(NamedTuple):
    """``next_boot``: the kernel that boots next. ``headers``: by kernel, whether they are installed."""

    running: str
    installed: List[str]
    next_boot: str
    headers: Dict[str, bool]


class SecureBootFacts(NamedTuple):
    """``on``: the kernel loads signed modules only. ``certificate``: the path at which DKMS expects or creates its own.

    ``key`` is that path where the certificate exists, ``enrolled`` whether the firmware or shim trusts it. ``by``: what
    says that it is on: "firmware", the "kernel" itself, or "unknown" where neither can be read.
    """

    on: bool = False
    key: Optional[str] = None
    certificate: Optional[str] = None
    enrolled: bool = False
    by: str = "firmware"


class GpuFacts(NamedTuple):
    """A GPU: PCI address, device id (four hexadecimal digits), bound kernel driver, the catalog's name.

    ``vgpu`` is None for a physical GPU, else the driver version of the hypervisor ("" where it is unknown). ``silent``:
    its PCI configuration reads as ones.
    """

    address: str
    device: str
    driver: Optional[str]
    name: str
    vgpu: Optional[str] = None
    silent: bool = False


class FunctionFacts(NamedTuple):
    """An NVIDIA function that is no GPU. ``what``: what it is; "nvlink5" for a switch without a PCI function."""

    address: str
    device: str
    driver: Optional[str]
    what: str = ""


FOREIGN_DRIVERS = pci.FOREIGN_DRIVERS
"""Of GPUs that virtual machines have, or may get."""
KERNEL_OUTSIDE = "kernel_outside"
"""The row of catalog/managed_hosts.yml for a system that has the driver loaded, and nothing of the running kernel."""
MODULE_ELSEWHERE = ("lxc", KERNEL_OUTSIDE)
"""The rows for systems whose kernel and modules are files of the machine that starts them."""
FABRIC_MODULES = ("mlx5_ib", "ib_umad")
"""Kernel modules through which the fabric manager reaches NVLink 5 switches, in order of loading."""


class UmadFacts(NamedTuple):
    """FABRIC_MODULES, of which the fabric manager's script asks for ib_umad by name.

    ``present``: the running kernel has both. ``at_boot``: a file loads ib_umad at boot, as udev loads mlx5_ib.
    """

    present: bool = False
    loaded: bool = False
    at_boot: bool = False


class NouveauFacts(NamedTuple):
    """The kernel's own driver, nouveau or nova_core. ``bound``: PCI addresses of the GPUs that it drives."""

    name: Optional[str] = None
    loaded: bool = False
    bound: List[str] = []
    blacklisted: bool = False


class BaseFacts(NamedTuple):
    """The system. ``distro``: its name in the catalog. ``image``: /usr is an image (ostree, bootc), thus read-only.

    ``managed_by``: who has the driver of this host instead of gpu-ready, a key of catalog/managed_hosts.yml.
    ``package_manager``: of a system that the catalog does not have; None for others. ``compiler``: path.
    ``initramfs``: the tool that rebuilds the initial RAM disk is installed. ``disk``: free bytes.
    ``umad``: None without NVLink 5 switches. ``reboot_mark``: the file by which a package asked for a reboot.
    """

    os: OsRelease
    distro: Optional[str]
    kernel: KernelFacts
    image: bool = False
    managed_by: Optional[str] = None
    arch: str = "x86_64"
    python: str = ""
    boot_id: Optional[str] = None
    compiler: Optional[str] = None
    initramfs: bool = True
    secure_boot: SecureBootFacts = SecureBootFacts()
    gpus: List[GpuFacts] = []
    nvswitches: List[FunctionFacts] = []
    umad: Optional[UmadFacts] = None
    other_functions: List[FunctionFacts] = []
    nouveau: NouveauFacts = NouveauFacts()
    disk: Dict[str, Optional[int]] = {}
    package_manager: Optional[str] = None
    reboot_mark: Optional[str] = None

    @property
    def module_elsewhere(self) -> bool:
        """Return True if the kernel and its modules are files of the machine that starts this system."""
        return self.managed_by in MODULE_ELSEWHERE

    @property
    def served_gpus(self) -> List[GpuFacts]:
        """The GPUs that the host drives itself, without those that virtual machines have."""
        return [gpu for gpu in self.gpus if gpu.driver not in FOREIGN_DRIVERS]


# ---- packages ------------------------------------------------------------------------------------------------------


class PackageFacts(NamedTuple):
    """``installed``: version by name. ``broken``: left unfinished by an interrupted package manager.

    ``in_progress``: the process that works on packages now, "" where none does. Nothing counts as broken meanwhile.
    """

    installed: Dict[str, str] = {}
    held: List[str] = []
    broken: List[str] = []
    in_progress: str = ""


class AptFacts(NamedTuple):
    """``sources``: text by path. The others are file names.

    ``pins``: text of preference files by name, and of /etc/apt/preferences by its path.

    ``signers``: fingerprints of the keys that a Signed-By trusts, by its text; "" are the keys trusted for all sources.
    Collected for entries of repositories that the catalog knows.
    """

    sources: Dict[str, str] = {}
    preferences: List[str] = []
    pins: Dict[str, Optional[str]] = {}
    keyrings: List[str] = []
    signers: Dict[str, List[str]] = {}


class HidingLine(NamedTuple):
    """A line that hides packages from dnf: ``patterns`` of names, or names that are locked to the version in it."""

    path: str
    line: int
    text: str
    patterns: List[str]
    locks: bool = False


class YumFacts(NamedTuple):
    """``sources``: text of .repo files by path. ``keyrings``: file names. ``streams``: enabled stream by module.

    ``keys``: fingerprints by key file, of sections with a repository that the catalog knows. ``hiding``: lines of dnf's
    own configuration and of its version locks.
    """

    sources: Dict[str, str] = {}
    keyrings: List[str] = []
    streams: Dict[str, str] = {}
    keys: Dict[str, List[str]] = {}
    hiding: List[HidingLine] = []


# ---- the driver ----------------------------------------------------------------------------------------------------


class ModuleFacts(NamedTuple):
    """NVIDIA's kernel module, loaded or on disk. Only of a file are known: path, signer, types of its parameters."""

    version: str
    flavour: Optional[str] = None
    path: Optional[str] = None
    signer: Optional[str] = None
    parameters: Dict[str, str] = {}


class GpuProcess(NamedTuple):
    """A process with a device node of the driver open. ``container``: its id, later its name. ``job``: of Slurm.

    ``service``: one of the driver's own, such as the persistence daemon.
    """

    pid: int
    name: str
    container: Optional[str] = None
    command: str = ""
    service: bool = False
    job: Optional[str] = None


class DkmsFacts(NamedTuple):
    """A version of NVIDIA's modules that DKMS knows, and the kernels that it is built for."""

    name: str
    version: str
    kernels: List[str] = []


class OtherModule(NamedTuple):
    """A DKMS module that is no part of a driver and that DKMS builds by itself for every kernel with headers.

    ``kernels``: those that it is installed for. ``failed``: the kernel of its last build if that failed, else "".
    """

    name: str
    version: str
    kernels: List[str] = []
    failed: str = ""


class ImexFacts(NamedTuple):
    """``member``: this node belongs to an IMEX domain."""

    member: bool = False
    running: bool = False


class BlockedModule(NamedTuple):
    """NVIDIA's module is not loaded ``at_boot``, or not by its name (``now``), before these lines are removed."""

    lines: List[ModprobeLine]
    at_boot: bool
    now: bool


class DriverFacts(NamedTuple):
    """The NVIDIA driver. ``on_disk`` is the module for the running kernel, ``userspace`` the versions of its libraries.

    ``next_module``: the module for the kernel that boots next, where that is another one.

    ``packages``: the installed packages that are part of a driver. ``runfile``: the uninstaller of a .run driver.
    ``origin``: the source of the catalog, another publisher of catalog/driver_packages.yml, "runfile", "mixed" or
    "unknown"; ``repository``: where its packages came from, "" where that is unknown. ``companions``: the versions that
    apt's lists have of the packages of services beside the driver, {} with dnf. ``missing_parts``: what is missing
    beside the module of what programs compute with (libcuda, libnvidia-ml, nvidia-smi).

    ``interrupted``: the .run installer was cut off. ``stopped``: services that an interrupted live reload did not
    start again. ``fabricmanager``: runs; None where there is no NVSwitch.
    ``mig_instances``: parts of GPUs, as "gpu0/gi1". ``parameters``: of the loaded module, by names without NVreg_.
    ``options``: text by path of what sets such parameters (files of modprobe.d, the kernel's command line).
    """

    loaded: Optional[ModuleFacts] = None
    on_disk: Optional[ModuleFacts] = None
    module_files: List[str] = []
    next_module: Optional[ModuleFacts] = None
    kernel_without_module: Optional[str] = None
    userspace: List[str] = []
    packages: Dict[str, str] = {}
    held: List[str] = []
    runfile: Optional[str] = None
    origin: Optional[str] = None
    repository: str = ""
    companions: Dict[str, List[str]] = {}
    missing_parts: List[str] = []
    dkms: List[DkmsFacts] = []
    other_modules: List[OtherModule] = []
    persistence: Persistence = Persistence()
    imex: ImexFacts = ImexFacts()
    interrupted: bool = False
    stopped: List[str] = []
    fabricmanager: Optional[bool] = None
    mig_instances: List[str] = []
    parameters: Dict[str, str] = {}
    options: Dict[str, str] = {}
    blocked: Optional[BlockedModule] = None


# ---- CUDA ----------------------------------------------------------------------------------------------------------


class ToolkitFacts(NamedTuple):
    """A CUDA toolkit. ``origin``: a constant of cuda/toolkit.py. ``cut_off``: its installer did not finish."""

    version: str
    path: str
    release: Optional[str]
    origin: str
    cut_off: bool = False


class DefaultToolkitFacts(NamedTuple):
    """The link of the default toolkit. ``kind``: absent, link, directory or alternatives; ``mode`` of the latter."""

    target: Optional[str] = None
    kind: str = "absent"
    mode: Optional[str] = None


class CudaFacts(NamedTuple):
    """``profile``: text by path of the files for login shells, None where one is absent."""

    toolkits: List[ToolkitFacts] = []
    default: DefaultToolkitFacts = DefaultToolkitFacts()
    profile: Dict[str, Optional[str]] = {}


class CudnnFacts(NamedTuple):
    """cuDNN of one toolkit: ``version`` by its header, ``package`` by the installed packages for its CUDA major.

    ``recorded``, ``origin`` and ``complete`` come from our record of an archive; ``missing``: three of its files.
    """

    version: Optional[str] = None
    package: Optional[str] = None
    recorded: Optional[str] = None
    origin: str = ""
    complete: bool = False
    missing: List[str] = []


class CudnnPackageFacts(NamedTuple):
    """Packages of cuDNN: all that are installed, those that gpu-ready installed, and those that it holds."""

    installed: Dict[str, str] = {}
    ours: List[str] = []
    held_by_us: List[str] = []


# ---- containers ----------------------------------------------------------------------------------------------------


class DaemonJsonFault(NamedTuple):
    """Why daemon.json is not strict JSON."""

    problem: str
    line: int
    column: int


class DaemonJsonFacts(NamedTuple):
    """``text`` is None where the file is absent or ``error`` says why it cannot be read."""

    path: str = "/etc/docker/daemon.json"
    exists: bool = False
    text: Optional[str] = None
    error: Optional[DaemonJsonFault] = None


class DockerFacts(NamedTuple):
    """The docker engine. ``program``: path of dockerd. ``snap``: path of docker's snap. ``active``: it answers.

    ``started`` is in seconds since 1970. ``restart_pending``: it runs since before a change of gpu-ready that needs a
    restart. ``outdated``: it runs since before its program was replaced. ``held_by_us``: packages.
    """

    installed: bool = False
    program: Optional[str] = None
    version: Optional[str] = None
    package: Optional[str] = None
    snap: Optional[str] = None
    active: bool = False
    pid: Optional[int] = None
    started: Optional[float] = None
    enabled: bool = False
    socket: Optional[str] = None
    info: Optional[EngineInfo] = None
    flags: List[DockerdFlag] = []
    daemon_json: DaemonJsonFacts = DaemonJsonFacts()
    restart_pending: bool = False
    outdated: bool = False
    held_by_us: List[str] = []


class CdiSpecFacts(NamedTuple):
    """A CDI specification of NVIDIA GPUs. ``stale``: why it does not fit the driver. ``format``: its version of CDI."""

    path: str
    ours: bool = False
    devices: List[str] = []
    format: Optional[str] = None
    stale: Optional[str] = None


class DriverVolumeFacts(NamedTuple):
    """The driver volume for engines without CDI. ``stale``: why it does not fit the driver."""

    exists: bool = False
    version: Optional[str] = None
    stale: Optional[str] = None


class ManifestFacts(NamedTuple):
    """What gpu-ready added to the host by its manifest; ``keys`` are keys of daemon.json."""

    files: List[str] = []
    directories: List[str] = []
    packages: List[str] = []
    keys: Dict[str, Dict[str, object]] = {}


class LegacyFacts(NamedTuple):
    """nvidia-docker 1.0: path of its plugin, its volumes, and the containers that name one of them."""

    plugin: Optional[str] = None
    volumes: List[str] = []
    containers: List[str] = []


class RuntimeFacts(NamedTuple):
    """What gives docker's containers the GPUs. ``toolkit``: NVIDIA's container toolkit is installed.

    ``hook_known``: dockerd started after the hook's file was written; None where that cannot be determined.
    ``refresh``: the toolkit's service keeps a specification up to date. ``driver_files``: version of the driver's
    libraries. ``refresh_old``, ``boot_nodes`` and ``helper`` are the texts of our files.
    """

    toolkit: bool = False
    programs: Dict[str, Optional[str]] = {}
    hook_known: Optional[bool] = None
    refresh: bool = False
    specs: List[CdiSpecFacts] = []
    driver_files: Optional[str] = None
    refresh_old: Optional[str] = None
    boot_nodes: Optional[str] = None
    volume: DriverVolumeFacts = DriverVolumeFacts()
    helper: Optional[str] = None
    manifest: ManifestFacts = ManifestFacts()
    legacy: LegacyFacts = LegacyFacts()


class PodmanFacts(NamedTuple):
    """``version``: its numbers."""

    installed: bool = False
    version: Optional[List[int]] = None


class ContainerdFacts(NamedTuple):
    """containerd. ``rancher``: directory of the k3s or rke2 that has a containerd of its own.

    ``files``: the configuration in reading order. ``record``: our keys of config.toml with their values before;
    ``before`` and ``after``: its text before and after our change. ``pending``: a change needs a restart.
    """

    installed: bool = False
    version: Optional[List[int]] = None
    rancher: Optional[str] = None
    active: bool = False
    files: List[ConfigFile] = []
    record: List[Tuple[Tuple[str, ...], object]] = []
    before: Optional[str] = None
    after: Optional[str] = None
    pending: bool = False
    keeps_containers: bool = True


class CrioFacts(NamedTuple):
    """CRI-O. ``files``: its configuration in reading order. ``pending``: our file is newer than its last start."""

    installed: bool = False
    active: bool = False
    files: List[ConfigFile] = []
    pending: bool = False


class KubernetesFacts(NamedTuple):
    """The kubelet of the host. ``kind``: kubeadm (any kubelet with a unit of its own), k3s, rke2, microk8s, k0s or "".

    ``engine``: the engine that it uses, "" where that is unknown. ``unread``: files that name NVIDIA's runtime and that
    this engine does not read. ``unit``: its service, "" where that is unknown. Of k3s and RKE2: whether it is
    ``active`` and restarts without its containers, the generated ``files`` of its containerd, and the ``templates`` for
    these.
    """

    kind: str = ""
    engine: str = ""
    unread: List[str] = []
    unit: str = ""
    active: bool = False
    keeps_containers: bool = True
    files: List[ConfigFile] = []
    templates: List[ConfigFile] = []


class EngineFacts(NamedTuple):
    """The container engines beside docker. ``nodes``: text by path of our units that create device nodes."""

    podman: PodmanFacts = PodmanFacts()
    containerd: ContainerdFacts = ContainerdFacts()
    crio: CrioFacts = CrioFacts()
    kubernetes: KubernetesFacts = KubernetesFacts()
    nodes: Dict[str, str] = {}


class MonitoringFacts(NamedTuple):
    """Our service that writes metrics. ``files``: text of its files by path; ``program``: digest of the program.

    ``python``: the interpreter of its unit, else of this call. ``exporter``: the directory that node_exporter
    reads, "" where none is known. ``dcgm``: beginning of the SHA-256 of our files for DCGM's exporter by path;
    ``dcgm_running``: engine and exporter run, asked only where we have such files. ``exporter_runs``: a node_exporter
    runs, also in a container, or something else listens on its port. ``check``: the same of gpu-ready-check;
    ``check_running``: its timer is active.
    """

    files: Dict[str, str] = {}
    program: str = ""
    running: bool = False
    python: str = ""
    exporter: str = ""
    dcgm: Dict[str, str] = {}
    dcgm_running: bool = False
    exporter_runs: bool = False
    check: Dict[str, str] = {}
    check_running: bool = False


# ---- work ----------------------------------------------------------------------------------------------------------


class ContainerFacts(NamedTuple):
    """A running container. ``engine``: docker, containerd, k3s, or podman (also CRI-O). ``name``: of its pod, if any.

    ``gpu``: how it can reach a GPU, "" if it cannot.
    """

    engine: str
    id: str
    name: str
    gpu: str = ""
    pod: bool = False


class WorkFacts(NamedTuple):
    """What runs on the host and could be stopped. ``processes`` hold a GPU; ``jobs``: ids of Slurm jobs.

    ``unlisted``: running containers of docker that are not in ``containers``.
    """

    processes: List[GpuProcess] = []
    containers: List[ContainerFacts] = []
    unlisted: int = 0
    jobs: List[str] = []

    def gpu_containers(self, engine: str) -> List[str]:
        return sorted(one.name for one in self.containers if one.engine == engine and one.gpu)


# ---- health ----------------------------------------------------------------------------------------------------------


class HealthFacts(NamedTuple):
    """GPUs of a loaded driver. ``driven``: those that it has, by PCI address.

    ``nodes``: the device nodes of GPUs and nvidiactl; None where nvidia-modprobe is installed, which creates missing
    ones when a program asks for them. ``xids``: since the driver was loaded and the GPU was reset; None where the
    kernel's log cannot be read. ``check``: what the check of gpu-ready on the host found; None where it is not
    installed.
    """

    driven: List[str] = []
    nodes: Optional[List[str]] = None
    xids: Optional[List[XidFacts]] = None
    check: Optional[List[Finding]] = None


# ---- our own records -----------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """A repository that has an installed package: of apt its URL, suite and component; of RPMs also its section."""

    url: str
    suite: str = ""
    component: str = ""
    section: str = ""


class PackageEvidence(NamedTuple):
    """What the package manager says of an installed package. ``vendor``: vendor and packager of an RPM."""

    name: str
    version: str
    places: List[Place] = []
    vendor: str = ""


class VerifiedFacts(NamedTuple):
    """The record of the last verification. ``gpus`` are UUIDs, ``addresses`` PCI addresses, ``driver`` a version.

    ``evidence`` and ``companions`` belong to the driver whose deciding packages have the versions in ``origin_of``,
    with the package sources of the digest in ``sources``.
    ``logged``: time of the newest message in the kernel's log when this boot was last verified with success, in seconds
    since boot. ``persistent``: GPUs that the persistence daemon had open. ``hardware``: what later checks compare with.
    ``gpus_option_with``: the start of the dockerd that has given a container its GPUs by ``--gpus`` (``started`` of
    DockerFacts).
    """

    ok: bool
    result: str = ""
    reasons: List[str] = []
    time: str = ""
    boot_id: Optional[str] = None
    driver: Optional[str] = None
    userspace: List[str] = []
    gpus: List[Optional[str]] = []
    addresses: List[str] = []
    digest: str = ""
    runtime: Optional[str] = None
    checks: Dict[str, str] = {}
    evidence: List[PackageEvidence] = []
    origin_of: Dict[str, str] = {}
    companions: Dict[str, List[str]] = {}
    sources: str = ""
    logged: float = 0.0
    persistent: Optional[int] = None
    hardware: List[GpuIdentity] = []
    gpus_option_with: Optional[float] = None


class RawFacts(NamedTuple):
    """What a host answers and completion/complete.py reads by the catalog; nothing in complete facts.

    ``os_release``: its text. ``initramfs_tools``: the installed ones. ``firmware_key``: the firmware has the key that
    DKMS signs with. ``driver``: evidence of the packages that decide where the driver came from.
    """

    os_release: str = ""
    initramfs_tools: List[str] = []
    firmware_key: bool = False
    driver: List[PackageEvidence] = []


class Facts(NamedTuple):
    """Everything that is known of a host. ``cudnn``: by the version of the toolkit. ``drained``: by gpu-ready.

    ``today``: the day of the plan, by the control node ("2026-11-27"); "" for the day of its catalog. ``offered``:
    None where the sources were not asked, which is a call of its own.
    """

    base: BaseFacts
    packages: PackageFacts = PackageFacts()
    apt: AptFacts = AptFacts()
    yum: YumFacts = YumFacts()
    driver: DriverFacts = DriverFacts()
    cuda: CudaFacts = CudaFacts()
    cudnn: Dict[str, CudnnFacts] = {}
    cudnn_packages: CudnnPackageFacts = CudnnPackageFacts()
    docker: DockerFacts = DockerFacts()
    runtime: RuntimeFacts = RuntimeFacts()
    engines: EngineFacts = EngineFacts()
    monitoring: MonitoringFacts = MonitoringFacts()
    work: WorkFacts = WorkFacts()
    verified: Optional[VerifiedFacts] = None
    upgrade: Optional[UpgradeJournal] = None
    drained: bool = False
    health: Optional[HealthFacts] = None
    today: str = ""
    offered: Optional[PackageIndex] = None
    raw: RawFacts = RawFacts()

    @property
    def cudnn_versions(self) -> Optional[str]:
        """The versions of cuDNN in all toolkits, as reports show them; None for none."""
        found = {entry.version or entry.package for entry in self.cudnn.values()}
        return ", ".join(sorted(version for version in found if version)) or None


def to_json(facts: Facts) -> Dict[str, object]:
    return dict(records.to_json(facts), schema=SCHEMA)


def from_json(value: Dict[str, object]) -> Facts:
    """Return recorded facts. Raises RecordError for another schema, or where a field does not fit."""
    return records.from_json(Facts, records.without_schema(value, SCHEMA, "recorded facts"))
