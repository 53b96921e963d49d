"""Keys and values in pages: a paged KV cache, and the table that says where its keys lie.

    k, v         (P, Hkv, page_size, D): P pages, some of which nobody uses
    page_table   (B, Skv / page_size), int32: the page with the keys of each batch, in their order

Everything else here works on keys in their order, (B, Hkv, Skv, D). No page is named twice, and no
page lies where counting from 0 would put it: a kernel that ignores the table is wrong everywhere.

Not here: FlexAttention over pages (`paged_flex.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from hotloop.errors import ProblemError
from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.draw import Draw

if TYPE_CHECKING:
    from hotloop.worker.load import LoadedProblem

PAGE_TABLE = "page_table"
"""The buffer of the Model that holds the table."""
_OTHER_STREAM = 0x9A6E
"""Tells the table's seed from that of captured tensors."""


def draw_page_table(sizes: AttentionSizes, seed: int, device: str) -> Tensor:
    """Return a random table (B, Skv / page_size), int32, without a page in its natural place.

    Raises:
        ValueError: the sizes are not paged.
    """
    if sizes.page_size is None:
        raise ValueError("expected paged sizes, got page_size None")
    gen = torch.Generator().manual_seed(seed ^ _OTHER_STREAM)
    count = sizes.B * (sizes.Skv // sizes.page_size)
    natural = torch.arange(count)
    table = natural
    while bool((table == natural).any()):  # about e = 2.7 draws, or fewer: there are spare pages
        table = torch.randperm(sizes.kv_shape[0], generator=gen)[:count]
    return table.view(sizes.B, -1).to(device=device, dtype=torch.int32)


def with_page_table(
    state: dict[str, Tensor], loaded: LoadedProblem, seed: int
) -> dict[str, Tensor]:
    """Return a draw's captured tensors, with its page table where the problem is paged.

    Raises:
        ProblemError: a captured tensor has the table's name.
    """
    if loaded.sizes is None or loaded.sizes.page_size is None:
        return state
    if PAGE_TABLE in state:
        raise ProblemError(
            f"{loaded.problem.name}: {PAGE_TABLE!r} is drawn for a file with a page_size, and the "
            "file has a captured tensor of that name; rename it, or take it out of get_buffers()"
        )
    return {**state, PAGE_TABLE: draw_page_table(loaded.sizes, seed, loaded.device)}


def natural_page_table(table: Tensor) -> Tensor:
    """Return a table like this one that counts from 0: what a kernel without a table reads."""
    return torch.arange(table.numel(), dtype=table.dtype, device=table.device).view(table.shape)


def in_order(draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Return q, and k and v of a paged draw as (B, Hkv, Skv, D)."""
    q, k, v = draw.inputs
    table = draw.state[PAGE_TABLE]
    return q, gather_pages(k, table), gather_pages(v, table)


def write_back(draw: Draw, k: Tensor, v: Tensor, gen: torch.Generator) -> None:
    """Write k and v (B, Hkv, Skv, D) into the pages of a draw, in place."""
    for pages, keys in zip(draw.inputs[1:], (k, v), strict=True):
        write_pages(pages, draw.state[PAGE_TABLE], keys, gen)


def gather_pages(pages: Tensor, table: Tensor) -> Tensor:
    """Return (B, Hkv, Skv, D), contiguous, from pages (P, Hkv, page_size, D)."""
    batch, columns = table.shape
    _, heads, page_size, width = pages.shape
    found = pages[table.long()]  # (B, columns, Hkv, page_size, D)
    return found.transpose(1, 2).reshape(batch, heads, columns * page_size, width)


def write_pages(pages: Tensor, table: Tensor, keys: Tensor, gen: torch.Generator) -> None:
    """Write keys (B, Hkv, Skv, D) into the pages that the table names, N(0, 1) into all others."""
    batch, columns = table.shape
    _, heads, page_size, width = pages.shape
    pages.normal_(generator=gen)
    ordered = keys.view(batch, heads, columns, page_size, width).transpose(1, 2)
    pages[table.long()] = ordered
