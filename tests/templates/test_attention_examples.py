"""The attention problems that ship as examples: traced as the judge does, generated, compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from attention_check import TOLERANCE, attend, draw, relative_error, scores
from graph_expressions import make_spec

from hotloop.templates.attention.family import AttentionFamily

EXAMPLES = sorted((Path(__file__).parents[2] / "examples/attention").glob("*.py"))
SIZES = {"B": 1, "H": 4, "S": 128, "D": 32}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_is_generated_right(interpreter, path):
    source = path.read_text()
    sizes = {**SIZES, "Hkv": 2} if "Hkv" in source else SIZES
    tensors = draw(make_spec(**sizes, dtype="bfloat16"), seed=1)
    traced = interpreter.trace(source, scores(make_spec(**sizes), tensors), sizes)
    spec = traced["spec"]
    family = AttentionFamily(spec)
    want = attend(spec, tensors, traced["score"], traced["keep"])
    dtypes = {b.name: b.dtype for b in spec.buffers}
    state = {n: (v, dtypes[n]) for n, v in traced["buffers"].items() if n in dtypes}
    point = family.space().complete({"BLOCK_M": 64, "BLOCK_N": 32})
    candidate = family.render(point)
    (got,) = interpreter.run(candidate.text(), [(t, spec.dtype) for t in tensors], state=state)
    assert relative_error(got, want) < TOLERANCE["bfloat16"]
    assert candidate.id == family.render(point).id


def test_there_are_examples():
    assert {"alibi", "causal", "document", "softcap"} <= {p.stem for p in EXAMPLES}
