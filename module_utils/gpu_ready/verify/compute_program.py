"""The program of the compute check; its source is passed to a Python on the host or in a container.

It needs only the driver's libcuda: the kernel is PTX, which the driver compiles. It prints one JSON object per line, at
once, so that a GPU that hangs can be named.
"""

import ctypes
import json
import os
import sys
from typing import Dict, Iterable, List, Tuple, Union

COUNT = 65000
"""Numbers a GPU computes; not a multiple of a block, so that the last block has threads without work."""
BLOCK = 256
LIBRARY = "libcuda.so.1"

TARGETS = (
    (30, "3.0"), (35, "3.1"), (50, "4.0"), (60, "5.0"), (70, "6.0"),
    (75, "6.3"), (80, "7.0"), (90, "7.8"), (100, "8.6"), (120, "8.7"),
)  # fmt: skip
"""PTX targets, each with the language version that added it. A driver knows the targets of its GPUs."""

PTX = """.version %s
.target sm_%d
.address_size 64
.visible .entry gpu_ready(.param .u64 given, .param .u64 found, .param .u32 count)
{
    .reg .pred %%p<2>;
    .reg .b32 %%r<8>;
    .reg .b64 %%rd<8>;
    ld.param.u64 %%rd1, [given];
    ld.param.u64 %%rd2, [found];
    ld.param.u32 %%r1, [count];
    mov.u32 %%r2, %%ctaid.x;
    mov.u32 %%r3, %%ntid.x;
    mov.u32 %%r4, %%tid.x;
    mad.lo.u32 %%r5, %%r2, %%r3, %%r4;
    setp.ge.u32 %%p1, %%r5, %%r1;
    @%%p1 bra DONE;
    cvta.to.global.u64 %%rd3, %%rd1;
    cvta.to.global.u64 %%rd4, %%rd2;
    mul.wide.u32 %%rd5, %%r5, 4;
    add.u64 %%rd6, %%rd3, %%rd5;
    add.u64 %%rd7, %%rd4, %%rd5;
    ld.global.u32 %%r6, [%%rd6];
    mad.lo.u32 %%r7, %%r6, %%r6, %%r5;
    st.global.u32 [%%rd7], %%r7;
DONE:
    ret;
}
"""
"""found[i] = given[i] * given[i] + i, modulo 2 to the 32."""

CAPABILITY_MAJOR, CAPABILITY_MINOR, COMPUTE_MODE = 75, 76, 20
PROHIBITED = 2
NO_SUCH_LIBRARY = -1
NO_SUCH_FUNCTION = -2


class Failed(Exception):
    """A call of libcuda that did not end with 0."""

    def __init__(self, call: str, code: int, name: str = "", text: str = "") -> None:
        Exception.__init__(self, call)
        self.values = {"call": call, "code": code, "name": name, "text": text}


class Driver:
    """libcuda, whose every error is an exception with its name and text."""

    def __init__(self, path: str) -> None:
        try:
            self.library = ctypes.CDLL(path)
        except OSError as error:
            raise Failed("dlopen", NO_SUCH_LIBRARY, "", str(error)) from error

    def call(self, name: str, *arguments: object) -> None:
        """Call a function of libcuda; Failed for a status other than 0."""
        function = getattr(self.library, name, None)
        if function is None:
            raise Failed(name, NO_SUCH_FUNCTION, "", "this libcuda has no %s" % name)
        code = function(*arguments)
        if code:
            raise Failed(name, code, self.error_text("cuGetErrorName", code), self.error_text("cuGetErrorString", code))

    def error_text(self, name: str, code: int) -> str:
        """Return the name or text of an error by libcuda, "" if it has none."""
        function = getattr(self.library, name, None)
        text = ctypes.c_char_p()
        if function is None or function(ctypes.c_int(code), ctypes.byref(text)) or not text.value:
            return ""
        return text.value.decode("ascii", "replace")

    def number(self, name: str, *arguments: object) -> int:
        """Return the number that a function writes to its first argument."""
        found = ctypes.c_int()
        self.call(name, ctypes.byref(found), *arguments)
        return found.value


def ptx(capability: int) -> str:
    """Return the kernel for a compute capability (89 for 8.9), for the newest known target that it can run."""
    fit = [target for target in TARGETS if target[0] <= capability] or [TARGETS[0]]
    return PTX % (fit[-1][1], fit[-1][0])


def expected(given: Iterable[int]) -> List[int]:
    """Correct results."""
    return [(number * number + index) & 0xFFFFFFFF for index, number in enumerate(given)]


def uuid(driver: Driver, function: str, device: ctypes.c_int) -> str:
    """Return UUID of a device without its prefix, "" if the driver is too old to report it."""
    found = (ctypes.c_ubyte * 16)()
    try:
        driver.call(function, found, device)
    except Failed:
        return ""
    text = "".join("%02x" % byte for byte in found)
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def describe(driver: Driver, index: int) -> Tuple[int, Dict[str, Union[int, str]]]:
    """Return the handle and names of a device; ``instance`` where it is a part of a GPU (MIG)."""
    device = driver.number("cuDeviceGet", ctypes.c_int(index))
    name, address = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    driver.call("cuDeviceGetName", name, ctypes.c_int(256), ctypes.c_int(device))
    driver.call("cuDeviceGetPCIBusId", address, ctypes.c_int(32), ctypes.c_int(device))
    whole = uuid(driver, "cuDeviceGetUuid", ctypes.c_int(device))
    part = uuid(driver, "cuDeviceGetUuid_v2", ctypes.c_int(device))  # of a MIG instance, where the device is one

    def attribute(which: int) -> int:
        return driver.number("cuDeviceGetAttribute", ctypes.c_int(which), ctypes.c_int(device))

    return device, {
        "index": index,
        "name": name.value.decode("utf-8", "replace"),
        "address": address.value.decode("ascii", "replace").lower(),
        "uuid": "GPU-" + whole if whole else "",
        "instance": "MIG-" + part if part and part != whole else "",
        "capability": 10 * attribute(CAPABILITY_MAJOR) + attribute(CAPABILITY_MINOR),
        "mode": attribute(COMPUTE_MODE),
    }


def compute(driver: Driver, device: int, capability: int) -> int:
    """Run the kernel on a device; returns how many results are wrong."""
    context, module, function = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    numbers = [(index * 2654435761) & 0xFFFFFFFF for index in range(COUNT)]
    words = ctypes.c_uint32 * COUNT
    given, found = words(*numbers), words()
    size = ctypes.c_size_t(ctypes.sizeof(words))
    kernel = ctypes.create_string_buffer(ptx(capability).encode("ascii"))
    buffers = []
    driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), ctypes.c_int(device))
    try:
        driver.call("cuCtxSetCurrent", context)
        driver.call("cuModuleLoadData", ctypes.byref(module), kernel)
        driver.call("cuModuleGetFunction", ctypes.byref(function), module, b"gpu_ready")
        for _ in (given, found):
            pointer = ctypes.c_uint64()
            driver.call("cuMemAlloc_v2", ctypes.byref(pointer), size)
            buffers.append(pointer)
        driver.call("cuMemcpyHtoD_v2", buffers[0], given, size)
        driver.call("cuMemcpyHtoD_v2", buffers[1], found, size)
        values = [buffers[0], buffers[1], ctypes.c_uint32(COUNT)]
        arguments = (ctypes.c_void_p * len(values))(*[ctypes.addressof(value) for value in values])
        launch = [(COUNT + BLOCK - 1) // BLOCK, 1, 1, BLOCK, 1, 1, 0]
        driver.call("cuLaunchKernel", function, *([ctypes.c_uint(word) for word in launch] + [None, arguments, None]))
        driver.call("cuCtxSynchronize")
        driver.call("cuMemcpyDtoH_v2", found, buffers[1], size)
        for pointer in buffers:
            driver.call("cuMemFree_v2", pointer)
        driver.call("cuModuleUnload", module)
    finally:
        # Its status is ignored: after a failed kernel it only repeats the error that was printed already.
        driver.library.cuDevicePrimaryCtxRelease(ctypes.c_int(device))
    right = expected(numbers)
    return sum(1 for index in range(COUNT) if found[index] != right[index])


def emit(**values: object) -> None:
    """Print one object as a line, at once."""
    sys.stdout.write(json.dumps(values, sort_keys=True) + "\n")
    sys.stdout.flush()


def main(path: str = LIBRARY) -> None:
    """Let every GPU that CUDA shows compute."""
    os.environ.pop("CUDA_VISIBLE_DEVICES", None)  # it would hide GPUs
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    try:
        driver = Driver(path)
        driver.call("cuInit", ctypes.c_uint(0))
        count = driver.number("cuDeviceGetCount")
        emit(count=count, cuda=driver.number("cuDriverGetVersion"))
    except Failed as error:
        emit(failed=error.values)
        return
    for index in range(count):
        try:
            device, gpu = describe(driver, index)
        except Failed as error:
            emit(gpu={"index": index}, failed=error.values)
            continue
        emit(gpu=gpu)
        if gpu["mode"] == PROHIBITED:
            continue
        try:
            emit(gpu=gpu, wrong=compute(driver, device, int(gpu["capability"])))
        except Failed as error:
            emit(gpu=gpu, failed=error.values)


if __name__ == "__main__":
    main(*sys.argv[1:])
