"""All attacks that run in a cage, in the order of their numbers."""

from __future__ import annotations

from hotloop.selftest import (
    attacks_compile,
    attacks_files,
    attacks_kernel,
    attacks_limits,
    attacks_network,
    attacks_processes,
)
from hotloop.selftest.case import Case

CASES: tuple[Case, ...] = tuple(
    sorted(
        (
            *attacks_files.CASES,
            *attacks_compile.CASES,
            *attacks_network.CASES,
            *attacks_limits.CASES,
            *attacks_processes.CASES,
            *attacks_kernel.CASES,
        ),
        key=lambda case: case.number,
    )
)
