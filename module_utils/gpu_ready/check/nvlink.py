"""NVLink and the NVLink fabric of a GPU by NVML, left out where GPU or driver do not support them.

Structures, fields and values are as in nvml.h (github.com/NVIDIA/go-nvml 2f9e261, gen/nvml/nvml.h, NVML API 13). No
answer of these functions counts as a lost GPU.
"""

import ctypes
import struct
from typing import Any, Callable, Dict, List, Optional

OK = 0
Call = Callable[..., int]
"""Calls a function of NVML by its name and returns its code (Nvml.call)."""
MOST_LINKS = 36
"""NVML_NVLINK_MAX_LINKS of the newest header; older drivers answer with "invalid argument" beyond theirs."""
ERRORS = {161: "replay", 162: "recovery", 163: "crc", 208: "receive", 211: "integrity", 215: "recovery"}
"""Kind of error by field, each with the link as its scope: NVML_FI_DEV_NVLINK_ERROR_DL_* until Hopper, and
NVML_FI_DEV_NVLINK_COUNT_{RCV_ERRORS,LOCAL_LINK_INTEGRITY_ERRORS,LINK_RECOVERY_EVENTS} of NVLink 5."""
FIELD = 40
"""Bytes of nvmlFieldValue_t: field at 0, scope at 4, type of the value at 24, its result at 28, the value at 32."""
VALUES = {1: "I", 2: "Q", 3: "Q"}
"""Forms of counters by NVML_VALUE_TYPE_*."""
FABRIC_SIZES = ((3, 40), (2, 36))
"""Bytes of nvmlGpuFabricInfo by version. A driver that does not know one answers with a mismatch of versions."""
NOT_SUPPORTED, COMPLETED = 0, 3
"""NVML_GPU_FABRIC_STATE_*; between them 1 not started, 2 in progress."""
PROBLEMS = {"degraded_bandwidth": 0, "route_recovery": 2, "route_unhealthy": 4, "access_timeout_recovery": 6}
"""Shifts in the health mask of fields with two bits: 1 true, 2 false, 0 not supported."""
CONFIGURATION = 8
"""Shift of a field with four bits: 0 not supported, 1 correct, else what is wrong."""


def read_links(call: Call, handle: ctypes.c_void_p) -> List[bool]:
    """Return for each NVLink whether it is active."""
    links: List[bool] = []
    for link in range(MOST_LINKS):
        value = ctypes.c_uint()
        if call("nvmlDeviceGetNvLinkState", handle, ctypes.c_uint(link), ctypes.byref(value)) != OK:
            break
        links.append(value.value != 0)
    return links


def read_link_errors(call: Call, handle: ctypes.c_void_p, links: List[int]) -> Dict[str, int]:
    """Return the sum over these links by kind of error."""
    asked = [(field, link) for link in links for field in ERRORS]
    start = b"".join(struct.pack("II32x", field, link) for field, link in asked)
    buffer = ctypes.create_string_buffer(start, len(asked) * FIELD + 1)
    if not asked or call("nvmlDeviceGetFieldValues", handle, ctypes.c_int(len(asked)), buffer) != OK:
        return {}
    totals: Dict[str, int] = {}
    for number, (field, _) in enumerate(asked):
        kind, code = struct.unpack_from("Ii", buffer.raw, number * FIELD + 24)
        if code == OK and kind in VALUES:
            (count,) = struct.unpack_from(VALUES[kind], buffer.raw, number * FIELD + 32)
            totals[ERRORS[field]] = totals.get(ERRORS[field], 0) + count
    return totals


def read_fabric(call: Call, handle: ctypes.c_void_p) -> Optional[Dict[str, Any]]:
    """``state``, ``status`` (of NVML; only of a completed registration), ``problems``; None without a fabric."""
    for version, size in FABRIC_SIZES:
        buffer = ctypes.create_string_buffer(struct.pack("I", size | version << 24), size)
        if call("nvmlDeviceGetGpuFabricInfoV", handle, buffer) != OK:
            continue
        status, _, state, mask = struct.unpack_from("iIB3xI", buffer.raw, 20)
        if state == NOT_SUPPORTED:
            return None
        found = {name: mask >> shift & 0x3 for name, shift in PROBLEMS.items()}
        problems = {name: value == 1 for name, value in found.items() if value}
        configuration = mask >> CONFIGURATION & 0xF
        if configuration:
            problems["incorrect_configuration"] = configuration != 1
        return {"state": state, "status": status if state == COMPLETED else None, "problems": problems}
    return None
