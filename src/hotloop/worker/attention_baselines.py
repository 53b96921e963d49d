"""Attention baselines: FlexAttention compiled, and the vendor kernels where they apply.

Which vendor kernels apply is read off the behaviour of the modifications: `sdpa_flash` and `cudnn`
know plain and causal attention only. A block mask is made ahead of the calls (`block_masks.py`), as
users do, and its time is kept apart in `prepare_ms`. FlexAttention with the approximate tanh is
there where the score_mod has a tanh; its FLASH back end where the package is installed, and where
it is not that is its reason to be missing.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.attention.flex_attention import flex_attention
from torch.nn.functional import scaled_dot_product_attention

from hotloop.errors import InfraError, ProblemError
from hotloop.worker import attention_math, baselines
from hotloop.worker.approximate_tanh import OPTIONS, approximate_tanh, uses_tanh
from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.attention_math import Grid, Mods, over_grid
from hotloop.worker.baselines import APPROXIMATE_BASELINES, FLASH_BASELINE, GATHER_BASELINE
from hotloop.worker.block_masks import BlockMasks
from hotloop.worker.draw import Draw
from hotloop.worker.inputs import generator
from hotloop.worker.paged import PAGE_TABLE, gather_pages
from hotloop.worker.paged_flex import PagedFlex

if TYPE_CHECKING:
    from hotloop.worker.attention_reference import AttentionReference

_VENDOR = {"sdpa_flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
PROBES = 256
"""Queries and keys on which a mask's behaviour is sampled, beside the first and last ones."""
FLASH_PACKAGE = "flash-attn-4"


class AttentionBaselines:
    """Builds the baselines of one attention reference."""

    def __init__(self, reference: AttentionReference) -> None:
        self._reference = reference
        self._masks = BlockMasks(reference.mods.mask_mod, reference.sizes, reference.device)

    def names(self) -> tuple[str, ...]:
        """Return the names that apply on this device."""
        reference = self._reference
        if reference.device != "cuda":
            return ("eager",)
        with reference.bound({}):
            return applicable(reference.mods, reference.sizes, reference.device)

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
        elif name in APPROXIMATE_BASELINES:
            return self._approximate(name, draw)
        elif name == GATHER_BASELINE:
            call = self._gather(draw)
        else:
            call = self._flex(name, draw)
        return self._ready(name, call, draw)

    def _ready(self, name: str, call: Callable[[], Any], draw: Draw) -> Callable[[], Any]:
        def bound() -> Any:
            with self._reference.bound(draw.state):
                return call()

        return baselines.ready(name, bound, self._reference.precision)

    def _eager(self, draw: Draw) -> Callable[[], Any]:
        reference = self._reference
        if reference.mods.sigmoid:
            return lambda: attention_math.unfused(*reference.in_order(draw), reference.mods)
        if reference.flex_fault is not None:
            raise ProblemError(f"baseline 'eager' does not apply: {reference.flex_fault}")
        return lambda: reference.flex(*reference.in_order(draw))

    def _flex(
        self, name: str, draw: Draw, options: Mapping[str, Any] | None = None
    ) -> Callable[[], Any]:
        mods = self._reference.mods
        if self._reference.sizes.page_size is not None:
            return self._paged_flex(name, draw, options)
        q, k, v = draw.inputs
        more: dict[str, Any] = {}
        if name == FLASH_BASELINE:
            require_flash()
            more["kernel_options"] = {"BACKEND": "FLASH"}
        block_mask = self._block_mask(name, draw)
        fast = baselines.compiled(flex_attention, name, options)
        return lambda: fast(
            q,
            k,
            v,
            score_mod=mods.score_mod,
            block_mask=block_mask,
            scale=mods.scale,
            enable_gqa=q.shape[1] != k.shape[1],
            **more,
        )

    def _block_mask(self, name: str, draw: Draw) -> Any:
        """Return the block mask of keys in their order, None without a mask; notes its time."""
        if self._reference.mods.mask_mod is None:
            return None
        with self._reference.bound(draw.state):
            grid = probe(self._reference.sizes, self._reference.device)
            block_mask, elapsed_ms = self._masks.of(draw.state, grid)
        self._reference.prepare_ms[name] = elapsed_ms
        return block_mask

    def _paged_flex(
        self, name: str, draw: Draw, options: Mapping[str, Any] | None
    ) -> Callable[[], Any]:
        """Return FlexAttention that reads the pages where they lie."""
        reference = self._reference
        q, k, v = draw.inputs
        flex = PagedFlex(reference.mods, reference.sizes, draw.state[PAGE_TABLE])
        with reference.bound(draw.state):
            grid = probe(reference.sizes, reference.device)
            block_mask, reference.prepare_ms[name] = flex.block_mask(grid)
        fast = baselines.compiled(flex_attention, name, options)
        return lambda: fast(
            flex.view_query(q),
            flex.view_pages(k),
            flex.view_pages(v),
            score_mod=flex.score_mod,
            block_mask=block_mask,
            scale=reference.mods.scale,
            enable_gqa=q.shape[1] != k.shape[1],
        ).reshape(q.shape)

    def _gather(self, draw: Draw) -> Callable[[], Any]:
        """Return FlexAttention on k and v that each call first copies into their order."""
        mods, table = self._reference.mods, draw.state[PAGE_TABLE]
        q, k, v = draw.inputs
        block_mask = self._block_mask(GATHER_BASELINE, draw)

        def gathered(q: Tensor, k: Tensor, v: Tensor, table: Tensor) -> Any:
            k, v = gather_pages(k, table), gather_pages(v, table)
            return flex_attention(
                q,
                k,
                v,
                score_mod=mods.score_mod,
                block_mask=block_mask,
                scale=mods.scale,
                enable_gqa=q.shape[1] != k.shape[1],
            )

        fast = baselines.compiled(gathered, GATHER_BASELINE)
        return lambda: fast(q, k, v, table)

    def _approximate(self, name: str, draw: Draw) -> Callable[[], Any]:
        """Return FlexAttention with the approximate tanh.

        Raises:
            InfraError: the exact one was compiled, and would be shown under this name.
        """
        call = self._flex(name, draw, OPTIONS)

        def swapped_in() -> Any:
            with approximate_tanh():  # at every call: a later one may compile anew
                return call()

        with approximate_tanh() as swapped:
            self._ready(name, call, draw)
        if not swapped.used:
            raise InfraError(f"baseline {name!r}: its tanh was not compiled to the approximate one")
        return self._ready(name, swapped_in, draw)

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
        reference = self._reference
        mods = reference.mods
        fast = baselines.compiled(lambda q, k, v: attention_math.unfused(q, k, v, mods), "compile")
        return lambda: fast(*reference.in_order(draw))


def applicable(mods: Mods, sizes: AttentionSizes, device: str) -> tuple[str, ...]:
    """Return the baselines of a GPU that compute this attention; `device` evaluates the mods."""
    if mods.sigmoid:
        return baselines.SIGMOID_BASELINES
    left_out = set[str]()
    if sizes.page_size is None:
        left_out.add(GATHER_BASELINE)
    else:
        left_out.add(FLASH_BASELINE)
    if sizes.page_size is not None or vendor_form(mods, sizes, device) is None:
        left_out |= set(_VENDOR)
    if not uses_tanh(mods, device):
        left_out |= set(APPROXIMATE_BASELINES)
    return tuple(n for n in baselines.ATTENTION_BASELINES if n not in left_out)


def is_flash_installed() -> bool:
    """Whether the package of FlexAttention's FLASH back end is there."""
    try:
        return importlib.util.find_spec("flash_attn.cute") is not None
    except ImportError:
        return False


def require_flash() -> None:
    """Check that FlexAttention's FLASH back end can be used.

    Raises:
        ProblemError: its package is not installed.
    """
    if not is_flash_installed():
        raise ProblemError(
            f"baseline {FLASH_BASELINE!r}: {FLASH_PACKAGE} is not installed; to compare with it, "
            f"pip install --pre {FLASH_PACKAGE}"
        )


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
