"""gpu-explain: explain pasted output, or show the plan for a host."""

import argparse
import io
import json
import os
import posixpath
import re
import sys
import tarfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ....module_utils.gpu_ready.base.long_lines import cut_lines
from ....module_utils.gpu_ready.base.plain_text import plain_text
from ....module_utils.gpu_ready.driver import nvidia_detect
from ....module_utils.gpu_ready.hardware import pci
from ....module_utils.gpu_ready.system.model import OsRelease
from ..catalog import model as catalog
from ..completion import os_family
from ..completion.complete import today
from ..diagnostics import programs
from ..diagnostics.layers import SEARCHED
from ..diagnostics.pasted_version import parse_pasted_version, reports_absence
from ..settings.variables import parse_settings
from . import forms, lspci
from . import messages as explain_messages
from . import pci_listing as pci_reading
from .cards import describe_unknown
from .located import Locator, at
from .paper_host import PaperHost

FACTS = (
    "nvidia_gpus",
    "nvidia_other",
    "other_display",
    "id",
    "driver_version",
    "tool",
    "valid_json",
    "usable",
    "xids",
    "service_started",
)
"""Keys of which a reading of its kind has at least one, unless it has problems."""


class Kind(NamedTuple):
    """A kind of output: its word, parser of its bytes, description of the parsed values, and where it is from."""

    name: str
    parse: Callable[[bytes], dict[str, Any]]
    to_lines: Callable[[dict[str, Any]], list[str]]
    help: str

    def read(self, data: bytes) -> dict[str, Any]:
        """Read a text; another program's output is only named, in ``form``, with the kind that reads it."""
        answer = self.parse(data)
        found = None if answer.get("problems") else forms.foreign_form(self.name, text_of(data))
        if found is None or (found.kind and any(answer.get(key) for key in FACTS)):
            return answer
        return dict(self.parse(b""), form=found.name, form_kind=found.kind)

    def describe(self, answer: dict[str, Any]) -> list[str]:
        """Return what a reading means."""
        if "form" not in answer:
            return self.to_lines(answer)
        if answer["form_kind"]:
            remedy = "read it with 'gpu-explain read %s', or give %s" % (answer["form_kind"], self.help)
        else:
            remedy = "gpu-explain does not read that; give %s" % self.help
        reported = "This is the output of %s, so nothing is read from it as %s." % (answer["form"], self.name)
        return [reported, "Remedy: %s." % remedy]


def text_of(data: bytes) -> str:
    """Return bytes as text, whatever wrote them.

    UTF-8, UTF-16 with its mark, undecodable bytes replaced, long lines cut.
    """
    marked = data[:2] in (b"\xff\xfe", b"\xfe\xff")
    return cut_lines(data.decode("utf-16" if marked else "utf-8", "replace"))


# --- os-release --------------------------------------------------------------------------------------------------


def read_os_release(data: bytes) -> dict[str, Any]:
    """Read an os-release file, and say which distribution of the catalog it is."""
    found = os_family.read_os_release(text_of(data))
    answer = dict(found._asdict())
    answer["distro"] = os_family.resolve(found)
    keys = {"id": "ID", "version_id": "VERSION_ID", "id_like": "ID_LIKE", "version_codename": "VERSION_CODENAME"}
    answer["lines"] = {
        key: number
        for number, line in enumerate(text_of(data).splitlines(), 1)
        for key, name in keys.items()
        if answer[key] is not None and re.match(r"[\ufeff\s]*(?:export\s+)?%s=" % name, line)
    }
    return answer


def describe_os_release(answer: dict[str, Any]) -> list[str]:
    """Return what an os-release means for gpu-ready."""
    name = answer["pretty"] or answer["id"] or "This text"
    if answer["id"] is None:
        return ["%s names no system: there is no ID= line." % name, "Remedy: give the host's whole /etc/os-release."]
    version = "version %s" % answer["version_id"] if answer["version_id"] else "no version"
    named = "%s: ID %s, %s, family %s." % (name, answer["id"], version, answer["family"])
    lines = [at(answer["lines"].get("id"), named)]
    if answer["base"]:
        lines.append(at(answer["lines"].get("id_like"), "It is based on %s." % answer["base"]))
    if answer["distro"]:
        return lines + ["gpu-ready knows it as %s." % answer["distro"]]
    similar = ", ".join(os_family.similar(OsRelease(*(answer[name] for name in OsRelease._fields))))
    treat = ", or set gpu_ready_treat_as to the one it is compatible with: %s" % similar if similar else ""
    return lines + [
        "gpu-ready does not know this distribution, so it would refuse the host before changing anything.",
        "Remedy: use one of %s%s." % (", ".join(catalog.distros()), treat),
    ]


# --- lspci -------------------------------------------------------------------------------------------------------


class Archive(PaperHost):
    """A host in a tar archive of its /sys."""

    def __init__(self, data: bytes) -> None:
        self.files: dict[str, bytes] = {}
        self.links: dict[str, str] = {}
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            for member in archive:
                path = self.path(member.name)
                if member.issym():
                    self.links[path] = member.linkname
                elif member.isfile() and member.size < 65536:
                    handle = archive.extractfile(member)
                    self.files[path] = handle.read() if handle else b""

    @staticmethod
    def path(name: str) -> str:
        """Return a member's path from /sys on, wherever the archive begins."""
        parts = [part for part in name.split("/") if part not in ("", ".")]
        return "/" + "/".join(parts[parts.index("sys") :] if "sys" in parts else parts)

    def realpath(self, path: str) -> str:
        """Return a path with links of its directories resolved."""
        for _ in range(40):
            parts = path.split("/")
            for length in range(2, len(parts) + 1):
                target = self.links.get("/".join(parts[:length]))
                if target is not None:
                    directory = "/".join(parts[: length - 1])
                    path = posixpath.normpath(posixpath.join(directory, target, *parts[length:]))
                    break
            else:
                return path
        return path

    def read_bytes(self, path: str) -> bytes | None:
        """Return the content of a file."""
        return self.files.get(self.realpath(path))

    def readlink(self, path: str) -> str | None:
        """Return a link's target."""
        directory, _, name = path.rpartition("/")
        return self.links.get(self.realpath(directory) + "/" + name)

    def listdir(self, path: str) -> list[str]:
        """Return the names in a directory."""
        prefix = path.rstrip("/") + "/"
        names = list(self.files) + list(self.links)
        return sorted({name[len(prefix) :].split("/")[0] for name in names if name.startswith(prefix)})


def is_archive(data: bytes) -> bool:
    """Return True for a tar archive, also a compressed one."""
    return data[:2] == b"\x1f\x8b" or data[257:262] == b"ustar" or data[:3] == b"BZh" or data[:6] == b"\xfd7zXZ\x00"


def read_lspci(data: bytes) -> dict[str, Any]:
    """Read lspci output of any form, kernel messages, or a tar archive of sysfs."""
    if is_archive(data):
        try:
            return pci_reading.list_sysfs_functions(pci.read_sysfs(Archive(data))).as_dict()
        except (tarfile.TarError, OSError, EOFError) as error:
            raise ValueError("the archive cannot be read: %s" % error) from error
    listing = lspci.parse_lspci(text_of(data))
    answer = dict(listing.as_dict(), functions=len(listing.entries))
    locator = Locator(text_of(data))
    keys = ["slot", "device_id", "name"]
    answer.update({name: locator.rows(rows, keys) for name, rows in answer.items() if isinstance(rows, list)})
    listed = {row["device_id"] for name in ("nvidia_gpus", "nvidia_other") for row in answer[name]}
    named = [match.lower() for match in BARE_ID.findall(text_of(data))]
    rows = [{"device_id": identity} for identity in dict.fromkeys(named) if identity not in listed]
    return dict(answer, named_ids=locator.rows(rows, ["device_id"]))


BARE_ID = re.compile(r"\b10de:([0-9a-f]{4})\b", re.IGNORECASE)
"""The number of a device of NVIDIA, wherever it is."""


def describe_lspci(answer: dict[str, Any]) -> list[str]:
    """Return what the cards are and which driver each one takes."""
    lines = []
    for gpu in answer["nvidia_gpus"]:
        lines += [at(gpu.get("line"), line) for line in describe_gpu(gpu)]
    for row in answer["nvidia_other"]:
        lines.append(at(row.get("line"), "%s: %s, not counted as a GPU." % (row["slot"], row["what"])))
    if any(row["what"] == "nvswitch" for row in answer["nvidia_other"]):
        lines.append("NVSwitches need the fabric manager of exactly the driver's version; gpu-ready installs it.")
    named = [row for row in answer.get("named_ids", []) if catalog.gpu(row["device_id"])]
    if named and not answer["nvidia_gpus"]:
        lines.append("This text has no line of lspci with a GPU of NVIDIA, but the numbers of GPUs:")
        return lines + [at(row["line"], line) for row in named for line in describe_named(row["device_id"])]
    if answer.get("functions") == 0:
        lines.append("This text has no line of lspci, nor of another tool that lists PCI devices.")
        lines.append("Remedy: give the output of `lspci -nn -d 10de:`.")
    elif not answer["nvidia_gpus"]:
        lines.append("This text shows no NVIDIA GPU. It may have been filtered (grep, -s).")
        lines.append(
            "Remedy: list all functions with `lspci -nn -d 10de:`; check seating, power and firmware settings."
        )
    return lines


def describe_named(device_id: str) -> list[str]:
    """Return lines about a GPU of which only the number is known."""
    return describe_gpu({"slot": "[10de:%s]" % device_id, "device_id": device_id, "name": None})


def describe_gpu(row: dict[str, Any]) -> list[str]:
    """Return lines about one card."""
    identity = row["device_id"] or pci_reading.find_device_by_name(row["name"])
    known = catalog.gpu(identity) if identity else None
    where = row["slot"] or "a GPU"
    if row.get("sriov_vf"):
        return ["%s: an SR-IOV virtual function, not counted as a GPU." % where]
    if known is None and identity is None:
        lines = ["%s: %s; the text does not show its number. Remedy: use `lspci -nn`." % (where, row["name"])]
    elif known is None:
        lines = ["%s: %s" % (where, describe_unknown(identity or ""))]
    else:
        ceiling = "any branch" if known.last_branch is None else "branch %d is the last one" % known.last_branch
        if known.first_branch and known.last_branch is None:
            ceiling = "branch %d or newer" % known.first_branch
        flavours = " or ".join(known.flavours)
        lines = ["%s: %s (%s): %s, %s module." % (where, known.name, known.architecture, ceiling, flavours)]
    if row.get("powered_off"):
        lines.append(
            "%s does not answer (powered down or fallen off the bus). Remedy: reboot; check power and slot." % where
        )
    if row.get("driver_in_use") == "vfio-pci":
        lines.append("%s is bound to vfio-pci (given to a virtual machine): gpu-ready leaves it alone." % where)
    own = pci.kernel_driver(row.get("driver_in_use"))
    if own:
        lines.append("%s is driven by %s: gpu-ready blacklists it; a reboot may be needed." % (where, own))
    return lines


# --- /proc/driver/nvidia/version ---------------------------------------------------------------------------------


def read_proc_version(data: bytes) -> dict[str, Any]:
    """Read /proc/driver/nvidia/version, modinfo or /sys/module/nvidia/version."""
    text = text_of(data)
    found = parse_pasted_version(text)
    if found is None:
        answer: dict[str, Any] = {"driver_version": None, "major": None, "flavour": None, "arch": None}
        return dict(answer, loaded=False) if reports_absence(text) else answer
    answer = {
        "driver_version": found.version,
        "major": found.major,
        "flavour": found.flavour,
        "arch": found.arch,
    }
    answer["lines"] = Locator(text).values(answer, ["driver_version"])
    return dict(answer, tegra=True) if found.tegra else answer


def describe_proc_version(answer: dict[str, Any]) -> list[str]:
    """Return what the version means."""
    if answer.get("loaded") is False:
        return [
            "The module is not loaded: the file does not exist. That says nothing about the hardware.",
            "Remedy: install the driver, or load it with `modprobe nvidia`; look at dmesg if that fails.",
        ]
    if answer["driver_version"] is None:
        return ["This text names no NVIDIA module.", "Remedy: give the whole /proc/driver/nvidia/version."]
    named = "NVIDIA driver %s, %s module." % (answer["driver_version"], answer["flavour"] or "unknown flavour")
    lines = [at(answer["lines"].get("driver_version"), named)]
    if answer.get("tegra"):
        return lines + ["This is the number of a Jetson release (L4T), no desktop branch: gpu-ready does not serve it."]
    known = catalog.branch(answer["major"])
    day = today()
    if known and catalog.has_ended(known.number, day):
        lines.append("Support of branch %d ended in %s." % (known.number, known.eol))
        lines.append(
            "Remedy: move to branch %d where the GPUs allow it."
            % catalog.recommended_branch(day, parse_settings({}).settings.gpu_ready_branch_min_age)
        )
    elif known:
        lines.append("Branch %d (%s) has CUDA %s." % (known.number, known.kind.replace("_", " "), known.cuda))
    return lines


# --- nvidia-detect -----------------------------------------------------------------------------------------------


def read_detect(data: bytes) -> dict[str, Any]:
    """Read the answer of nvidia-detect."""
    answer = nvidia_detect.parse(text_of(data)).as_dict()
    locator = Locator(text_of(data))
    answer["nvidia"] = locator.rows(answer["nvidia"], ["device_id", "name"])
    return dict(answer, lines=locator.values(answer, ["package", "driver_version"]))


def describe_card(card: dict[str, Any]) -> str:
    """Return what the catalog has about a card that nvidia-detect names."""
    if card["device_id"] is None:
        return "%s: the text does not show its number." % card["name"]
    known = catalog.gpu(card["device_id"])
    if known is None:
        return describe_unknown(card["device_id"])
    ceiling = "current drivers" if known.last_branch is None else "branch %d at most" % known.last_branch
    return "%s [10de:%s]: the catalog has %s." % (known.name, card["device_id"], ceiling)


def describe_detect(answer: dict[str, Any]) -> list[str]:
    """Return what nvidia-detect says, and where the catalog differs."""
    if answer["tool"] is None:
        return ["This is no output of nvidia-detect.", "Remedy: give the whole output of `nvidia-detect -v`."]
    tool = "nvidia-detect of %s: package %s." % (answer["tool"], answer["package"] or "none")
    lines = [at(answer["lines"].get("package"), tool)]
    lines += [at(card["line"], describe_card(card)) for card in answer["nvidia"]]
    if any(card.get("branch") for card in answer["nvidia"]):
        lines.append(
            "The cards get different answers: one driver serves all of them only within the oldest card's ceiling."
        )
    if not answer["package"] and answer["nvidia"]:
        lines.append("Remedy: let gpu-ready choose; it also knows the vendor's repositories.")
    return lines


# --- daemon.json -------------------------------------------------------------------------------------------------


def read_daemon_json(data: bytes) -> dict[str, Any]:
    """Read docker's daemon.json."""
    from . import daemon_json

    answer = daemon_json.explain(data)
    lines = {
        key: number
        for number, line in enumerate(text_of(data).splitlines(), 1)
        for key in ("default-runtime", "runtimes", "features", *answer.get("repeated_keys", []))
        if '"%s"' % key in line
    }
    return dict(answer, lines=lines) if answer["valid_json"] else answer


def describe_damage(answer: dict[str, Any]) -> list[str]:
    """Return lines about a daemon.json that is no JSON object."""
    if answer.get("line") is None:
        return ["Not valid: %s." % answer["problem"], "Remedy: %s." % answer["remedy"]]
    effect = "Docker starts with it, but" if answer["docker_starts"] else "Docker does not start with it, and"
    return [
        "Not valid in line %d, column %d: %s." % (answer["line"], answer["column"], answer["problem"]),
        "Remedy: %s." % answer["remedy"],
        "%s gpu-ready does not edit it before it is valid." % effect,
    ]


def describe_daemon_json(answer: dict[str, Any]) -> list[str]:
    """Return what a daemon.json means."""
    if not answer.get("valid_json"):
        return describe_damage(answer)
    runtime = answer.get("nvidia_runtime_path") if answer.get("nvidia_runtime") else "none"
    lines = ["Keys: %s." % (", ".join(answer.get("keys") or []) or "none")]
    places = answer["lines"]
    lines.append(at(places.get("runtimes"), "NVIDIA runtime: %s." % runtime))
    for key in answer["repeated_keys"]:
        repeated = "The key %s is in the file twice; the last one counts. Remedy: remove one." % key
        lines.append(at(places.get(key), repeated, "warning"))
    default = answer.get("default_runtime")
    lines.append(at(places.get("default-runtime"), "The default runtime is %s." % (default or "docker's own")))
    if default == "nvidia" and not answer.get("nvidia_runtime"):
        lines.append("Docker does not start: the default runtime is not defined. Remedy: define it under runtimes.")
    return lines


ALL = (
    Kind("os-release", read_os_release, describe_os_release, "/etc/os-release"),
    Kind(
        "lspci",
        read_lspci,
        describe_lspci,
        "any form of lspci, lshw, hwinfo, udevadm or ubuntu-drivers, or a tar archive of /sys",
    ),
    Kind(
        "proc-driver-version",
        read_proc_version,
        describe_proc_version,
        "/proc/driver/nvidia/version, or modinfo nvidia",
    ),
    Kind("nvidia-detect", read_detect, describe_detect, "nvidia-detect of ELRepo or Debian"),
    Kind("daemon-json", read_daemon_json, describe_daemon_json, "/etc/docker/daemon.json"),
    Kind(
        "nvidia-smi",
        lambda data: explain_messages.read_smi(text_of(data)),
        explain_messages.describe_smi,
        "any output of nvidia-smi, its errors included",
    ),
    Kind(
        "container-error",
        lambda data: explain_messages.read_container(text_of(data)),
        explain_messages.describe_container,
        "why docker, containerd or podman did not start a container, or it sees no GPU",
    ),
    Kind(
        "installer-log",
        lambda data: explain_messages.read_installer(text_of(data)),
        explain_messages.describe_installer,
        "a log of nvidia-installer, DKMS or a package manager",
    ),
    Kind(
        "dmesg",
        lambda data: explain_messages.read_dmesg(text_of(data)),
        explain_messages.describe_dmesg,
        "the kernel's log, by dmesg, journalctl -k or syslog",
    ),
)
OF_ONE_FORM = ("os-release", "daemon-json", "proc-driver-version", "nvidia-detect", "lspci")
"""Kinds that are known by their form; the texts of the others are messages, which may be mixed."""


def read_any(data: bytes) -> dict[str, Any]:
    """Read a text as the kind that it is of (``kind``): by its form, else as the kind in which it says most."""
    text = text_of(data)
    found = [form.kind for form in forms.forms_of(text) if form.kind]
    lines = text.split("\n")
    keys = [programs.program_of(line) for line in lines[: programs.SHORT]]
    of_programs = [programs.PROGRAMS[key].kind or "container-error" for key in keys if key]
    others = SEARCHED if len(lines) <= programs.SHORT or not (found or of_programs) else ()
    kinds = [kind for kind in dict.fromkeys([*found, *of_programs, *others]) if kind not in OF_ONE_FORM]
    of_one_form = [kind for kind in OF_ONE_FORM if kind in found]
    if forms.begins_object(text):
        of_one_form = ["daemon-json"]
    if (of_one_form and not set(found) - set(OF_ONE_FORM)) or is_archive(data):
        kind = (of_one_form or ["lspci"])[0]
        return dict(KINDS[kind].read(data), kind=kind)
    answers = [dict(KINDS[kind].parse(data), kind=kind) for kind in kinds]
    return min(answers, key=says_little)


def says_little(answer: dict[str, Any]) -> int:
    """Return how little an answer says; the smallest says most: a known message, a status word, facts, nothing."""
    if any(not row["code"].startswith("status_") for row in answer["problems"]):
        return 0
    return 1 if answer["problems"] else 2 if any(answer.get(key) for key in FACTS) else 3


def describe_any(answer: dict[str, Any]) -> list[str]:
    """Return what a reading of any kind means."""
    return KINDS[answer["kind"]].describe(answer)


class AnyKind(Kind):
    """The kind of a text whose kind was not given; programs in it are recognised line by line."""

    def read(self, data: bytes) -> dict[str, Any]:
        """Read a text, whatever program wrote it."""
        return self.parse(data)

    def describe(self, answer: dict[str, Any]) -> list[str]:
        """Return what a reading means."""
        return self.to_lines(answer)


AUTO = AnyKind("auto", read_any, describe_any, "any of these, recognised by its own words")
KINDS: dict[str, Kind] = {kind.name: kind for kind in (*ALL, AUTO)}
"""Every kind of output that `gpu-explain read` understands; a new one is one entry."""


def kind_of(word: str) -> str:
    """Return the kind that a word means: container_errors is container-error."""
    word = word.replace("_", "-")
    return word[:-1] if word.endswith("s") and word[:-1] in KINDS else word


EPILOG = """\
examples:
  gpu-explain read auto error.txt                   what an error of any of these programs means
  gpu-explain read nvidia-smi smi.txt               what the output of nvidia-smi means
  dmesg | gpu-explain read dmesg -                  Xid errors and what to do about them
  gpu-explain read installer-log --json build.log   the same as data
  gpu-explain host --pci-id 10de:1db1 --os-release /etc/os-release
                                                    which driver a V100 gets on this distribution
  gpu-explain host --lspci lspci.txt --os-release os-release --set nvidia_driver_branch=580
                                                    the same with a variable of docs/variables.md
  gpu-explain host captures/gpu1.jsonl              the plan of a host that playbooks/capture.yml captured
  gpu-explain fleet captures -e nvidia_driver_branch=595
                                                    what site.yml would do with all captured hosts

exit status:
  0  the output was read, also if nothing in it is known; there is a driver for the host; every host has a plan
  1  there is no driver for the host; some hosts are refused
  2  wrong arguments, or a file that cannot be read

gpu-explain needs no GPU, no network and no root, and changes nothing. docs/explain.md has an example of every kind.
"""


def parser(
    host: Sequence[argparse.ArgumentParser] = (), fleet: Sequence[argparse.ArgumentParser] = ()
) -> argparse.ArgumentParser:
    """Return the arguments of gpu-explain. `host` and `fleet` read their own; they are here for completion only."""
    found = argparse.ArgumentParser(
        prog="gpu-explain",
        description="Explain pasted output, or show what site.yml would do with a host or a fleet.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = found.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    reading = commands.add_parser(
        "read",
        help="read one output that somebody pasted",
        description="Read one output and explain it: what to do now, the cause, and the lines that show it.",
        epilog="kinds:\n" + "".join("  %-20s %s\n" % (name, KINDS[name].help) for name in sorted(KINDS)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    reading.add_argument("kind", type=kind_of, choices=sorted(KINDS), metavar="KIND", help="one of those below")
    reading.add_argument("file", metavar="FILE", help="the output in a file; - is standard input")
    reading.add_argument("--json", action="store_true", help="the reading as JSON, and nothing else")
    commands.add_parser("host", help="which driver a host would get, and why", add_help=False, parents=host)
    commands.add_parser("fleet", help="what site.yml would do with captured hosts", add_help=False, parents=fleet)
    return found


def complete() -> None:
    """Print what may follow on the command line and exit, if a shell asks for that."""
    if "_ARGCOMPLETE" not in os.environ:
        return
    import argcomplete

    from . import fleet, host

    argcomplete.autocomplete(parser([host.parser()], [fleet.parser()]))


LARGEST = 64 << 20
"""Bytes that are read at most: no output of these kinds is longer."""


def read_file(path: str) -> bytes:
    """Return a file's bytes, standard input for "-"; ValueError for one that is no output that somebody pasted."""
    if path == "-":
        data = sys.stdin.buffer.read(LARGEST + 1)
    else:
        with Path(path).open("rb") as handle:
            data = handle.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise ValueError("it is larger than %d MiB; give the part that matters" % (LARGEST >> 20))
    return data


def main(argv: list[str] | None = None) -> int:
    """Run gpu-explain."""
    complete()
    words = sys.argv[1:] if argv is None else argv
    if words[:1] == ["host"]:
        from . import host as explain_host

        return explain_host.main(words[1:])
    if words[:1] == ["fleet"]:
        from . import fleet

        return fleet.main(words[1:])
    arguments = parser().parse_args(words)
    if arguments.command is None:
        parser().print_help()
        return 2
    kind = KINDS[arguments.kind]
    try:
        answer = kind.read(read_file(arguments.file))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        text = "gpu-explain read: %s: %s; give a file, or - for standard input\n" % (arguments.file, reason)
        sys.stderr.write(plain_text(text))
        return 2
    shown = json.dumps(answer, indent=1) if arguments.json else "\n".join(kind.describe(answer))
    sys.stdout.write(plain_text(shown) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
