"""python -m gpu_ready_lab."""

import sys

from .cli import main

sys.exit(main())
