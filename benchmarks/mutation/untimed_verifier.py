"""LocalVerifier with a judge that does not time anything."""

from __future__ import annotations

import sys
from pathlib import Path

from hotloop.verify import LocalVerifier

JUDGE = Path(__file__).with_name("untimed_judge.py")


class UntimedVerifier(LocalVerifier):
    """Judges correctness alone; verdicts end at the correctness stage."""

    def _command(self) -> list[str]:
        return [sys.executable, "-P", str(JUDGE)]
