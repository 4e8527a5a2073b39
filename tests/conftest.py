"""What every test needs: the code under test as a host sees it, and where the shared corpus lies."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "module_utils"), str(ROOT / "lab"), str(ROOT), str(ROOT / "tests" / "unit")]
