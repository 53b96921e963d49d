"""Judges that tests of one kind share: starting one takes seconds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import scaled_rows

from hotloop.verify import LocalVerifier

CALL_TIMEOUT_S = 3.0


@pytest.fixture(scope="session")
def scaled_rows_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return scaled_rows.write_problem(tmp_path_factory.mktemp("problem"))


@pytest.fixture(scope="session")
def cpu_judge(scaled_rows_file: Path) -> Iterator[LocalVerifier]:
    """A judge on the CPU that has loaded `scaled_rows`."""
    judge = LocalVerifier("cpu", call_timeout_s=CALL_TIMEOUT_S)
    try:
        judge.load(scaled_rows.problem(scaled_rows_file, "cpu", rows=8, columns=48))
        yield judge
    finally:
        judge.close()


@pytest.fixture(scope="session")
def gpu_judge(scaled_rows_file: Path) -> Iterator[LocalVerifier]:
    """A judge on the GPU that has loaded `scaled_rows`; no size is a multiple of a block's."""
    judge = LocalVerifier("cuda", call_timeout_s=10.0)
    try:
        judge.load(scaled_rows.problem(scaled_rows_file, "cuda", rows=1021, columns=1000))
        yield judge
    finally:
        judge.close()
