"""What every test needs: the code under test as a host sees it, and where the shared corpus lies."""

import sys
from pathlib import Path

from hypothesis import settings

# A test that fails because a machine is busy says nothing about the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "module_utils"), str(ROOT / "lab"), str(ROOT), str(ROOT / "tests" / "unit")]
