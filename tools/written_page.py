"""Write a generated page of docs/, or check that it is current: what the tools that make such pages have in common."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def settle(page: Path, text: str) -> int:
    """Write the page; with --check on the command line only compare it. Returns the exit status."""
    if "--check" in sys.argv[1:]:
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            print(f"{page.relative_to(ROOT)} is not current: run 'make docs'")
            return 1
        return 0
    page.write_text(text, encoding="utf-8")
    return 0
