"""Scattered accesses are named with their distance; honest kernels of every kind are not."""

import re
import sys
from pathlib import Path

import pytest

from hotloop.core.problem import TensorSpec
from hotloop.prompts.analysis import analyse

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "templates"))

import attention_variants as variants  # noqa: E402
from graph_expressions import make_spec  # noqa: E402
from graph_models import ModelBuilder  # noqa: E402

from hotloop.templates.attention.family import AttentionFamily  # noqa: E402
from hotloop.templates.matmul.family import MatmulFamily  # noqa: E402
from hotloop.templates.rowwise.family import RowwiseFamily  # noqa: E402


def spec(*shape, strides=(), dtype="float32"):
    return TensorSpec(name="x", shape=shape, dtype=dtype, strides=strides)


def kernel(body, *, launch="x.shape[1]", setup="pass"):
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    return (
        "import torch\nimport triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef kernel(x_ptr, y_ptr, n, BM: tl.constexpr, BN: tl.constexpr):\n"
        "    rows, cols = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, BN)\n"
        f"{lines}\n\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
        f"        {setup}\n        y = torch.empty_like(x)\n"
        f"        kernel[(triton.cdiv(x.shape[0], 128),)](x, y, {launch}, BM=128, BN=64)\n"
        "        return y\n"
    )


X = [spec(4096, 2048)]
COLUMN_PER_LANE = "tl.store(y_ptr + rows, tl.load(x_ptr + rows * n))"
SCATTERED = [
    ("a row a lane", kernel(COLUMN_PER_LANE), 2048),
    ("by the stride", kernel(COLUMN_PER_LANE, launch="x.stride(0)"), 2048),
    ("by a negative index", kernel(COLUMN_PER_LANE, launch="x.stride(-2)"), 2048),
    ("in a loop", kernel(
        "p = x_ptr + rows * n\nfor k in range(0, n):\n    v = tl.load(p)\n    p += 1"), 2048),
    ("both directions", kernel("tl.load(x_ptr + rows[:, None] * n + cols[None, :] * 16)"), 16),
    ("both, in pieces", kernel(
        "start = rows[:, None] * n\nwhere = start + cols[None, :] * 64\n"
        "tl.load(x_ptr + where)"), 64),
    ("behind a cast", kernel("o = rows.to(tl.int64) * n\ntl.load(x_ptr + o)"), 2048),
    ("a store", kernel("tl.store(y_ptr + tl.multiple_of(rows, 8) * n, 1.0)"), 2048),
]  # fmt: skip
SOUND = [
    ("along the row", kernel("tl.load(x_ptr + rows[:, None] * n + cols[None, :])")),
    ("a transposed tile", kernel("tl.load(x_ptr + rows[None, :] * n + cols[:, None])")),
    ("one row", kernel("tl.load(x_ptr + tl.program_id(0) * n + rows)")),
    ("short steps", kernel("tl.load(x_ptr + rows * 2)")),
    ("a step of one", kernel("tl.load(x_ptr + rows * n)", launch="1")),
    ("a step that is not known", kernel("tl.load(x_ptr + rows * n)", launch="self.step")),
    ("the last stride", kernel("tl.load(x_ptr + rows * n)", launch="x.stride(1)")),
    ("gathered", kernel("tl.load(x_ptr + tl.load(y_ptr + rows) * n)")),
    ("divided", kernel("tl.load(x_ptr + rows // 16 * n)")),
    ("few elements", kernel("i = tl.arange(0, 32)\ntl.load(x_ptr + i * n)")),
    ("no lanes", kernel("tl.load(x_ptr + tl.program_id(0) * n)")),
    ("cancelled", kernel("tl.load(x_ptr + rows * n - rows * n + rows)")),
    ("scaled in place", kernel("o = rows\no *= n\ntl.load(x_ptr + o)")),
    ("scaled by itself", kernel("o = rows\nfor k in range(2):\n    o = o * n\ntl.load(x_ptr + o)")),
    ("another tensor by then", kernel(COLUMN_PER_LANE, setup="x = x.reshape(-1, 4)")),
    ("a method", kernel("x = rows.load(rows * n)")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "step"), [c[1:] for c in SCATTERED], ids=[c[0] for c in SCATTERED]
)
def test_scattered_accesses_are_named_with_their_distance(source, step):
    (finding,) = [f for f in analyse(source, inputs=X) if f.rule == "uncoalesced"]
    assert f" {step} elements apart" in finding.message
    assert re.search(r"tl\.(load|store)", source.split("\n")[finding.line - 1])


@pytest.mark.parametrize("source", [c[1] for c in SOUND], ids=[c[0] for c in SOUND])
def test_sound_and_unreadable_accesses_are_not(source):
    assert "uncoalesced" not in {f.rule for f in analyse(source, inputs=X)}


def test_a_tensor_that_is_not_contiguous_is_left_alone():
    source = kernel(COLUMN_PER_LANE, launch="x.stride(0)")
    assert analyse(source, inputs=[spec(4096, 2048, strides=(1, 4096))]) == ()
    assert analyse(source, inputs=[spec(4096, 2048, strides=(2048, 1))]) != ()


def test_a_tensor_that_keeps_its_shape_stays_known():
    source = kernel(COLUMN_PER_LANE, setup="x = x.contiguous()")
    assert "uncoalesced" in {f.rule for f in analyse(source, inputs=X)}


def attention_sources():
    for name in ("full", "causal", "relative", "alibi", "document", "softcap"):
        score, mask = variants.full() if name == "full" else getattr(variants, name)(S=4096, H=16)
        problem = make_spec(score=score, mask=mask, B=4, H=16, S=4096, D=128, dtype="bfloat16")
        family = AttentionFamily(problem)
        space = family.space()
        for dimension in space.dimensions:
            for choice in dimension.choices[:3]:
                point = {n: v[0] for n, v in dimension.when.items()} | {dimension.name: choice}
                yield family.render(space.complete(point)).text()


def model_sources():
    g = ModelBuilder()
    product = g.apply("matmul", g.input(0, 512, 1024), g.input(1, 1024, 256))
    families = [MatmulFamily(g.graph(g.apply("relu", product)))]
    for shape, dim in (((512, 1024), 1), ((7, 512, 1024), 1), ((512, 1024), 0)):
        g = ModelBuilder()
        families.append(RowwiseFamily(g.graph(g.apply("softmax", g.input(0, *shape), dim=dim))))
    for family in families:
        space = family.space()
        yield from (family.render(space.complete(start)).text() for start in space.starts)


@pytest.mark.parametrize("source", sorted({*attention_sources(), *model_sources()}))
def test_generated_kernels_have_no_scattered_access(source):
    qkv = [spec(4, 16, 4096, 128, dtype="bfloat16")] * 3
    for inputs in (qkv, [spec(512, 1024), spec(1024, 256)]):
        assert "uncoalesced" not in {f.rule for f in analyse(source, inputs=inputs)}


KEPT = sorted((ROOT / "benchmarks" / "kernels").glob("*.py")) + sorted(
    (ROOT / "tests" / "prompts" / "replies").glob("*.md")
)


@pytest.mark.parametrize("path", KEPT, ids=[p.name for p in KEPT])
def test_kept_kernels_have_no_scattered_access(path):
    text = path.read_text(encoding="utf-8")
    blocks = re.findall(r"```[^\n]*\n(.*?)```", text, re.S) if path.suffix == ".md" else [text]
    for source in blocks:
        for inputs in (X, [spec(16, 64, 256, 256)], [spec(512, 1024), spec(1024, 256)]):
            assert "uncoalesced" not in {f.rule for f in analyse(source, inputs=inputs)}
