"""The driver volume: the installed driver's libraries and programs under one stable path, for engines without CDI.

``/usr/local/nvidia-driver/current`` points to the version in use. The layout (``lib64`` and ``bin``) is as in the
volumes of nvidia-docker 1.0, which NVIDIA's images still search: their ``PATH`` and ``LD_LIBRARY_PATH`` contain
``/usr/local/nvidia``. The files are hard links to the driver's files if the file system allows, so they need no space.
"""

import posixpath
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

from . import cdi

ROOT = "/usr/local/nvidia-driver"
LINK = "current"
CURRENT = ROOT + "/" + LINK
HELPER = "/usr/local/bin/gpu-docker-args"
Stamp = Optional[Tuple[int, int]]
"""Size in bytes and modification time in seconds, which identify a copy; None: absent."""


class VolumeLayout(NamedTuple):
    """Content of a version's directory, by relative path: files with their origin, links with their target."""

    version: str
    files: Dict[str, str]
    links: Dict[str, str]


def plan_layout(driver: cdi.DriverFiles) -> Optional[VolumeLayout]:
    if driver.version is None:
        return None
    files = {"bin/" + name: path for name, path in driver.programs.items()}
    links = {}
    for library in driver.libraries:
        real = posixpath.basename(library.path)
        files["lib64/" + real] = library.path
        links.update({"lib64/" + name: real for name in library.names if name != real})
    return VolumeLayout(driver.version, files, links)


def find_difference(
    layout: Optional[VolumeLayout],
    current: Optional[str],
    listdir: Callable[[str], List[str]],
    readlink: Callable[[str], Optional[str]],
    stamp: Callable[[str], Stamp],
    root: str = ROOT,
) -> Optional[str]:
    """Return why the volume does not match the installed driver, None if it does; ``current``: the target of the link.

    The functions are called with paths on the host.
    """
    if layout is None:
        return None  # nothing to compare with: the driver is not installed yet
    if current != layout.version:
        return "it contains %s, the host has driver %s" % (
            "driver %s" % current if current else "nothing",
            layout.version,
        )
    others = [name for name in listdir(root) if name not in (LINK, layout.version)]
    if others:
        return "it contains %s of another driver" % others[0]
    for name, target in sorted(layout.links.items()):
        if readlink(posixpath.join(root, current, name)) != target:
            return "%s is not in it" % name
    for name, origin in sorted(layout.files.items()):
        copy = stamp(posixpath.join(root, current, name))
        if copy is None or copy != stamp(origin):
            return "%s in it differs from the host's file" % name if copy else "%s is not in it" % name
    found = [part + "/" + name for part in ("bin", "lib64") for name in listdir(posixpath.join(root, current, part))]
    extra = sorted(set(found) - set(layout.files) - set(layout.links))
    return "%s in it does not belong to this driver" % extra[0] if extra else None


HELPER_TEXT = r"""#!/bin/sh
# Written by gpu-ready; playbooks/uninstall.yml removes it.
set -eu
export LC_ALL=C
volume=/usr/local/nvidia-driver/current
specification=/etc/cdi/gpu-ready.json
me=gpu-docker-args

usage() {
    cat <<END
Usage: docker run \$($me GPU...) IMAGE COMMAND

Prints the arguments of docker run (or create) that give a container these GPUs and the driver of this host.
GPU: a number as nvidia-smi prints it, a UUID, several with commas, or all (also without any).

    docker run --rm \$($me 0,1) IMAGE nvidia-smi
    args=\$($me GPU-417ed9b9-d104-5079-afd8-84eadf0b7691) && docker run --rm \$args IMAGE nvidia-smi
END
}

fail() {
    echo "$me: $1" >&2
    exit 1
}

# The kernel does not create the device nodes; the driver's own program does, for any user.
nodes() {
    if [ ! -c "$1" ] && command -v nvidia-modprobe >/dev/null; then
        shift
        nvidia-modprobe "$@" || fail "nvidia-modprobe $* failed: load the driver (modprobe nvidia)"
    fi
}

# Lines of index, device node and UUID. NVML counts in the order of the PCI addresses.
gpus() {
    number=0
    for directory in /proc/driver/nvidia/gpus/*; do
        [ -e "$directory/information" ] || continue
        minor=$(sed -n 's/^Device Minor:[[:space:]]*//p' "$directory/information")
        uuid=$(sed -n 's/^GPU UUID:[[:space:]]*//p' "$directory/information")
        nodes "/dev/nvidia$minor" -c "$minor"
        # The table shows question marks until a program has opened the GPU.
        case $uuid in *\?*) uuid=$(nvidia-smi -L | sed -n "s/^GPU $number: .*(UUID: \(GPU-[0-9a-f-]*\)).*/\1/p") ;; esac
        echo "$number /dev/nvidia$minor $uuid"
        number=$((number + 1))
    done
}

case "${1-}" in -h | --help) usage; exit 0 ;; -*) usage >&2; exit 2 ;; esac
requested=$(echo "$*" | tr ',' ' ')
nodes /dev/nvidia-uvm -c 0 -u
table=$(gpus)
[ -n "$table" ] || fail "no GPU is driven by the driver nvidia: load it (modprobe nvidia)"
case " ${requested:-all} " in *" all "*) requested=$(echo "$table" | cut -d ' ' -f 1) ;; esac

chosen=
for word in $requested; do
    row=$(echo "$table" | awk -v word="$word" '$1 == word || $3 == word')
    [ -n "$row" ] || fail "this host has no GPU $word; it has
$(echo "$table" | cut -d ' ' -f 1,3)"
    row=${row% *}
    case " $chosen " in *" ${row#* } "*) ;; *) chosen="$chosen ${row#* }"; numbers="${numbers-} ${row% *}" ;; esac
done

if [ -e "$specification" ]; then
    for number in $numbers; do echo "--device=nvidia.com/gpu=$number"; done
    exit 0
fi
[ -e "$volume/lib64/libnvidia-ml.so.1" ] ||
    fail "$volume has no driver: run site.yml with nvidia_container_runtime_mode: native"
# Another runtime (the toolkit of an earlier mode) must not add GPUs.
echo "--env=NVIDIA_VISIBLE_DEVICES=void"
for node in /dev/nvidiactl /dev/nvidia-uvm /dev/nvidia-uvm-tools $chosen; do
    if [ -c "$node" ]; then echo "--device=$node"; fi
done
# The directory for images whose search paths contain /usr/local/nvidia, and single files for all others, in the
# default library directories of the Debian and the RPM family. --mount, because --volume creates a directory for a
# file that is missing after a change of the driver.
echo "--mount=type=bind,source=$volume,target=/usr/local/nvidia,readonly"
for file in "$volume"/lib64/*; do
    for directory in "/usr/lib/$(uname -m)-linux-gnu" /usr/lib64; do
        echo "--mount=type=bind,source=$file,target=$directory/${file##*/},readonly"
    done
done
for file in "$volume"/bin/*; do
    echo "--mount=type=bind,source=$file,target=/usr/bin/${file##*/},readonly"
done
"""
"""Prints docker's arguments, as nvidia-docker 1.0 did for ``/docker/cli``."""
