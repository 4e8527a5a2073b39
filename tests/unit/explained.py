"""Errors of hosts with the explanations that the control node puts into their messages."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from plugins.plugin_utils.explanations import explain_answer


@contextmanager
def raises_explained(kind: type[Exception], match: str) -> Iterator[pytest.ExceptionInfo[Exception]]:
    """Fail unless the block raises an error whose explained message has a match."""
    with pytest.raises(kind) as caught:
        yield caught
    message = explain_answer(str(caught.value))
    assert re.search(match, message), message
