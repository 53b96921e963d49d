"""The test and the benchmark beside a kernel compare with PyTorch under the problem's policy."""

import importlib.util
import sys

import pytest
import torch
from test_best import attention_info, case, info_of, result_of, spec

from hotloop.core.problem import Policy, ProblemKind
from hotloop.report.best import write_best
from hotloop.worker.precision import PRECISIONS, applied

KERNEL = case("bias_relu").replace("class Model(", "class ModelNew(")
NOTES_FLAGS = """        global SEEN
        SEEN = torch.backends.cuda.matmul.allow_tf32
        super().__init__()
"""
TF32_EVERYWHERE = """
torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = True
"""
ALL_STRICT = """
torch.backends.cuda.matmul.fp32_precision = "ieee"
torch.backends.cudnn.conv.fp32_precision = "ieee"
torch.backends.cuda.matmul.allow_bf16_reduced_precision_reduction = False
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
"""


@pytest.fixture
def alone(monkeypatch):
    """Leave this process's flags, paths and environment as they were."""
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in ("best_problem", "best_kernel"):
        monkeypatch.setitem(sys.modules, name, None)
    with applied(PRECISIONS["as_shipped"]):
        yield


def import_test(folder):
    file = importlib.util.spec_from_file_location("made_test_kernel", folder / "test_kernel.py")
    module = importlib.util.module_from_spec(file)
    file.loader.exec_module(module)
    return module


def flags():
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    return (
        matmul.allow_tf32,
        matmul.fp32_precision,
        cudnn.allow_tf32,
        cudnn.conv.fp32_precision,
        cudnn.rnn.fp32_precision,
        matmul.allow_bf16_reduced_precision_reduction,
        matmul.allow_fp16_reduced_precision_reduction,
    )


def flags_of(policy):
    with applied(PRECISIONS[policy]):
        return flags()


def model(folder, policy, more, kernel=KERNEL):
    def info(problem):
        return info_of(problem, tensors=(spec("x", (4, 4)),))

    kind = ProblemKind.KERNELBENCH
    made = result_of(case("bias_relu") + more, kernel, kind=kind, info=info, policy=policy)
    import_test(write_best(folder, made)).load_models(0)


def attention(folder, policy, more):
    kernel = "import torch\nclass ModelNew(torch.nn.Module):\n    pass\n"
    source = case("relative")
    source = source if "import torch\n" in source else "import torch\n" + source
    made = result_of(source + more, kernel, info=attention_info, policy=policy)
    module = import_test(write_best(folder, made))
    problem = module.load_problem(0)
    assert flags() == flags_of(policy.precision), "plain attention may run before the kernel"
    module.load_kernel(problem)


@pytest.mark.parametrize("more", [TF32_EVERYWHERE, ALL_STRICT], ids=["tf32", "ieee"])
@pytest.mark.parametrize("name", sorted(PRECISIONS))
@pytest.mark.parametrize("load", [model, attention])
def test_flags_are_those_of_the_policy_whatever_the_problem_sets(tmp_path, alone, load, name, more):
    load(tmp_path / "best", Policy(precision=name), more)
    assert flags() == flags_of(name)


def test_a_kernel_is_made_under_the_policy_too(tmp_path, alone):
    noting = KERNEL.replace("        super().__init__()\n", NOTES_FLAGS)
    model(tmp_path / "best", Policy(precision="strict"), TF32_EVERYWHERE, noting)
    assert sys.modules["best_kernel"].SEEN is False


def test_what_a_constructor_sets_does_not_stay(tmp_path, alone):
    inside = TF32_EVERYWHERE.replace("\n", "\n        ")
    in_init = f"\n\ndef get_init_inputs():{inside}return [64]\n"
    model(tmp_path / "best", Policy(precision="strict"), in_init)
    assert flags() == flags_of("strict")
