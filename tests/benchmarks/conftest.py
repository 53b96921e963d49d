"""The scripts in `benchmarks/` are imported as a package from the project's root."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
