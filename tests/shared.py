"""Where further samples and lists are that tests read in addition, if they are beside the checkout."""

from pathlib import Path

SHARED = Path(__file__).resolve().parents[2] / "shared"
