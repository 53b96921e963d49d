"""The approximate tanh of a baseline: swapped in where it is asked for, and nowhere else.

Slow, as importing what compiles takes seconds.
"""

import pytest
import torch
from torch.nn.attention.flex_attention import flex_attention

from hotloop.worker import approximate_tanh as approximate
from hotloop.worker import baselines
from hotloop.worker.approximate_tanh import OPTIONS, approximate_tanh

pytestmark = pytest.mark.slow
TANH = torch.ops.aten.tanh.default


@pytest.fixture
def lowering():
    """Return inductor's table of lowerings, imported only when a test runs."""
    from torch._inductor import lowering

    return lowering


class Typed:
    """What a lowering is given, as far as the swap looks at it."""

    def __init__(self, dtype):
        self.dtype = dtype

    def get_dtype(self):
        return self.dtype


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_tanh_is_swapped_and_the_exact_one_comes_back(dtype, lowering, monkeypatch):
    monkeypatch.setitem(lowering.lowerings, TANH, lambda x: "exact")
    with approximate_tanh(lambda x: "fast") as swapped:
        assert lowering.lowerings[TANH](Typed(dtype)) == "fast"
        assert swapped.used == 1
        assert lowering.lowerings[TANH](Typed(torch.float64)) == "exact"
        assert swapped.used == 1
    assert lowering.lowerings[TANH](Typed(torch.float32)) == "exact"
    with pytest.raises(KeyError), approximate_tanh(lambda x: "fast") as swapped:
        raise KeyError
    assert lowering.lowerings[TANH](Typed(torch.float32)) == "exact"
    assert swapped.used == 0


def test_the_instruction_is_one_line_of_ptx():
    from torch._inductor.codegen.triton import TritonOverrides
    from torch._inductor.virtualized import V

    with V.set_ops_handler(TritonOverrides()):
        text = str(approximate._instruction("score"))
    assert "inline_asm_elementwise" in text
    assert "tanh.approx.f32 $0, $1;" in text
    assert "[score]" in text
    assert "tl.float32" in text


@pytest.mark.timeout(400)
def test_what_is_compiled_with_the_other_tanh_is_never_taken_for_the_exact_one(lowering):
    def capped(score, b, h, q_idx, kv_idx):
        return 20 * torch.tanh(score / 20)

    def run(options):
        compiled = baselines.compiled(flex_attention, "flex", options)
        with torch.no_grad():
            return compiled(*qkv, score_mod=capped)

    # bfloat16 as on a GPU: Inductor then calls the score bfloat16 too
    qkv = [(torch.randn(1, 2, 128, 32) * 9).bfloat16() for _ in range(3)]
    exact = run(None)
    for _ in range(2):  # the second finds nothing of the first in a cache
        torch._dynamo.reset()
        with approximate_tanh(lowering.lowerings[torch.ops.aten.sin.default]) as swapped:
            other = run(OPTIONS)
        assert swapped.used >= 1
        assert float((other - exact).abs().max()) > 0.1
    assert torch.equal(run(None), exact)
