"""Worked examples for compute capability 9.0: 64 K registers, 228 KiB, 64 warps, 32 blocks."""

import pytest

from hotloop.core.verdict import KernelResources
from hotloop.prompts.occupancy import occupancy


@pytest.mark.parametrize(
    ("registers", "warps", "shared_bytes", "blocks", "limiters"),
    [
        (32, 8, 0, 8, ("registers", "warps")),
        (128, 4, 0, 4, ("registers",)),
        (168, 8, 0, 1, ("registers",)),  # 3 warps a quarter, 12 in all
        (255, 8, 0, 1, ("registers",)),
        (255, 16, 0, 0, ("registers",)),
        (108, 4, 73728, 3, ("shared memory",)),  # 72 KiB and 1 KiB for the system, three times
        (32, 4, 227 * 1024, 1, ("shared memory",)),
        (32, 4, 227 * 1024 + 1, 0, ("shared memory",)),
        (16, 1, 0, 32, ("blocks",)),
        (32, 32, 0, 2, ("registers", "warps")),
    ],
)
def test_what_fits(registers, warps, shared_bytes, blocks, limiters):
    fits = occupancy(
        KernelResources(name="k", registers=registers, num_warps=warps, shared_bytes=shared_bytes)
    )
    assert (fits.blocks, fits.limiters) == (blocks, limiters)
    assert fits.warps == blocks * warps
    assert 0 <= fits.frac <= 1


@pytest.mark.parametrize("known", [{"registers": 64}, {"num_warps": 4}, {}])
def test_nothing_is_said_where_something_is_missing(known):
    assert occupancy(KernelResources(name="k", **known)) is None
