"""Removes cuDNN and CUDA toolkits of NVIDIA's installers, and restores the link of the default toolkit."""

import functools
from typing import List

from ...cuda import default as cuda_default
from ...cuda import runfile as cuda_runfile
from ...cuda import toolkit as cuda
from ...cuda.cudnn import install as cudnn_install
from ...driver.runfile.spec import RunfileError
from .context import Action, Removal
from .errors import UninstallError


def find_cudnn(removal: Removal) -> List[Action]:
    """Remove the cuDNN files that gpu-ready installed."""
    paths = cudnn_install.CudnnPaths()
    refresh = functools.partial(refresh_linker_cache, removal)
    return [
        Action(
            "remove cuDNN from CUDA " + cuda,
            functools.partial(cudnn_install.remove_archive, cuda, paths, refresh),
        )
        for cuda in sorted(removal.recorded.get("cudnn", {}))
    ]


def refresh_linker_cache(removal: Removal) -> None:
    """Update the dynamic linker's cache after libraries were removed."""
    removal.run(["ldconfig"])


def find_toolkits(removal: Removal) -> List[Action]:
    """Run the uninstallers of CUDA toolkits that gpu-ready installed by NVIDIA's installer."""
    return [
        Action("remove CUDA %s of NVIDIA's installer" % version, functools.partial(remove_toolkit, removal, version))
        for version in sorted(removal.recorded.get(cuda_runfile.SECTION, {}))
    ]


def remove_toolkit(removal: Removal, version: str) -> None:
    """Run a toolkit's own uninstaller; other files in its directory are named, not deleted."""
    where = cuda_runfile.ToolkitPaths(
        removal.directory + "/cuda", removal.path, cuda_default.DefaultPaths(manifest=removal.path)
    )
    try:
        cuda_runfile.remove_toolkit(removal.host, version, cuda.toolkit_path(version), where)
    except (RunfileError, cuda_default.DefaultError) as error:
        raise UninstallError(str(error)) from None


def find_alternatives(removal: Removal) -> List[Action]:
    """Restore the link of the default CUDA toolkit, after packages have removed their own alternatives."""
    where = cuda_default.DefaultPaths(manifest=removal.path)
    return [
        Action(
            "restore the alternative " + name,
            functools.partial(cuda_default.restore_default, removal.host, entry, where),
        )
        for name, entry in sorted(removal.recorded.get("alternatives", {}).items())
    ]
