"""Kernels run in Triton's interpreter and compared with torch.

A program, not a test module: the interpreter must be chosen before triton is imported, so
`test_interpreter.py` runs this file in a process of its own and reads one JSON object, case name to
error text or null, from its standard output.
"""

# ruff: noqa: E402  the environment decides how triton is imported

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.math import exp2 as exp2_by_name
from triton.tools.tensor_descriptor import TensorDescriptor

from hotloop.worker import interpreter

interpreter.install()
interpreter.install()  # a second call must change nothing

CASES: dict[str, Callable[[], None]] = {}


def case(function: Callable[[], None]) -> Callable[[], None]:
    CASES[function.__name__] = function
    return function


def each(**options: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Register one case per value of the only option."""
    ((name, values),) = options.items()

    def register(function: Callable[..., None]) -> Callable[..., None]:
        for value in values:
            label = str(value).removeprefix("torch.").replace(" ", "")
            CASES[f"{function.__name__}[{label}]"] = lambda value=value: function(**{name: value})
        return function

    return register


def same(got: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def refuses(error: type[BaseException], text: str, run: Callable[[], object]) -> None:
    try:
        run()
    except Exception as raised:  # noqa: BLE001  the type is what is checked
        cause = interpreter.cause_of(raised)
        assert isinstance(cause, error), f"expected {error.__name__}, got {cause!r}"
        assert text in str(cause), f"expected {text!r} in {cause}"
        return
    raise AssertionError(f"expected {error.__name__} with {text!r}, nothing was raised")


FLOATS = [torch.float32, torch.float16, torch.bfloat16]


# --- matrix products ---


@triton.jit
def dot_kernel(a, b, c, K, M: tl.constexpr, N: tl.constexpr, BK: tl.constexpr, P: tl.constexpr):
    rows, cols, ks = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BK)
    acc = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, K, BK):
        inside = k + ks < K
        x = tl.load(a + rows[:, None] * K + (k + ks)[None, :], mask=inside[None, :], other=0.0)
        y = tl.load(b + (k + ks)[:, None] * N + cols[None, :], mask=inside[:, None], other=0.0)
        acc = tl.dot(x, y, acc, input_precision=P)
    tl.store(c + rows[:, None] * N + cols[None, :], acc.to(c.dtype.element_ty))


def run_dot(dtype: torch.dtype, M: int, N: int, K: int, precision: str) -> tuple[Any, Any]:
    generator = torch.Generator().manual_seed(M * N + K)
    a = torch.randn(M, K, generator=generator).to(dtype)
    b = torch.randn(K, N, generator=generator).to(dtype)
    c = torch.full((M, N), float("nan"), dtype=torch.float32)
    dot_kernel[(1,)](a, b, c, K, M, N, 32, precision, num_warps=4, num_stages=2)
    return c.double(), a.double() @ b.double()


@each(shape=[(16, 16, 32), (64, 32, 96), (128, 64, 50), (16, 128, 256)])
def dot_is_exact_to_fp32_accumulation(shape: tuple[int, int, int]) -> None:
    for dtype in FLOATS:
        got, expected = run_dot(dtype, *shape, "ieee")
        assert (got - expected).abs().max() < 1e-4, f"{dtype}: {(got - expected).abs().max()}"


@case
def dot_tf32_loses_what_tf32_loses() -> None:
    tf32, expected = run_dot(torch.float32, 64, 64, 256, "tf32")
    ieee, _ = run_dot(torch.float32, 64, 64, 256, "ieee")
    three, _ = run_dot(torch.float32, 64, 64, 256, "tf32x3")
    rms = expected.square().mean().sqrt()
    relative = (tf32 - expected).square().mean().sqrt() / rms
    assert 1e-4 < relative < 1e-3, relative  # 2^-11 a factor, two factors, random signs
    for exact in (ieee, three):
        assert (exact - expected).square().mean().sqrt() / rms < 1e-6


@case
def dot_refuses_what_sm90_refuses() -> None:
    refuses(AssertionError, "K >= 16", lambda: run_dot_narrow())


@triton.jit
def narrow_kernel(a, c):
    r = tl.arange(0, 16)
    k = tl.arange(0, 8)
    x = tl.load(a + r[:, None] * 8 + k[None, :])
    y = tl.load(a + k[:, None] * 16 + r[None, :])
    tl.store(c + r[:, None] * 16 + r[None, :], tl.dot(x, y))


def run_dot_narrow() -> None:
    narrow_kernel[(1,)](torch.ones(16, 8, dtype=torch.float16), torch.empty(16, 16))


@triton.jit
def batched_dot_kernel(a, b, c, S: tl.constexpr):
    i = tl.arange(0, 2)[:, None, None] * S * S
    offsets = i + tl.arange(0, S)[None, :, None] * S + tl.arange(0, S)[None, None, :]
    out = tl.dot(tl.load(a + offsets), tl.trans(tl.load(b + offsets), 0, 2, 1))
    tl.store(c + offsets, out.to(tl.bfloat16))


@case
def dot_batched_transposed_bf16() -> None:
    a, b = torch.randn(2, 2, 32, 32).to(torch.bfloat16)
    c = torch.empty_like(a)
    batched_dot_kernel[(1,)](a, b, c, 32)
    same(c, (a.float() @ b.float().mT).to(torch.bfloat16))


@triton.jit
def fp8_dot_kernel(a, b, c, S: tl.constexpr):
    r = tl.arange(0, S)
    at = r[:, None] * S + r[None, :]
    tl.store(c + at, tl.dot(tl.load(a + at), tl.load(b + at)))


@each(dtype=[torch.float8_e4m3fn, torch.float8_e5m2])
def dot_fp8(dtype: torch.dtype) -> None:
    a, b = torch.randn(2, 32, 32).to(dtype)
    c = torch.empty(32, 32)
    fp8_dot_kernel[(1,)](a, b, c, 32)
    torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-6, atol=1e-5)


# --- elementwise ---


@triton.jit
def arithmetic_kernel(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    a = tl.load(x + at, mask=inside)
    b = tl.load(y + at, mask=inside, other=1.0)
    tl.store(out + 0 * n + at, a + b, mask=inside)
    tl.store(out + 1 * n + at, a - b, mask=inside)
    tl.store(out + 2 * n + at, a * b, mask=inside)
    tl.store(out + 3 * n + at, a / b, mask=inside)
    tl.store(out + 4 * n + at, tl.maximum(a, b), mask=inside)
    tl.store(out + 5 * n + at, tl.where(a > b, a, -b), mask=inside)
    tl.store(out + 6 * n + at, tl.abs(a), mask=inside)
    tl.store(out + 7 * n + at, (a > b).to(x.dtype.element_ty), mask=inside)
    tl.store(out + 8 * n + at, tl.exp(a.to(tl.float32)).to(x.dtype.element_ty), mask=inside)


@each(dtype=FLOATS)
def elementwise(dtype: torch.dtype) -> None:
    n = 300  # no multiple of the block: the mask matters
    x, y = torch.randn(2, n).to(dtype)
    out = torch.full((9, n), -7.0, dtype=dtype)
    arithmetic_kernel[(triton.cdiv(n, 128),)](x, y, out, n, BLOCK=128)
    a, b = x.float(), y.float()
    exact = [a + b, a - b, a * b, a / b, torch.maximum(a, b), torch.where(a > b, a, -b), a.abs()]
    for row, expected in zip(out, [*exact, (a > b).float()], strict=False):
        same(row, expected.to(dtype))
    torch.testing.assert_close(out[8], a.exp().to(dtype))


@triton.jit
def scaled_kernel(x, out, scale, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) * scale)


@case
def float_argument_promotes_a_16_bit_block_to_fp32() -> None:
    x = torch.randn(64).to(torch.bfloat16)
    out = torch.empty(64)
    scaled_kernel[(1,)](x, out, 0.1, BLOCK=64)
    same(out, x.float() * torch.tensor(0.1))


@triton.jit
def nan_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, tl.maximum(a, b))
    tl.store(out + BLOCK + at, tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL))
    tl.store(out + 2 * BLOCK + at, tl.clamp(a, -1.0, 1.0))
    tl.store(out + 3 * BLOCK + at, tl.max(a, axis=0) + 0 * at)


@case
def nan_is_ignored_unless_propagated() -> None:
    x = torch.tensor([float("nan"), 2.0, float("nan"), -3.0])
    y = torch.tensor([1.0, float("nan"), float("nan"), 0.5])
    out = torch.empty(4, 4)
    nan_kernel[(1,)](x, y, out, BLOCK=4)
    same(out[0], torch.fmax(x, y))
    same(out[1], torch.maximum(x, y))
    same(out[2], torch.tensor([-1.0, 1.0, -1.0, -1.0]))
    same(out[3], torch.full((4,), 2.0))


@triton.jit
def integer_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, a // b)
    tl.store(out + BLOCK + at, a % b)
    tl.store(out + 2 * BLOCK + at, a * b)
    tl.store(out + 3 * BLOCK + at, a >> 3)
    tl.store(out + 4 * BLOCK + at, (a ^ b) & 0xFF)


@case
def integers_are_those_of_c() -> None:
    x = torch.tensor([7, -7, 2**31 - 1, -12345], dtype=torch.int32)
    y = torch.tensor([2, 2, 3, -77], dtype=torch.int32)
    out = torch.empty(5, 4, dtype=torch.int32)
    integer_kernel[(1,)](x, y, out, BLOCK=4)
    same(out[0], torch.div(x, y, rounding_mode="trunc"))
    same(out[1], torch.fmod(x, y))
    same(out[2], x * y)
    same(out[3], x >> 3)
    same(out[4], (x ^ y) & 0xFF)


@triton.jit
def logic_kernel(x, y, out, FLAG: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, (a > 0 and b > 0).to(tl.int32))
    either = a > 0 or (b > 0 and FLAG)
    tl.store(out + BLOCK + at, either.to(tl.int32))
    tl.store(out + 2 * BLOCK + at, (not a > 0).to(tl.int32))
    if tl.sum(a) > 1e9 or not FLAG:
        tl.store(out + at, 7)


@case
def logical_operators_work_element_by_element() -> None:
    x, y = torch.randn(2, 64)
    out = torch.empty(3, 64, dtype=torch.int32)
    logic_kernel[(1,)](x, y, out, True, BLOCK=64)
    same(out[0], ((x > 0) & (y > 0)).int())
    same(out[1], ((x > 0) | (y > 0)).int())
    same(out[2], (x <= 0).int())
    logic_kernel[(1,)](x, y, out, False, BLOCK=64)
    same(out[0], torch.full((64,), 7, dtype=torch.int32))
    same(out[1], (x > 0).int())


@triton.jit
def branch_on_block_kernel(x, BLOCK: tl.constexpr):
    if tl.load(x + tl.arange(0, BLOCK)) > 0:
        tl.store(x, 1.0)


@case
def a_branch_on_a_block_is_an_error() -> None:
    refuses(
        ValueError,
        "scalar condition",
        lambda: branch_on_block_kernel[(1,)](torch.zeros(4), BLOCK=4),
    )


# --- casts ---


@triton.jit
def cast_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(out.dtype.element_ty))


def cast(x: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    out = torch.empty(x.shape, dtype=dtype)
    cast_kernel[(1,)](x, out, BLOCK=x.numel())
    return out


AWKWARD = torch.tensor(
    [0.0, -0.0, 1.0, 1.00390625, 1.01171875, -1.00390625, 3.3895314e38, 1e-40, 6.1e-5, 65519.0]
    + [65520.0, float("inf"), float("-inf"), float("nan"), 1.0 + 2**-9, 1.0 + 3 * 2**-9]
)


@each(dtype=[torch.bfloat16, torch.float16])
def casts_round_to_nearest_even(dtype: torch.dtype) -> None:
    x = torch.cat([AWKWARD, torch.randn(4096 - AWKWARD.numel()) * 100])
    same(cast(x, dtype), x.to(dtype))
    same(cast(x.to(dtype), torch.float32), x.to(dtype).float())


@case
def cast_from_float64_rounds_once() -> None:
    # Rounded to float32 first, this value becomes a tie and then goes to 1.0.
    x = torch.tensor([1.0 + 2**-8 + 2**-40, 1.0 + 2**-8 - 2**-40], dtype=torch.float64)
    same(cast(x, torch.bfloat16), torch.tensor([1.0078125, 1.0], dtype=torch.bfloat16))


@each(dtype=[torch.int8, torch.int32, torch.int64, torch.uint8, torch.bool])
def casts_with_integers(dtype: torch.dtype) -> None:
    whole = torch.arange(-60, 68).clamp(min=0 if dtype == torch.uint8 else -60).to(dtype)
    for floating in FLOATS:
        same(cast(whole, floating), whole.to(floating))
        same(cast(whole.to(floating), dtype), whole.to(floating).to(dtype))


@case
def float_to_int_truncates_and_saturates() -> None:
    x = torch.tensor([2.9, -2.9, 3e9, -3e9, float("nan"), 1e20, 2147483520.0, 0.0])
    expected = [2, -2, 2**31 - 1, -(2**31), 0, 2**31 - 1, 2147483520, 0]
    same(cast(x, torch.int32), torch.tensor(expected, dtype=torch.int32))


@each(dtype=[torch.float8_e4m3fn, torch.float8_e5m2])
def casts_to_fp8_saturate(dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    x = torch.cat([torch.randn(254) * 10, torch.tensor([1e30, -1e30])])
    expected = x.clamp(-largest, largest).to(dtype)
    same(cast(x, dtype).view(torch.uint8), expected.view(torch.uint8))
    same(cast(expected, torch.bfloat16), expected.to(torch.bfloat16))


@triton.jit
def toward_zero_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(tl.bfloat16, fp_downcast_rounding="rtz"))


@case
def cast_toward_zero_on_request() -> None:
    x = torch.tensor([1.0 + 2**-7 * 0.9, -1.0 - 2**-7 * 0.9])
    out = torch.empty(2, dtype=torch.bfloat16)
    toward_zero_kernel[(1,)](x, out, BLOCK=2)
    same(out, torch.tensor([1.0, -1.0], dtype=torch.bfloat16))


# --- reductions and scans ---


@triton.jit
def reduce_kernel(x, out, which, R: tl.constexpr, C: tl.constexpr):
    r = tl.arange(0, R)
    block = tl.load(x + r[:, None] * C + tl.arange(0, C)[None, :])
    tl.store(out + r, tl.sum(block, axis=1))
    tl.store(out + R + r, tl.max(block, axis=1))
    tl.store(out + 2 * R + r, tl.min(block, axis=1))
    tl.store(which + r, tl.argmax(block, axis=1))
    tl.store(which + R + r, tl.argmin(block, axis=1))
    tl.store(
        out + 3 * R + r,
        tl.max(tl.max(block, axis=0, keep_dims=True)) + tl.zeros((R,), x.dtype.element_ty),
    )


@each(dtype=[*FLOATS, torch.int32])
def reductions(dtype: torch.dtype) -> None:
    x = (torch.randn(16, 64) * 8).round().to(dtype)  # whole numbers: any order gives the same sum
    x[:, 40] = x[:, 3]  # ties: the first index wins
    out, which = torch.empty(4, 16, dtype=dtype), torch.empty(2, 16, dtype=torch.int32)
    reduce_kernel[(1,)](x, out, which, 16, 64)
    wide = x.double()
    same(out[0], wide.sum(1).to(dtype))
    same(out[1], x.amax(1))
    same(out[2], x.amin(1))
    for row, extreme in zip(which, (wide.amax(1, True), wide.amin(1, True)), strict=True):
        first = torch.where(wide == extreme, torch.arange(64), 64).amin(1)
        same(row, first.int())
    same(out[3], x.max().expand(16))


@triton.jit
def combine_welford(mean_a, m2_a, n_a, mean_b, m2_b, n_b):
    n = n_a + n_b
    delta = mean_b - mean_a
    return mean_a + delta * n_b / n, m2_a + m2_b + delta * delta * n_a * n_b / n, n


@triton.jit
def welford_kernel(x, out, C: tl.constexpr):
    values = tl.load(x + tl.arange(0, C))
    mean, m2, n = tl.reduce(
        (values, tl.zeros_like(values), tl.full((C,), 1.0, tl.float32)), 0, combine_welford
    )
    tl.store(out, mean)
    tl.store(out + 1, m2 / n)


@case
def reduction_by_a_combine_function_of_three_values() -> None:
    x = torch.randn(512) + 3
    out = torch.empty(2)
    welford_kernel[(1,)](x, out, 512)
    torch.testing.assert_close(out, torch.stack([x.mean(), x.var(unbiased=False)]))


@triton.jit
def scan_kernel(x, out, R: tl.constexpr, C: tl.constexpr):
    at = tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :]
    block = tl.load(x + at)
    tl.store(out + at, tl.cumsum(block, axis=1))
    tl.store(out + R * C + at, tl.cumsum(block, axis=0, reverse=True))
    tl.store(out + 2 * R * C + at, tl.associative_scan(block, 1, combine_max))


@triton.jit
def combine_max(a, b):
    return tl.maximum(a, b)


@each(dtype=[*FLOATS, torch.int32])
def scans(dtype: torch.dtype) -> None:
    x = torch.randint(-3, 4, (8, 16)).to(dtype)
    out = torch.empty(3, 8, 16, dtype=dtype)
    scan_kernel[(1,)](x, out, 8, 16)
    same(out[0], x.double().cumsum(1).to(dtype))
    same(out[1], x.double().flip(0).cumsum(0).flip(0).to(dtype))
    same(out[2], x.cummax(1).values)


@triton.jit
def sort_kernel(x, out, C: tl.constexpr):
    at = tl.arange(0, C)
    tl.store(out + at, tl.sort(tl.load(x + at)))


@each(dtype=[torch.float32, torch.bfloat16, torch.int32])
def sort(dtype: torch.dtype) -> None:
    x = (torch.randn(64) * 50).to(dtype)
    out = torch.empty_like(x)
    sort_kernel[(1,)](x, out, 64)
    same(out, x.sort().values)


# --- atomics ---


@triton.jit
def atomic_kernel(at, x, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(
        out + tl.load(at + i, mask=i < n, other=0), tl.load(x + i, mask=i < n), mask=i < n
    )


@each(dtype=[*FLOATS, torch.int32])
def atomic_add_counts_every_collision(dtype: torch.dtype) -> None:
    n = 100
    at = torch.randint(0, 5, (n,), dtype=torch.int32)
    x = torch.randint(1, 4, (n,)).to(dtype)
    out = torch.zeros(5, dtype=dtype)
    atomic_kernel[(4,)](at, x, out, n, BLOCK=32)
    same(out, torch.zeros(5, dtype=torch.float64).index_add(0, at, x.double()).to(dtype))


@triton.jit
def atomic_max_kernel(x, out, BLOCK: tl.constexpr):
    tl.atomic_max(out + tl.zeros((BLOCK,), tl.int32), tl.load(x + tl.arange(0, BLOCK)))


@case
def atomic_max_of_floats() -> None:
    x = torch.randn(64)
    out = torch.full((1,), float("-inf"))
    atomic_max_kernel[(1,)](x, out, BLOCK=64)
    same(out, x.max()[None])


# --- tensor descriptors ---


@triton.jit
def copy_by_host_descriptor(source, target, R: tl.constexpr, C: tl.constexpr):
    row, col = tl.program_id(0) * R, tl.program_id(1) * C
    target.store([row, col], source.load([row, col]) * 2)


@each(dtype=FLOATS)
def host_descriptor(dtype: torch.dtype) -> None:
    x = torch.randn(40, 56).to(dtype)  # no multiple of the block: the border is padded and dropped
    out = torch.zeros_like(x)
    copy_by_host_descriptor[(3, 2)](
        TensorDescriptor.from_tensor(x, [16, 32]),
        TensorDescriptor.from_tensor(out, [16, 32]),
        16,
        32,
    )
    same(out, x * 2)


@triton.jit
def copy_by_device_descriptor(x, out, M, N, R: tl.constexpr, C: tl.constexpr):
    source = tl.make_tensor_descriptor(x, shape=[M, N], strides=[N, 1], block_shape=[R, C])
    target = tl.make_tensor_descriptor(out, shape=[M, N], strides=[N, 1], block_shape=[R, C])
    for row in range(0, M, R):
        tile = source.load([row, tl.program_id(0) * C])
        target.store([row, tl.program_id(0) * C], tile)
        target.atomic_add([row, tl.program_id(0) * C], tile)


@each(dtype=FLOATS)
def device_descriptor(dtype: torch.dtype) -> None:
    x = torch.randn(40, 48).to(dtype)
    out = torch.zeros_like(x)
    triton.set_allocator(lambda size, align, stream: torch.empty(size, dtype=torch.int8))
    copy_by_device_descriptor[(3,)](x, out, 40, 48, 16, 16)
    same(out, x + x)


@triton.jit
def nan_border_kernel(x, out, C: tl.constexpr):
    at = tl.arange(0, C)
    tl.store(out + at, tl.sum(x.load([0, 0]).to(tl.float32), axis=0) + 0.0 * at)


@case
def descriptor_pads_with_nan_on_request() -> None:
    out = torch.empty(32)
    x = torch.ones(4, 16, dtype=torch.bfloat16)
    nan_border_kernel[(1,)](TensorDescriptor.from_tensor(x, [4, 32], padding="nan"), out, 32)
    same(out, torch.tensor([4.0] * 16 + [float("nan")] * 16))


# --- libdevice and inline assembly ---


@triton.jit
def libdevice_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + 0 * BLOCK + at, libdevice.tanh(a))
    tl.store(out + 1 * BLOCK + at, libdevice.erf(a))
    tl.store(out + 2 * BLOCK + at, cuda_libdevice.log1p(b))
    tl.store(out + 3 * BLOCK + at, tl.extra.cuda.libdevice.pow(b, a))
    tl.store(out + 4 * BLOCK + at, libdevice.rsqrt(b))
    tl.store(out + 5 * BLOCK + at, libdevice.round(a))
    tl.store(out + 6 * BLOCK + at, libdevice.rint(a))
    tl.store(out + 7 * BLOCK + at, libdevice.expm1(a))
    tl.store(out + 8 * BLOCK + at, libdevice.atan2(a, b))
    tl.store(out + 9 * BLOCK + at, libdevice.fma(a, b, a))
    tl.store(out + 10 * BLOCK + at, libdevice.isnan(a).to(tl.float32))
    tl.store(out + 11 * BLOCK + at, exp2_by_name(a))


@case
def libdevice_agrees_with_torch() -> None:
    x = torch.cat([torch.randn(60) * 2, torch.tensor([0.5, -1.5, 2.5, float("nan")])])
    y = torch.rand(64) + 0.1
    out = torch.empty(12, 64)
    libdevice_kernel[(1,)](x, y, out, BLOCK=64)
    half_away = torch.copysign((x.abs() + 0.5).floor(), x)
    expected = [x.tanh(), x.erf(), y.log1p(), y.pow(x), y.rsqrt(), half_away, x.round(), x.expm1()]
    expected += [torch.atan2(x, y), x * y + x, x.isnan().float(), x.exp2()]
    for row, reference in zip(out, expected, strict=True):
        torch.testing.assert_close(row, reference, rtol=3e-7, atol=1e-7, equal_nan=True)


@triton.jit
def unknown_libdevice_kernel(x):
    tl.store(
        x,
        libdevice.sad(
            tl.full((), 1, tl.int32), tl.full((), 1, tl.int32), tl.full((), 1, tl.uint32)
        ),
    )


@case
def unknown_libdevice_is_named() -> None:
    refuses(
        interpreter.UnsupportedInInterpreterError,
        "__nv_sad",
        lambda: unknown_libdevice_kernel[(1,)](torch.zeros(1, dtype=torch.int32)),
    )


@triton.jit
def asm_kernel(x, out, ASM: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.inline_asm_elementwise(
        ASM, "=f,f", [tl.load(x + at)], dtype=tl.float32, is_pure=True, pack=1
    )
    tl.store(out + at, value)


@case
def known_inline_assembly() -> None:
    x = torch.randn(128) * 3
    out = torch.empty(128)
    asm_kernel[(1,)](x, out, "ex2.approx.f32 $0, $1;", BLOCK=128)
    torch.testing.assert_close(out, x.exp2(), rtol=2e-7, atol=0)
    asm_kernel[(1,)](x, out, "  tanh.approx.f32  $0, $1;", BLOCK=128)
    error = ((out.double() - x.double().tanh()) / x.double().tanh()).abs()
    assert error.max() <= 2**-11, error.max()
    assert error.max() > 2**-14, "the approximation must show that it is one"
    edge = torch.tensor([1 + 2**-11, -1 - 2**-11, 1 + 2**-12, 3.0, float("inf"), 2**-130, 0.0])
    x[: len(edge)] = edge
    asm_kernel[(1,)](x, out, "cvt.rna.tf32.f32 $0, $1;", BLOCK=128)
    want = torch.tensor([1 + 2**-10, -1 - 2**-10, 1.0, 3.0, float("inf"), 2**-130, 0.0])
    assert out[: len(edge)].equal(want), "to nearest, ties away from zero"
    assert bool(((out - x).abs() <= 2**-11 * x.abs())[len(edge) :].all())


@case
def other_inline_assembly_is_named() -> None:
    refuses(
        interpreter.UnsupportedInInterpreterError,
        "lg2.approx.f32",
        lambda: asm_kernel[(1,)](torch.zeros(4), torch.zeros(4), "lg2.approx.f32 $0, $1;", BLOCK=4),
    )


# --- the machinery around kernels ---


CALLS: list[int] = []


def counting_grid(meta: dict[str, Any]) -> tuple[int]:
    CALLS.append(meta["BLOCK"])
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 32}, num_warps=2), triton.Config({"BLOCK": 64}, num_stages=4)],
    key=["n"],
    reset_to_zero=["out"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned_kernel(x, out, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = (at < n) | EVEN
    tl.atomic_add(out + at, tl.load(x + at, mask=mask), mask=mask)


@case
def autotune_and_heuristics_run_once_without_a_clock() -> None:
    CALLS.clear()
    x, out = torch.randn(100), torch.zeros(100)
    tuned_kernel[counting_grid](x, out, 100)
    same(out, x)
    assert CALLS == [32], CALLS


@case
def autotune_can_run_every_configuration() -> None:
    CALLS.clear()
    interpreter.install(autotune="all")
    try:
        x, out = torch.randn(96), torch.zeros(96)
        tuned_kernel[counting_grid](x, out, 96)
    finally:
        interpreter.install(autotune="first")
    same(out, x)
    assert CALLS == [32, 64, 32], CALLS


@case
def unknown_keyword_is_an_error() -> None:
    refuses(
        KeyError,
        "num_wraps",
        lambda: scaled_kernel[(1,)](torch.zeros(4), torch.zeros(4), 1.0, BLOCK=4, num_wraps=4),
    )


@triton.jit
def unmasked_kernel(x, out, at, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK), tl.load(x + at + tl.arange(0, BLOCK)))


@case
def accesses_outside_the_arguments_are_refused() -> None:
    x, out = torch.randn(60), torch.zeros(64)
    refuses(
        interpreter.OutOfBoundsError,
        "240 bytes from the start of the memory of argument 'x', which has 240 bytes",
        lambda: unmasked_kernel[(1,)](x, out, 0, BLOCK=64),
    )
    refuses(
        interpreter.OutOfBoundsError,
        "4 bytes before the start",
        lambda: unmasked_kernel[(1,)](x, out, -1, BLOCK=32),
    )
    refuses(
        interpreter.OutOfBoundsError,
        "store out of bounds",
        lambda: unmasked_kernel[(1,)](x, out[:16].clone(), 0, BLOCK=32),
    )
    unmasked_kernel[(1,)](x[2:], out, -2, BLOCK=32)  # inside the storage: a view may be left
    same(out[:32], x[:32])


@triton.jit
def pointer_table_kernel(table, out, BLOCK: tl.constexpr):
    source = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    at = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + at, tl.load(source + at))


@case
def pointers_made_from_integers_are_followed() -> None:
    parts = [torch.randn(32), torch.randn(32)]
    table = torch.tensor([part.data_ptr() for part in parts])
    out = torch.zeros(64)
    pointer_table_kernel[(2,)](table, out, BLOCK=32)
    same(out, torch.cat(parts))


@triton.jit
def forgetful_kernel(out):
    tl.store(out, math.pi)  # noqa: F821  the import is missing on purpose


@case
def a_missing_import_stays_missing() -> None:
    refuses(NameError, "math", lambda: forgetful_kernel[(1,)](torch.zeros(1)))


def make_kernel(factor: int) -> Any:
    FACTOR = tl.constexpr(factor)

    @triton.jit
    def closure_kernel(out):
        tl.store(out, FACTOR * 2)

    return closure_kernel


@case
def a_kernel_may_capture_a_constant() -> None:
    out = torch.zeros(1, dtype=torch.int32)
    make_kernel(21)[(1,)](out)
    same(out, torch.tensor([42], dtype=torch.int32))


@case
def host_code_sees_an_sm90_device() -> None:
    driver = triton.runtime.driver.active
    assert driver.get_active_torch_device() == torch.device("cpu")
    assert driver.get_current_target().arch == 90
    assert driver.utils.get_device_properties(0)["multiprocessor_count"] == 132
    if not torch.cuda.is_available():
        assert torch.cuda.get_device_properties(0).multi_processor_count == 132


@case
def code_that_names_its_device_runs() -> None:
    if torch.cuda.is_available():
        return
    linear = torch.nn.Linear(4, 4, device="cuda").to("cuda:0").cuda()
    x = torch.ones(4, device="cuda", dtype=torch.float32)
    assert x.is_cuda
    out = torch.empty_like(linear(x), device=torch.device("cuda"))
    with torch.cuda.device(x.device):
        scaled_kernel[(1,)](x.cuda(), out, 2.0, BLOCK=4)
    torch.cuda.synchronize()
    same(out, torch.full((4,), 2.0))
    assert out.device.type == "cpu"


@case
def gluon_is_refused_by_name() -> None:
    from triton.experimental import gluon

    @gluon.jit
    def warp_specialised(x):
        pass

    refuses(
        interpreter.UnsupportedInInterpreterError,
        "Gluon kernel warp_specialised",
        lambda: warp_specialised[(1,)](torch.zeros(1)),
    )


@triton.jit
def attention_kernel(q, k, v, o, S, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows, d = tl.program_id(0) * BM + tl.arange(0, BM), tl.arange(0, D)
    query = tl.load(q + rows[:, None] * D + d[None, :])
    top, total = tl.full((BM,), float("-inf"), tl.float32), tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in tl.range(0, S, BN, num_stages=2):
        cols = start + tl.arange(0, BN)
        keys = tl.load(k + cols[:, None] * D + d[None, :])
        scores = tl.dot(query, keys.T) * scale
        scores = tl.where(rows[:, None] >= cols[None, :], scores, float("-inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        p = tl.math.exp2(scores - new_top[:, None])
        correction = tl.math.exp2(top - new_top)
        total = total * correction + tl.sum(p, axis=1)
        values = tl.load(v + cols[:, None] * D + d[None, :])
        acc = tl.dot(p.to(values.dtype), values, acc * correction[:, None])
        top = new_top
    tl.store(o + rows[:, None] * D + d[None, :], (acc / total[:, None]).to(o.dtype.element_ty))


@case
def attention_in_bf16() -> None:
    S, D = 128, 32
    q, k, v = torch.randn(3, S, D).to(torch.bfloat16)
    out = torch.empty_like(q)
    attention_kernel[(S // 32,)](q, k, v, out, S, D**-0.5 * 1.4426950408889634, D, 32, 32)
    expected = torch.nn.functional.scaled_dot_product_attention(
        q.double()[None], k.double()[None], v.double()[None], is_causal=True
    )[0]
    error = (out.double() - expected).square().mean().sqrt() / expected.square().mean().sqrt()
    assert error < 4e-3, error


def main() -> None:
    torch.manual_seed(0)
    torch.set_num_threads(1)
    chosen = sys.argv[1:] or list(CASES)
    results: dict[str, str | None] = {}
    for name in chosen:
        try:
            CASES[name]()
            results[name] = None
        except Exception:  # noqa: BLE001  the report carries it
            results[name] = traceback.format_exc()
    print(json.dumps({"triton": triton.__version__, "results": results}))


if __name__ == "__main__":
    main()
