"""What a failed program printed, in the place of its explanation: hosts know no causes, the control node does.

A message of a host has the texts where the explanation belongs, between two marks that no other text contains.
plugins/plugin_utils/explanations.py puts the explanation there.
"""

import json
import re
from typing import Callable, List, NamedTuple, Tuple

from . import records
from .validation import mask_secrets

MARK = "\x1e"
"""ASCII's record separator. JSON escapes it, so it does not occur in what is between two marks."""
EVIDENCE = re.compile("%s([^%s]*)%s" % (MARK, MARK, MARK))
LONGEST = 1000000
"""Characters of a text. Of a longer one its middle is left out: what failed is at the beginning or the end."""


class Search(NamedTuple):
    """Texts by kind (as `gpu-explain read` names them), in the order in which a cause is looked for.

    ``without``: codes of causes that do not count.
    """

    texts: List[Tuple[str, str]]
    without: List[str] = []


class FailureEvidence(NamedTuple):
    """The first of the searches that finds a cause explains the failure.

    ``log``: where the whole text is, on the host. ``quoted``: what is shown before the message with the cause.
    ``outcome``: what the failure left behind. ``unknown``: the message where no cause is known; "" for the line of the
    last search that looks most like an error.
    """

    searches: List[Search]
    log: str = ""
    quoted: str = ""
    outcome: str = ""
    unknown: str = ""


def explained_later(evidence: FailureEvidence) -> str:
    """Return what a message has in the place of the explanation; secrets in the texts are masked."""
    searches = [
        one._replace(texts=[(kind, mask_secrets(shorten(text))) for kind, text in one.texts])
        for one in evidence.searches
    ]
    words = {"quoted": mask_secrets(evidence.quoted), "unknown": mask_secrets(evidence.unknown)}
    return MARK + json.dumps(dict(records.to_json(evidence._replace(searches=searches)), **words)) + MARK


def outside_evidence(change: Callable[[str], str], message: str) -> str:
    """Return a message with its words changed, but for its evidence."""
    words, place = [], 0
    for found in EVIDENCE.finditer(message):
        words += [change(message[place : found.start()]), found.group()]
        place = found.end()
    return "".join(words + [change(message[place:])])


def without_evidence(message: str) -> str:
    """Return a message as a host can say it: with the words for an unknown cause in the place of explanations."""
    return EVIDENCE.sub(lambda found: json.loads(found.group(1))["unknown"] or "its reason is in the log", message)


def shorten(text: str) -> str:
    """Return a text without the middle of one that is too long."""
    return text if len(text) <= LONGEST else text[: LONGEST // 2] + "\n...\n" + text[-LONGEST // 2 :]


def format_failure(cause: str, quoted: str, log: str, remedy: str) -> str:
    """Return a cause, the words that show it, where the whole log is, and the remedy, which the report shows apart."""
    shown = "%s (%s)" % (cause, quoted) if quoted else cause
    return "%s%s. Remedy: %s" % (shown, "; the whole log is %s on the host" % log if log else "", remedy)


def add_outcome(message: str, outcome: str) -> str:
    """Add to a message what a failure left behind, before its remedy."""
    failed, mark, remedy = message.partition(". Remedy: ")
    return failed + outcome + mark + remedy
