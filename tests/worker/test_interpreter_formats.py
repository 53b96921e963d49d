"""bfloat16, fp8 and TF32 in numpy against torch and against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from hotloop.worker.interpreter_formats import (
    BF16,
    decode,
    encode,
    round_to_tf32,
    split_bf16,
    to_float16,
)

ALL_BF16 = np.arange(1 << 16, dtype=np.uint16)


def random_float32(count: int) -> np.ndarray:
    bits = np.random.default_rng(0).integers(0, 1 << 32, count, dtype=np.uint64)
    return bits.astype(np.uint32).view(np.float32)


def test_every_bfloat16_is_decoded() -> None:
    expected = torch.from_numpy(ALL_BF16.copy()).view(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(decode(ALL_BF16, BF16), expected)


def test_encoding_rounds_as_torch_does() -> None:
    values = random_float32(100_000)
    expected = torch.from_numpy(values).to(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(decode(encode(values, BF16), BF16), expected)


def test_what_is_a_bfloat16_stays() -> None:
    numbers = ALL_BF16[~np.isnan(decode(ALL_BF16, BF16))]
    np.testing.assert_array_equal(encode(decode(numbers, BF16), BF16), numbers)


@given(st.floats(1.0, 2.0), st.integers(-100, 100))
def test_float64_is_rounded_once(mantissa: float, exponent: int) -> None:
    value = np.ldexp(mantissa, exponent)
    bits = encode(np.array([value]), BF16)
    around = decode(np.array([bits[0] - 1, bits[0], bits[0] + 1], dtype=np.uint16), BF16)
    below, got, above = (abs(Fraction(float(x)) - Fraction(float(value))) for x in around)
    assert got <= min(below, above)
    if got in (below, above):
        assert bits[0] % 2 == 0  # a tie goes to even


@pytest.mark.parametrize(
    ("name", "dtype"), [("fp8e4nv", torch.float8_e4m3fn), ("fp8e5", torch.float8_e5m2)]
)
def test_fp8_saturates_and_truncates_on_request(name: str, dtype: torch.dtype) -> None:
    largest = torch.finfo(dtype).max
    values = np.concatenate([np.linspace(-300, 300, 5001), [1e9, -1e9]]).astype(np.float32)
    expected = torch.from_numpy(values).clamp(-largest, largest).to(dtype).float().numpy()
    np.testing.assert_array_equal(decode(encode(values, name), name), expected)
    inwards = np.abs(decode(encode(values, name, toward_zero=True), name))
    assert (inwards <= np.abs(values)).all()
    assert (inwards <= np.abs(expected)).all()


def test_toward_zero_never_grows() -> None:
    values = np.random.default_rng(1).standard_normal(10_000).astype(np.float32)
    for cut in (
        decode(encode(values, BF16, toward_zero=True), BF16),
        to_float16(values, toward_zero=True).astype(np.float32),
    ):
        assert (np.abs(cut) <= np.abs(values)).all()
        assert (np.abs(cut - values) < np.abs(values) * 2.0**-7).all()


def test_tf32_keeps_ten_bits() -> None:
    values = np.random.default_rng(2).standard_normal(10_000).astype(np.float32)
    rounded = round_to_tf32(values)
    assert (np.abs(rounded - values) <= np.abs(values) * 2.0**-11).all()
    assert (rounded.view(np.uint32) & np.uint32(0x1FFF) == 0).all()
    np.testing.assert_array_equal(round_to_tf32(rounded), rounded)
    special = np.array([np.inf, -np.inf, np.nan], dtype=np.float32)
    np.testing.assert_array_equal(round_to_tf32(special), special)


def test_split_sums_close_to_the_value() -> None:
    values = np.random.default_rng(3).standard_normal(1000).astype(np.float32)
    high, low = split_bf16(values, 2)
    assert (np.abs(high + low - values) <= np.abs(values) * 2.0**-16).all()
