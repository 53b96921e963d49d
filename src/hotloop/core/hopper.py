"""Which GPUs are Hopper's: wgmma and copies by TMA into swizzled tiles exist on no other.

Compute capability 9.0 is not read off a GPU here: whoever asks may have no more than its name.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"\bG?H(20|100|200|800)\b")
"""H20, H100, H200, H800, GH200 (NVIDIA, "CUDA GPU Compute Capability": 9.0)."""


def is_hopper(gpu: object) -> bool:
    """Whether a GPU's name, as the driver says it, is that of one of compute capability 9.0."""
    return _NAME.search(str(gpu or "")) is not None


def why_no_gluon(device: str, gpu: object) -> str | None:
    """Return why Gluon cannot be asked for or judged on a GPU; None where it can.

    Args:
        device: of the judge, `cuda` or `cpu`: without a GPU, Gluon is compiled for Hopper.
        gpu: its name; empty where it is not known yet, and then nothing is held against it.
    """
    if device != "cuda" or not gpu or is_hopper(gpu):
        return None
    return (
        f"expected a Hopper GPU (compute capability 9.0) for Gluon, got {gpu}; "
        "use triton or cuda here, or a judge with an H100 or H200"
    )
