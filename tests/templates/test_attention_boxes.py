"""Tiles that are boxes of an image or of one residue class: their order, the kernel, the gain."""

from __future__ import annotations

import attention_variants as variants
import numpy as np
import pytest
from attention_check import check
from graph_expressions import Builder, make_spec, positions

from hotloop.templates.analysis import ScalarGraph
from hotloop.templates.attention.digits import find_digits
from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.token_order import SHAPES, box_of

SMALL = {"BLOCK_M": 64, "BLOCK_N": 32, "tiles": "lists", "token_order": "boxes"}


def _plan(mask, **sizes) -> AttentionPlan:
    return AttentionPlan.of(make_spec(mask=mask, **sizes))


def _dimension(mask, **sizes):
    space = AttentionFamily(make_spec(mask=mask, **sizes)).space()
    return next((d for d in space.dimensions if d.name == "token_order"), None)


def _digits(mask, length: int):
    spec = make_spec(mask=mask, S=length)
    return [
        (d.place, d.extent, d.is_class)
        for d in find_digits(ScalarGraph(spec.mask_mod, spec), length)
    ]


# --- which digits a mask reads ---


def test_rows_and_columns_of_an_image_are_digits():
    mask = variants.neighbourhood_2d(width=16, height=8, radius=2)
    assert _digits(mask, 128) == [(16, 8, False), (1, 16, False)]


def test_groups_of_a_dilated_image_are_classes():
    mask = variants.neighbourhood_2d(width=16, height=8, radius=2, dilation=2)
    assert _digits(mask, 128) == [(32, 4, False), (16, 2, True), (2, 8, False), (1, 2, True)]


def test_a_residue_of_the_distance_is_a_class():
    g = Builder()
    one = ((g.q - g.kv) % 4).equals(0) & (g.q >= g.kv)
    assert _digits(one, 128) == [(4, 32, False), (1, 4, True)]
    # Any of several residues is no class: a tile of one class would still need the others.
    g = Builder()
    assert _digits(((g.q - g.kv) % 4 <= 1) & (g.q >= g.kv), 128) == [(4, 32, False), (1, 4, False)]
    g = Builder()
    axial = (g.q // 16).equals(g.kv // 16) | (g.q % 16).equals(g.kv % 16)
    assert _digits(axial, 128) == [(16, 8, False), (1, 16, False)]


@pytest.mark.parametrize(
    ("build", "is_class"),
    [
        (lambda g: ((g.q - g.kv) % 4).equals(1), True),
        (lambda g: (g.apply("abs", g.q - g.kv) % 4).equals(0), True),
        # Of two classes some pairs have |q - kv| % 4 == 1 and others 3.
        (lambda g: (g.apply("abs", g.q - g.kv) % 4).equals(1), False),
        (lambda g: (g.q % 4).equals(g.kv % 4) | (g.kv < 3), False),
        (lambda g: (g.q % 4).equals(g.kv % 8), False),
    ],
    ids=["shifted", "absolute", "absolute_shifted", "or", "other_digit"],
)
def test_a_class_is_what_every_kept_pair_has(interpreter, build, is_class):
    mask = build(Builder())
    assert any(is_class for _, _, is_class in _digits(mask, 128)) == is_class
    spec = make_spec(mask=mask, H=1, S=128)
    if _dimension(mask, S=128) is not None:
        check(interpreter, spec, mask=mask, **{**SMALL, "BLOCK_M": 32})


def test_masks_without_digits_keep_their_order():
    for build in (
        lambda g: g.q >= g.kv,
        lambda g: (g.q // 32).equals(g.kv // 32),  # tokens in their order are blocks already
        lambda g: (g.q // 3).equals(g.kv // 3) & (g.q % 16 >= g.kv % 16),  # 3 does not divide 16
        lambda g: (g.q % 48) - (g.kv % 48) <= 3,  # 48 does not divide the length
        lambda g: (g.q + g.kv) % 4 <= 1,
    ):
        assert _dimension(build(Builder()), S=128) is None


def test_boxes_are_offered_only_where_the_sizes_divide():
    image = variants.neighbourhood_2d(width=64, height=64, radius=6)
    offered = _dimension(image, S=4096, D=128, dtype="bfloat16")
    assert offered is not None
    assert offered.choices == ("rows", *SHAPES)
    odd = variants.neighbourhood_2d(width=12, height=12, radius=3)  # boxes of 16 tokens at most
    assert _dimension(odd, S=144) is None
    few = variants.neighbourhood_2d(width=16, height=12, radius=3)
    offered = _dimension(few, S=192)
    assert offered is not None
    assert offered.when["BLOCK_M"] == (64, 32), "128 tokens would be 8 x 16"


def test_starts_have_boxes_of_several_tiles_and_rows():
    image = variants.neighbourhood_2d(width=64, height=64, radius=6)
    space = AttentionFamily(make_spec(mask=image, S=4096, D=128, dtype="bfloat16")).space()
    orders = [start["token_order"] for start in space.starts]
    assert orders.count("boxes") >= 3
    assert "rows" in orders


# --- the order itself ---


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dilation", [1, 2])
def test_every_token_has_one_position(shape, dilation):
    mask = variants.neighbourhood_2d(width=32, height=16, radius=2, dilation=dilation)
    plan = _plan(mask, S=512)
    for axis, block in (("query", 64), ("key", 32), ("key", 16)):
        box = box_of(plan, axis, block, shape)
        assert box is not None
        tokens = [box.token(p) for p in range(512)]
        assert sorted(tokens) == list(range(512))
        assert tokens == [eval(box.text(), {"position": p}) for p in range(512)]
        for start in range(0, 512, block):  # what the kernel relies on: no carries out of a tile
            inside = [box.token(start) + box.token(i) for i in range(block)]
            assert inside == tokens[start : start + block]
            rows = {t // 32 for t in inside}
            assert len(rows) * len({t % 32 for t in inside}) == block


def test_shapes_of_key_boxes():
    plan = _plan(variants.neighbourhood_2d(width=64, height=64, radius=6), S=4096)
    sides = {shape: str(box_of(plan, "key", 128, shape)) for shape in SHAPES}
    assert sides == {"boxes": "8 x 16", "boxes_wide": "4 x 32", "boxes_tall": "16 x 8"}
    flat = _plan(variants.neighbourhood_2d(width=4, height=64, radius=1), S=256)
    assert str(box_of(flat, "key", 32, "boxes_wide")) == str(box_of(flat, "key", 32)) == "8 x 4"


# --- the kernel ---


@pytest.mark.parametrize("loads", ["pointer", "tma"])
def test_neighbourhoods_of_an_image(interpreter, loads):
    mask = variants.neighbourhood_2d(width=16, height=8, radius=2)
    spec = make_spec(mask=mask, H=2, Hkv=1, S=128, D=24, dtype="bfloat16")
    source = check(interpreter, spec, mask=mask, **SMALL, loads=loads)
    assert "boxes of 8 x 8" in source
    assert "boxes of 4 x 8" in source


@pytest.mark.parametrize("loads", ["pointer", "tma"])
def test_dilated_neighbourhoods_of_an_image(interpreter, loads):
    mask = variants.neighbourhood_2d(width=16, height=8, radius=1, dilation=2)
    spec = make_spec(mask=mask, H=2, S=128, D=16)
    point = {**SMALL, "BLOCK_M": 32, "dot_precision": "tf32x3", "loads": loads}
    source = check(interpreter, spec, mask=mask, **point)
    assert "boxes of 4 x 1 x 8 x 1" in source
    loop = source.split("def attend")[1].split("return acc")[0]
    assert "==" not in loop.split("Online softmax")[0], "listed tiles are of one class"


@pytest.mark.parametrize("tiles", ["ranges", "lists"])
def test_a_dilated_window_by_ranges_and_lists(interpreter, tiles):
    g = Builder()
    mask = ((g.q - g.kv) % 2).equals(0) & (g.apply("abs", g.q - g.kv) <= 40)
    spec = make_spec(mask=mask, H=1, S=128)
    source = check(interpreter, spec, mask=mask, **{**SMALL, "tiles": tiles})
    assert "position // 64 + position % 64 * 2" in source


def test_scores_and_captured_tensors_read_true_token_numbers(interpreter):
    g = Builder()
    score = g.score + 0.05 * (g.kv - g.q) + g.read("bias", (128,), "float32", g.kv)
    mask = variants.neighbourhood_2d(width=16, height=8, radius=2)
    m = mask.builder
    mask = mask & m.read("seen", (2, 128), "bool", m.h, m.kv)
    rng = np.random.default_rng(0)
    bias = rng.standard_normal(128).astype(np.float32)
    buffers = {"bias": bias, "seen": rng.random((2, 128)) < 0.7}
    spec = make_spec(score=score, mask=mask, S=128)
    check(interpreter, spec, score=score, mask=mask, buffers=buffers, **SMALL)


@pytest.mark.parametrize("shape", SHAPES[1:])
def test_other_shapes_of_boxes(interpreter, shape):
    mask = variants.neighbourhood_2d(width=16, height=16, radius=3)
    spec = make_spec(mask=mask, H=1, S=256)
    source = check(interpreter, spec, mask=mask, **{**SMALL, "token_order": shape})
    assert {"boxes_wide": "boxes of 2 x 16", "boxes_tall": "boxes of 8 x 4"}[shape] in source


def test_keys_of_another_image_height(interpreter):
    mask = variants.neighbourhood_2d(width=16, height=16, radius=3)
    spec = make_spec(mask=mask, H=1, S=128, Skv=256)
    check(interpreter, spec, mask=mask, **SMALL)


@pytest.mark.parametrize("tiles", ["ranges", "lists"])
def test_a_mask_that_is_classes_alone(interpreter, tiles):
    g = Builder()
    mask = (g.q % 2).equals(g.kv % 2)
    spec = make_spec(mask=mask, H=1, S=128)
    check(interpreter, spec, mask=mask, **{**SMALL, "tiles": tiles})


# --- what it saves ---


ORDER = list(range(4096))
VISITED = {
    13: {128: (224, 196), 64: (442, 308)},
    19: {128: (342, 336), 64: (630, 560)},
    25: {128: (416, 360), 64: (820, 600)},
    31: {128: (528, 360), 64: (1008, 720)},
}
"""Tiles visited in the order of rows and in boxes, by window and keys of a tile."""


def _keep(mask, plan: AttentionPlan) -> np.ndarray:
    index = {name: axis.astype(np.int16) for name, axis in positions(plan.spec).items()}
    return mask.compute(index)[0, 0]


def _tokens(plan: AttentionPlan, axis: str, block: int, shape: str = SHAPES[0]) -> list[int]:
    box = box_of(plan, axis, block, shape)
    assert box is not None
    return [box.token(position) for position in range(plan.spec.S)]


def _visited(keep: np.ndarray, queries: list[int], keys: list[int], rows: int, cols: int) -> int:
    """Return how many tiles have a pair that the mask keeps."""
    by_row = keep[queries].reshape(-1, rows, keep.shape[1]).any(1)
    return int(by_row[:, keys].reshape(len(by_row), -1, cols).any(2).sum())


@pytest.mark.parametrize("window", [13, 19, 25, 31])
def test_boxes_visit_fewer_tiles_of_an_image(window):
    """Tiles of 128 queries and 128 or 64 keys on 64 x 64 pixels, in the best of three shapes."""
    mask = variants.neighbourhood_2d(width=64, height=64, radius=window // 2)
    plan = _plan(mask, S=4096)
    keep = _keep(mask, plan)
    counts = {}
    for cols in (128, 64):
        rows = _visited(keep, ORDER, ORDER, 128, cols)
        boxes = [
            _visited(
                keep, _tokens(plan, "query", 128), _tokens(plan, "key", cols, shape), 128, cols
            )
            for shape in SHAPES
        ]
        counts[cols] = (rows, min(boxes))
    assert counts == VISITED[window]
    assert all(boxes < rows for rows, boxes in counts.values())


def test_one_class_visits_a_third_of_the_tiles_of_a_dilated_window():
    g = Builder()
    mask = ((g.q - g.kv) % 4).equals(0) & (g.apply("abs", g.q - g.kv) <= 512)
    plan = _plan(mask, S=4096)
    keep = _keep(mask, plan)
    classes = _tokens(plan, "query", 128)
    assert _visited(keep, ORDER, ORDER, 128, 128) == 268
    assert _visited(keep, classes, classes, 128, 128) == 88


def test_prepare_lists_exactly_the_tiles_that_the_mask_needs(interpreter):
    mask = variants.neighbourhood_2d(width=16, height=16, radius=3)
    spec = make_spec(mask=mask, H=1, S=256)
    family = AttentionFamily(spec)
    source = family.render(family.space().complete(SMALL)).text()
    source = source.replace(
        "def forward(self, q, k, v):",
        "def forward(self):\n        return self.tile_counts\n\n    def attend(self, q, k, v):",
    )
    (counts,) = interpreter.run(source, [])
    plan = AttentionPlan.of(spec)
    tokens = [_tokens(plan, "query", 64), _tokens(plan, "key", 32)]
    assert counts.sum() == _visited(_keep(mask, plan), *tokens, 64, 32)
