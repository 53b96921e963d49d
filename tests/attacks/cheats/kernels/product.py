import torch
import triton
import triton.language as tl


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, K, ACC: tl.constexpr, BLOCK_K: tl.constexpr):
    m, n, k = tl.arange(0, 16), tl.arange(0, 16), tl.arange(0, BLOCK_K)
    total = tl.zeros((16, 16), dtype=ACC)
    for start in range(0, K, BLOCK_K):
        a = tl.load(a_ptr + m[:, None] * K + start + k[None, :])
        b = tl.load(b_ptr + (start + k)[:, None] * 16 + n[None, :])
        total = (total + tl.dot(a, b)).to(ACC)
    tl.store(c_ptr + m[:, None] * 16 + n[None, :], total.to(c_ptr.dtype.element_ty))


def product(a, b, acc=tl.float32, block_k=32):
    c = torch.empty((16, 16), dtype=a.dtype, device=a.device)
    product_kernel[(1,)](a, b, c, a.shape[1], acc, block_k)
    return c
