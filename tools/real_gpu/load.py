"""A PyTorch program that holds a part of the GPU's memory and computes for a part of the time.

usage: python3 load.py MEMORY_PERCENT DUTY_PERCENT SECONDS     ends earlier on SIGTERM

Prints one line of JSON when it begins and one with its duty cycle at the end. Exit status 77: no PyTorch, or none that
can use a GPU. It takes plain allocations, no managed memory, and changes no setting of the GPU.
"""

import json
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

PERIOD = 0.02
"""Seconds of one turn of computing and sleeping: many of them in each sample of the driver (a sixth of a second)."""
NO_TORCH = 77


def alternate(
    compute: Callable[[], None],
    duty: float,
    more: Callable[[], bool],
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> float:
    """Compute for a part of each period while there is more to do; returns the part of the time that was computed."""
    start, busy = clock(), 0.0
    while more():
        turn = clock()
        while clock() - turn < PERIOD * duty:
            compute()
        worked = clock() - turn
        busy += worked
        sleep(worked / duty - worked)
    return busy / (clock() - start)


def main(memory: float, duty: float, seconds: float) -> int:
    try:
        import torch
    except ImportError as error:
        print(f"PyTorch is missing ({error})", file=sys.stderr)
        return NO_TORCH
    library: Any = torch
    if not library.cuda.is_available():
        print(f"PyTorch {library.__version__} cannot use a GPU", file=sys.stderr)
        return NO_TORCH
    _, total = library.cuda.mem_get_info()
    held = library.empty(int(total * memory), dtype=library.uint8, device="cuda").fill_(1)
    left = library.randn(4096, 4096, device="cuda", dtype=library.bfloat16)
    right = library.randn(4096, 4096, device="cuda", dtype=library.bfloat16)

    def compute() -> None:
        library.matmul(left, right)
        library.cuda.synchronize()

    compute()
    stopped: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: stopped.append(number))
    end = time.monotonic() + seconds
    print(json.dumps({"torch": library.__version__, "bytes": held.numel(), "total": total}), flush=True)
    share = alternate(compute, duty, lambda: not stopped and time.monotonic() < end, time.monotonic, time.sleep)
    print(json.dumps({"duty": share}), flush=True)
    return 0


if __name__ == "__main__":
    percent = [float(word) for word in sys.argv[1:4]]
    sys.exit(main(percent[0] / 100, percent[1] / 100, percent[2]))
