"""The test and the benchmark beside a kernel compare with PyTorch under the problem's policy."""

import pytest
from test_best import case, info_of, result_of, spec

from hotloop.core.problem import Policy, ProblemKind
from hotloop.report.best import write_best

MATMUL = "torch.backends.cuda.matmul.allow_tf32 = True\n"
NO_CONV = "torch.backends.cudnn.allow_tf32 = False\n"


@pytest.mark.parametrize(
    ("name", "line"), [("as_shipped", None), ("strict", NO_CONV), ("tf32", MATMUL)]
)
def test_flags_are_those_of_the_policy(tmp_path, name, line):
    def info(problem):
        return info_of(problem, tensors=(spec("x", (4, 4)),))

    result = result_of(
        case("bias_relu"),
        case("bias_relu_kernel"),
        kind=ProblemKind.KERNELBENCH,
        info=info,
        policy=Policy(precision=name),
    )
    text = (write_best(tmp_path / "best", result) / "test_kernel.py").read_text()
    assert {one for one in (MATMUL, NO_CONV) if one in text} == ({line} if line else set())
