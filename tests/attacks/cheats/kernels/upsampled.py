import torch
import triton
import triton.language as tl


@triton.jit
def twice_kernel(x_ptr, y_ptr, H, W, BLOCK: tl.constexpr):
    """Write a row of y from two rows of x that have one more element on each side."""
    image, row = tl.program_id(0), tl.program_id(1)
    j = tl.arange(0, BLOCK)
    keep = j < 2 * W
    i0, j0 = (row + 1) // 2, (j + 1) // 2
    down, right = tl.where(row % 2 == 0, 0.75, 0.25), tl.where(j % 2 == 0, 0.75, 0.25)
    at = x_ptr + image * (H + 2) * (W + 2) + i0 * (W + 2) + j0
    a, b = tl.load(at, mask=keep), tl.load(at + 1, mask=keep)
    c, d = tl.load(at + W + 2, mask=keep), tl.load(at + W + 3, mask=keep)
    top, bottom = a * (1 - right) + b * right, c * (1 - right) + d * right
    y = top * (1 - down) + bottom * down
    tl.store(y_ptr + (image * 2 * H + row) * 2 * W + j, y, mask=keep)


@triton.jit
def add_kernel(a_ptr, b_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    a = tl.load(a_ptr + i, mask=i < n)
    tl.store(y_ptr + i, a + tl.load(b_ptr + i, mask=i < n), mask=i < n)


def twice(padded):
    """Upsample images that were padded with their edges."""
    b, c, h, w = padded.shape
    h, w = h - 2, w - 2
    y = torch.empty(b, c, 2 * h, 2 * w, device=padded.device)
    twice_kernel[(b * c, 2 * h)](padded, y, h, w, triton.next_power_of_2(2 * w))
    return y


def added(a, b):
    y = torch.empty_like(a)
    add_kernel[(triton.cdiv(y.numel(), 1024),)](a, b, y, y.numel(), 1024)
    return y
