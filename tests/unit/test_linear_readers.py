"""Reading a text takes time in proportion to its length: a package mirror, a script or a user chooses how long it is.

A pattern that begins with a repetition is tried at every position, and then takes the square of the length: minutes for
a megabyte. This is about the growth, not about speed, so a busy machine changes nothing: CPU time is compared with CPU time.
"""

import gc
import resource
import signal
from collections.abc import Callable
from types import FrameType

import pytest

from tests.unit.readers import Reader, find_readers

SMALL, LARGE = 8_000, 64_000
RATIO = 12
"""Most times of the time of a small text that one of 8 times the length may take: 8 is proportional, 64 the square, 23 the
power of 1.5."""
TRIES = 3
"""The best of them counts."""
DOUBLED = 2.6
"""Most times of the time of a large text that one of twice the length may take, where the ratio is between 12 and 24:
the objects of a small text fit into the processor's caches, so 8 times of them can take 13 times as long. The square of
the length takes 4 times as long, its power of 1.5 takes 2.8 times."""
LEAST = 0.05
"""Seconds of CPU time: a reader that takes less for a large text takes less than 13 s for a megabyte at the worst."""
MIDDLE = 16_000
"""Tried first: what takes less than a sixteenth of that is below it for a large text too, and is not measured."""
LIMIT = 10.0
"""Seconds after which a reader is interrupted."""
READERS = list(find_readers())
assert len(READERS) > 400  # none is left out because a package moved


class TooSlow(BaseException):
    """No Exception, which readers may catch."""


def interrupt(number: int, frame: FrameType | None) -> None:
    raise TooSlow


def cpu(call: Callable[[], None]) -> float:
    """Seconds of CPU time; the limit for what takes longer. Patterns look for signals while they match."""
    signal.setitimer(signal.ITIMER_REAL, LIMIT)
    begin = user_time()
    try:
        call()
    except TooSlow:
        return LIMIT
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    return user_time() - begin


def user_time() -> float:
    """Seconds of CPU time without the kernel's, which makes pages for the objects of a large text each time."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_utime


def text_of(token: str, size: int, number: int = 0) -> str:
    """Another text for each number: some readers keep the last one."""
    return (token * (size // len(token) + 1))[: size + number]


def growth(read: Callable[[str], None], token: str) -> float:
    """How many times longer a large text takes than a small one, the best of three; 1 where it takes next to nothing."""
    if cpu(lambda: read(text_of(token, MIDDLE))) < LEAST * (MIDDLE / LARGE) ** 2:
        return 1.0
    found = []
    for attempt in range(TRIES):
        large = cpu(lambda attempt=attempt: read(text_of(token, LARGE, attempt)))  # type: ignore[misc]
        if large < LEAST:
            return 1.0
        times = [cpu(lambda number=number: read(text_of(token, SMALL, number))) for number in range(8)]  # type: ignore[misc]
        found.append(8 * large / sum(times))
        if found[-1] <= RATIO:
            break
    return min(found)


def doubling(read: Callable[[str], None], token: str) -> float:
    """How many times longer twice a large text takes, the best of three."""
    return min(
        cpu(lambda number=number: read(text_of(token, 2 * LARGE, number)))  # type: ignore[misc]
        / cpu(lambda number=number: read(text_of(token, LARGE, number)))  # type: ignore[misc]
        for number in range(TRIES)
    )


def slow_texts(read: Callable[[str], None], tokens: list[str]) -> list[str]:
    """The tokens whose texts take too long, with the ratio."""
    before = signal.signal(signal.SIGALRM, interrupt)
    gc.disable()
    found: list[str] = []
    try:
        for token in tokens:
            ratio = growth(read, token)
            if ratio > RATIO and (ratio > 2 * RATIO or doubling(read, token) > DOUBLED):
                found.append(f"{token!r}: {ratio:.0f} times")
            if len(found) == 3:
                break
    finally:
        gc.enable()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    return found


@pytest.mark.host_io
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: f"{reader.name}-{reader.parameter}")
def test_a_reader_takes_time_in_proportion_to_the_text(reader: Reader) -> None:
    assert slow_texts(reader.read, reader.tokens) == []
