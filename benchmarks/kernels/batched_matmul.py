"""KernelBench level 1, problem 3: batched C = A @ B in float32, one tile of one batch a program."""

import torch
import triton
import triton.language as tl

BLOCK_M = 64
BLOCK_N = 64
BLOCK_K = 32


@triton.jit
def batched_matmul_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    tiles_n = tl.cdiv(N, BLOCK_N)
    rows = tl.program_id(0) // tiles_n * BLOCK_M + tl.arange(0, BLOCK_M)
    cols = tl.program_id(0) % tiles_n * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(1).to(tl.int64)
    ks = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + batch * M * K + rows[:, None] * K + ks[None, :]
    b_ptrs = b_ptr + batch * K * N + ks[:, None] * N + cols[None, :]
    acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for k in range(0, K, BLOCK_K):
        left = ks < K - k
        a = tl.load(a_ptrs, mask=(rows < M)[:, None] & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (cols < N)[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * N
    c_ptrs = c_ptr + batch * M * N + rows[:, None] * N + cols[None, :]
    tl.store(c_ptrs, acc, mask=(rows < M)[:, None] & (cols < N)[None, :])


class ModelNew(torch.nn.Module):
    def forward(self, A, B):
        (batches, M, K), N = A.shape, B.shape[2]
        C = torch.empty((batches, M, N), device=A.device, dtype=A.dtype)
        grid = (triton.cdiv(M, BLOCK_M) * triton.cdiv(N, BLOCK_N), batches)
        batched_matmul_kernel[grid](
            A, B, C, M, N, K, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N, BLOCK_K=BLOCK_K, num_warps=4
        )
        return C
