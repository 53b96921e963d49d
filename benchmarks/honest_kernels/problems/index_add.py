"""Rows added up by number, as the gradient of an embedding is."""

import torch
import torch.nn as nn

ROWS, COLUMNS, SLOTS = 2000, 64, 50


class Model(nn.Module):
    """Zeros with x added at the rows that `where` names."""

    def __init__(self, slots):
        super().__init__()
        self.slots = slots

    def forward(self, x, where):
        """Map x, (ROWS, COLUMNS), and where, (ROWS,), to (SLOTS, COLUMNS)."""
        return x.new_zeros(self.slots, x.shape[1]).index_add(0, where, x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randint(0, SLOTS, (ROWS,))]


def get_init_inputs():
    return [SLOTS]
