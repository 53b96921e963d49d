"""Buffers between red zones: what is inside may change, what is outside may not."""

from __future__ import annotations

import pytest
import torch

from hotloop.worker.faults import OutOfBoundsError
from hotloop.worker.launch_description import DTYPES
from hotloop.worker.red_zone import ZONE_BYTES, GuardedBuffer, check_zones


def buffer(name: str = "y", dtype: str = "float32") -> GuardedBuffer:
    return GuardedBuffer(name, (5, 7), dtype, device="cpu")


def around(guarded: GuardedBuffer) -> torch.Tensor:
    """Return the memory as a kernel sees it: floats from the buffer's start on, zones included."""
    memory = guarded.tensor.as_strided((ZONE_BYTES // 2 + 35,), (1,), 0)
    assert memory.data_ptr() == guarded.address - ZONE_BYTES
    return memory


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_everything_inside_may_be_written(dtype: str) -> None:
    guarded = buffer(dtype=dtype)
    assert guarded.tensor.shape == (5, 7)
    assert guarded.tensor.is_contiguous()
    guarded.poison()
    guarded.tensor.view(torch.uint8).fill_(1)
    check_zones([guarded, buffer("sums")])


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_poison_is_nan(dtype: str) -> None:
    guarded = buffer(dtype=dtype)
    guarded.tensor.fill_(0)
    guarded.poison()
    assert bool(guarded.tensor.isnan().all())


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (35, "4 bytes after its end, the first at byte 140 (element 35)"),
        (-1, "4 bytes before its start, the nearest at byte -1 (element -1)"),
        (35 + ZONE_BYTES // 4 - 1, "after its end, the first at byte 65672"),
    ],
)
def test_one_element_outside_is_found(element: int, text: str) -> None:
    guarded = buffer()
    around(guarded)[ZONE_BYTES // 4 + element] = 1.5
    with pytest.raises(OutOfBoundsError, match="outside 'y' .5 x 7, 35 elements.") as raised:
        check_zones([buffer("x"), guarded])
    assert text in str(raised.value)


def test_both_sides_are_told() -> None:
    guarded = buffer()
    around(guarded)[ZONE_BYTES // 4 - 3] = 0.0
    around(guarded)[ZONE_BYTES // 4 + 35] = 0.0
    with pytest.raises(OutOfBoundsError, match="after its end.*before its start.*element -3"):
        check_zones([guarded])


def test_buffers_without_elements_and_no_buffers_are_fine() -> None:
    empty = GuardedBuffer("y", (0, 7), "float32", device="cpu")
    empty.poison()
    check_zones([empty])
    check_zones([])
