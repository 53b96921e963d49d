import torch
import triton
import triton.language as tl


@triton.jit
def norm_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, K, N: tl.constexpr, BLOCK: tl.constexpr,
    AT_BIAS: tl.constexpr, ONE_PASS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < N
    bias = tl.load(b_ptr + i, mask=inside, other=0.0)
    acc = bias if AT_BIAS else tl.zeros_like(bias)
    for k in range(K):
        acc += tl.load(x_ptr + row * K + k) * tl.load(w_ptr + i * K + k, mask=inside, other=0.0)
    if not AT_BIAS:
        acc += bias
    mean = tl.sum(acc, axis=0) / N
    centred = tl.where(inside, acc - mean, 0.0)
    if ONE_PASS:
        variance = tl.sum(acc * acc, axis=0) / N - mean * mean
    else:
        variance = tl.sum(centred * centred, axis=0) / N
    tl.store(y_ptr + row * N + i, centred / tl.sqrt(variance + 1e-5), mask=inside)


def normed(x, linear, at_bias=False, one_pass=False):
    N = linear.weight.shape[0]
    y = torch.empty(x.shape[0], N, device=x.device)
    norm_kernel[(x.shape[0],)](
        x, linear.weight, linear.bias, y, x.shape[1], N, 64, at_bias, one_pass
    )
    return y
