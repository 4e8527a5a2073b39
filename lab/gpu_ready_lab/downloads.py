"""Plain files of the vendor mirror: cuDNN archives with their manifests, and drivers as .run installers."""

import gzip
import hashlib
import io
import json
import lzma
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from . import packages
from .declarations import SOURCES, fill, read_yaml


def write(root: Path, declaration: Path, fetch: packages.Fetch) -> None:
    """Write everything that lab/mirror/downloads.yml declares below the mirror's root."""
    declared = read_yaml(declaration)
    for release in declared["cudnn"]["releases"]:
        write_cudnn(root / declared["cudnn"]["root"], release)
    runfiles = declared["runfiles"]
    smi = fetch(*(runfiles["nvidia_smi"][key] for key in ("suite", "package", "path")))
    for release in runfiles["releases"]:
        data = runfile(release["version"], str(release["cuda"]), smi)
        for directory, checksum in runfiles["directories"].items():
            write_runfile(root / directory / release["version"], release["version"], data, checksum=checksum)
    for release in declared["cuda_runfiles"]["releases"]:
        write_cuda_runfile(root / declared["cuda_runfiles"]["root"], release)


def places(declaration: Path) -> list[str]:
    """Return the directories of these files below the mirror's root."""
    declared = read_yaml(declaration)
    return [declared["cudnn"]["root"], declared["cuda_runfiles"]["root"], *declared["runfiles"]["directories"]]


def tarball(files: dict[str, bytes], links: dict[str, str], executable: tuple[str, ...] = ()) -> bytes:
    """Return a plain tar, the same for the same content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for path, data in files.items():
            item = tarfile.TarInfo(path)
            item.size, item.mtime, item.mode = len(data), packages.MADE, 0o755 if path in executable else 0o644
            tar.addfile(item, io.BytesIO(data))
        for path, target in links.items():
            item = tarfile.TarInfo(path)
            item.type, item.linkname, item.mode, item.mtime = tarfile.SYMTYPE, target, 0o777, packages.MADE
            tar.addfile(item)
    return out.getvalue()


# ---- cuDNN ----------------------------------------------------------------------------------------


def write_cudnn(redist: Path, release: dict[str, Any]) -> None:
    """Write the archives of a cuDNN release, and its manifest with their checksums."""
    version = release["version"]
    label = version if version.startswith("8.") else version.rpartition(".")[0]
    entries = {}
    for cuda in release["cuda"]:
        name = f"cudnn-linux-x86_64-{version}_cuda{cuda}-archive"
        path = f"cudnn/linux-x86_64/{name}.tar.xz"
        data = cudnn_archive(name, release)
        (redist / path).parent.mkdir(parents=True, exist_ok=True)
        (redist / path).write_bytes(data)
        entries[f"cuda{cuda}"] = {
            "relative_path": path,
            "sha256": hashlib.sha256(data).hexdigest(),
            "md5": hashlib.md5(data).hexdigest(),
            "size": str(len(data)),
        }
    manifest = {
        "release_date": "2026-01-01",
        "release_label": label,
        "release_product": "cudnn",
        "cudnn": {
            "name": "NVIDIA CUDA Deep Neural Network library",
            "license": "cudnn",
            "license_path": "cudnn/LICENSE.txt",
            "version": version,
            "cuda_variant": [str(cuda) for cuda in release["cuda"]],
            "linux-x86_64": entries,
        },
    }
    (redist / f"redistrib_{label}.json").write_text(json.dumps(manifest, indent=4) + "\n")


def cudnn_archive(name: str, release: dict[str, Any]) -> bytes:
    """Return a cuDNN archive: headers, small libraries with the real names and links, a licence."""
    short = release["version"].rpartition(".")[0]
    major, minor, patch = short.split(".")
    values = {"major": major, "minor": minor, "patch": patch, "factor": "1000" if int(major) < 9 else "10000"}
    suffix = "" if int(major) < 9 else f"_v{major}"
    header = fill((SOURCES / "cudnn/cudnn_version.h").read_text(), values).encode()
    files, links = {f"{name}/LICENSE": (SOURCES / "cudnn/LICENSE").read_bytes()}, {}
    for part in ["", *release["headers"]]:
        plain = f"cudnn_{part}" if part else "cudnn"
        text = f'/* Stand-in of the gpu-ready lab. */\n#include "cudnn_version{suffix}.h"\n'.encode()
        files[f"{name}/include/{plain}{suffix}.h"] = text
        if suffix:
            links[f"{name}/include/{plain}.h"] = f"{plain}{suffix}.h"
    files[f"{name}/include/cudnn_version{suffix}.h"] = header
    if suffix:
        links[f"{name}/include/cudnn_version.h"] = f"cudnn_version{suffix}.h"
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        for library in release["libraries"]:
            built = Path(directory, library)
            packages.compile_library(f"lib{library}.so.{major}", "library.c", {"version": release["version"]}, built)
            files[f"{name}/lib/lib{library}.so.{short}"] = built.read_bytes()
            links[f"{name}/lib/lib{library}.so.{major}"] = f"lib{library}.so.{short}"
            links[f"{name}/lib/lib{library}.so"] = f"lib{library}.so.{major}"
            files[f"{name}/lib/lib{library}_static_v{major}.a"] = b"!<arch>\n"
            links[f"{name}/lib/lib{library}_static.a"] = f"lib{library}_static_v{major}.a"
    return lzma.compress(tarball(files, links), preset=1)


# ---- .run -----------------------------------------------------------------------------------------


LIBRARIES = {
    "libnvidia-ml": "1",
    "libcuda": "1",
    "libnvidia-ptxjitcompiler": "1",
    "libnvidia-nvvm": "4",
    "libnvidia-cfg": "1",
    "libnvidia-opencl": "1",
}
FIRST_WITH_OPEN = 515  # older drivers have no open kernel modules


def runfile(version: str, cuda: str, smi: bytes) -> bytes:
    """Return a self-extracting installer: a script, and an archive behind it; ``smi`` is a real nvidia-smi."""
    files = {f"./{name}": text.encode() for name, text in _kernel_sources(version, "NVIDIA", "kernel").items()}
    if int(version.split(".")[0]) >= FIRST_WITH_OPEN:
        sources = _kernel_sources(version, "Dual MIT/GPL", "kernel-open")
        files |= {f"./{name}": text.encode() for name, text in sources.items()}
    programs = {
        "nvidia-installer": (SOURCES / "runfile/nvidia-installer").read_text(),
        "bin/nvidia-modprobe": (SOURCES / "driver/nvidia-modprobe").read_text(),
        "bin/nvidia-persistenced": (SOURCES / "driver/nvidia-persistenced").read_text(),
    }
    files |= {f"./{name}": fill(text, {"version": version}).encode() for name, text in programs.items()}
    files["./bin/nvidia-smi"] = smi
    executable = tuple(name for name in files if name == "./nvidia-installer" or name.startswith("./bin/"))
    values = {"version": version, "cuda": cuda}
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        for name, number in LIBRARIES.items():
            built = Path(directory, name)
            packages.compile_library(f"{name}.so.{number}", _library_source(name), values, built)
            files[f"./lib/{name}.so.{version}"] = built.read_bytes()
    files |= {f"./firmware/gsp_{chip}.bin": b"." * 4096 for chip in ("ga10x", "tu10x")}
    files["./nvidia.icd"] = b"libnvidia-opencl.so.1\n"
    files["./LICENSE"] = b"This archive is a stand-in made by the gpu-ready lab. It holds nothing of NVIDIA's driver.\n"
    label = f"NVIDIA Accelerated Graphics Driver for Linux-x86_64 {version}"
    return self_extracting(label, "nvidia-installer", tarball(files, {}, executable))


def self_extracting(label: str, program: str, archive: bytes) -> bytes:
    """Return an installer: a script and the archive behind it, of which the script runs a program."""
    payload = gzip.compress(archive, mtime=packages.MADE)
    words = {"label": label, "program": program, "sha256": hashlib.sha256(payload).hexdigest()}
    return fill((SOURCES / "self-extracting.sh").read_text(), words).encode() + payload


def _library_source(name: str) -> str:
    return "libcuda.c" if name == "libcuda" else "library.c"


def _kernel_sources(version: str, licence: str, directory: str) -> dict[str, str]:
    values = {"version": version, "license": licence, "dkms": "nvidia", "location": "/kernel/drivers/video"}
    return {
        f"{directory}/{path.name}": fill(path.read_text(), values) for path in sorted((SOURCES / "kernel").iterdir())
    }


def write_runfile(directory: Path, version: str, data: bytes, *, checksum: bool) -> None:
    """Write an installer as the vendor's download pages serve it; not all of them have its checksum."""
    directory.mkdir(parents=True, exist_ok=True)
    name = f"NVIDIA-Linux-x86_64-{version}.run"
    (directory / name).write_bytes(data)
    (directory / name).chmod(0o755)
    if checksum:
        (directory / f"{name}.sha256sum").write_text(f"{hashlib.sha256(data).hexdigest()}  {name}\n")


# ---- CUDA toolkits as .run ------------------------------------------------------------------------


def cuda_runfile(release: dict[str, Any]) -> bytes:
    """Return a self-extracting installer of a toolkit, with the directories and links of a real one."""
    values = {name: str(value) for name, value in release.items()} | {"driver": str(release.get("driver") or "")}
    targets = "./toolkit/targets/x86_64-linux"
    texts = {
        "./cuda-installer": (SOURCES / "cuda/cuda-installer").read_text(),
        "./toolkit/bin/nvcc": (SOURCES / "cuda/nvcc").read_text(),
        "./toolkit/version.json": (SOURCES / "cuda/version.json").read_text(),
        f"{targets}/include/cuda_runtime_api.h": "/* Stand-in of the gpu-ready lab for CUDA @version@. */\n",
        "./toolkit/EULA.txt": "Stand-in of the gpu-ready lab for CUDA @version@; it holds nothing of NVIDIA's.\n",
    }
    files = {name: fill(text, values).encode() for name, text in texts.items()}
    major, cudart = str(release["version"]).split(".")[0], str(release["cudart"])
    with tempfile.TemporaryDirectory(prefix="gpu-ready-lab-") as directory:
        for name, place in (("libcudart", f"{targets}/lib"), ("libcupti", "./toolkit/extras/CUPTI/lib64")):
            built = Path(directory, name)
            packages.compile_library(f"{name}.so.{major}", "library.c", {"version": cudart}, built)
            files[f"{place}/{name}.so.{cudart}"] = built.read_bytes()
    links = {
        "./toolkit/include": "targets/x86_64-linux/include",
        "./toolkit/lib64": "targets/x86_64-linux/lib",
        f"{targets}/lib/libcudart.so.{major}": f"libcudart.so.{cudart}",
        f"{targets}/lib/libcudart.so": f"libcudart.so.{major}",
        f"./toolkit/extras/CUPTI/lib64/libcupti.so.{major}": f"libcupti.so.{cudart}",
    }
    programs = ("./cuda-installer", "./toolkit/bin/nvcc")
    return self_extracting(f"CUDA Installer {values['version']}", "cuda-installer", tarball(files, links, programs))


def write_cuda_runfile(root: Path, release: dict[str, Any]) -> None:
    """Write an installer and the list with its md5, as the vendor's server has them."""
    version, driver = str(release["version"]), release.get("driver")
    name = f"cuda_{version}_{driver}_linux.run" if driver else f"cuda_{version}_linux.run"
    data = cuda_runfile(release)
    lists = root / version / "docs/sidebar"
    for directory in (root / version / "local_installers", lists):
        directory.mkdir(parents=True, exist_ok=True)
    (root / version / "local_installers" / name).write_bytes(data)
    other = hashlib.md5(name.encode()).hexdigest()
    rows = [f"{hashlib.md5(data).hexdigest()}  {name}", f"{other}  cuda_{version}_windows.exe"]
    (lists / "md5sum.txt").write_text("\n".join(rows) + "\n")
