"""Every tensor of a recording in an allocation of its own: addresses are turned, none is lost."""

import json

import pytest

from hotloop.worker.arena import Layout, Offset
from hotloop.worker.board import Board
from hotloop.worker.replay import Refused, split_arena
from hotloop.worker.sanitizer_memory import places_of, separate

torch = pytest.importorskip("torch")


def board(*, offset=Offset.NONE):
    """One parameter of 40 bytes, and two sets of two inputs and an output of 100 floats."""
    layout = Layout()
    state = {"scale": layout.place((10,), (1,), torch.float32)}
    sets = []
    for _ in range(2):
        inputs = [layout.place((100,), (1,), torch.float32, offset=offset) for _ in range(2)]
        sets.append(([*inputs, 3], [layout.place((100,), (1,), torch.float32)]))
    return Board(None, layout, state, sets, 0)


def recording(where, *addresses):
    """A recording as the judge has it once the arena's addresses are told apart."""
    parameters = [{"kind": "pointer", "buffer": 0, "offset": a} for a in addresses]
    parameters += [{"kind": "literal", "hex": "07"}, {"kind": "pointer", "buffer": 1, "offset": 8}]
    raw = {
        "buffers": [
            {"name": "arena", "nbytes": where.layout.size_bytes, "table": None},
            {"name": None, "nbytes": 400, "table": None},
        ],
        "launches": [{"function": "add", "parameters": parameters}],
        "outputs": [{"buffer": 1, "offset": 0}],
    }
    split_arena(raw, where)
    return json.dumps(raw)


def test_launches_get_the_tensors_they_had_and_nothing_around_them():
    where = board()
    scale = where.state["scale"]
    (x, y, _), (out,) = where.sets[0]
    text, tensors = separate(
        recording(where, scale.offset, x.offset, x.offset + 12, out.offset), where
    )
    raw = json.loads(text)
    *pointers, literal, scratch = raw["launches"][0]["parameters"]
    assert [t["offset"] for t in tensors] == [scale.offset, x.offset, out.offset]
    assert [t["n_bytes"] for t in tensors] == [40, 400, 400]
    assert [t["is_given"] for t in tensors] == [True, True, False]
    names = [raw["buffers"][p["buffer"]]["name"] for p in pointers]
    assert names == [tensors[i]["name"] for i in (0, 1, 1, 2)]
    assert [p["offset"] for p in pointers] == [0, 0, 12, 0]
    assert (literal["hex"], scratch["buffer"], scratch["offset"]) == ("07", 1, 8)
    assert y.offset not in [t["offset"] for t in tensors], "nobody reads it"
    assert raw["outputs"] == []


def test_an_input_that_is_not_aligned_stays_so():
    where = board(offset=Offset.ELEMENT)
    (x, _, _), _ = where.sets[0]
    text, (tensor,) = separate(recording(where, x.offset + 8), where)
    (pointer, *_) = json.loads(text)["launches"][0]["parameters"]
    assert tensor["lead_bytes"] == 4
    assert pointer["offset"] == 12
    assert json.loads(text)["buffers"][pointer["buffer"]]["nbytes"] == 404


@pytest.mark.parametrize("away", [-4, 400])
def test_an_address_between_the_tensors_is_refused(away):
    where = board()
    (x, _, _), _ = where.sets[0]
    with pytest.raises(Refused, match="outside of the tensors"):
        separate(recording(where, x.offset + away), where)


def test_places_are_those_of_the_recorded_call():
    where = board()
    assert len(places_of(where)) == 4
    assert max(p.offset for p in places_of(where)) < where.sets[1][0][0].offset


@pytest.mark.parametrize(
    "name", ["add\n========= ERROR SUMMARY: 0 errors", "", "a b", ["add"], None]
)
def test_a_kernel_whose_name_is_none_is_refused(name):
    where = board()
    raw = json.loads(recording(where, where.state["scale"].offset))
    raw["launches"][0]["function"] = name
    with pytest.raises(Refused, match="no identifier"):
        separate(json.dumps(raw), where)


def test_a_buffer_that_there_is_not_is_refused():
    where = board()
    raw = json.loads(recording(where, where.state["scale"].offset))
    raw["buffers"][1]["name"] = "goldens"
    with pytest.raises(Refused, match="buffers that there are not"):
        separate(json.dumps(raw), where)
