"""Poison: memory that a kernel did not write must not look like an answer.

Between calls every free block of torch's caching allocator is filled with a 16-bit pattern that is
NaN in float16, bfloat16, float32 and float64 alike, and an unlikely integer. A candidate that
returns memory which it did not write returns NaN. Runs in the candidate, outside timed spans, in
every phase alike. On a CPU torch itself fills what it hands out.

Not covered: memory that the candidate holds on to, frees and takes again within one call, or takes
past torch's allocator, and what the pool grows by during a call. Fresh inputs for every call and
the judge's own poisoned output buffers cover those.
"""

from __future__ import annotations

import torch

from hotloop.worker import cudriver

PATTERN_16 = 0x7FFF
"""NaN as float16 and bfloat16; repeated: NaN as float32 and float64."""

OTHER_16 = 0x4640
"""A number in every format: 6.25 as float16, 12288 as bfloat16, 12304.3 as float32."""

PATTERNS = {"nan": PATTERN_16, "numbers": OTHER_16, "zeros": 0}
"""What free device memory holds during an untimed call, by the name that the judge calls it. Zeros
are indices that exist: poison, taken for one, would end the CUDA context of a forward that goes on
with what its kernels, left out then, should have found."""


def fill(tensor: torch.Tensor) -> None:
    """Fill a tensor of any dtype with the poison, in place. Strided gaps are left alone."""
    if tensor.numel() == 0:
        return
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        tensor.fill_(float("nan"))
    elif tensor.dtype is torch.bool:
        tensor.fill_(True)
    else:
        tensor.fill_(torch.iinfo(tensor.dtype).max - 5)


def hide(tensor: torch.Tensor) -> None:
    """Overwrite an input that may not be seen: with NaN, and integers with indices that exist."""
    if tensor.dtype.is_floating_point or tensor.dtype.is_complex:
        tensor.fill_(float("nan"))
    else:
        tensor.zero_()


class FreshMemory:
    """What torch's new tensors hold during the call under way, on a CPU."""

    numbers = False
    """Numbers in place of NaN, for a kernel that looks for NaN."""


def fill_otherwise(tensor: torch.Tensor) -> None:
    """Fill a new tensor of the CPU with numbers, in place, where the call under way has them."""
    is_plain = tensor.device.type == "cpu" and tensor.layout is torch.strided
    if FreshMemory.numbers and is_plain and tensor.numel():
        tensor.untyped_storage().fill_(OTHER_16 >> 8)


def fill_new_memory() -> None:
    """Let torch fill what it hands out on a CPU with NaN: fresh pages of the system are zeros.

    For the rest of this process. Operations without a deterministic form only warn.
    """
    # The public setter imports the compiler first: two seconds a process.
    torch._C._set_deterministic_algorithms(True, warn_only=True)
    torch.utils.deterministic.fill_uninitialized_memory = True


def reserve(n_bytes: int) -> None:
    """Grow the allocator's pool by one free block of `n_bytes`, so that first calls meet poison."""
    try:
        block = torch.empty(n_bytes, dtype=torch.uint8, device="cuda")
    except torch.OutOfMemoryError:
        torch.cuda.empty_cache()
        return
    del block


def fill_free_blocks(pattern: int = PATTERN_16) -> int:
    """Fill every free block of the caching allocator, with poison; return the bytes filled.

    The device must be idle: then a block that was freed while another stream used it
    (`record_stream`) is free as well, though the allocator notices only at its next call. Uses the
    allocator's own snapshot for addresses and sizes.
    """
    filled = 0
    for segment in torch.cuda.memory_snapshot():
        address = segment["address"]
        for block in segment["blocks"]:
            size = block["size"]
            if block["state"] != "active_allocated":
                cudriver.memset_d16(block.get("address", address), pattern, size)
                filled += size
            address += size
    return filled
