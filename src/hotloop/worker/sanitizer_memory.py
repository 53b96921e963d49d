"""Give every tensor of a recording an allocation of its own, so that a sanitizer sees its ends.

In the judge's arena tensors lie side by side: a read past the end of one is a read of what follows,
which no tool can tell from a right one. Here each tensor that a launch is given becomes a buffer of
exactly its size; only inputs, parameters and buffers of the reference are filled, from the arena.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hotloop.worker.arena import ALIGN_BYTES, Slot
from hotloop.worker.board import Board
from hotloop.worker.replay import Refused, set_offsets

UNUSED = "unused"
"""Name of what was the arena; it has no address."""
_NAME = re.compile(r"[A-Za-z_$.][\w$.]{0,2000}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Place:
    """A tensor in the arena."""

    offset: int
    """Bytes from the arena's start."""
    n_bytes: int
    is_given: bool
    """The judge filled it: an input, a parameter or a buffer. Outputs hold nothing yet."""

    @property
    def lead_bytes(self) -> int:
        """Bytes in front of it that keep its distance from an aligned address."""
        return self.offset % ALIGN_BYTES


def places_of(board: Board) -> list[Place]:
    """Return the tensors of the state and of set 0."""
    inputs, outputs = board.sets[0]
    given = [*board.state.values(), *(slot for slot in inputs if isinstance(slot, Slot))]
    return [
        *(Place(slot.offset, slot.span_bytes, True) for slot in given),
        *(Place(slot.offset, slot.span_bytes, False) for slot in outputs),
    ]


def separate(text: str, board: Board) -> tuple[str, list[dict[str, Any]]]:
    """Return a recording whose launches refer to single tensors, and where these come from.

    Args:
        text: a recording as `replay.read_recording` returns it: buffers `state` and `set`.
        board: of the recorded call.

    Returns:
        The recording, without outputs; and for each tensor in use `name`, `offset` and `n_bytes` in
        the arena, `lead_bytes`, and `is_given`.

    Raises:
        Refused: a launch is given an address in the arena that lies in no tensor, or has a name
            that is no identifier.
    """
    recording = json.loads(text)
    starts = {"state": 0, "set": set_offsets(board)[0]}
    named = {i: b["name"] for i, b in enumerate(recording["buffers"]) if b["name"] is not None}
    if set(named.values()) - set(starts):
        raise Refused("the recording names buffers that there are not")
    bases = {i: starts[name] for i, name in named.items()}
    places, numbers = places_of(board), dict[Place, int]()
    tensors: list[dict[str, Any]] = []
    for launch in recording["launches"]:
        _check_name(launch.get("function"))
        for parameter in launch["parameters"]:
            if parameter.get("buffer") not in bases:
                continue
            address = bases[parameter["buffer"]] + parameter["offset"]
            place = _place_at(address, places)
            if place not in numbers:
                numbers[place] = len(recording["buffers"])
                tensors.append(_tensor(place, f"tensor {len(tensors)}"))
                recording["buffers"].append(_buffer(tensors[-1]))
            parameter["buffer"] = numbers[place]
            parameter["offset"] = address - place.offset + place.lead_bytes
    for number in bases:  # nothing refers to them any more
        recording["buffers"][number] = {"name": UNUSED, "nbytes": 0, "table": None}
    recording["outputs"] = []
    return json.dumps(recording), tensors


def _check_name(function: Any) -> None:
    """Refuse a name that could be read as something else in a tool's log."""
    if not isinstance(function, str) or not _NAME.fullmatch(function):
        raise Refused("a kernel's name is no identifier")


def _place_at(address: int, places: list[Place]) -> Place:
    for place in places:
        if place.offset <= address < place.offset + max(place.n_bytes, 1):
            return place
    raise Refused("a launch is given an address outside of the tensors")


def _tensor(place: Place, name: str) -> dict[str, Any]:
    return {
        "name": name,
        "offset": place.offset,
        "n_bytes": place.n_bytes,
        "lead_bytes": place.lead_bytes,
        "is_given": place.is_given,
    }


def _buffer(tensor: Mapping[str, Any]) -> dict[str, Any]:
    size = tensor["n_bytes"] + tensor["lead_bytes"]
    return {"name": tensor["name"], "nbytes": size, "table": None}
