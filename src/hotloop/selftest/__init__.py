"""Attacks on the cage, as small programs that run inside it, and the verdict over each by facts.

`run_selftest` runs the safe ones on this machine, at every tier that it has. Each attack aims at a
victim that was made for it. Standard library only.
"""

from hotloop.selftest.cases import CASES
from hotloop.selftest.machine import run_selftest
from hotloop.selftest.runner import Outcome, Result

__all__ = ["CASES", "Outcome", "Result", "run_selftest"]
