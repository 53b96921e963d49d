import pytest
from hypothesis import given
from hypothesis import strategies as st

from hotloop.core.verdict import KernelResources, Status
from hotloop.engine.objective import objective_of, occupancy_frac, static_cost
from hotloop.testing.fakes import fake_verdict


def kernel(registers=32, spill_bytes=0, shared_bytes=0, num_warps=4):
    return KernelResources(
        name="k",
        registers=registers,
        spill_bytes=spill_bytes,
        shared_bytes=shared_bytes,
        num_warps=num_warps,
    )


@pytest.mark.parametrize(
    ("resources", "occupancy"),
    [
        # Hand-checked against the limits of compute capability 9.0.
        (kernel(registers=32), 1.0),  # 64 K / (32 * 32 * 4) = 16 blocks of 4 warps
        (kernel(registers=64), 0.5),
        (kernel(registers=128), 0.25),
        (kernel(registers=255), 0.125),
        (kernel(registers=33), 48 / 64),  # 1056 round to 1280 a warp: 51 warps, 12 blocks of 4
        (kernel(registers=16, num_warps=1), 0.5),  # 32 blocks of one warp
        (kernel(registers=32, shared_bytes=113 * 1024), 2 * 4 / 64),
        (kernel(registers=32, shared_bytes=114 * 1024), 1 * 4 / 64),
        (kernel(registers=32, shared_bytes=227 * 1024), 1 * 4 / 64),
        (kernel(registers=32, shared_bytes=228 * 1024), 0.0),
    ],
)
def test_occupancy_on_sm_90(resources, occupancy):
    assert occupancy_frac(resources) == pytest.approx(occupancy)


def test_spills_outweigh_occupancy_and_occupancy_outweighs_shared_memory():
    spilling = static_cost([kernel(registers=32, spill_bytes=4)])
    crowded = static_cost([kernel(registers=255)])
    roomy = static_cost([kernel(registers=32)])
    roomy_with_shared = static_cost([kernel(registers=32, shared_bytes=8 * 1024)])
    assert roomy < roomy_with_shared < crowded < spilling


@given(
    st.lists(
        st.builds(
            kernel,
            registers=st.one_of(st.none(), st.integers(1, 255)),
            spill_bytes=st.integers(0, 1000).map(lambda words: 4 * words),
            shared_bytes=st.integers(0, 232_448),
            num_warps=st.sampled_from([1, 2, 4, 8, 16, 32]),
        ),
        max_size=4,
    )
)
def test_cost_is_lexicographic(resources):
    cost = static_cost(resources)
    spilled_bytes = sum(k.spill_bytes for k in resources)
    assert spilled_bytes <= cost < spilled_bytes + 2


def test_unknown_resources_are_the_worst_that_does_not_spill():
    assert static_cost([]) >= static_cost([kernel(registers=255, num_warps=32)])
    assert occupancy_frac(kernel(registers=None)) == 0.0


def test_the_objective_is_time_on_a_gpu_and_the_static_cost_elsewhere():
    assert objective_of(fake_verdict(0.75, "c")) == 0.75
    on_cpu = fake_verdict(0.75, "c", device="cpu")
    assert objective_of(on_cpu) == static_cost(on_cpu.resources)
    assert objective_of(fake_verdict(Status.INCORRECT_SHAPE, "c")) is None
