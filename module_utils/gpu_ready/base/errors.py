"""Errors whose text is a complete message to the user."""

import errno
from typing import Any


class GpuReadyError(Exception):
    """A failure with cause and remedy in ``str(error)``.

    ``result`` holds return values that a module reports beside the message.
    """

    def __init__(self, text: str = "", **result: Any) -> None:
        super().__init__(text)
        self.result = result


def describe_os_error(error: OSError) -> str:
    """Return the message with file, cause and remedy; an error of a program or socket names no file."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        remedy = "Free space on its file system, then run again."
    elif error.errno == errno.EROFS:
        remedy = "Make its file system writable (see `dmesg` for errors of the disk), then run again."
    elif error.errno in (errno.EACCES, errno.EPERM):
        remedy = "Check permissions and attributes (`lsattr`) of the file and its directory, then run again."
    else:
        remedy = "Correct the cause on this host, then run again."
    return "%s: %s. %s" % (error.filename or "this host", error.strerror or error, remedy)
