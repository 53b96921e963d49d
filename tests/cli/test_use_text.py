"""What is said of GPUs at work, and that a CPU is never called one."""

import pytest

from hotloop.cli.use_text import use_lines, use_record
from hotloop.core.gpu_reading import GpuReading
from hotloop.verify.gpu_memory import memory_of
from hotloop.verify.seat_use import SeatUse

BUSY = SeatUse(worked_s=95.0, idle_s=5.0, wall_s=120.0, verdicts=30)
LAZY = SeatUse(worked_s=10.0, idle_s=0.0, wall_s=120.0, verdicts=6)


def test_a_line_for_each_gpu_and_one_for_all():
    first, second, together = use_lines({"0": BUSY, "1": LAZY}, device="cuda")
    assert first == (
        "GPU 0: worked 95 s of 120 s, idle while something waited 5.0 s (5.0 %); 30 verdict(s), "
        "15.00 a minute"
    )
    assert second.startswith("GPU 1: worked 10 s")
    assert together.startswith("all GPUs: worked 105 s of 240 s")
    assert together.endswith("36 verdict(s), 9.00 a minute and GPU")


@pytest.mark.parametrize("use", [{"cpu": BUSY}, {"cpu": BUSY, "other": LAZY}])
def test_a_cpu_is_not_called_a_gpu(use):
    lines = use_lines(use, device="cpu")
    assert len(lines) == len(use) + (len(use) > 1)
    assert not any("gpu" in line.lower() for line in lines)
    assert "gpu" not in str(use_record(use)).lower()


def test_nothing_is_said_of_nothing():
    assert use_lines({}, device="cuda") == []
    assert use_lines({"0": SeatUse()}, device="cuda") == []
    record = use_record({"0": SeatUse()})
    assert record["seats"]["0"]["idle_frac"] is None
    assert record["together"]["verdicts_per_minute"] is None


def test_the_record_has_the_figures_of_the_lines():
    seat = use_record({"0": BUSY})["seats"]["0"]
    assert seat == {
        "worked_s": 95.0, "idle_s": 5.0, "wall_s": 120.0, "verdicts": 30, "idle_frac": 0.05,
        "verdicts_per_minute": 15.0,
    }  # fmt: skip


def reading(uuid, gib):
    return GpuReading(uuid=uuid, name="G", driver="1", total_bytes=gib << 30, used_bytes=0)


def test_memory_by_name_and_the_least_where_the_name_is_a_number():
    found = [reading("GPU-a", 80), reading("GPU-b", 141)]
    assert memory_of(("GPU-b", "0"), found) == {"GPU-b": 141 << 30, "0": 80 << 30}
    assert memory_of(("0",), []) == {}
