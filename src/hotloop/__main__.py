"""`python -m hotloop`: the command line without its script."""

from __future__ import annotations

import sys

from hotloop.cli.main import main

sys.exit(main())
