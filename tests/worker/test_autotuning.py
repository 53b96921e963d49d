"""What `torch.compile` times for its choice is announced first, and nothing stays behind."""

import pytest
import torch
from torch._inductor.runtime.benchmarking import benchmarker

from hotloop.worker.autotuning import NAMES, before_benchmarks


def test_a_function_is_called_before_each_benchmark() -> None:
    told: list[str] = []
    x = torch.ones(4)
    with before_benchmarks(lambda: told.append("asks")):
        ms = benchmarker.benchmark(lambda: told.append("runs") or x + 1, device="cpu")
    assert ms > 0
    assert told[0] == "asks"
    assert told.count("runs") > 1


def test_the_benchmarker_is_as_before_also_after_an_error() -> None:
    own = {name: vars(benchmarker).get(name) for name in NAMES}
    with pytest.raises(ValueError, match="lost"), before_benchmarks(lambda: None):
        raise ValueError("lost")
    assert {name: vars(benchmarker).get(name) for name in NAMES} == own
