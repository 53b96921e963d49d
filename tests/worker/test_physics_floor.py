"""The physics floor: what no kernel can do is refused, what the best kernels do is not."""

from __future__ import annotations

import pytest

from hotloop.worker.ceilings import ceilings_of
from hotloop.worker.physics_floor import Ceilings, Demand, is_impossible, least_ms

MIB = 1 << 20
H200 = Ceilings(dram_gbps=4900.0, l2_gbps=33000.0, l2_bytes=60 * MIB, tflops=1070.0)


def test_the_h200s_own_attributes_give_its_data_sheet() -> None:
    found = ceilings_of(
        clock_khz=1_980_000, multiprocessors=132, memory_khz=3_201_000, bus_bits=6144, capability=9,
        l2_bytes=60 * MIB, copy_gbps=4260.0,
    )  # fmt: skip
    assert found.dram_gbps == pytest.approx(4917, rel=0.001)
    assert found.tflops == pytest.approx(1070, rel=0.01)
    assert found.l2_gbps > 20_000


def test_a_higher_measured_rate_counts_and_a_driver_that_tells_nothing_makes_the_floor_lower() -> (
    None
):
    known = {"clock_khz": 1_500_000, "multiprocessors": 100, "capability": 9, "l2_bytes": 0}
    fast = ceilings_of(memory_khz=1000, bus_bits=64, copy_gbps=3000.0, **known)
    assert fast.dram_gbps == 3000.0
    silent = ceilings_of(memory_khz=0, bus_bits=0, copy_gbps=3400.0, **known)
    assert silent.dram_gbps == pytest.approx(4000.0)
    unknown = ceilings_of(memory_khz=0, bus_bits=0, copy_gbps=3400.0, **(known | {"capability": 7}))
    assert unknown.tflops is None


def test_reads_are_bound_by_dram() -> None:
    least = least_ms(Demand(4900 * 10**6, 4), H200, warm=False)
    assert least == pytest.approx(1.0)
    assert is_impossible(0.94, least)
    assert not is_impossible(0.96, least)  # clocks may be off by 5 %


def test_the_last_stores_may_stay_in_the_cache() -> None:
    inside = least_ms(Demand(0, 60 * MIB), H200, warm=False)
    beyond = least_ms(Demand(0, 61 * MIB), H200, warm=False)
    assert inside == pytest.approx(60 * MIB / 33e9)
    assert beyond == pytest.approx(inside, rel=0.02)  # the L2 still bounds it
    assert least_ms(Demand(0, 600 * MIB), H200, warm=False) == pytest.approx(540 * MIB / 4.9e9)


def test_a_warm_cache_may_hold_the_inputs() -> None:
    demand = Demand(40 * MIB, 0)
    cold, warm = (least_ms(demand, H200, warm=is_warm) for is_warm in (False, True))
    assert cold == pytest.approx(40 * MIB / 4.9e9)
    assert warm == pytest.approx(40 * MIB / 33e9)
    assert is_impossible(2 * warm, cold)
    assert not is_impossible(2 * warm, warm)


@pytest.mark.parametrize(
    ("name", "demand", "ms"),
    [
        # Copy, matmul and near-empty kernel: measured on an H200. The others: faster than we saw.
        ("copy of 1 GiB", Demand(1 << 30, 1 << 30), 0.504),
        ("sum of 1 GiB at 4.55 TB/s", Demand(1 << 30, 4), 0.236),
        ("matmul of 8192 at 700 TFLOP/s", Demand(3 << 27, 1 << 27, 2 * 8192.0**3), 1.571),
        ("attention forward at 760 TFLOP/s", Demand(3 << 26, 1 << 26, 1.1e12), 1.447),
        ("float32 attention on float16 units", Demand(3 << 27, 1 << 27, 1.1e12), 1.447),
        ("near-empty kernel", Demand(4096, 4096), 0.0011),
    ],
)
def test_the_best_honest_kernels_are_over_the_floor(name: str, demand: Demand, ms: float) -> None:
    least = least_ms(demand, H200, warm=False)
    assert not is_impossible(ms, least), name
    assert is_impossible(0.5 * least, least)


def test_work_is_bound_by_the_peak_where_it_is_known() -> None:
    work = Demand(0, 0, 1.07e12)
    assert least_ms(work, H200, warm=False) == pytest.approx(1.0)
    unknown = Ceilings(4900.0, 33000.0, 0, None)
    assert least_ms(work, unknown, warm=False) == 0.0
