"""How the attention kernel moves its data: addresses, loads and the store of one tile."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hotloop.core.space import Point
from hotloop.templates.attention.lowering import Tile
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.attention.token_order import Box, TokenOrder
from hotloop.templates.source import wrap_arguments

MIN_DOT_DEPTH = 16
"""`tl.dot` needs at least this much of the inner dimension."""


@dataclass(frozen=True, slots=True)
class MemoryAccess:
    """How tiles of q, k and v are read and the output is written."""

    is_tma: bool
    """Whether k and v are read by the tensor memory accelerator."""
    is_q_tma: bool
    """The same of q. A box of it would go to wgmma through registers, so it is read by address."""
    block_d: int
    load_q: tuple[str, ...]
    load_k: tuple[str, ...]
    load_v: tuple[str, ...]
    store_guard: str
    precision: str
    """Further arguments of `tl.dot`."""
    view: str = "flatten(0, 1)"
    """For TMA: what makes k, or v, a tensor of which a tile is a block."""
    block: str = "1, BLOCK_N.value, BLOCK_D.value"
    """For TMA: the shape of such a tile."""


def memory_access(
    plan: AttentionPlan, tile: Tile, point: Point, order: TokenOrder | None
) -> MemoryAccess:
    """Return the loads and the store of the kernel at `point`.

    `order` says which tokens a tile has; None: consecutive ones.
    """
    spec = plan.spec
    block_d = max(1 << (spec.D - 1).bit_length(), MIN_DOT_DEPTH)
    is_padded = block_d != spec.D
    rows = ["(q_idx < S)"] * tile.has_ragged_rows + ["(d_idx < D)"] * is_padded
    is_tma = point.get("loads") == "tma"
    load_q, load_k, load_v = _pointer_loads(tile, _guard(rows), is_padded=is_padded, order=order)
    is_q_tma = is_tma and order is None
    if is_tma:
        load_k, load_v = (_block(name, order) for name in "kv")
        load_q = load_q[:2]  # the rest is for addresses of k and v
    if is_q_tma:
        load_q = ("q = q_in.load([batch_head, q_first, 0]).reshape(BLOCK_M, BLOCK_D)",)
    return MemoryAccess(
        is_tma=is_tma,
        is_q_tma=is_q_tma,
        block_d=block_d,
        load_q=load_q,
        load_k=load_k,
        load_v=load_v,
        store_guard=_guard(rows, other=False),
        precision=", input_precision=DOT_PRECISION" if "dot_precision" in point else "",
        **({} if order is None else _view(order.key)),
    )


def _guard(conditions: Sequence[str], *, other: bool = True) -> str:
    if not conditions:
        return ""
    joined = " & ".join(conditions)
    return f", mask={joined}" + (", other=0.0" if other else "")


def _view(box: Box) -> dict[str, str]:
    return {"view": f"view({box.shape()})", "block": box.block()}


def _block(name: str, order: TokenOrder | None) -> tuple[str, ...]:
    """Load a block of k or v; the hardware fills what is past the end with zeros."""
    end = "reshape(BLOCK_N, BLOCK_D)"
    if order is None:
        return (f"{name} = {name}_in.load([kv_head, start_n, 0]).{end}",)
    at = wrap_arguments(order.key.coordinates("kv_head", "first_key"), 12)
    lines = at.split("\n" + " " * 12)
    return (f"{name} = {name}_in.load([", *(f"    {line}" for line in lines), f"]).{end}")


def _pointer_loads(
    tile: Tile, guard: str, *, is_padded: bool, order: TokenOrder | None
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Load by addresses, one a row; `guard` is q's."""
    load_q = (
        "q_offset = batch_head.to(tl.int64) * (S * D)",
        f"q = tl.load(q_in + q_offset + q_idx * D + d_idx{guard})",
        "k_in += kv_head.to(tl.int64) * (KV_LEN * D)",
        "v_in += kv_head.to(tl.int64) * (KV_LEN * D)",
    )
    columns = ["(d_idx < D)"] * is_padded
    loads = []
    for name in "kv":
        plain = f"{name} = tl.load({name}_in + kv_offset{_guard(columns)})"
        lines = [plain]
        if tile.has_ragged_keys:
            guarded = _guard(["(kv_rows < KV_LEN)", *columns])
            lines = [
                "if MASKED:",
                f"    {name} = tl.load({name}_in + kv_offset{guarded})",
                "else:",
                f"    {plain}",
            ]
        loads.append(lines)
    if order is None:
        rows = "kv_rows = start_n + tl.arange(0, BLOCK_N)[:, None]"
    else:
        rows = "kv_rows = first_key + key_token(tl.arange(0, BLOCK_N))[:, None]"
    start = [rows, "d_idx = tl.arange(0, BLOCK_D)[None, :]", "kv_offset = kv_rows * D + d_idx"]
    return load_q, (*start, *loads[0]), tuple(loads[1])
