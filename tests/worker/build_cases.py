"""Candidates for the compile lane, built one after the other in a process without a GPU.

A program for `test_build_triton.py`: Triton must be imported without its interpreter, and its
driver is replaced. Arguments: a work folder and the names to build (default all). Prints one JSON
object, with the answers and the described inputs by candidate name.
"""

# ruff: noqa: E402  the environment decides how triton is imported

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
FOLDER = Path(sys.argv[1])
os.environ["TRITON_CACHE_DIR"] = str(FOLDER / "cache")

import triton

from hotloop.worker import build_triton

HEAD = """
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor
"""

ADD = """
@triton.jit
def add_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        add_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024, num_warps=8)
        return out
"""

SOFTMAX = """
@triton.jit
def softmax_kernel(out, x, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    values = tl.load(x + row * stride + cols, mask=cols < n, other=-float("inf"))
    e = tl.exp(values - tl.max(values, axis=0))
    tl.store(out + row * stride + cols, e / tl.sum(e, axis=0), mask=cols < n)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        BLOCK = triton.next_power_of_2(x.shape[1])
        compiled = softmax_kernel.warmup(out, x, x.stride(0), x.shape[1], BLOCK=BLOCK, grid=(1,))
        compiled._init_handles()
        assert compiled.n_regs > 0
        sms = torch.cuda.get_device_properties(x.device).multi_processor_count
        assert x.shape[0] > sms and x.is_cuda and torch.cuda.is_available()
        softmax_kernel[(x.shape[0],)](out, x, x.stride(0), x.shape[1], BLOCK=BLOCK)
        return out
"""

MATMUL = """
@triton.jit
def matmul_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    row, col = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        acc = tl.dot(a.load([row, k]), b.load([k, col]), acc)
    c.store([row, col], acc.to(tl.bfloat16))

@triton.jit
def scale_kernel(c, M, N, BM: tl.constexpr, BN: tl.constexpr):
    desc = tl.make_tensor_descriptor(c, shape=[M, N], strides=[N, 1], block_shape=[BM, BN])
    at = [tl.program_id(0) * BM, tl.program_id(1) * BN]
    desc.store(at, (desc.load(at) * 2.0).to(tl.bfloat16))

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device="cuda"))
        c = torch.empty(a.shape[0], b.shape[1], device=a.device, dtype=a.dtype)
        describe = TensorDescriptor.from_tensor
        matmul_kernel[(a.shape[0] // 128, b.shape[1] // 128)](
            describe(a, [128, 64]), describe(b, [64, 128]), describe(c, [128, 128]),
            a.shape[1], 128, 128, 64, num_warps=8, num_stages=3)
        scale_kernel[(c.shape[0] // 64, c.shape[1] // 64)](c, *c.shape, 64, 64)
        return c
"""

TUNED = """
@triton.autotune(
    configs=[triton.Config({"BLOCK": b}, num_warps=w, num_stages=s)
             for b, w, s in [(128, 2, 2), (256, 4, 3), (512, 8, 4), (1024, 8, 4)]],
    key=["n"], reset_to_zero=["out"], do_bench=lambda *a, **k: 1 / 0,
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n if not EVEN else at >= 0
    tl.store(out + at, tl.load(x + at, mask=mask) * 2, mask=mask)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        tuned_kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, out, x.numel())
        return out
"""

ERROR = """
@triton.jit
def helper(x):
    return x + undefined_name

@triton.jit
def broken_kernel(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(x + at, helper(tl.load(x + at)))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        broken_kernel[(1,)](x, BLOCK=64)
        return x
"""

TOO_MUCH = """
@triton.jit
def greedy_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    r, s, t = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=6):
        x = tl.load(a + r[:, None] * K + (k + t)[None, :])
        y = tl.load(b + (k + t)[:, None] * BN + s[None, :])
        acc = tl.dot(x, y, acc)
    tl.store(c + r[:, None] * BN + s[None, :], acc)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(64, 64, device="cuda")
        greedy_kernel[(1,)](a, b, c, a.shape[1], 64, 64, 256, num_warps=4)
        return c
"""

SOME_FIT = TOO_MUCH.replace(
    "@triton.jit",
    """@triton.autotune(configs=[triton.Config({"BK": 256}), triton.Config({"BK": 32})], key=[])
@triton.jit""",
).replace("64, 64, 256, num_warps=4", "64, 64")

PARAMETERS = """
@triton.jit
def bias_kernel(x, bias, out, n, D: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, tl.load(x + at, mask=mask) + tl.load(bias + at % D, mask=mask), mask=mask)

BLOCK = 256

class ModelNew(torch.nn.Module):
    def __init__(self, width, half):
        super().__init__()
        self.linear = torch.nn.Linear(width, width, bias=False)
        self.bias = torch.nn.Parameter(torch.randn(width))
        self.register_buffer("scale", torch.ones(width))
        self.norm = torch.nn.LayerNorm(width)
        if half:
            self.half()

    def prepare(self):
        self.folded = (self.linear.weight.float() * self.scale.float()[:, None]).contiguous()

    def forward(self, x, flag):
        y = torch.nn.functional.linear(x, self.folded.to(x.dtype))[:, :]
        y = self.norm(y).transpose(0, 1).contiguous().transpose(0, 1).reshape(x.shape)
        out = torch.zeros_like(y)
        if flag:
            grid = (triton.cdiv(y.numel(), BLOCK),)
            bias_kernel[grid](y, self.bias, out, y.numel(), y.shape[1], BLOCK)
        return out.to("cuda").cuda()
"""

LOOKS = """
@triton.jit
def copy_kernel(x, out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + tl.arange(0, BLOCK)))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        copy_kernel[(1,)](x, out, 64)
        if x.sum() > 0:
            return out
        return x
"""

ODD = """
@triton.jit
def odd_kernel(x, y, n, m, unused, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at * m, tl.load(x + at, mask=at < n))

class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        odd_kernel[(1,)](x[1:], out, x.numel() - 1, 1, None, 64)
        odd_kernel[(1,)](x, out, 64, 1, None, 64)
        odd_kernel[(1,)](x, out, 64, 3, None, 64)
        return out
"""

ASSERTS = """
@triton.jit
def assert_kernel(x, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 32, "BLOCK must be 32")
    tl.store(x + tl.arange(0, BLOCK), 0.0)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        assert_kernel[(1,)](x, BLOCK=64)
        return x
"""

BAD_ASM = """
@triton.jit
def asm_kernel(x, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise("no.such.instruction $0, $1;", "=f,f", [tl.load(x + at)],
                                      dtype=tl.float32, is_pure=True, pack=1)
    tl.store(x + at, value)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        asm_kernel[(1,)](x, BLOCK=64)
        return x
"""

SPILLS = """
@triton.jit
def spill_kernel(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    r, s, t = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(a + r[:, None] * K + (k + t)[None, :])
        acc += tl.sum(x, axis=1)[:, None] * tl.load(b + s)[None, :]
    tl.store(c + r[:, None] * BN + s[None, :], acc)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty(128, 128, device=a.device)
        spill_kernel[(1,)](a, b, c, a.shape[1], 32, 64, 16, num_warps=1, maxnreg=32)
        return c
"""


def tensor(*shape: int, dtype: str = "float32", **more: Any) -> dict[str, Any]:
    return {"slot": {"shape": list(shape), "dtype": dtype, **more}}


VECTOR = tensor(1000)
TILES = [tensor(64, 512, dtype="float16"), tensor(512, 64, dtype="float16")]
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "add": (ADD, {"inputs": [VECTOR, VECTOR]}),
    "softmax": (SOFTMAX, {"inputs": [tensor(4096, 781)]}),
    "matmul": (
        MATMUL,
        {"inputs": [tensor(512, 256, dtype="bfloat16"), tensor(256, 384, dtype="bfloat16")]},
    ),
    "tuned": (TUNED, {"inputs": [VECTOR], "max_configs": 3}),
    "error": (ERROR, {"inputs": [VECTOR]}),
    "too_much": (TOO_MUCH, {"inputs": TILES}),
    "some_fit": (SOME_FIT, {"inputs": TILES}),
    "parameters": (
        PARAMETERS,
        {
            "inputs": [tensor(32, 64, dtype="float16"), {"value": {"value": True}}],
            "init_args": [64, True],
            "pins": {"BLOCK": 512},
            "state": {
                "linear.weight": {"shape": [64, 64], "dtype": "float16"},
                "bias": {"shape": [64], "dtype": "float16", "offset": 8},
            },
        },
    ),
    "wrong_parameter": (
        PARAMETERS,
        {"init_args": [64, True], "state": {"bias": {"shape": [65], "dtype": "float16"}}},
    ),
    "looks": (LOOKS, {"inputs": [tensor(64)]}),
    "odd": (ODD, {"inputs": [tensor(65)]}),
    "asserts": (ASSERTS, {"inputs": [VECTOR]}),
    "bad_asm": (BAD_ASM, {"inputs": [VECTOR]}),
    "spills": (SPILLS, {"inputs": [tensor(128, 64), tensor(128)]}),
    "no_model": ("x = 1\n", {}),
}


def build_case(name: str) -> dict[str, Any]:
    source, request = CASES[name]
    path = FOLDER / name / "kernel.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + source)
    defaults: dict[str, Any] = {"pins": {}, "init_args": [], "inputs": [], "state": {}}
    try:
        return build_triton.build(path, **{**defaults, **request})
    except build_triton.ContractError as error:
        return {"contract": str(error)}


def main() -> None:
    answers = {name: build_case(name) for name in sys.argv[2:] or CASES}
    inputs = {name: CASES[name][1].get("inputs", []) for name in answers}
    print(json.dumps({"triton": triton.__version__, "answers": answers, "inputs": inputs}))


if __name__ == "__main__":
    main()
