"""The map of the tiles that prepare() makes: what it costs, and that it is the mask's own."""

from __future__ import annotations

import attention_variants as variants
import numpy as np
import pytest
from graph_expressions import Builder, make_spec, positions

from hotloop.templates.attention.family import AttentionFamily

WATCH = """
from torch.utils._python_dispatch import TorchDispatchMode

launches, largest, running = [], [0], []


class Counted:
    def __init__(self, kernel):
        self.kernel = kernel

    def __getitem__(self, grid):
        def launch(*args, **options):
            launches.append(grid)
            running.append(grid)  # what the interpreter makes is no tensor of prepare()
            self.kernel[grid](*args, **options)
            running.pop()

        return launch


class Sizes(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for tensor in result if isinstance(result, tuple) else (result,):
            if not running:
                largest[0] = max(largest[0], tensor.numel())
        return result


map_tiles = Counted(map_tiles)
Generated = ModelNew


class ModelNew(Generated):
    def prepare(self):
        with Sizes():
            super().prepare()

    def forward(self):
        return torch.tensor(largest), torch.tensor(len(launches)), RESULT
"""


def _prepared(interpreter, spec, buffers, result: str, **point):
    """Return the largest tensor of prepare(), its launches, and what `result` says."""
    family = AttentionFamily(spec)
    complete = family.space().complete({"BLOCK_M": 32, "BLOCK_N": 32, **point})
    source = family.render(complete).text() + WATCH.replace("RESULT", result)
    dtypes = {b.name: b.dtype for b in spec.buffers}
    state = {name: (value, dtypes[name]) for name, value in buffers.items()}
    return interpreter.run(source, [], state=state)


def _documents(S: int):
    g = Builder()
    return g.read("doc", (S,), "int32", g.q).equals(g.read("doc", (S,), "int32", g.kv))


@pytest.mark.parametrize("tiles", ["ranges", "lists"])
def test_a_map_of_documents_is_one_launch_without_a_square_tensor(interpreter, tiles):
    S = 256
    spec = make_spec(mask=_documents(S), B=2, H=2, S=S, D=16)
    buffers = {"doc": np.sort(np.random.default_rng(0).integers(0, 5, S)).astype(np.int32)}
    work = "self.tile_ranges" if tiles == "ranges" else "self.tile_counts"
    largest, launches, _ = _prepared(interpreter, spec, buffers, work, tiles=tiles)
    assert launches == 1
    assert 0 < largest.item() <= 2 * (S // 32) ** 2, "two lists of all tiles"


def test_lists_hold_exactly_the_tiles_of_the_mask(interpreter):
    S = 128
    mask = _documents(S)
    spec = make_spec(mask=mask, H=1, S=S, D=16)
    documents = np.random.default_rng(1).permutation(np.repeat(np.arange(16), 8)).astype(np.int32)
    documents[:48] = 3  # some full tiles
    *_, counts = _prepared(interpreter, spec, {"doc": documents}, "self.tile_counts", tiles="lists")
    keep = mask.compute({**positions(spec), "doc": documents})[0, 0]
    tiles = keep.reshape(4, 32, 4, 32)
    some, every = tiles.any((1, 3)).sum(1), tiles.all((1, 3)).sum(1)
    assert every.sum() == 1
    assert np.array_equal(counts, np.stack([some - every, every], 1))


def test_a_map_of_its_own_for_each_batch_or_head_that_the_mask_tells_apart(interpreter):
    for axis, groups in (("b", 2), ("h", 3), ("q", 1)):
        g = Builder()
        mask = (g.kv < 20 + 40 * getattr(g, axis)) & (g.q % 2 <= g.kv)
        spec = make_spec(mask=mask, B=2, H=3, S=64, D=16)
        *_, counts = _prepared(interpreter, spec, {}, "self.tile_counts", tiles="lists")
        assert len(counts) == groups * 2


def test_masks_with_a_closed_form_need_no_map():
    g = Builder()
    centre = g.apply("minimum", g.apply("maximum", g.q, 5), 58)
    for mask in (variants.causal()[1], g.apply("abs", centre - g.kv) <= 5):
        family = AttentionFamily(make_spec(mask=mask, S=64))
        assert "prepare" not in family.render(family.space().complete({})).text()
