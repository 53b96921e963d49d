"""The attention problems that ship as examples: traced as the judge does, generated, compared."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attention_check import TOLERANCE, attend, draw, relative_error, scores
from graph_expressions import make_spec

from hotloop.templates.attention.family import AttentionFamily
from hotloop.templates.attention.token_order import SHAPES

FILES = sorted((Path(__file__).parents[2] / "examples/attention").glob("*.py"))
EXAMPLES = [path for path in FILES if not path.stem.startswith("decode")]
"""All but the decode steps, which have a family and tests of their own."""
SIZES = {"B": 1, "H": 4, "S": 128, "D": 32}
STRUCTURES = {
    **dict.fromkeys(["causal", "grouped_query", "neighbourhood_1d", "prefix_lm"], ("closed", ())),
    "sliding_window": ("closed", ()),
    **dict.fromkeys(["document", "document_causal"], ("ranges", ())),
    "dilated_window": ("lists", ("rows", "boxes")),
    **dict.fromkeys(["neighbourhood_2d", "neighbourhood_2d_dilated"], ("lists", ("rows", *SHAPES))),
}
"""By example with a mask: how tiles are found by default, and orders of tokens."""


def _check(interpreter, path: Path, sizes: dict[str, int], **point: str) -> None:
    """Trace an example, generate its kernel at `point`, run it, and compare with float64."""
    own = {name: sizes[name] for name in ("B", "H", "Hkv", "S", "D") if name in sizes}
    small = make_spec(**own, dtype="bfloat16")
    tensors = draw(small, seed=1)
    traced = interpreter.trace(path.read_text(), scores(small, tensors), sizes)
    spec = traced["spec"]
    family = AttentionFamily(spec)
    want = attend(spec, tensors, traced["score"], traced["keep"])
    dtypes = {b.name: b.dtype for b in spec.buffers}
    state = {n: (v, dtypes[n]) for n, v in traced["buffers"].items() if n in dtypes}
    complete = family.space().complete({"BLOCK_M": 64, "BLOCK_N": 32, **point})
    candidate = family.render(complete)
    (got,) = interpreter.run(candidate.text(), [(t, spec.dtype) for t in tensors], state=state)
    assert relative_error(got, want) < TOLERANCE["bfloat16"]
    assert candidate.id == family.render(complete).id


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_generated_right(interpreter, path):
    _check(interpreter, path, {**SIZES, "Hkv": 2} if "Hkv" in path.read_text() else SIZES)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_tiles_of_an_example_are_found_by_its_structure(interpreter, path):
    sizes = {"B": 1, "H": 1, "Hkv": 1, "S": 512, "D": 64}
    spec = interpreter.trace(path.read_text(), np.zeros((1, 1, 512, 512), np.float32), sizes)[
        "spec"
    ]
    dimensions = {d.name: d.choices for d in AttentionFamily(spec).space().dimensions}
    if spec.mask_mod is None:
        assert dimensions["tiles"] == ("closed",)
    else:
        found = (dimensions["tiles"][0], dimensions.get("token_order", ()))
        assert found == STRUCTURES[path.stem]


def test_the_image_example_in_boxes(interpreter):
    """By default tokens stay in their order."""
    path = next(p for p in EXAMPLES if p.stem == "neighbourhood_2d")
    sizes = {**SIZES, "H": 1, "RADIUS": 2}
    _check(interpreter, path, sizes, tiles="lists", token_order="boxes")


def test_there_are_examples():
    stems = {p.stem for p in EXAMPLES}
    assert stems >= {*STRUCTURES, "full", "alibi", "head_bias", "relative", "sigmoid", "softcap"}
    assert "t5_bias" in stems
