"""Gluon candidates for the compile lane, and one launch of theirs through the recorder.

A program for `test_build_gluon.py`: Triton must be imported without its interpreter, and its driver
is replaced. Argument: a work folder. Prints one JSON object: the lane's answers by name, and what
the recorder makes of the arguments of a kernel that takes tensor maps.
"""

# ruff: noqa: E402  the environment decides how triton is imported

from __future__ import annotations

import json
import os
import sys
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
FOLDER = Path(sys.argv[1])
os.environ["TRITON_CACHE_DIR"] = str(FOLDER / "cache")

import torch
import triton
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from hotloop.prompts.gluon_names import gluon_names
from hotloop.worker import build_triton, fake_launch, recorder
from hotloop.worker.kernel_parameters import parameter_sizes
from hotloop.worker.recording import Literal, TensorMap

HEAD = """
import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    mbarrier, tma, warpgroup_mma, warpgroup_mma_wait)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
"""

PRODUCT = """
N = 64

@gluon.jit
def product_kernel(a_desc, b_desc, c_ptr, K, scale, N: gl.constexpr, BLOCK_K: gl.constexpr):
    a_tile = gl.allocate_shared_memory(a_desc.dtype, a_desc.block_shape, a_desc.layout)
    b_tile = gl.allocate_shared_memory(b_desc.dtype, b_desc.block_shape, b_desc.layout)
    bar = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(bar, count=1)
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [gl.num_warps(), 1], [16, N, 16])
    acc = gl.zeros([64, N], gl.float32, layout)
    more = gl.zeros([64, N], gl.float32, layout)
    for t in range(K // BLOCK_K):
        mbarrier.expect(bar, a_desc.block_type.nbytes + b_desc.block_type.nbytes)
        tma_load(a_desc, [0, t * BLOCK_K], bar, a_tile)
        tma_load(b_desc, [0, t * BLOCK_K], bar, b_tile)
        mbarrier.wait(bar, t & 1)
        acc = warpgroup_mma(a_tile, b_tile.permute((1, 0)), acc, is_async=True)
        more = warpgroup_mma(a_tile, b_tile.permute((1, 0)), more, is_async=True)
        acc, more = warpgroup_mma_wait(0, deps=(acc, more))
        more = gl.exp2(more)
    row = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))
    column = gl.arange(0, N, layout=gl.SliceLayout(0, layout))
    gl.store(c_ptr + row[:, None] * N + column[None, :], (acc + more) * scale)

class ModelNew(torch.nn.Module):
    def forward(self, a, b):
        c = torch.empty((64, b.shape[0]), dtype=torch.float32, device=a.device)
        layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16)
        product_kernel[(1,)](
            TensorDescriptor.from_tensor(a, [64, 64], layout),
            TensorDescriptor.from_tensor(b, [N, 64], layout),
            c, a.shape[1], 0.5, N=N, BLOCK_K=64, num_warps=4)
        return c
""".replace("tma_load", gluon_names(triton.__version__)["tma_load"])
OTHER = "    other: gl.constexpr = gl.BlockedLayout([1, 4], [2, 16], [4, 1], [1, 0])\n"
MISMATCH = PRODUCT.replace("acc + more", "acc + gl.zeros([64, N], gl.float32, other)").replace(
    "    acc =", f"{OTHER}    acc =", 1
)
NO_NAME = PRODUCT.replace("gl.exp2(more)", "gl.exp3(more)")
FAILS = PRODUCT.replace("from_tensor(a, [64, 64], layout)", "from_tensor(a, [64, 48], layout)")
LOOKS = PRODUCT.replace("        return c", "        return c if c.sum() > 0 else a")


def tensor(*shape: int) -> dict[str, Any]:
    return {"shape": list(shape), "dtype": "bfloat16"}


PLAIN, WIDE = [tensor(64, 512), tensor(64, 512)], [tensor(64, 512), tensor(256, 512)]
CASES: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "plain": (PRODUCT, PLAIN),
    "serialised": (PRODUCT.replace("N = 64\n", "N = 256\n"), WIDE),
    "mismatch": (MISMATCH, PLAIN),
    "no_name": (NO_NAME, PLAIN),
    "fails": (FAILS, PLAIN),
    "looks": (LOOKS, PLAIN),
}


def record_launch(entry: fake_launch.CompiledLaunch) -> dict[str, Any]:
    """Return the sizes of what the recorder passes, and of what the binary takes."""
    kernel = entry.kernel
    noting = recorder.Recorder()
    noting._buffers, noting._launches, noting._streams = [], [], set()
    noting._number_of, noting._alive, noting._older = {}, [], []
    noting._cubin_of = {7: "cubin"}
    layout = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16)
    a, b = (torch.zeros(64, 512, dtype=torch.bfloat16) for _ in range(2))
    described = [TensorDescriptor.from_tensor(x, [64, 64], layout) for x in (a, b)]
    source = SimpleNamespace(signature=entry.signature)
    launcher = recorder._Launcher(lambda *_: None, source, kernel.metadata, noting)
    noting.recording = True
    arguments = (*described, torch.zeros(64, 64), 512, 0.5, 64, 64)
    launcher(1, 1, 1, 0, 7, None, None, None, None, *arguments)
    (launch,) = noting._launches
    maps = [p for p in launch.parameters if isinstance(p, TensorMap)]
    return {
        "takes": parameter_sizes(kernel.asm["cubin"], launch.function),
        "gets": [_size(p) for p in launch.parameters],
        "block": launch.block,
        "maps": [{f.name: getattr(m, f.name) for f in fields(m)} for m in maps],
    }


def _size(parameter: Any) -> int:
    if isinstance(parameter, TensorMap):
        return 128  # CUtensorMap (CUDA driver API, "Tensor Map Object Management")
    return len(parameter.hex) // 2 if isinstance(parameter, Literal) else 8


def main() -> None:
    answers: dict[str, Any] = {}
    noted: list[fake_launch.CompiledLaunch] = []
    describe = build_triton.describe_kernel

    def remember(entry: fake_launch.CompiledLaunch) -> dict[str, Any]:
        noted.append(entry)
        return describe(entry)

    build_triton.describe_kernel = remember
    for name, (source, inputs) in CASES.items():
        path = FOLDER / name / "kernel.py"
        path.parent.mkdir(parents=True)
        path.write_text(HEAD + source)
        answers[name] = build_triton.build(path, pins={}, init_args=[], inputs=inputs, state={})
    answers["launch"] = record_launch(noted[0])
    print(json.dumps({"triton": triton.__version__, **answers}))


if __name__ == "__main__":
    main()
