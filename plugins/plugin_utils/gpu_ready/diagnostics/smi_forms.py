"""The forms of nvidia-smi's answer: its table, -L, --query-gpu as csv, -q, -q -x, --version (304 to 615)."""

import re
from re import Pattern
from typing import Any, NamedTuple

VERSION = r"\d{2,3}\.\d{1,3}(?:\.\d{1,3})?"
BUS_ID = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f]"
MISSING = re.compile(
    r"^\[?(?:N/A|Not Supported|Unknown Error|Not Available|Insufficient Permissions|ERR!|GPU is lost|"
    r"GPU requires reset|.* deprecated)\]?$"
)
TEGRA = re.compile(r"\(nvgpu\)|^(?:NVIDIA )?(?:Orin|Xavier|Thor|Tegra)\b", re.IGNORECASE)
BOARDS = re.compile(
    r"^(?:NVIDIA (?!driver)|Tesla|Quadro|GeForce|GRID|TITAN|NVS|Graphics Device|[ABHLT]\d{1,3}\b|RTX|GH200|GB\d)"
)
BOARDS = re.compile(
    r"^(?:NVIDIA (?!driver)|Tesla|Quadro|GeForce|GRID|TITAN|NVS|Graphics Device|[ABHLT]\d{1,3}\b|RTX|GH200|GB\d)"
)


class Reading(NamedTuple):
    """What one form of the output says: values of the whole and the GPUs."""

    whole: dict[str, Any]
    gpus: list[dict[str, Any]]


def value(text: str | None) -> str | None:
    """Return a value, None where nvidia-smi has none."""
    text = (text or "").strip()
    return None if not text or MISSING.match(text) else text


def number(text: str | None) -> str | None:
    """Return the version at the beginning of a value ("610.57.04 [Deprecated; ...]"), None where there is none."""
    match = re.match(r"\s*(\d+\.\d+(?:\.\d+)*)", text or "")
    return match.group(1) if match else None


# --- the table ---------------------------------------------------------------------------------------------------

HEAD = re.compile(
    r"NVIDIA-SMI\s+(?P<smi>[\w.]+)\s+(?:Driver|KMD) Version:\s*(?P<driver>[\w./!]+)"
    r"(?:\s+CUDA (?:UMD )?Version:\s*(?P<cuda>Not Found|[\w./!]+))?"
)
ROW = re.compile(
    r"\|\s*(?P<index>\d{1,3})\s+(?P<name>\S[^|]*?)\s*"
    r"\|\s*(?P<bus>%s|N/A|ERR!|Unknown(?: Error)?)\s+(?P<display>\S+)?\s*\|\s*(?P<ecc>[^|]*?)\s*(?:\||$)" % BUS_ID
)
MODE = re.compile(r"\s+(?:On|Off|N/A|ERR!|WDDM|TCC|MCDM|Enabled|Disabled)$")
MIG_CELL = re.compile(r"\|\s*\|[^|]*\|\s*(Enabled\*?|Disabled\*?|N/A|ERR!)\s*\|")
MIG_ROW = re.compile(r"\|\s*(\d{1,3})\s+\d{1,3}\s+\d{1,3}\s+\d{1,3}\s*\|")


def read_table(text: str) -> Reading | None:
    """Read the table of any release: two or three rows per GPU, then MIG devices, then processes."""
    head = HEAD.search(text)
    if head is None:
        return read_rows(text)
    gpus: list[dict[str, Any]] = []
    migs, section = 0, "gpus"
    for line in text[head.end() :].splitlines():
        if HEAD.search(line):
            break  # nvidia-smi -l: one table is enough
        if "MIG devices" in line:
            section = "mig"
        elif "Processes" in line or "Process name" in line:
            section = "processes"
        elif "Bus-Id" in line:
            section = "gpus"
        elif section == "mig":
            migs += 1 if MIG_ROW.search(line) else 0
        elif section == "gpus":
            table_line(line, gpus)
    smi, driver, cuda = head.group("smi"), head.group("driver"), head.group("cuda")
    whole = {"driver_version": number(driver), "cuda_version": number(cuda), "mig_devices": migs}
    if smi != driver:
        whole["smi_version"] = smi
    if cuda in ("N/A", "Not Found") and not any(TEGRA.search(gpu["name"] or "") for gpu in gpus):
        whole["vgpu_host"] = True
    # The driver of a Windows host has a number of two parts, nvidia-smi of WSL its own one.
    if (
        number(driver)
        and smi != driver
        and number(smi) == smi
        and driver.count(".") == 1
        and int(smi.split(".")[0]) >= 400
    ):
        whole["wsl"] = True
    return Reading(whole, gpus)


def read_rows(text: str) -> Reading | None:
    """Read rows of GPUs of a table whose head somebody left out."""
    gpus: list[dict[str, Any]] = []
    for line in text.partition("Processes")[0].splitlines():
        table_line(line, gpus)
    return Reading({"driver_version": None, "cuda_version": None}, gpus) if gpus else None


def table_line(line: str, gpus: list[dict[str, Any]]) -> None:
    """Read one line of the GPUs' part into the list."""
    row = ROW.search(line)
    if row:
        name = MODE.sub("", row.group("name")).strip()
        gpu: dict[str, Any] = {"index": int(row.group("index")), "bus_id": value(row.group("bus")), "name": name}
        if name.endswith("..."):
            gpu["name_truncated"] = True
        if "ERR!" in line or "Unknown Error" in line:
            gpu.update(error=True, name_raw=name)
        if (
            row.group("ecc") == "On"
        ):  # instead of a number of errors: MIG is on, also where the row that says so is cut off
            gpu["mig"] = "Enabled"
        gpus.append(gpu)
    elif gpus:
        mig = MIG_CELL.search(line)
        if mig:
            gpus[-1]["mig"] = mig.group(1)
        if "ERR!" in line:
            gpus[-1]["error"] = True


# --- nvidia-smi -L -----------------------------------------------------------------------------------------------

LISTED = re.compile(r"\bGPU (\d{1,3}): (.{1,100}?) ?\((?:UUID|S/N): ?([^)\n]{0,80})\)")
MIG_LISTED = re.compile(r"(?m)\bMIG\s+\S+\s+Device\s+\d+: ?\((?:UUID: ?)?MIG-")


def read_mig_part(text: str) -> Reading | None:
    """Read the part of the table that lists MIG devices, where somebody pasted nothing else."""
    if "MIG devices:" not in text:
        return None
    rows = MIG_ROW.findall(text.split("Processes:")[0])
    gpus: list[dict[str, Any]] = [{"index": int(index), "mig": "Enabled"} for index in sorted(set(rows), key=int)]
    return Reading({"driver_version": None, "mig_devices": len(rows)}, gpus)


def read_list(text: str) -> Reading | None:
    """Read the list of GPUs and their MIG devices."""
    gpus: list[dict[str, Any]] = []
    for index, name, uuid in LISTED.findall(text):
        gpu: dict[str, Any] = {"index": int(index), "name": name.strip(), "uuid": value(uuid)}
        if "ERR!" in name or "Unknown Error" in name:
            gpu["error"] = True
        gpus.append(gpu)
    migs = len(MIG_LISTED.findall(text))
    return Reading({"driver_version": None, "mig_devices": migs}, gpus) if gpus else None


# --- nvidia-smi -q -----------------------------------------------------------------------------------------------

SECTION = re.compile(r"(?m)^[^\w\n]*GPU (%s)[ \t]*$" % BUS_ID)


def line_value(name: str, text: str) -> str | None:
    match = re.search(r"(?m)^[^\w\n]*%s[ \t]*:[ \t]*(\S[^\n]*?)[ \t]*$" % name, text)
    return match.group(1) if match else None


def split(mark: Pattern[str], text: str) -> tuple[str, list[tuple[str, str]]]:
    """Return the text before the first GPU, and each GPU's address with its part of the text."""
    pieces = mark.split(text)
    return pieces[0], [(pieces[place], pieces[place + 1]) for place in range(1, len(pieces), 2)]


LOST = re.compile(r"^\[?(?:Unknown Error|ERR!|GPU is lost|GPU requires reset)")


def named_gpu(bus_id: str, name: str | None, uuid: str | None) -> dict[str, Any]:
    """Return a GPU of -q or XML; in place of its name there may be the reason why it does not answer."""
    if name and LOST.match(name):
        return {"bus_id": bus_id, "name": None, "uuid": value(uuid), "error": True, "name_raw": name}
    return {"bus_id": bus_id, "name": name, "uuid": value(uuid)}


def read_query(text: str) -> Reading | None:
    """Read `nvidia-smi -q`: the head, then one section per GPU."""
    if "NVSMI LOG" not in text and not (SECTION.search(text) and "Product Name" in text):
        return None
    head, sections = split(SECTION, text)
    gpus: list[dict[str, Any]] = []
    for bus_id, part in sections:
        gpu = named_gpu(bus_id, line_value("Product Name", part), line_value("GPU UUID", part))
        mig = re.search(r"MIG Mode\s+Current\s*:\s*(\S+)", part)
        gpus.append(dict(gpu, mig=mig.group(1)) if mig else gpu)
    return Reading(heads(lambda name: line_value(name, head), gpus), gpus)


def heads(ask: Any, gpus: list[dict[str, Any]]) -> dict[str, Any]:
    """Return driver, CUDA and number of GPUs from the head of -q.

    Since 610 the old names only refer to the new ones.
    """
    cuda = ask("CUDA UMD Version") or ask("CUDA Version")
    attached = re.match(r"\d{1,4}", ask("Attached GPUs") or "")
    whole = {
        "driver_version": number(ask("KMD Version")) or number(ask("Driver Version")),
        "cuda_version": number(cuda) or number(ask("CUDA Version")),
        "attached_gpus": int(attached.group(0)) if attached else None,
    }
    modes = {gpu["mig"] for gpu in gpus if gpu.get("mig")}
    whole["mig"] = modes.pop() if len(modes) == 1 else None
    if cuda and cuda.strip("[]") in ("N/A", "Not Found"):
        whole["vgpu_host"] = True
    return whole


# --- nvidia-smi -q -x --------------------------------------------------------------------------------------------

ELEMENT = re.compile(r"<gpu id=[\"']([^\"'<>]{0,80})[\"'][^<>]{0,200}>")
TAG = re.compile(r"<(/?)([A-Za-z_][\w.-]*)[^<>]*?(/?)>")
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&apos;", "'"), ("&amp;", "&"))


def tag(name: str, text: str) -> str | None:
    """Return the text of the first element of a name."""
    match = re.search(r"<%s>([^<]*)</%s>" % (name, name), text)
    found = match.group(1).strip() if match else None
    for entity, letter in ENTITIES:
        found = found.replace(entity, letter) if found else found
    return found


def well_formed(text: str) -> bool:
    """Return True if every element of the log is closed; no XML parser sees a text that strangers gave."""
    opened: list[str] = []
    for slash, name, empty in TAG.findall(text):
        if slash:
            if not opened or opened.pop() != name:
                return False
            if not opened:
                return True
        elif not empty:
            opened.append(name)
    return False


def read_xml(text: str) -> Reading | None:
    """Read the XML form of any version, also where it is cut."""
    start = text.find("<nvidia_smi_log")
    if start < 0 and not ELEMENT.search(text):
        return None
    text = text[max(0, start) :]
    text = text[: text.find("</nvidia_smi_log>") + 17] if "</nvidia_smi_log>" in text else text
    head, elements = split(ELEMENT, text)
    gpus: list[dict[str, Any]] = []
    for bus_id, part in elements:
        gpu = named_gpu(bus_id, tag("product_name", part), tag("uuid", part))
        mig = tag("current_mig", part)
        gpus.append(dict(gpu, mig=mig) if mig else gpu)
    whole = heads(lambda name: tag(name.lower().replace(" ", "_"), head), gpus)
    if whole["attached_gpus"] is not None and whole["attached_gpus"] != len(gpus):
        whole["gpu_elements"] = len(gpus)
    whole["mig_devices"] = len(re.findall(r"<mig_device>", text))
    if not well_formed(text):
        whole["well_formed"] = False
    return Reading(whole, gpus)


# --- nvidia-smi --version ----------------------------------------------------------------------------------------


def read_version(text: str) -> Reading | None:
    """Read `nvidia-smi --version`: since 610 its DRIVER line only points to the KMD line."""
    found = {
        name: re.search(r"(?im)^[^\w\n]*%s version[ \t]*:[ \t]*(.*)$" % name, text)
        for name in ("NVIDIA-SMI", "DRIVER", "KMD", "CUDA", "CUDA UMD")
    }
    if found["NVIDIA-SMI"] is None or (found["DRIVER"] is None and found["KMD"] is None):
        return None
    versions = {name: number(match.group(1)) if match else None for name, match in found.items()}
    driver = versions["KMD"] or versions["DRIVER"]
    whole: dict[str, Any] = {"driver_version": driver, "cuda_version": versions["CUDA UMD"] or versions["CUDA"]}
    if driver and versions["NVIDIA-SMI"] and versions["NVIDIA-SMI"] != driver:
        whole["smi_version"] = versions["NVIDIA-SMI"]
    return Reading(whole, [])


# --- nvidia-smi --query-gpu --format=csv -------------------------------------------------------------------------

COLUMNS = {
    "index": "index",
    "name": "name",
    "gpu_name": "name",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "pci.bus_id": "bus_id",
    "gpu_bus_id": "bus_id",
    "pci.device_id": "pci_device_id",
    "compute_cap": "compute_cap",
    "memory.total": "memory_total",
    "fan.speed": "fan_speed",
    "power.default_limit": "power_default_limit",
    "mig.mode.current": "mig_mode_current",
    "driver_version": "driver_version",
    "kmd_version": "kmd_version",
}
FIELD = re.compile(r"^[a-z][\w.]*(?: \[[^\]]{1,8}\])?$")
KNOWN_FIELD = re.compile(
    r"^(?:index|count|timestamp|serial|pstate|(?:gpu_)?(?:name|uuid|bus_id|serial)|\w+(?:[._]\w+)+)\b"
)


def cells(line: str) -> list[str]:
    """Return the cells of a line of csv."""
    return [cell.strip() for cell in line.strip().split(",")]


def is_header(fields: list[str]) -> bool:
    """Return True if a line of csv has the names of its columns."""
    return all(FIELD.match(field) for field in fields) and any(KNOWN_FIELD.match(field) for field in fields)


def read_csv(text: str) -> Reading | None:
    """Read csv with a header line, or guess the columns of one without."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("WARNING:", "$", "#"))]
    for position, line in enumerate(lines[:20]):
        fields = cells(line)
        if is_header(fields):
            rows = [cells(other) for other in lines[position + 1 :]]
            names = [field.split(" [")[0] for field in fields]
            return headed(names, [row for row in rows if len(row) == len(names)])
    rows = [cells(line) for line in lines]
    width = len(rows[0]) if rows else 0
    if not rows or any(len(row) != width for row in rows) or not all(guessable(row) for row in rows):
        return None
    return guessed(rows)


def headed(names: list[str], rows: list[list[str]]) -> Reading:
    """Return csv whose columns have names."""
    gpus: list[dict[str, Any]] = []
    drivers: list[str] = []
    for row in rows:
        gpu: dict[str, Any] = {}
        for place, cell in enumerate(row):
            column = COLUMNS.get(names[place])
            if column in ("driver_version", "kmd_version"):
                drivers += [cell] if number(cell) == cell else []
            elif column == "index":
                gpu["index"] = int(cell) if re.match(r"\d{1,4}$", cell) else None
            elif column:
                gpu[column] = value(cell)
        if gpu:
            gpus.append(gpu)
    return Reading({"driver_version": drivers[0] if drivers else None}, gpus)


def guessable(row: list[str]) -> bool:
    """Return True if a row without a header is one of nvidia-smi: something in it can be nothing else."""
    return any(
        re.match(BUS_ID + "$", cell)
        or re.match(r"GPU-[0-9a-f-]{8,}$", cell)
        or (BOARDS.match(cell) and is_name(cell))
        or cell.endswith("(nvgpu)")
        or (re.match(VERSION + "$", cell) and len(row) == 1)
        for cell in row
    )


def guessed(rows: list[list[str]]) -> Reading:
    """Return csv without a header: each column by the form of its values."""
    gpus: list[dict[str, Any]] = []
    for position, row in enumerate(rows):
        gpu: dict[str, Any] = {}
        for place, cell in enumerate(row):
            if re.match(BUS_ID + "$", cell):
                gpu["bus_id"] = cell
            elif re.match(r"GPU-[0-9a-f-]{8,}$", cell):
                gpu["uuid"] = cell
            elif re.match(r"0x[0-9A-Fa-f]{4}10DE$", cell, re.IGNORECASE):
                gpu["pci_device_id"] = cell
            elif "name" not in gpu and is_name(cell):
                gpu["name"] = cell
            elif place == 0 and cell == str(position):
                gpu["index"] = position
            elif re.match(r"[1-9]\d{0,1}\.\d$", cell):
                gpu.setdefault("compute_cap", cell)
        memory = [cell for cell in row if re.match(r"\d{3,7}(?: MiB)?$", cell)]
        if memory:
            gpu["memory_total"] = max(memory, key=lambda cell: int(cell.split()[0]))
        if gpu:
            gpus.append(gpu)
    return Reading({"driver_version": guessed_driver(rows)}, gpus)


def is_name(cell: str) -> bool:
    """Return True if a cell may be a GPU's name: words that are no value of another column."""
    if (
        len(cell) > 60
        or cell.endswith(".")
        or MISSING.match(cell)
        or re.match(r"(?:P\d{1,2}|Enabled|Disabled|Default|Active|Not Active|Exclusive\w*|0x\w+)$", cell)
    ):
        return False
    return bool(BOARDS.match(cell) or re.match(r"[A-Za-z][A-Za-z0-9-]*(?: [\w.()-]+)+$", cell))


def guessed_driver(rows: list[list[str]]) -> str | None:
    """Return the driver's version: the same in all rows; three parts rather than two, and no round number of watts."""
    same = [cell for place, cell in enumerate(rows[0]) if all(row[place] == cell for row in rows)]
    found = [cell for cell in same if re.match(VERSION + "$", cell) and int(cell.split(".")[0]) >= 300]
    long = [cell for cell in found if cell.count(".") == 2]
    plain = [cell for cell in found if not cell.endswith(".00")]
    likely = long or plain
    return likely[-1] if likely else None


FORMS = (read_xml, read_query, read_table, read_mig_part, read_list, read_version, read_csv)


def reading(text: str) -> Reading | None:
    """Return what a plain text says in the first form that it has, None for none."""
    for form in FORMS:
        found = form(text)
        if found is not None:
            return found
    return None
