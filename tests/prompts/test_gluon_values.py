"""The Gluon programs that prompts show compute what they say, at sizes that fit no tile too."""

from __future__ import annotations

import contextlib
from dataclasses import replace

import pytest
import torch
from gluon_stand_in import run_program
from prompt_cases import attention_task, norm_task

from hotloop.prompts.fences import find_blocks
from hotloop.prompts.render import first_prompt


def programs(make_task) -> list[str]:
    """Return the ring and the skeleton, in the words of a new Triton."""
    task = make_task("gluon")
    task = replace(task, info=replace(task.info, environment={"triton": "3.9.0"}))
    return [b.text for b in find_blocks(first_prompt(task).text) if "gluon.jit" in b.text]


@pytest.mark.parametrize(
    ("H", "HKV", "S", "SKV", "D"), [(2, 2, 128, 128, 64), (4, 2, 200, 150, 64), (1, 1, 1, 65, 128)]
)
def test_the_attention_of_the_skeleton_is_attention(H, HKV, S, SKV, D):
    _, source = programs(attention_task)
    torch.manual_seed(H + S)
    q = torch.randn(2, H, S, D, dtype=torch.float32)
    k, v = torch.randn(2, HKV, SKV, D), torch.randn(2, HKV, SKV, D)
    got = run_program(source)["ModelNew"]()(q, k, v)
    expected = torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


MASKED = "gl.where((key < SKV)[None, :], s"
SCORE = "s * (scale * 1.4426950408889634)"


def masked_attention(q, k, v, seen, bias):
    scores = (q @ k.transpose(-1, -2)).double() * q.shape[-1] ** -0.5 + bias
    weights = torch.nan_to_num(torch.softmax(scores.masked_fill(~seen, float("-inf")), -1), nan=0.0)
    return (weights @ v.double()).float()


def with_mods(source, mask, score="s * scale"):
    """Put a mask and a score into the skeleton, where its comment says."""
    assert source.count(MASKED) == 1
    assert source.count(SCORE) == 1
    source = source.replace(MASKED, f"gl.where((key < SKV)[None, :] & ({mask}), s")
    return source.replace(SCORE, f"({score}) * 1.4426950408889634")


@pytest.mark.parametrize(
    "mask",
    [
        "query[:, None] >= key[None, :]",
        "key[None, :] >= 64",  # no row sees a key of the first tile
        "query[:, None] < key[None, :] - 70",  # the last rows see none at all
        "(query[:, None] < 0) & (key[None, :] < 0)",
    ],
    ids=["causal", "first tile masked", "rows without keys", "nothing"],
)
def test_masks_and_scores_go_where_the_skeleton_says(mask):
    _, source = programs(attention_task)
    torch.manual_seed(len(mask))
    q, k, v = torch.randn(1, 2, 130, 64), torch.randn(1, 2, 200, 64), torch.randn(1, 2, 200, 64)
    model = run_program(with_mods(source, mask, "s * scale + (query[:, None] - key[None, :])"))
    query, key = torch.arange(130), torch.arange(200)
    expected = masked_attention(q, k, v, eval(mask), query[:, None] - key[None, :])
    torch.testing.assert_close(model["ModelNew"]()(q, k, v), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('base = gl.where(new_top == float("-inf"), 0.0, new_top)', "base = new_top"),
        ("total = gl.where(total == 0.0, 1.0, total)", "pass"),
    ],
)
def test_without_its_guards_a_row_without_keys_is_no_number(old, new):
    _, source = programs(attention_task)
    assert source.count(old) == 1
    spoilt = with_mods(source.replace(old, new), "query[:, None] < key[None, :] - 70")
    q, k = torch.randn(1, 1, 130, 64), torch.randn(1, 1, 200, 64)
    assert run_program(spoilt)["ModelNew"]()(q, k, k).isnan().any()


@pytest.mark.parametrize(("rows", "columns"), [(8, 64), (7, 50)])
def test_the_model_of_the_skeleton_is_what_it_says(rows, columns):
    _, source = programs(norm_task)
    model = run_program(source)["ModelNew"](columns)
    torch.manual_seed(rows)
    x = torch.randn(rows, columns)
    with torch.no_grad():
        model.weight.copy_(torch.randn(columns))
        expected = (x - x.amax(-1, keepdim=True)) * model.weight
        torch.testing.assert_close(model(x), expected)


@pytest.mark.parametrize("K", [64, 512, 200])
@pytest.mark.parametrize("stages", [1, 3])
def test_the_ring_multiplies(K, stages):
    ring, _ = programs(attention_task)
    kernel = run_program(ring)["matmul_kernel"]
    describe = run_program(ring)["TensorDescriptor"].from_tensor
    torch.manual_seed(K)
    a, b = torch.randn(130, K), torch.randn(140, K)
    c = torch.full((130, 140), float("nan"))
    kernel[(2, 2)](
        describe(a, [128, 64], None), describe(b, [128, 64], None), describe(c, [128, 128], None),
        K, BLOCK_K=64, STAGES=stages,
    )  # fmt: skip
    torch.testing.assert_close(c, a @ b.t(), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("t // STAGES & 1 ^ 1", "t // STAGES & 1"),  # the loader waits for buffers nobody had
        ("mbarrier.arrive(free.index(stage), count=1)", "pass"),  # no buffer is handed back
        ("mbarrier.wait(ready.index(stage), t // STAGES & 1)", "pass"),  # reads before it is full
    ],
)
def test_a_ring_with_a_wrong_barrier_is_caught(old, new, monkeypatch):
    monkeypatch.setattr("gluon_stand_in.WAIT_S", 0.1)
    ring, _ = programs(attention_task)
    assert ring.count(old) == 1
    spoilt = run_program(ring.replace(old, new))
    describe = spoilt["TensorDescriptor"].from_tensor
    a, c = torch.randn(128, 512), torch.zeros(128, 128)
    with contextlib.suppress(AssertionError):  # then c stays as it is
        spoilt["matmul_kernel"][(1, 1)](
            describe(a, [128, 64], None), describe(a, [128, 64], None),
            describe(c, [128, 128], None), 512, BLOCK_K=64, STAGES=3,
        )  # fmt: skip
    assert not torch.allclose(c, a @ a.t(), rtol=1e-3, atol=1e-3)
