"""The paged decode example through the judge: the generated kernel passes, a blind one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Status, Tier
from hotloop.problems import load_problem_spec
from hotloop.templates.decode.family import DecodeFamily
from hotloop.verify import LocalVerifier

EXAMPLE = Path(__file__).parents[2] / "examples/attention/decode_paged.py"
READS_TABLE = "return tl.load(page_table_ptr + tl.minimum(key // PAGE_SIZE, PAGES_A_BATCH - 1))"
COUNTS_PAGES = "return tl.program_id(1) // H_KV * PAGES_A_BATCH + key // PAGE_SIZE"


@pytest.mark.slow
def test_the_generated_kernel_passes_and_one_that_ignores_the_table_is_wrong(tmp_path):
    verifier = LocalVerifier("cpu", log_path=tmp_path / "judge.log")
    try:
        info = verifier.load(load_problem_spec(EXAMPLE, device="cpu"))
        assert info.attention is not None
        assert {p.name for p in info.parameters} == {"lengths", "page_table"}
        family = DecodeFamily(info.attention)
        right = family.render(family.space().starts[0])
        verdict = verifier.verify(right, Tier.FAST)
        assert verdict.status is Status.PASSED, verdict
        text = right.text()
        assert READS_TABLE in text
        blind = Candidate(
            language="triton",
            sources=(SourceFile(path="kernel.py", text=text.replace(READS_TABLE, COUNTS_PAGES)),),
        )
        assert verifier.verify(blind, Tier.FAST).status is Status.INCORRECT_NUMERICAL
    finally:
        verifier.close()
