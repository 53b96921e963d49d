"""A GPU that was given up gets no further candidate; the work goes on elsewhere, or ends."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemKind
from hotloop.core.verdict import Tier
from hotloop.errors import DeviceLost
from hotloop.verify import LocalVerifier
from hotloop.verify.bundle import Bundle, Item
from hotloop.verify.bundle_board import Board
from hotloop.verify.bundle_judge import JudgeOptions, Seat
from hotloop.verify.bundle_plan import Plan
from hotloop.verify.gpu_choice import GpuChoice, other_gpus

KERNEL = """
import torch, triton

@triton.jit
def kernel(x):
    pass

class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernel[(1,)](x)
        return x
"""
PROBLEM = Problem(name="copy", kind=ProblemKind.KERNELBENCH, source="# nothing\n")


def candidate(text: str = "") -> Candidate:
    return Candidate(
        language="triton", sources=(SourceFile(path="kernel.py", text=f"{KERNEL}{text}\n"),)
    )


WEDGE = candidate("# wedge")


def driver_of(folder: Path, *models: str) -> Path:
    """Write what a driver says of GPU-0, GPU-1, ... of these models."""
    for number, model in enumerate(models):
        place = folder / f"0000:{number:02x}:00.0"
        place.mkdir(parents=True)
        text = f"Model: \t\t {model}\nIRQ: 1\nGPU UUID: \t GPU-{number}\n"
        (place / "information").write_text(text)
    return folder


@pytest.mark.parametrize(
    ("visible", "models", "others"),
    [
        (None, ["H200", "H200", "H200"], ("GPU-1", "GPU-2")),
        (None, ["H200", "T4", "H200"], ("GPU-2",)),
        (None, ["H200"], ()),
        (None, [], ()),
        ("0,2", ["H200", "H200", "H200"], ("GPU-2",)),
        ("0", ["H200", "H200"], ()),
        ("", ["H200", "H200"], ()),
        ("GPU-0, GPU-1", ["H200", "T4", "H200"], ()),
        ("GPU-0,GPU-2", ["H200", "T4", "H200"], ("GPU-2",)),
        ("0,1,2", ["H200", "T4", "H200"], ()),  # CUDA may count them by speed
    ],
)
def test_only_gpus_of_the_same_model_that_may_be_used(
    tmp_path: Path, visible: str | None, models: Sequence[str], others: tuple[str, ...]
) -> None:
    assert other_gpus("GPU-0", visible, driver_of(tmp_path, *models)) == others


def test_no_driver_has_no_others(tmp_path: Path) -> None:
    assert other_gpus("GPU-0", None, tmp_path / "none") == ()


@pytest.fixture(autouse=True)
def _all_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


class LosingVerifier(LocalVerifier):
    """A verifier whose judge can lose its GPU."""

    def __init__(self, folder: Path, *models: str, gpu: str | None = None) -> None:
        super().__init__("cuda", min_isolation="T0", gpu=gpu)
        self._folder = folder
        self.gpus = GpuChoice(gpu, driver=driver_of(folder / "driver", *models))

    def _command(self) -> list[str]:
        return [sys.executable, str(Path(__file__).with_name("losing_judge.py")), str(self._folder)]


def judged_on(folder: Path) -> list[str]:
    file = folder / "judged"
    return file.read_text().split() if file.exists() else []


def test_the_next_judge_gets_the_next_gpu(tmp_path: Path) -> None:
    verifier = LosingVerifier(tmp_path, "H200", "H200", "H200")
    try:
        verifier.load(PROBLEM)
        assert verifier.verify(candidate("# first"), Tier.FAST).passed
        with pytest.raises(DeviceLost, match="GPU-0 is quarantined.*goes on with GPU-1"):
            verifier.verify(WEDGE, Tier.FAST)
        assert verifier.verify(candidate("# next"), Tier.FAST).passed
        assert judged_on(tmp_path) == ["GPU-0", "GPU-1"]
        # Twice is no accident: the third GPU is not risked.
        with pytest.raises(DeviceLost, match="GPU-1 is quarantined"):
            verifier.verify(WEDGE, Tier.FAST)
        with pytest.raises(DeviceLost, match="GPU-1 is quarantined"):
            verifier.verify(candidate("# last"), Tier.FAST)
    finally:
        verifier.close()


@pytest.mark.parametrize(("models", "gpu"), [(["H200"], None), (["H200", "H200"], "GPU-0")])
def test_without_another_gpu_everything_ends_with_the_reason(
    tmp_path: Path, models: list[str], gpu: str | None
) -> None:
    verifier = LosingVerifier(tmp_path, *models, gpu=gpu)
    try:
        verifier.load(PROBLEM)
        for again in (WEDGE, WEDGE, candidate("# honest")):
            with pytest.raises(DeviceLost, match="GPU-0 is quarantined") as lost:
                verifier.verify(again, Tier.FAST)
            assert lost.value.exit_code == 3
        for use in (lambda: verifier.load(PROBLEM), lambda: verifier.build(candidate())):
            with pytest.raises(DeviceLost, match="GPU-0 is quarantined"):
                use()
        assert judged_on(tmp_path) == []
    finally:
        verifier.close()


def test_a_gpu_that_is_lost_from_the_start_says_so(tmp_path: Path) -> None:
    (tmp_path / "GPU-0").touch()
    verifier = LosingVerifier(tmp_path, "H200")
    with pytest.raises(DeviceLost, match="GPU-0 is quarantined"):
        verifier.load(PROBLEM)
    verifier.close()


class LosingSeat(Seat):
    """A seat whose judge can lose its GPU; its number is the GPU's."""

    folder: Path

    def _new_verifier(self) -> LocalVerifier:
        assert self._gpu is not None
        return LosingVerifier(self.folder / self._gpu, "H200", gpu=self._gpu)


def test_a_seat_that_lost_its_gpu_leaves_its_work_to_the_others(tmp_path: Path) -> None:
    LosingSeat.folder = tmp_path
    kernels = [WEDGE, *(candidate(f"# {number}") for number in range(20))]
    items = tuple(Item(problem_id=PROBLEM.id, candidate=k, tier=Tier.FAST) for k in kernels)
    bundle = Bundle(problems={PROBLEM.id: PROBLEM}, items=items)
    plan, board = Plan(bundle, lambda: float("inf"), seats=2), Board(tmp_path / "verdicts")
    told: list[str] = []
    options = JudgeOptions(device="cuda", gpus=("GPU-0", "GPU-1"))
    seats = [
        LosingSeat(plan, board, options, gpu=gpu, lanes=1, tell=told.append) for gpu in options.gpus
    ]
    for seat in seats:  # one after the other, so that the first meets the bad one
        seat.run()
    assert len(judged_on(tmp_path / "GPU-1")) == 20
    assert judged_on(tmp_path / "GPU-0") == []
    assert any("GPU-0: left alone: GPU-0 is quarantined" in line for line in told), told
