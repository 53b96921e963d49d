"""A candidate's library calls begin with the flags of its problem's policy, as eager's have."""

from dataclasses import replace

import pytest
from scaled_rows import triton, write_problem

from hotloop.core.verdict import Status, Tier
from hotloop.problems import load_problem_spec
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

RETURN = "        return y\n"
FLAGS = "(torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32)"
ONLY_UNDER = triton((RETURN, f"        if {FLAGS} != {{flags}}:\n            y.zero_()\n{RETURN}"))
HOLDS = {"as_shipped": (False, True), "strict": (False, False), "tf32": (True, True)}


@pytest.mark.parametrize("name", HOLDS)
def test_each_policy_and_no_other(tmp_path, name):
    path = write_problem(tmp_path)
    verifier = LocalVerifier("cpu", min_isolation="T0")
    try:
        verifier.load(load_problem_spec(path, device="cpu", precision=name))
        for other, flags in HOLDS.items():
            source = ONLY_UNDER.sources[0]
            kernel = replace(
                ONLY_UNDER,
                sources=(replace(source, text=source.text.replace("{flags}", str(flags))),),
            )
            verdict = verifier.verify(kernel, Tier.FAST)
            assert (verdict.status is Status.PASSED) == (other == name), verdict.message
            assert verdict.precision_policy == name
    finally:
        verifier.close()
