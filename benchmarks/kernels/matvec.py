"""KernelBench level 1, problem 4: matrix times vector, one row a program."""

import torch
import triton
import triton.language as tl

BLOCK = 4096


@triton.jit
def matvec_kernel(a_ptr, b_ptr, c_ptr, K, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)  # M * K reaches 2**31
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, K, BLOCK):
        ks = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + row * K + ks, mask=ks < K, other=0.0)
        b = tl.load(b_ptr + ks, mask=ks < K, other=0.0)
        acc += a * b
    tl.store(c_ptr + row, tl.sum(acc, 0))


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        M, K = A.shape
        C = torch.empty((M, 1), device=A.device, dtype=A.dtype)
        matvec_kernel[(M,)](A, B, C, K, BLOCK=BLOCK, num_warps=8)
        return C
