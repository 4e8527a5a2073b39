"""Compile catalog/*.yml into small Python modules for the hosts (`make catalog`).

A host gets no YAML parser and no file besides Python modules, so the data travels in these: the catalog as JSON, which
is read ten times faster than literals are compiled. GPUs are one text, parsed when the first one is asked for.
"""
# ruff: noqa: E402  the tools are no installed package

import argparse
import base64
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

from ansible.module_utils.common.yaml import yaml_load

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT)]

from plugins.module_utils.gpu_ready.base import versions
from plugins.module_utils.gpu_ready.system import monitoring_files

CATALOG = ROOT / "catalog"
PACKAGE = ROOT / "module_utils/gpu_ready"
HEAD = '''"""Data of catalog/*.yml, compiled by `make catalog`; do not edit."""

from typing import Any, Dict

# fmt: off
# ruff: noqa: E501
'''


def load(path: Path) -> Any:
    """Return a YAML file's data."""
    return yaml_load(path.read_text(encoding="utf-8"))


def gpus(data: dict[str, Any]) -> str:
    """Return the GPUs as text: a line `=architecture|first|last|flavours|compute|unverified` for a group, then its ids.

    An id is written as the difference to the one before, which packs to three quarters of the size. Cards of before
    2007 have no name there: no branch of the catalog drives them.
    """
    lines = []
    oldest = min(load(CATALOG / "branches.yml")["branches"])
    for group in data["gpus"]:
        head = [group["architecture"], group["first_branch"], group["last_branch"], ",".join(group["flavours"])]
        head += [group["compute"], None if group["verified"] else "unverified"]
        lines.append("=" + "|".join("" if value is None else str(value) for value in head))
        before = 0
        for device, name in sorted(group["ids"].items()):
            named = group["last_branch"] is None or group["last_branch"] >= oldest
            lines.append(f"{int(device, 16) - before:x} {name if named else ''}".rstrip())
            before = int(device, 16)
    return "\n".join(lines) + "\n"


def installers(releases: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Return the installers with their checksums in base64, which packs better than hexadecimal digits."""
    found = {release: dict(entry) for release, entry in releases.items()}
    for entry in found.values():
        if "sha256" in entry:
            entry["sha256"] = base64.b64encode(bytes.fromhex(entry["sha256"])).decode("ascii")
    return found


def unverified(source: dict[str, Any]) -> dict[str, Any]:
    """Return what no public source confirms of a driver source: by field the values of a list, or True."""
    confirmed: dict[str, dict[str, bool]] = {}
    for name, text in (source.get("verified") or {}).items():
        field, *values = name.split()
        confirmed.setdefault(field, {}).update(dict.fromkeys(values or [""], bool(text)))
    found: dict[str, Any] = {}
    for field, by_value in confirmed.items():
        listed = source.get(field) if field in ("branches", "toolkits") else None
        doubtful = [one for one in listed or [] if not by_value.get(str(one), by_value[""])]
        if doubtful or (listed is None and not by_value[""]):
            found[field] = doubtful or True
    return found


def with_lists(data: dict[str, Any], branches: dict[str, Any], toolkits: list[str]) -> dict[str, Any]:
    """Return a distribution whose driver sources list each branch and toolkit, instead of limits such as ``>=580``."""
    for source in data["driver_sources"].values():
        if "toolkits" in source:
            source["toolkits"] = [one for item in source["toolkits"] for one in toolkit_versions(item, toolkits)]
        for entry in (source, source.get("precompiled") or {}):
            listed = entry.get("branches")
            if isinstance(listed, dict):
                entry["branches"] = {
                    number: own for item, own in listed.items() for number in branch_numbers(item, branches)
                }
            elif listed:
                entry["branches"] = [number for item in listed for number in branch_numbers(item, branches)]
    return data


def branch_numbers(item: int | str, branches: dict[str, Any]) -> list[int]:
    """Return the branches that an entry of a list means, by the rule in branches.yml."""
    if isinstance(item, int):
        return [item]
    archive, _, limits = item.rpartition(" ")
    carried = branches["archives"][archive] if archive else published_branches(branches)
    return [number for number in carried if versions.is_branch_within(number, limits)]


def toolkit_versions(item: str, known: list[str]) -> list[str]:
    """Return the toolkits that an entry of a list means: one, or all known ones from one on."""
    if not item.startswith(">="):
        return [item]
    return [one for one in known if versions.compare(one, item) >= 0]


def published_branches(branches: dict[str, Any]) -> list[int]:
    """Return the branches with a known point release, ascending."""
    return sorted(number for number, entry in branches["branches"].items() if "." in entry["newest"])


def distro(path: Path, branches: dict[str, Any], toolkits: list[str]) -> dict[str, Any]:
    """Return a distribution without texts: of what no source confirms, and of absent flavours, the values stay."""
    data = with_lists(load(path), branches, toolkits)
    sources = data["driver_sources"]
    sources["runfile"] = branches["runfile"] | sources["runfile"]
    for source in data["driver_sources"].values():
        doubtful = unverified(source)
        source.pop("verified", None)
        if doubtful:
            source["unverified"] = doubtful
        for entry in (source, source.get("precompiled") or {}):
            reasons = (entry.pop("absent", None) or {}).items()
            limits = {flavour: list(why) for flavour, why in reasons if isinstance(why, dict)}
            if limits:
                entry["absent"] = limits
    return data


def families(distros: dict[str, Any]) -> dict[str, Any]:
    """Return the families, with the code names of the distributions."""
    data: dict[str, Any] = load(CATALOG / "families.yml")
    known = [one for one in distros.values() if "codename" in one]
    own = {one["codename"]: f"{one['ids'][0]} {one['versions'][0]} ({one['codename']})" for one in known}
    return data | {"bases": data["bases"] | own}


def literal(name: str, value: Any) -> str:
    """Return one assignment, a line for each entry of a mapping."""
    if not isinstance(value, dict):
        return f"{name} = {value!r}\n"
    lines = "".join(f"    {key!r}: {entry!r},\n" for key, entry in value.items())
    return f"{name}: Dict[Any, Any] = {{\n{lines}}}\n"


def monitor_digest() -> str:
    """Return the digest by which a plan knows whether a host has the present program of the monitoring service."""
    paths = sorted((PACKAGE / "monitor").glob("*.py"))
    return str(monitoring_files.program_digest({path.name: path.read_bytes() for path in paths}))


def dcgm_files() -> dict[str, str]:
    """Return the beginning of the digest by path of what the role writes for DCGM's exporter."""
    own = {path: ROOT / "roles/gpu_monitoring/files" / Path(path).name for path in monitoring_files.DCGM_FILES}
    return {path: hashlib.sha256(source.read_bytes()).hexdigest()[:16] for path, source in own.items()}


def compiled() -> str:
    """Return the text of the compiled module."""
    gpu_data, branches, cudnn = load(CATALOG / "gpus.yml"), load(CATALOG / "branches.yml"), load(CATALOG / "cudnn.yml")
    cuda = load(CATALOG / "cuda.yml")
    distros = {
        path.stem: distro(path, branches, list(cuda["toolkits"]))
        for path in sorted((CATALOG / "distros").glob("*.yml"))
    }
    parts = {
        "DATE": branches["date"],
        "DEFAULT_BRANCH": branches["default"],
        "NEWEST_BRANCH": published_branches(branches)[-1],
        "BRANCHES": branches["branches"],
        "TOOLKITS": cuda["toolkits"],
        "CUDA_INSTALLER": {name: value for name, value in cuda["installers"].items() if name != "releases"},
        "CUDA_INSTALLERS": installers(cuda["installers"]["releases"]),
        "CUDNN_PATH": cudnn["path"],
        "CUDNNS": cudnn["releases"],
        "CUDNN_PACKAGES": cudnn["packages"],
        "DISTROS": distros,
        "FAMILIES": families(distros),
        "DRIVER_PACKAGES": load(CATALOG / "driver_packages.yml"),
        "MANAGED_HOSTS": load(CATALOG / "managed_hosts.yml"),
        "MONITOR": monitor_digest(),
        "DCGM": load(CATALOG / "monitoring.yml")["dcgm"] | {"files": dcgm_files()},
        "REPOSITORIES": load(CATALOG / "repositories.yml")["repositories"],
        "NVSWITCHES": gpu_data["nvswitches"],
        "FIRST_OF_TURING": gpu_data["first_of_turing"],
    }
    names = "".join(f"{name}: {annotation(value)} = _DATA[{name!r}]\n" for name, value in parts.items())
    head = HEAD.replace("from typing", "import json\nfrom typing")
    return (
        f"{head}_DATA = json.loads(r'''{json_text(parts)}''')\n{INTEGER_KEYS}{names}GPUS = r'''\n{gpus(gpu_data)}'''\n"
    )


INTEGER_KEYS = """

def _by_number(table: Dict[str, Any]) -> Dict[int, Any]:
    return {int(number): entry for number, entry in table.items()}


_DATA["BRANCHES"] = _by_number(_DATA["BRANCHES"])
_DATA["CUDNN_PACKAGES"] = _by_number(_DATA["CUDNN_PACKAGES"])
for _distro in _DATA["DISTROS"].values():
    for _source in _distro["driver_sources"].values():
        if isinstance(_source.get("branches"), dict):
            _source["branches"] = _by_number(_source["branches"])

"""
"""Code of the compiled catalog: JSON has no numbers as keys."""


def json_text(parts: dict[str, Any]) -> str:
    """Return the parts as JSON, a line for each entry of a mapping, so that changes stay readable."""
    found = []
    for name, value in parts.items():
        text = compact(value)
        if isinstance(value, dict):
            rows = ",\n".join(f"{json.dumps(str(key))}:{compact(entry)}" for key, entry in value.items())
            text = "{\n" + rows + "}"
        found.append(f"{json.dumps(name)}:{text}")
    return "{" + ",\n".join(found) + "}"


def compact(value: object) -> str:
    """Return JSON without spaces."""
    return json.dumps(value, separators=(",", ":"))


def annotation(value: object) -> str:
    """Return the type of a part for the type checker."""
    return "Dict[Any, Any]" if isinstance(value, dict) else type(value).__name__


def nvlink(data: dict[str, Any]) -> dict[str, Any]:
    """Return the subcodes without sources: by Xid and unit rows of statuses, reasons (None: any), action, inquiry."""
    rows: dict[int, dict[str, list[Any]]] = {}
    for xid, units, statuses, reasons, action, inquiry, _source in data["rows"]:
        row = [None if statuses == "any" else statuses, None if reasons == "any" else reasons, action, inquiry]
        for unit in units.split("/"):
            rows.setdefault(xid, {}).setdefault(unit, []).append(row)
    return dict(data, rows=rows)


def compiled_messages() -> str:
    """Return the text of the module with messages and Xids, which only travels with what explains failures."""
    xids = load(CATALOG / "xids.yml")
    parts = {
        "MESSAGES": load(CATALOG / "messages.yml"),
        "XID_CLASSES": xids["classes"],
        "XIDS": xids["xids"],
        "SXIDS": xids["sxids"],
        "RECOVERY_ACTIONS": {
            row["number"]: [row["name"], row["severity"], row["remedy"]] for row in xids["recovery_actions"]
        },
        "NVLINK": nvlink(xids["nvlink"]),
    }
    head = HEAD.replace("catalog/*.yml", "catalog/messages.yml and xids.yml")
    return head + "".join(literal(name, value) for name, value in parts.items())


def compiled_names() -> str:
    """Return the text of the module with names of options, which only what judges variables imports."""
    names = load(CATALOG / "option_names.yml")
    head = HEAD.replace("catalog/*.yml", "catalog/option_names.yml")
    parts = {"DOCKER_OPTIONS": names["docker"], "MODULE_PARAMETERS": dict.fromkeys(names["module_parameters"], "")}
    return head + "".join(literal(name, value) for name, value in parts.items())


TARGETS = {
    "plugins/plugin_utils/gpu_ready/catalog/data.py": compiled,
    "module_utils/gpu_ready/diagnostics/messages_data.py": compiled_messages,
    "plugins/plugin_utils/gpu_ready/catalog/option_names.py": compiled_names,
}


def main() -> int:
    """Write the modules, or with --check say whether they are current."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a module is not current")
    check = parser.parse_args().check
    for name, text in TARGETS.items():
        target = ROOT / name
        if target.exists() and target.read_text(encoding="utf-8") == text():
            continue
        shown = target.relative_to(ROOT)
        if check:
            print(f"{shown} is not current: run `make catalog`", file=sys.stderr)
            return 1
        target.write_text(text(), encoding="utf-8")
        print(f"wrote {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
