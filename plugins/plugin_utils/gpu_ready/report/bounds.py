"""How much one host can add to a report: an honest one has about 10 kB, with all its GPUs in use 100 kB."""

from typing import Any

CHARACTERS = 256 * 1024
"""Of all texts, names and values of a host together."""
LONGEST = 4000
"""Of one text."""
LONGEST_NAME = 200
"""Of a field."""
FIELDS = 50
"""Of a mapping are kept when nothing is left: more than any record has, so that its form stays."""
CUT = " ..."


class Budget:
    """What a host may still add."""

    def __init__(self, characters: int = CHARACTERS) -> None:
        self.left = characters

    def cut_value(self, value: Any) -> Any:
        """Return a JSON value, of which texts are cut and the ends of lists are left out where it is too large."""
        if isinstance(value, str):
            most = max(min(LONGEST, self.left), 0)
            self.left -= len(value[:most]) + 2
            return value if len(value) <= most else value[:most] + CUT
        if isinstance(value, dict):
            made: dict[str, Any] = {}
            for name, inner in value.items():
                if self.left <= 0 and len(made) >= FIELDS:
                    break
                self.left -= len(name[:LONGEST_NAME])
                made[name[:LONGEST_NAME]] = self.cut_value(inner)
            return made
        if isinstance(value, (list, tuple)):
            found: list[Any] = []
            for inner in value:
                if self.left <= 0:
                    break
                found.append(self.cut_value(inner))
            return found
        self.left -= 8
        return value
