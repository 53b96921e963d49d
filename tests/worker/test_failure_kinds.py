"""The kind of an exception comes from its type; Triton's launcher has none of its own."""

import pytest
import torch

from hotloop.worker.cudriver import OUT_OF_MEMORY, CudaDriverError
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
