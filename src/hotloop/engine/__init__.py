"""The search loop and its limits. Knows no torch, no network, no disk: parts arrive wired."""

from hotloop.engine.loop import run_search
from hotloop.engine.result import RunResult, StopReason
from hotloop.engine.session import Parts
from hotloop.engine.stop import StopFlag, interrupts

__all__ = ["Parts", "RunResult", "StopFlag", "StopReason", "interrupts", "run_search"]
