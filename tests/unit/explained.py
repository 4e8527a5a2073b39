"""Errors of hosts with the explanations that the control node puts into their messages."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plugins.plugin_utils.explanations import explain_answer


def explained(message: str) -> str:
    """Return a message of a host as the control node shows it."""
    return str(explain_answer({"msg": message})["msg"])


@contextmanager
def raises_explained(kind: type[Exception], match: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Fail unless the block raises an error whose explained message has a match."""
    with pytest.raises(kind) as caught:
        yield caught
    message = explained(str(caught.value))
    assert re.search(match, message), message
