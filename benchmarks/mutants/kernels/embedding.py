"""Rows of a table by number."""

import torch
import triton
import triton.language as tl


@triton.jit
def embedding_kernel(indices_ptr, table_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    index = tl.load(indices_ptr + row)
    i = tl.arange(0, BLOCK)
    x = tl.load(table_ptr + index * n + i, mask=i < n)
    tl.store(y_ptr + row * n + i, x, mask=i < n)


class ModelNew(torch.nn.Module):
    def __init__(self, rows, columns):
        super().__init__()
        self.table = torch.nn.Embedding(rows, columns)

    def forward(self, indices):
        R, n = indices.shape[0], self.table.embedding_dim
        y = torch.empty((R, n), device=indices.device, dtype=self.table.weight.dtype)
        embedding_kernel[(R,)](indices, self.table.weight, y, n, BLOCK=triton.next_power_of_2(n))
        return y
