"""Parameters of the steps of the roles cuda_toolkit and cudnn: one record per step."""

from typing import NamedTuple

from ..model import PackageTarget, ToolkitChoice


class ToolkitPackage(NamedTuple):
    """A metapackage of one release; ``parts`` is a regular expression for the packages that need the same release."""

    name: str
    version: str
    parts: str


class ToolkitInstallParams(NamedTuple):
    """cuda_toolkit.install: ``versions`` are the toolkits that ``packages`` install, in the same order."""

    packages: list[PackageTarget | ToolkitPackage]
    versions: list[str]


class InstallerTarget(NamedTuple):
    """A .run installer. ``file``: where an installer of the control node is copied to ("" for a URL)."""

    version: str
    release: str
    path: str
    source: str
    file: str
    sha256: str
    md5_url: str


class ToolkitRunfileParams(NamedTuple):
    """cuda_toolkit.runfile: ``packages`` are what the installer itself needs."""

    installers: list[InstallerTarget]
    packages: list[str]


class DefaultToolkitParams(NamedTuple):
    """cuda_toolkit.default."""

    version: str
    path: str


class ProfileFile(NamedTuple):
    """A file of profile.d to write."""

    path: str
    content: str


class AbsentFile(NamedTuple):
    """A file to delete."""

    path: str
    state: str = "absent"


class ProfileParams(NamedTuple):
    """cuda_toolkit.profile."""

    files: list[ProfileFile | AbsentFile]


class ToolkitRemovalParams(NamedTuple):
    """cuda_toolkit.remove: packages, and the directories of toolkits that an installer made."""

    packages: list[str]
    toolkits: list[ToolkitChoice]


class NvidiaArchive(NamedTuple):
    """An archive of NVIDIA's server; ``archive_url`` and ``sha256`` are "" where only the manifest names them."""

    cuda: str
    version: str
    cuda_path: str
    manifest_url: str
    archive_url: str
    sha256: str
    key: str


class OwnArchive(NamedTuple):
    """An archive of the operator; ``version`` is "" where only the archive itself says it."""

    cuda: str
    version: str
    cuda_path: str
    archive_url: str
    sha256: str
    origin: str


class CudnnArchiveParams(NamedTuple):
    """cudnn.install: ``file`` is a path on the control node, "" for URLs."""

    installs: list[NvidiaArchive | OwnArchive]
    file: str


class CudnnOfToolkit(NamedTuple):
    """The cuDNN in the directory of one toolkit."""

    cuda: str


class CudnnRemovalParams(NamedTuple):
    """cudnn.remove."""

    installs: list[CudnnOfToolkit]


class CudnnPackageParams(NamedTuple):
    """cudnn.packages: ``tools`` are what holding packages needs; ``release`` names the releases in messages."""

    packages: list[PackageTarget]
    tools: list[str]
    remove: list[str]
    hold: list[str]
    unhold: list[str]
    release: str
