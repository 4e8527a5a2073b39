# Copyright: The gpu-ready maintainers
# SPDX-License-Identifier: MIT
"""Puts explanations in the place of what failed programs of a host printed (base/evidence.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from ..module_utils.gpu_ready.base import records
from ..module_utils.gpu_ready.base.evidence import EVIDENCE, FailureEvidence, add_outcome, format_failure
from ..module_utils.gpu_ready.base.log_texts import key_line
from .answer_bounds import WrongAnswer
from .gpu_ready.diagnostics import messages
from .gpu_ready.diagnostics.message_table import Explanation

MOST = 16
"""Explanations in one answer: of one failure, and of what fails while it is undone."""
EXPLAINED = ("msg", "exception")
"""The texts of an answer that have evidence: the message, and what cores from 2.19 on make of the same exception."""


def explain_answer(answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer of a host with explanations. Raises WrongAnswer."""
    left = MOST

    def explain(match: re.Match[str]) -> str:
        nonlocal left
        left -= 1
        if left < 0:
            raise WrongAnswer(f"it has more than {MOST} failures to explain")
        try:
            evidence = records.from_json(FailureEvidence, json.loads(match[1]))
            # What failed while the failure was undone has evidence of its own.
            outcome, unknown = (EVIDENCE.sub(explain, text) for text in (evidence.outcome, evidence.unknown))
            return explain_failure(evidence._replace(outcome=outcome, unknown=unknown))
        except (ValueError, KeyError, RecursionError, records.RecordError):
            return match[0]  # no evidence, but a text with two of the marks

    def explained(value: Any) -> Any:
        if isinstance(value, str):
            return EVIDENCE.sub(explain, value)
        if isinstance(value, list):
            return [explained(one) for one in value]
        return {key: explained(one) for key, one in value.items()} if isinstance(value, dict) else value

    try:
        return {key: explained(value) if key in EXPLAINED else value for key, value in answer.items()}
    except RecursionError:
        raise WrongAnswer("too many lists in each other") from None


def explain_failure(evidence: FailureEvidence) -> str:
    """Return the explanation of a failure, else the line with the error."""
    for search in evidence.searches:
        found = find(search.texts, search.without)
        if found:
            words = [evidence.quoted] * bool(evidence.quoted)
            words += [found.message] if found.message and found.message not in evidence.quoted else []
            message = format_failure(found.cause, "; ".join(words), evidence.log, found.remedy)
            break
    else:
        quoted = key_line([text for _, text in evidence.searches[-1].texts]) if evidence.searches else ""
        message = evidence.unknown or format_failure(
            "its reason is not known to gpu-ready", quoted, evidence.log, "read that log, then run again"
        )
    return add_outcome(message, evidence.outcome)


FAILED = ("status_exit_code", "status_failure")
"""Results of systemd that say of a service only that it failed, which is known here."""


def find(texts: Sequence[tuple[str, str]], without: Sequence[str] = ()) -> Explanation | None:
    """Return the first known cause in texts, each (kind, text). Raises KeyError for an unknown kind."""
    known = {*without, *FAILED}
    return next((one for kind, text in texts for one in messages.explain(kind, text) if one.code not in known), None)
