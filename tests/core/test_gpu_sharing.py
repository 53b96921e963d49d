"""Who else uses a GPU, in words; nobody where only we do."""

from __future__ import annotations

import pytest

from hotloop.core.gpu_reading import GpuProcess, GpuReading
from hotloop.core.gpu_sharing import QUIET_BYTES, describe_room, describe_sharing
from hotloop.core.units import GIB

OWN = 10


def reading(*processes: tuple[int, int | None], used_bytes: int = 0) -> GpuReading:
    return GpuReading(
        uuid="GPU-1",
        name="NVIDIA H200",
        driver="580",
        total_bytes=141 * GIB,
        used_bytes=used_bytes,
        processes=tuple(GpuProcess(pid=pid, used_bytes=used) for pid, used in processes),
    )


@pytest.mark.parametrize(
    ("found", "own_pid", "own_bytes", "said"),
    [
        (reading(), None, 0, None),
        (reading(used_bytes=QUIET_BYTES), None, 0, None),
        (reading((OWN, GIB), used_bytes=90 * GIB), OWN, 0, None),
        (reading(used_bytes=31 * GIB), OWN, 30 * GIB, None),
        (reading((7, 3 * GIB), (8, None)), None, 0, "used by pid 7 (3.0 GiB), pid 8"),
        (reading((OWN, GIB), (7, 3 * GIB)), OWN, 0, "used by pid 7 (3.0 GiB)"),
        # We hold a context and are not listed: the numbers are those of another namespace.
        (reading((7, GIB), used_bytes=GIB), OWN, 0, None),
        (
            reading((7, GIB), used_bytes=33 * GIB), OWN, 30 * GIB,
            "used by programs that are not listed here, which hold 3.0 GiB",
        ),
        (reading(*((pid, None) for pid in range(1, 12))), None, 0, "pid 8 and 3 more"),
    ],
)  # fmt: skip
def test_others_are_named_and_we_are_not(
    found: GpuReading, own_pid: int | None, own_bytes: int, said: str | None
) -> None:
    told = describe_sharing(found, own_pid=own_pid, own_bytes=own_bytes)
    if said is None:
        assert told is None
    else:
        assert told is not None
        assert said in told


def test_room_is_free_of_all() -> None:
    assert describe_room(reading(used_bytes=41 * GIB)) == "100.0 of 141.0 GiB are free"


@pytest.mark.parametrize("used_bytes", [-1, 142 * GIB])
def test_what_no_driver_says_is_refused(used_bytes: int) -> None:
    with pytest.raises(ValueError, match="0 to all of its memory"):
        reading(used_bytes=used_bytes)
