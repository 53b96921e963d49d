"""What GPUs did, as text and as JSON: for `bench` and for `judge`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hotloop.verify.seat_use import SeatUse, describe_use, together

CUDA = "cuda"


def use_lines(use: Mapping[str, SeatUse], *, device: str) -> list[str]:
    """Return a line for each seat that was used, and one for all where they are several.

    Args:
        use: by the seat's name.
        device: what they are; only `cuda` is called GPU.
    """
    if not any(seat.wall_s for seat in use.values()):
        return []
    called = "GPU {}" if device == CUDA else "{}"
    lines = [describe_use(called.format(name), seat) for name, seat in use.items()]
    if len(use) > 1:
        all_of_them, each = ("all GPUs", "GPU") if device == CUDA else ("all", "judge")
        rate = f"a minute and {each}"
        lines.append(describe_use(all_of_them, together(use.values()), rate=rate))
    return lines


def use_record(use: Mapping[str, SeatUse]) -> dict[str, Any]:
    """Return the seats by name and all of them together as JSON values."""
    return {
        "seats": {name: seat.record() for name, seat in use.items()},
        "together": together(use.values()).record(),
    }
