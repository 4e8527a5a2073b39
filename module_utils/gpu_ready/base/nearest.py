"""The known name that a misspelt one probably means."""

from typing import Iterable, Optional

NAME = 0.88
"""Least similarity (difflib, 0 to 1) of a misspelt name to one of many: two letters in the wrong order, one missing or
one too many in 12."""
CHOICE = 0.7
"""The same for one of a few choices, where a wrong guess does no harm: they are all named."""


def nearest(word: str, known: Iterable[str], least: float = NAME) -> Optional[str]:
    """Return the known name that a word resembles; capital letters, dashes and underscores make no difference."""
    import difflib  # takes a hundredth of a second, and most values are right

    plain = {simplify(name): name for name in known if name}
    found = difflib.get_close_matches(simplify(word), plain, 1, least)
    return plain[found[0]] if found else None


def simplify(word: str) -> str:
    return word.lower().replace("-", "_").replace(" ", "_")
