"""Tables of `prepare()` on a GPU: large ones are replayed and profiled, too large ones say so."""

from __future__ import annotations

from pathlib import Path

import pytest
import scaled_rows
from scaled_rows import TRITON, candidate, spoilt

from hotloop.core.candidate import Candidate
from hotloop.core.verdict import Performance, Status, Tier, Verdict
from hotloop.verify import LocalVerifier
from hotloop.verify.bundle import ANY_TIME_MS
from hotloop.worker.tables import MAX_TABLES_BYTES

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not Path("/dev/nvidiactl").exists(), reason="needs an NVIDIA GPU"),
]

ROWS, COLUMNS = 1021, 1000
"""Of the judge that these tests share."""
PREPARE = """
    def prepare(self):
        self.table = torch.zeros({elements}, device=self.scale.device)
        self.table[-{columns}:] = self.scale

    def forward(self, x):
"""


def with_table(elements: int) -> Candidate:
    """Return a kernel that reads the scale at the end of a float32 table made by `prepare()`."""
    text = spoilt(
        TRITON,
        ("\n    def forward(self, x):\n", PREPARE.format(elements=elements, columns=COLUMNS)),
        ("(x, self.scale, y,", "(x, self.table[-x.shape[1]:], y,"),
    ).replace("torch.empty(COLUMNS)", f"torch.empty({COLUMNS})")
    return candidate(text, "kernel.py")


def measured(found: Verdict) -> Performance:
    assert found.status is Status.PASSED, found.message
    assert found.performance is not None
    return found.performance


@pytest.mark.parametrize("mebibytes", [1, 300])
def test_a_large_table_is_replayed_and_right(gpu_judge: LocalVerifier, mebibytes: int) -> None:
    found = gpu_judge.verify(with_table(mebibytes << 18), Tier.FINAL)
    assert measured(found).host_path_reason is None
    assert found.mode == "replay"


def test_tables_over_the_limit_are_timed_in_the_candidate_and_say_why(
    gpu_judge: LocalVerifier,
) -> None:
    found = gpu_judge.verify(with_table((MAX_TABLES_BYTES >> 2) + COLUMNS), Tier.FINAL)
    reason = measured(found).host_path_reason
    assert found.mode == "host_path"
    assert reason is not None
    assert f"at most {MAX_TABLES_BYTES} are recorded" in reason
    assert "\n" not in reason


def test_a_large_table_does_not_keep_the_profiler_from_its_counters(
    scaled_rows_file: Path,
) -> None:
    judge = LocalVerifier("cuda", call_timeout_s=10.0, profile=True)
    try:
        judge.load(scaled_rows.problem(scaled_rows_file, "cuda", rows=ROWS, columns=COLUMNS))
        plain = measured(judge.verify(scaled_rows.triton(columns=COLUMNS), Tier.FAST))
        # faster than nothing that is known: of two equal kernels only the faster one is profiled
        large = measured(
            judge.verify(with_table(300 << 18), Tier.FAST, profile_below_ms=ANY_TIME_MS)
        )
    finally:
        judge.close()
    if plain.counters_refused is not None:
        pytest.skip(f"this machine gives no counters: {plain.counters_refused}")
    assert plain.counters
    assert large.counters, large.counters_refused
