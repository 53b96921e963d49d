"""What attention must do and move: what its mask leaves, and nothing that a score_mod may hide."""

from __future__ import annotations

import pytest
from demands import demand, seen
from problem_files import attention, mask_mod, score_mod

from hotloop.worker.compulsory import compulsory, compulsory_flops
from hotloop.worker.least_time import floor_for
from hotloop.worker.load import LoadedProblem
from hotloop.worker.physics_floor import Ceilings
from hotloop.worker.reference import build_reference
from hotloop.worker.timed import TimedInputs

DENSE = 4.0 * 2 * 4 * 32 * 32 * 16
Q_BYTES = 2 * 4 * 32 * 16 * 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mask", "share"),
    [("q_idx >= 0", 1.0), ("q_idx >= kv_idx", 33 / 64), ("kv_idx < 16", 0.5),
     ("q_idx == kv_idx", 1 / 32)],
)  # fmt: skip
def test_attention_does_and_moves_what_its_mask_leaves(mask: str, share: float) -> None:
    found = demand(mask_mod(mask), seen(*"qkv"))
    assert found is not None
    assert found.flops == pytest.approx(share * DENSE)
    # One key a row is left out: a row that sees no other copies its value.
    assert found.read_bytes == pytest.approx((share - 1 / 32) * 3 * Q_BYTES, abs=1)
    assert found.written_bytes == pytest.approx((share - 1 / 32) * Q_BYTES, abs=1)


@pytest.mark.slow
def test_one_query_over_many_keys_reads_them_all_but_one() -> None:
    reference = build_reference(attention("S, Skv, Hkv = 1, 256, 2\ndef mask_mod(b, h, q, kv):\n"
                                          "    return kv >= 0\n"))  # fmt: skip
    draw = reference.draw(3, reference.profiles[0], timed=True)
    found = compulsory(reference, draw, seen(*"qkv"))
    assert found is not None
    q, k, v = (t.nbytes for t in draw.inputs)
    assert found.read_bytes == int((q + k + v) * 255 / 256)


@pytest.mark.slow
@pytest.mark.parametrize("window", ["2", "4", "32"])
def test_places_that_a_score_mod_may_hide_do_not_count(window: str) -> None:
    hidden = score_mod(f"torch.where((q_idx - kv_idx).abs() < {window}, score, -float('inf'))")
    assert demand(hidden, seen(*"qkv")) is None
    masked = demand(mask_mod(f"(q_idx - kv_idx).abs() < {window}"), seen(*"qkv"))
    assert masked is not None
    assert 0 < masked.flops <= DENSE


@pytest.mark.slow
def test_attention_whose_audit_did_not_see_an_input_matter_has_no_floor() -> None:
    assert demand(mask_mod("q_idx >= kv_idx"), seen(*"qv")) is None


@pytest.mark.slow
def test_what_captured_tensors_mask_does_not_count() -> None:
    captured = build_reference(
        mask_mod("LENGTH[b] > kv_idx", before="LENGTH = torch.tensor([20, 32])")
    )
    draw = captured.draw(3, captured.profiles[0], timed=True)
    assert draw.state
    assert captured.useful_flops
    assert compulsory_flops(captured, draw) == 0.0
    assert compulsory(captured, draw, seen(*"qkv")) is None


PEAK = Ceilings(dram_gbps=1e9, l2_gbps=1e9, l2_bytes=0, tflops=1.0)
"""Bound by its matrix products alone."""


def held_against(loaded: LoadedProblem, ms: float) -> tuple[float, str]:
    """Return the floor of a measured time on a device that multiplies only."""
    reference = build_reference(loaded)
    draw = reference.draw(3, reference.profiles[0], timed=True)
    inputs = TimedInputs(reference, draw, (), lambda: None, 0.0, seen(*"qkv"))
    found = floor_for(inputs, ms, PEAK, warm=False)
    return found.ms, found.of


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_attention_at_the_full_16_bit_rate_is_over_its_floor_in_any_dtype(dtype: str) -> None:
    least_ms = DENSE / 1e9
    loaded = attention(f"dtype = '{dtype}'\ndef mask_mod(b, h, q, kv):\n    return q >= 0\n")
    assert held_against(loaded, least_ms) == (pytest.approx(least_ms), "all bytes")
    assert held_against(loaded, least_ms / 2) == (pytest.approx(least_ms), "compulsory bytes")


@pytest.mark.slow
def test_a_time_under_a_score_mod_is_not_refused_for_its_work() -> None:
    least_ms, of = held_against(score_mod("score * 2"), 1e-12)
    assert (least_ms, of) == (0.0, "nothing known")
