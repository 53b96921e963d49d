"""Which device is chosen: NVML that cannot be asked hides no GPU, and an empty machine has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.core.gpu_reading import GpuReading
from hotloop.errors import DeviceLost
from hotloop.sandbox.nvml import NoReading
from hotloop.verify import devices, find_device

GPU = GpuReading(uuid="GPU-1", name="NVIDIA H200", driver="580", total_bytes=9, used_bytes=0)
HUNG = NoReading("no answer within 15 s", is_silent=True)
MISSING = NoReading("nvidia-ml-py: not installed; nvidia-smi: not installed")


@pytest.mark.parametrize(
    ("found", "gpus", "auto", "cuda"),
    [
        ((GPU,), 1, "cuda", "cuda"),
        ((), 1, "cpu", None),
        (HUNG, 1, "cuda", "cuda"),
        (MISSING, 1, "cuda", "cuda"),
        (HUNG, 0, "cpu", "cuda"),
        (MISSING, 0, "cpu", "cuda"),
    ],
)
def test_what_nvml_cannot_say_the_judge_finds_out(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    found: tuple[GpuReading, ...] | NoReading,
    gpus: int,
    auto: str,
    cuda: str | None,
) -> None:
    node, driver = tmp_path / "nvidiactl", tmp_path / "gpus"
    node.touch()
    for number in range(gpus):
        (driver / f"0000:{number:02x}:00.0").mkdir(parents=True)
    monkeypatch.setattr(devices, "NODE", node)
    monkeypatch.setattr(devices, "DRIVER", driver)
    monkeypatch.setattr(devices, "read_gpus", lambda: found)
    assert find_device("auto") == auto
    if cuda is None:
        with pytest.raises(DeviceLost, match="found none"):
            find_device("cuda")
    else:
        assert find_device("cuda") == cuda


def test_without_a_driver_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "NODE", tmp_path / "nvidiactl")
    assert find_device("auto") == "cpu"
    with pytest.raises(DeviceLost, match="found none"):
        find_device("cuda")
