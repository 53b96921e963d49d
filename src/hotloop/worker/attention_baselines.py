"""Attention baselines: FlexAttention compiled, and the vendor kernels where they apply.

Which vendor kernels apply is read off the behaviour of the modifications: `sdpa_flash` and `cudnn`
know plain and causal attention only. A block mask is made ahead of the calls, as users do, and its
time is kept apart in `prepare_ms`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention
from torch.nn.functional import scaled_dot_product_attention

from hotloop.errors import ProblemError
from hotloop.worker import attention_math, baselines
from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.attention_math import Grid, Mods, over_grid
from hotloop.worker.draw import Draw
from hotloop.worker.inputs import generator

if TYPE_CHECKING:
    from hotloop.worker.attention_reference import AttentionReference

_VENDOR = {"sdpa_flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
PROBES = 256
"""Queries and keys on which a mask's behaviour is sampled, beside the first and last ones."""
MASK_BYTES = 1 << 32
"""Largest dense mask that an uncompiled create_block_mask may build."""


class AttentionBaselines:
    """Builds the baselines of one attention reference."""

    def __init__(self, reference: AttentionReference) -> None:
        self._reference = reference

    def names(self) -> tuple[str, ...]:
        """Return the names that apply on this device."""
        reference = self._reference
        if reference.device != "cuda":
            return ("eager",)
        if reference.mods.sigmoid:
            return baselines.SIGMOID_BASELINES
        if self._vendor_form() is None:
            return tuple(n for n in baselines.ATTENTION_BASELINES if n not in _VENDOR)
        return baselines.ATTENTION_BASELINES

    def build(self, name: str, draw: Draw) -> Callable[[], Any]:
        """Return the ready callable of one baseline.

        Raises:
            ProblemError: it does not apply.
            InfraError: it failed to compile or run.
        """
        if name == "eager":
            call = self._eager(draw)
        elif name == "compile":
            call = self._sigmoid_compiled(draw)
        elif name in _VENDOR:
            call = self._vendor(name, draw)
        else:
            call = self._flex(name, draw)

        def bound() -> Any:
            with self._reference.bound(draw.state):
                return call()

        return baselines.ready(name, bound, self._reference.precision)

    def _eager(self, draw: Draw) -> Callable[[], Any]:
        reference = self._reference
        q, k, v = draw.inputs
        if reference.mods.sigmoid:
            return lambda: attention_math.unfused(q, k, v, reference.mods)
        if reference.flex_fault is not None:
            raise ProblemError(f"baseline 'eager' does not apply: {reference.flex_fault}")
        return lambda: reference.flex(q, k, v)

    def _flex(self, name: str, draw: Draw) -> Callable[[], Any]:
        mods = self._reference.mods
        q, k, v = draw.inputs
        block_mask = None
        if mods.mask_mod is not None:
            with self._reference.bound(draw.state):
                make = self._mask_maker()
                block_mask, elapsed_ms = baselines.timed_ms(make, q.device.type)
            self._reference.prepare_ms[name] = elapsed_ms
        fast = baselines.compiled(flex_attention, name)
        return lambda: fast(
            q,
            k,
            v,
            score_mod=mods.score_mod,
            block_mask=block_mask,
            scale=mods.scale,
            enable_gqa=q.shape[1] != k.shape[1],
        )

    def _mask_maker(self) -> Callable[[], BlockMask]:
        reference = self._reference
        s, mask_mod = reference.sizes, reference.mods.mask_mod
        over_b, over_h = self._mask_axes()
        batch, heads = s.B if over_b else None, s.H if over_h else None
        make = create_block_mask
        if (batch or 1) * (heads or 1) * s.S * s.Skv > MASK_BYTES:
            make = torch.compile(create_block_mask)
        return lambda: make(mask_mod, batch, heads, s.S, s.Skv, device=reference.device)

    def _mask_axes(self) -> tuple[bool, bool]:
        """Return whether the mask depends on the batch, and on the head; sampled indices."""
        s, mask_mod = self._reference.sizes, self._reference.mods.mask_mod
        assert mask_mod is not None
        grid = probe(s, self._reference.device)
        mask = over_grid(mask_mod, grid).expand(s.B, s.H, len(grid.q), len(grid.kv))
        return not bool((mask == mask[:1]).all()), not bool((mask == mask[:, :1]).all())

    def _vendor(self, name: str, draw: Draw) -> Callable[[], Any]:
        q, k, v = draw.inputs
        causal = self._vendor_form() == "causal"

        def call() -> Any:
            with sdpa_kernel(_VENDOR[name]):
                return scaled_dot_product_attention(
                    q,
                    k,
                    v,
                    is_causal=causal,
                    scale=self._reference.mods.scale,
                    enable_gqa=q.shape[1] != k.shape[1],
                )

        return call

    def _vendor_form(self) -> str | None:
        reference = self._reference
        with reference.bound({}):
            return vendor_form(reference.mods, reference.sizes, reference.device)

    def _sigmoid_compiled(self, draw: Draw) -> Callable[[], Any]:
        mods = self._reference.mods
        q, k, v = draw.inputs
        fast = baselines.compiled(lambda q, k, v: attention_math.unfused(q, k, v, mods), "compile")
        return lambda: fast(q, k, v)


def vendor_form(mods: Mods, sizes: AttentionSizes, device: str) -> str | None:
    """Return `full` or `causal` if the vendor kernels compute this attention, else None."""
    if mods.score_mod is not None or mods.sigmoid:
        return None
    if mods.mask_mod is None:
        return "full"
    if sizes.S != sizes.Skv:  # noqa: SIM300  libraries align such causal masks differently
        return None
    grid = probe(sizes, device)
    mask = over_grid(mods.mask_mod, grid)
    return "causal" if bool((mask == (grid.q[:, None] >= grid.kv[None, :])).all()) else None


def probe(sizes: AttentionSizes, device: str) -> Grid:
    """Return every batch and head, and a sample of queries and keys with both ends."""
    gen = generator(0, device)

    def some(n: int) -> Tensor:
        if n <= 2 * PROBES:
            return torch.arange(n, device=device)
        chosen = torch.randint(n, (PROBES,), generator=gen, device=device)
        ends = torch.tensor([0, 1, n - 2, n - 1], device=device)
        return torch.cat([ends, chosen]).unique()

    kv = some(sizes.Skv)
    # the diagonal is where causal masks differ
    q = kv if sizes.S == sizes.Skv else some(sizes.S)  # noqa: SIM300
    batches, heads = (torch.arange(n, device=device) for n in (sizes.B, sizes.H))
    return Grid(batches, heads, q, kv)
