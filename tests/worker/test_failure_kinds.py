"""The kind of an exception comes from its type; Triton's launcher has none of its own."""

import pytest
import torch

from hotloop.core.verdict import Stage, Status
from hotloop.worker.constructor_words import with_call
from hotloop.worker.cudriver import OUT_OF_MEMORY, CudaDriverError
from hotloop.worker.evaluation import failure_of
from hotloop.worker.failure import describe_error


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("Triton Error [CUDA]: device-side assert triggered"), "cuda_error"),
        (RuntimeError("Triton Error [CUDA]: out of memory"), "oom_gpu"),
        (RuntimeError("it said Triton Error [CUDA]: invalid argument"), "exception"),
        (ValueError("Triton Error [CUDA]: invalid argument"), "exception"),
        (RuntimeError("shapes do not match"), "exception"),
        (torch.AcceleratorError("device-side assert triggered"), "cuda_error"),
        (torch.OutOfMemoryError("no room"), "oom_gpu"),
        (CudaDriverError("cuMemAlloc", OUT_OF_MEMORY, "out of memory"), "oom_gpu"),
        (CudaDriverError("cuLaunchKernel", 700, "illegal address"), "cuda_error"),
        (MemoryError(), "oom_host"),
    ],
)
def test_kind(error: Exception, kind: str) -> None:
    assert describe_error(error, "/nowhere")["kind"] == kind


def test_a_file_that_is_no_python_does_not_compile(tmp_path):
    path = tmp_path / "kernel.py"
    path.write_text("import torch\ndef forward(:\n")
    with pytest.raises(SyntaxError) as caught:
        compile(path.read_text(), str(path), "exec")
    found = describe_error(caught.value, str(tmp_path))
    assert (found["kind"], found["line"]) == ("compile_error", 2)
    failed = failure_of(found, Stage.CORRECTNESS, device="cpu")
    assert (failed.status, failed.stage) == (Status.COMPILE_ERROR, Stage.COMPILE)
    assert failed.evidence.details["line"] == 2
    assert str(tmp_path) not in failed.evidence.message


def test_text_that_a_kernel_makes_up_at_run_time_is_no_file_of_it(tmp_path):
    with pytest.raises(SyntaxError) as caught:
        exec("def f(:", {})
    found = describe_error(caught.value, str(tmp_path))
    assert (found["kind"], "line" in found) == ("exception", False)


@pytest.mark.parametrize(("method", "is_told"), [("__init__", True), ("forward", False)])
def test_a_constructor_that_does_not_fit_is_told_how_it_is_called(method, is_told):
    message = f"ModelNew.{method}() missing 2 required positional arguments: 'n' and 'scale'"
    found = describe_error(TypeError(message), "/nowhere")
    failed = failure_of(found, Stage.CORRECTNESS, device="cpu")
    told = with_call(failed.evidence, 0)
    assert failed.status is Status.RUNTIME_ERROR
    assert message in told.message
    assert ("with the 0 value(s) of get_init_inputs()" in told.message) is is_told
