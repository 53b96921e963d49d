"""Whether results were rounded to TF32: by how much they differ from those without."""

from __future__ import annotations

import torch

from hotloop.worker.draw import Outputs

TF32_FRAC = 2.0**-18
"""Root mean square error over the output's own by which results with and without TF32 differ at
least: rounding operands to 10 bits makes some 2^-13, rounding in float32 some 2^-23."""


def rounds(outputs: Outputs, exact: Outputs) -> bool | None:
    """Return whether float32 outputs differ as TF32 makes them; None where there are none."""
    pairs = [(a, b) for a, b in zip(outputs, exact, strict=True) if b.dtype == torch.float32]
    if not pairs:
        return None
    norm = torch.linalg.vector_norm
    return any(float(norm(a - b)) > TF32_FRAC * float(norm(b)) for a, b in pairs)
