"""Each rule speaks of the weak kernel and is silent on the sound one."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hotloop.core.problem import TensorSpec
from hotloop.prompts.analysis import analyse

HEAD = "import torch\nimport triton\nimport triton.language as tl\n\nBLOCK = 1024\nBLOCK_K = 64\n\n"


def tensors(*shapes, dtype="float32"):
    return [TensorSpec(name="x", shape=shape, dtype=dtype, strides=()) for shape in shapes]


def rowwise(body, *, launch="n, BLOCK=BLOCK", grid="triton.cdiv(x.numel(), BLOCK)", setup="pass"):
    """A kernel over a flat tensor: what stands between its offsets and its end."""
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return (
        f"{HEAD}@triton.jit\ndef kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):\n"
        f"    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)\n{lines}\n\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        f"        y = torch.empty_like(x)\n        {setup}\n        n = x.numel()\n"
        f"        kernel[({grid},)](x, y, {launch})\n        return y\n"
    )


COPY = "tl.store(y_ptr + i, tl.load(x_ptr + i))"
MASKED = "tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n), mask=i < n)"
SUM = "x = tl.load(x_ptr + i, mask=i < n{other})\ntl.store(y_ptr, tl.sum({x}, 0))"


def product(dot="tl.dot(a, b, acc)", *, zeros="tl.float32", stages=3, k=64, tail=""):
    return (
        f"{HEAD}@triton.jit\ndef kernel(a_ptr, b_ptr, c_ptr, K, BM: tl.constexpr, BN: tl.constexpr,"
        " BK: tl.constexpr):\n"
        "    rows, cols, ks = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)\n"
        f"    acc = tl.zeros((BM, BN), dtype={zeros})\n"
        "    for k in range(0, K, BK):\n"
        "        ok = ks < K - k\n"
        "        a = tl.load(a_ptr + rows[:, None] * K + (k + ks)[None, :], mask=ok[None, :], "
        "other=0.0)\n"
        "        b = tl.load(b_ptr + (k + ks)[:, None] * K + cols[None, :], mask=ok[:, None], "
        "other=0.0)\n"
        f"        acc = {dot}\n{tail}"
        "    tl.store(c_ptr + rows[:, None] * BN + cols[None, :], acc)\n\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n"
        "        c = torch.empty(128, 128)\n"
        f"        kernel[(1,)](a, b, c, a.shape[1], BM=128, BN=128, BK={k}, num_stages={stages})\n"
        "        return c\n"
    )


SERIAL = "total = 0.0\nfor j in range(n):\n    total += tl.load(x_ptr + j)\ntl.store(y_ptr, total)"
BLOCKED = (
    "total = tl.zeros((BLOCK,), tl.float32)\nfor j in range(0, n, BLOCK):\n"
    "    o = j + tl.arange(0, BLOCK)\n"
    "    total += tl.load(x_ptr + o, mask=o < n, other=0.0)\ntl.store(y_ptr, tl.sum(total, 0))"
)
IEEE = 'tl.dot(a, b, acc, input_precision="ieee")'
ODD, EVEN = tensors((5000,)), tensors((4096,))
HALF = tensors((128, 4096), (4096, 128), dtype="bfloat16")
FULL = tensors((128, 4096), (4096, 128))

CASES = [
    ("no mask, odd size", rowwise(COPY), ODD, {"no_mask"}),
    ("no mask, size divides", rowwise(COPY), EVEN, set()),
    ("no mask, size unknown", rowwise(COPY), [], set()),
    ("mask, odd size", rowwise(MASKED), ODD, set()),
    ("load masked, store not", rowwise(
        "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x)"), ODD, {"no_mask"}),
    ("positional mask", rowwise("x = tl.load(x_ptr + i, i < n)\ntl.store(y_ptr + i, x, i < n)"),
     ODD, set()),
    ("offsets wrap round", rowwise("o = i % n\ntl.store(y_ptr + o, tl.load(x_ptr + o))"), ODD,
     set()),
    ("grid by a lambda", rowwise(
        COPY, setup="grid = lambda meta: (triton.cdiv(n, meta['BLOCK']),)", grid="*grid"), ODD,
     {"no_mask"}),
    ("grid by arithmetic", rowwise(COPY, grid="(n + BLOCK - 1) // BLOCK"), ODD, {"no_mask"}),
    ("autotuned, one block too odd", rowwise(COPY, launch="n").replace(
        "@triton.jit", "@triton.autotune(configs=[triton.Config({'BLOCK': 512}), "
        "triton.Config({'BLOCK': 3})], key=[])\n@triton.jit"), EVEN, {"no_mask", "autotune"}),
    ("tunable block does not divide", "TUNABLES = {'BLOCK': [512, 3000]}\n" + rowwise(COPY), EVEN,
     {"no_mask"}),
    ("block pointer", rowwise("p = tl.make_block_ptr(x_ptr, (n,), (1,), (0,), (BLOCK,), (0,))\n"
     "tl.store(y_ptr + i, tl.load(p, boundary_check=(0,)), mask=i < n)"), ODD, set()),
    ("sum without other", rowwise(SUM.format(other="", x="x")), ODD, {"no_other"}),
    ("sum with other", rowwise(SUM.format(other=", other=0.0", x="x")), ODD, set()),
    ("sum behind where", rowwise(SUM.format(other="", x="tl.where(i < n, x, 0.0)")), ODD, set()),
    ("sum of a product", rowwise(SUM.format(other="", x="x * x")), ODD, {"no_other"}),
    ("cast without other", rowwise(SUM.format(other="", x="x").replace(
        "i < n)", "i < n).to(tl.float32)")), ODD, {"no_other"}),
    ("name used again", rowwise(SUM.format(other=", other=0.0", x="x") + "\n"
     "x = tl.load(x_ptr + i, mask=i < n)\ntl.store(y_ptr + i, x, mask=i < n)"), ODD, set()),
    ("element-wise without other", rowwise(MASKED), ODD, set()),
    ("float16 accumulator", product(IEEE, zeros="tl.float16"), FULL, {"accumulator"}),
    ("bfloat16 out_dtype", product("tl.dot(a, b, out_dtype=tl.bfloat16)"), HALF, {"accumulator"}),
    ("float32 accumulator", product(), HALF, set()),
    ("float16 buffer that adds nothing", rowwise(
        "z = tl.zeros((BLOCK,), tl.float16)\ntl.store(y_ptr + i, z, mask=i < n)"), ODD, set()),
    ("serial loop", rowwise(SERIAL), ODD, {"serial_loop"}),
    ("loop over blocks", rowwise(BLOCKED), ODD, set()),
    ("short serial loop", rowwise(SERIAL.replace("range(n)", "range(8)")), ODD, set()),
    ("loop that loads a bound and a tile", rowwise(
        "for j in range(n):\n    s = tl.load(x_ptr + j)\n"
        "    t = tl.load(y_ptr + s + tl.arange(0, BLOCK), mask=i < n)\n"
        "    tl.store(y_ptr + i, t, mask=i < n)"), ODD, set()),
    ("float32 dot by default", product(), FULL, {"dot_precision"}),
    ("float32 dot in tf32", product('tl.dot(a, b, acc, input_precision="tf32")'), FULL,
     {"dot_precision"}),
    ("float32 dot, cast", product("tl.dot(a.to(tl.bfloat16), b.to(tl.bfloat16), acc)"), FULL,
     {"dot_precision"}),
    ("float32 dot, ieee", product(IEEE), FULL, set()),
    ("float32 dot, tf32x3", product(IEEE.replace("ieee", "tf32x3")), FULL, set()),
    ("float32 dot, allow_tf32 off", product("tl.dot(a, b, acc, allow_tf32=False)"), FULL, set()),
    ("bfloat16 dot", product(), HALF, set()),
    ("tiles beyond shared memory", product(IEEE, stages=4), FULL, {"shared_memory"}),
    ("fewer stages fit", product(IEEE, stages=3), FULL, set()),
    ("half as wide fits", product(stages=4), HALF, set()),
    ("half as wide, deep tiles", product(stages=4, k=128), HALF, {"shared_memory"}),
    ("no Python", "def (", ODD, set()),
    ("no kernel", "import torch\nx = 1\n", ODD, set()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "inputs", "rules"), [c[1:] for c in CASES], ids=[c[0] for c in CASES]
)
def test_a_rule_speaks_when_it_should(source, inputs, rules):
    assert {f.rule for f in analyse(source, inputs=inputs)} == rules


def test_a_finding_names_its_line_and_the_numbers():
    source = rowwise(COPY)
    (finding,) = analyse(source, inputs=ODD)
    assert "tl.load" in source.split("\n")[finding.line - 1]
    assert "5000" in finding.message
    assert "1024" in finding.message


def test_the_bytes_of_tiles_are_added_and_multiplied():
    (finding,) = analyse(product(IEEE, stages=4), inputs=FULL)
    assert str((128 * 64 + 64 * 128) * 4 * 4) in finding.message


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_a_policy_that_allows_tf32_is_not_warned_of_it(precision):
    assert analyse(product(), inputs=FULL, precision=precision) == ()


@pytest.mark.parametrize("dot", ["tl.dot(a, b, acc)", "tl.dot(a.to(tl.float16), b, acc)"])
def test_where_eager_rounds_to_tf32_a_product_may(dot):
    assert analyse(product(dot), inputs=FULL, eager_tf32=True) == ()
    assert analyse(product(dot), inputs=FULL, eager_tf32=False) != ()


def test_operands_that_may_be_halves_are_not_called_float32():
    split = product() + "\nPARTS = lambda w: w.to(torch.float16)\n"
    assert analyse(split, inputs=FULL) == ()


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.sampled_from(CASES), min_size=1, max_size=3),
    st.integers(0, 1500),
    st.integers(0, 60),
)
def test_no_source_raises(cases, start, length):
    text = "\n".join(case[1] for case in cases)
    analyse(text[:start] + text[start + length :], inputs=ODD)
