"""One judge on the GPU for all attacks: that it goes on is half of what they test."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "worker"))  # the problem that they share

import scaled_rows
from gpu_attacks import CALL_S

from hotloop.verify import LocalVerifier


@pytest.fixture(scope="session")
def attack_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("attacks") / "judge.log"


@pytest.fixture(scope="session")
def attacked_judge(
    tmp_path_factory: pytest.TempPathFactory, attack_log: Path
) -> Iterator[LocalVerifier]:
    """A judge on the GPU that has loaded `scaled_rows`; no size is a multiple of a block's."""
    path = scaled_rows.write_problem(tmp_path_factory.mktemp("problem"))
    judge = LocalVerifier("cuda", call_timeout_s=CALL_S, log_path=attack_log)
    try:
        judge.load(scaled_rows.problem(path, "cuda", rows=1021, columns=1000))
        yield judge
    finally:
        judge.close()
