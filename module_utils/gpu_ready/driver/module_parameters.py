"""Values of the parameters of the kernel module: which texts mean the same."""

import re
from typing import Optional

NUMBER = r"-?(?:0x[0-9a-fA-F]+|\d+)"


def to_number(text: str) -> Optional[int]:
    """Return the value of a numeric parameter, None for other text.

    The kernel takes 438, 0666 and 0x1b6 alike (kstrtoint with base 0) and NVIDIA shows them unsigned
    (nv_procfs_read_params in nv-procfs.c of the open kernel modules).
    """
    if not re.fullmatch(NUMBER, text):
        return None
    try:
        return int(text, 8 if re.match("-?0[0-9]", text) else 0) & 0xFFFFFFFF
    except ValueError:  # 08
        return None


def is_same(value: str, shown: str) -> bool:
    """Return True if two values of a parameter mean the same; the driver shows strings in quotes."""
    number = to_number(value)
    return value == shown.strip('"') if number is None else number == to_number(shown.strip('"'))
