"""A clock for waits in tests."""


class Clock:
    """A clock that only a sleep moves."""

    def __init__(self) -> None:
        self.time = 1000.0

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
