"""The base class of every error whose text is a complete message to the user."""

from typing import Any


class GpuReadyError(Exception):
    """A failure with cause and remedy in ``str(error)``.

    ``result`` holds return values that a module reports beside the message.
    """

    def __init__(self, text: str = "", **result: Any) -> None:
        super().__init__(text)
        self.result = result
