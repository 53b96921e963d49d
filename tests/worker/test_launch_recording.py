"""A `.cu` candidate's plan as a recording: what the launcher and the replay are given."""

from __future__ import annotations

import hashlib
import json
import struct
from typing import Any

import pytest
from scaled_rows import CUDA

from hotloop.worker.arena import Arena, Layout
from hotloop.worker.board import Board
from hotloop.worker.channel import Channel
from hotloop.worker.launch_description import parse
from hotloop.worker.launch_plan import BoundPlan, bind
from hotloop.worker.launch_recording import ArenaPlaces, contiguous_strides, record_plan
from hotloop.worker.recording import Literal, Pointer, Recording
from hotloop.worker.replay import Refused, read_recording, split_arena

ROWS, COLUMNS = 70, 40
CUBIN = b"machine code"
KEY = hashlib.sha256(CUBIN).hexdigest()


def plan() -> BoundPlan:
    return bind(parse(CUDA), [(ROWS, COLUMNS)], {"scale": (COLUMNS,)})


def board() -> Board:
    """Return a board with two sets, laid out as the judge lays it out."""
    import torch

    layout = Layout()
    state = {"scale": layout.place_like(torch.empty(COLUMNS))}
    tensor = torch.empty(ROWS, COLUMNS)
    sets = [([layout.place_like(tensor)], [layout.place_like(tensor)]) for _ in range(2)]
    return Board(Arena.create("cpu", layout.size_bytes), layout, state, sets, 0)


def recording(where: Board, index: int = 0) -> Recording:
    offsets = {"scale": where.state["scale"].offset, "x": where.sets[index][0][0].offset}
    return record_plan(plan(), CUBIN, ArenaPlaces(where.layout.size_bytes, offsets))


def test_launches_are_those_of_the_plan() -> None:
    where = board()
    recorded = recording(where)
    multiply, add = recorded.launches
    assert (multiply.function, multiply.grid, multiply.block) == ("multiply", (2, 9, 1), (32, 8, 1))
    assert (add.grid, add.block, add.cubin) == ((12, 1, 1), (256, 1, 1), KEY)
    x, scale = where.sets[0][0][0].offset, where.state["scale"].offset
    assert multiply.parameters == (
        Pointer(0, x), Pointer(0, scale), Pointer(2, 0),
        Literal(struct.pack("<i", ROWS).hex()), Literal(struct.pack("<i", COLUMNS).hex()),
    )  # fmt: skip
    assert add.parameters[:2] == (Pointer(2, 0), Pointer(1, 0))
    assert bytes.fromhex(add.parameters[2].hex) == struct.pack("<q", ROWS * COLUMNS)
    assert bytes.fromhex(add.parameters[3].hex) == struct.pack("<f", 1.0)
    sizes = [(b.name, b.nbytes) for b in recorded.buffers]
    assert sizes[1:] == [(None, ROWS * COLUMNS * 4)] * 2
    (output,) = recorded.outputs
    assert (output["buffer"], output["shape"], output["stride"]) == (1, [70, 40], [40, 1])


def test_answer_survives_the_channel() -> None:
    recorded = recording(board())
    answer = json.loads(json.dumps(recorded.to_answer()))
    assert Recording.from_answer(answer) == recorded


def test_replay_finds_the_inputs_of_any_set() -> None:
    where = board()
    raw = json.loads(recording(where).to_json())
    split_arena(raw, where)
    names = [b["name"] for b in raw["buffers"]]
    multiply = raw["launches"][0]["parameters"]
    x, scale = multiply[0], multiply[1]
    assert (names[x["buffer"]], x["offset"]) == ("set", 0)
    assert (names[scale["buffer"]], scale["offset"]) == ("state", where.state["scale"].offset)
    assert Recording.from_json(json.dumps(raw), {KEY: CUBIN}).launches[1].function == "add"


def test_replay_refuses_the_inputs_of_another_set() -> None:
    where = board()
    with pytest.raises(Refused, match="another call"):
        split_arena(json.loads(recording(where, 1).to_json()), where)


def test_replay_wants_all_that_the_device_ran() -> None:
    where = board()
    answer = recording(where).to_answer()
    assert read_recording(answer, where, ("multiply", "add"))["cubins"] == answer["cubins"]
    with pytest.raises(Refused, match="2 launches were recorded, the device ran 3"):
        read_recording(answer, where, ("multiply", "add", "memcpy"))


@pytest.mark.parametrize(
    "change",
    [
        {"recording": None}, {"recording": "[" * 100_000}, {"recording": "[]"},
        {"recording": '{"launches": []}'}, {"recording": '{"launches": [], "buffers": [1]}'},
        {"recording": '{"launches": [{"parameters": 3}], "buffers": [], "outputs": []}'},
        {"cubins": {KEY: float("nan")}}, {"cubins": {KEY: 1}}, {"cubins": None}, {"cubins": "code"},
    ],
)  # fmt: skip
def test_malformed_recording_is_refused_and_no_error_of_the_judge(change: dict[str, Any]) -> None:
    where = board()
    with pytest.raises(Refused):
        read_recording(recording(where).to_answer() | change, where, ())


def test_recording_without_machine_code_is_refused() -> None:
    where = board()
    with pytest.raises(Refused, match="malformed"):
        read_recording({"recording": recording(where).to_json()}, where, ())


@pytest.mark.parametrize(
    "changes",
    [
        {"block": [2048, 1, 1]}, {"block": [0, 1, 1]}, {"block": [32, 1]}, {"grid": [1, 1]},
        {"num_ctas": 17}, {"cubin": "0" * 64},
        {"parameters": [{"kind": "pointer", "buffer": 3, "offset": 0}]},
        {"parameters": [{"kind": "pointer", "buffer": 1, "offset": ROWS * COLUMNS * 4 + 1}]},
    ],
)  # fmt: skip
def test_malformed_launch_is_refused(changes: dict[str, Any]) -> None:
    raw = json.loads(recording(board()).to_json())
    raw["launches"][0] |= changes
    with pytest.raises(ValueError, match="malformed launch|outside its buffer"):
        Recording.from_json(json.dumps(raw), {KEY: CUBIN})


@pytest.mark.parametrize(
    ("shape", "strides"), [((), []), ((5,), [1]), ((2, 3, 4), [12, 4, 1]), ((2, 0), [0, 1])]
)
def test_strides_are_those_of_a_contiguous_tensor(
    shape: tuple[int, ...], strides: list[int]
) -> None:
    assert contiguous_strides(shape) == strides


@pytest.mark.parametrize(
    "value", ["NaN", "Infinity", "1e999", "0.5", '"0"', "null", "true"],
)  # fmt: skip
@pytest.mark.parametrize("field", ["offset", "buffer", "nbytes"])
def test_a_number_that_is_no_integer_is_refused(value: str, field: str) -> None:
    where = board()
    answer = recording(where).to_answer()
    raw = json.loads(answer["recording"])
    row = raw["buffers"][0] if field == "nbytes" else raw["launches"][0]["parameters"][0]
    row[field] = "here"
    text = json.dumps(raw).replace('"here"', value)
    with pytest.raises(Refused, match="malformed"):
        read_recording(answer | {"recording": text}, where, ())


def test_what_is_read_can_be_sent_on_whatever_the_other_fields_hold() -> None:
    where = board()
    answer = recording(where).to_answer()
    for value in ("NaN", "-Infinity", "1e999"):
        raw = json.loads(answer["recording"])
        raw["launches"][0]["num_ctas"] = "here"
        text = json.dumps(raw).replace('"here"', value)
        with pytest.raises(Refused, match="malformed"):
            read_recording(answer | {"recording": text}, where, ())
    ours, theirs = Channel.pair()
    with theirs:
        ours.send(read_recording(answer, where, ()))
        ours.close()
