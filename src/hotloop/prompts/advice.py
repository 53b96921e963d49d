"""What the assembler lost, in words and as a move: products that run one after the other."""

from __future__ import annotations

import re
from collections.abc import Sequence

from hotloop.core.verdict import KernelResources
from hotloop.prompts.counters import Move
from hotloop.prompts.untrusted import one_line

MAX_CHARS = 300
_ADVICE = re.compile(r"C\d{3,5}: \S")


def describe_advice(kernels: Sequence[KernelResources]) -> list[str]:
    """Return a line for each thing that the assembler says it lost."""
    return [
        f"The assembler says of `{one_line(kernel.name, 80)}`: {one_line(text, MAX_CHARS)}."
        for kernel in kernels
        for text in kernel.advice
        if _ADVICE.match(text)
    ]


def advice_move(kernels: Sequence[KernelResources]) -> Move | None:
    """Return what to do where matrix products are serialised; None where none are."""
    for kernel in kernels:
        if any("wgmma" in text and "serialized" in text for text in kernel.advice):
            text = (
                f"The matrix products of `{one_line(kernel.name, 80)}` run one after the other, "
                "because registers do not suffice or are touched between their start and their "
                "wait: keep fewer values alive across them, use a smaller tile or one more "
                "warpgroup for the same tile, and leave the accumulator alone until the wait."
            )
            return Move("wgmma_serialised", text)
    return None
