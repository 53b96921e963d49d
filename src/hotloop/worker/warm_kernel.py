"""A small kernel that the zygote compiles once, so that its children's first compile is quick.

The first compilation of a process loads Triton's compiler passes and builds the driver module that
it caches on disk: 0.3 s that every child would pay (docs/decisions/001). It needs no GPU.
"""

from __future__ import annotations

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def scale(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]  # noqa: D103
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)


def compile_once() -> None:
    """Compile the kernel for sm_90; the result is thrown away."""
    source = ASTSource(
        fn=scale,
        signature={"x_ptr": "*fp32", "y_ptr": "*fp32", "n": "i32", "BLOCK": "constexpr"},
        constexprs={"BLOCK": 512},
    )
    triton.compile(source, target=GPUTarget("cuda", 90, 32))


def build_driver_module() -> None:
    """Build Triton's C driver module into `TRITON_CACHE_DIR`; does not initialise CUDA.

    Raises:
        OSError, RuntimeError: there is no libcuda or no C compiler; then children try themselves.
    """
    from triton.backends.nvidia.driver import CudaUtils

    CudaUtils()
