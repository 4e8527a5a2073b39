"""The words of PCI listings: the form of a slot, the names of classes and vendors, and of what has no name."""

import re

SLOT = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{1,2}:[01][0-9a-fA-F]\.[0-7]"
CLASSES = {
    "0300": "VGA compatible controller",
    "0301": "XGA compatible controller",
    "0302": "3D controller",
    "0380": "Display controller",
    "0100": "SCSI storage controller",
    "0101": "IDE interface",
    "0104": "RAID bus controller",
    "0106": "SATA controller",
    "0107": "Serial Attached SCSI controller",
    "0108": "Non-Volatile memory controller",
    "0200": "Ethernet controller",
    "0207": "Infiniband controller",
    "0280": "Network controller",
    "0400": "Multimedia video controller",
    "0401": "Multimedia audio controller",
    "0403": "Audio device",
    "0480": "Multimedia controller",
    "0500": "RAM memory",
    "0580": "Memory controller",
    "0600": "Host bridge",
    "0601": "ISA bridge",
    "0604": "PCI bridge",
    "0680": "Bridge",
    "0700": "Serial controller",
    "0780": "Communication controller",
    "0880": "System peripheral",
    "0b40": "Co-processor",
    "0c00": "FireWire (IEEE 1394)",
    "0c03": "USB controller",
    "0c05": "SMBus",
    "0c80": "Serial bus controller",
    "1180": "Signal processing controller",
    "1200": "Processing accelerators",
}
NUMBERS = {name.lower(): number for number, name in CLASSES.items()}
NUMBERS["non-vga unclassified device"] = "0000"
CLASS = "|".join(map(re.escape, sorted(CLASSES.values(), key=len, reverse=True)))
UNKNOWN = re.compile(r"^(?:Unknown )?Device(?:\s+([0-9a-f]{4}))?$", re.IGNORECASE)
UNKNOWN_CLASS = re.compile(r"^Class(?:\s+([0-9a-f]{4}))?$")
"""What pciutils writes where its list of ids is missing: "Device 1b38", "Class 0300"."""
VENDORS = (
    "3DLabs",
    "AMD Pensando Systems",
    "Advanced Micro Devices, Inc. [AMD/ATI]",
    "Advanced Micro Devices, Inc. [AMD]",
    "Advanced Micro Devices [AMD] nee ATI",
    "Advanced Micro Devices [AMD]",
    "Amazon.com, Inc.",
    "ATI Technologies Inc",
    "ASPEED Technology, Inc.",
    "Broadcom Inc. and subsidiaries",
    "Chips and Technologies",
    "Cirrus Logic",
    "Diamond Multimedia Systems",
    "Gigabyte Technology Co., Ltd",
    "Google, Inc.",
    "Huawei Technologies Co., Ltd.",
    "InnoTek Systemberatung GmbH",
    "Intel Corporation",
    "Loongson Technology LLC",
    "Matrox Electronics Systems Ltd.",
    "Matrox Graphics, Inc.",
    "Microsoft Corporation",
    "Mitsubishi Electric",
    "Moore Threads Technology Co.,Ltd",
    "NVidia / SGS Thomson (Joint Venture)",
    "Number 9 Computer Company",
    "Parallels, Inc.",
    "Philips Semiconductors",
    "Red Hat, Inc.",
    "S3 Graphics Ltd.",
    "S3 Inc.",
    "Silicon Integrated Systems [SiS]",
    "Silicon Motion, Inc.",
    "Sapphire Technology Limited",
    "Technical Corp.",
    "Texas Instruments",
    "Trident Microsystems",
    "Tul Corporation / PowerColor",
    "Unisys Systems",
    "VIA Technologies, Inc.",
    "VMware",
    "XGI Technology Inc. (eXtreme Graphics Innovation)",
    "Zhaoxin",
)
FORM = (
    r"(?:Corporation|Corp|Incorporated|Inc|Ltd|Limited|GmbH|LLC|AG|S\.A|PLC|plc|Co|Technologies|Technology|Labs|Systems|"
    r"Semiconductors?|Microsystems|Instruments|Electronics|Interactive|Multimedia)\b\.?"
)
COMPANY = re.compile(
    r"^(\S.*?\b%s(?:,?\s*%s)*(?:\s\[[A-Za-z/ .&]+\](?=\s+\S))?)(?=\s|$)\s*(.*)$" % (FORM, FORM), re.DOTALL
)
NVIDIA_NAME = re.compile(r"^n?[Nn]?[Vv](?:idia|IDIA)(?:\s+Corporation|\s+Corp\.?)?(?=[\s:]|$)(?!\s*/):?\s*")


def split_vendor(text: str) -> tuple[str, str]:
    """Return the vendor and name; the list of ids does not mark where one ends."""
    match = NVIDIA_NAME.match(text)
    if match:
        return text[: match.end()].strip(), text[match.end() :]
    for vendor in VENDORS:
        if text.startswith(vendor) and text[len(vendor) :][:1].strip() == "":
            return vendor, text[len(vendor) :].strip()
    company = COMPANY.match(text)
    if company:
        return company.group(1), company.group(2)
    first, _, rest = text.partition(" ")
    return first, rest
