"""For which problems keys are split, and the schedules of that.

With one query the work is to read k and v once. One program a query tile, as for prefill, leaves
most of the device without work and reads a group's keys once for each of its heads; here a program
takes all query rows of one head of k and v (their group's heads packed into one tile), and the keys
are shared out so that every multiprocessor has some.
"""

from __future__ import annotations

from hotloop.core.graph import AttentionSpec
from hotloop.core.space import Dimension, Point, Space
from hotloop.errors import UnsupportedOp
from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.dot_precision import DOT_PRECISION, dot_precision

MAX_ROWS = 64
"""Query rows of one head of k and v, over all heads of its group: more is prefill."""
MIN_KEYS = 512
"""With fewer there is nothing to share out."""
MULTIPROCESSORS = 132
"""Of an H100 or H200 (SXM)."""
WAVES = 2
"""Programs a multiprocessor that the first guess aims at: while one waits for memory, one works."""
MAX_SPLITS = 128


def is_decode(spec: AttentionSpec) -> bool:
    """Whether a problem has few queries, and many keys or keys in pages."""
    is_long = spec.Skv >= MIN_KEYS or spec.page_size is not None
    return rows_of(spec) <= MAX_ROWS and is_long


def check_rows(spec: AttentionSpec) -> None:
    """Refuse a paged cache with more query rows than a tile has.

    Raises:
        UnsupportedOp: says how many there are, and how many there may be.
    """
    rows = rows_of(spec)
    if spec.page_size is not None and rows > MAX_ROWS:
        raise UnsupportedOp(
            f"a paged cache with H / Hkv * S = {rows} query rows for each head of k: expected at "
            f"most {MAX_ROWS}, a decode step; make S smaller, or let a model write the kernel"
        )


def rows_of(spec: AttentionSpec) -> int:
    """Return the query rows that share one head of k and v."""
    return spec.H // spec.Hkv * spec.S


def decode_space(plan: AttentionPlan) -> Space:
    """Return the schedules of a problem for which `is_decode` holds."""
    spec = plan.spec
    is_wide = spec.dtype == "float32" or spec.D > 128
    keys = (32, 64) if is_wide else (64, 128, 32)
    splits = splits_of(spec)
    dimensions = [
        Dimension(name="BLOCK_N", choices=keys, ordered=True),
        Dimension(name="SPLITS", choices=splits, ordered=True),
        Dimension(name="num_warps", choices=(4, 8), ordered=True),
        Dimension(name="num_stages", choices=(3, 2, 4), ordered=True),
    ]
    if plan.uses_tanh:
        fast = () if spec.dtype == "float32" else ("approx",)
        dimensions.append(Dimension(name="tanh", choices=(*fast, "exp2", "exact")))
    rounds = spec.dtype == "float32" and plan.allows_tf32
    if rounds:
        dimensions.append(dot_precision(allows_tf32=True, full=("ieee",)))
    space = Space(dimensions=tuple(dimensions))
    wanted: list[Point] = [
        {},
        {"num_stages": 4},
        {"BLOCK_N": keys[1]},
    ]
    if spec.page_size is None or not is_wide:  # there registers spill
        wanted.append({"BLOCK_N": keys[1], "num_warps": 8, "num_stages": 2})
    wanted += [{"SPLITS": count} for count in splits[1:3]]
    if rounds:  # a start whose precision no check can object to
        wanted.append({DOT_PRECISION: "ieee"})
    return Space(dimensions=space.dimensions, starts=tuple(space.complete(w) for w in wanted))


def splits_of(spec: AttentionSpec) -> tuple[int, ...]:
    """Return into how many shares the keys may be split, best guess first; powers of two."""
    aim = WAVES * MULTIPROCESSORS / (spec.B * spec.Hkv)
    most = max(2, min(MAX_SPLITS, spec.Skv // 64))
    counts = [1 << n for n in range(1, most.bit_length())]
    by_fit = sorted(counts, key=lambda count: (max(count / aim, aim / count), -count))
    return tuple(by_fit[:4])
