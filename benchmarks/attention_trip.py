"""How many GPU seconds a bundle of the six problems takes, by what an H200 took before.

The costs are means over `recordings/model_pilot_verdicts.jsonl`, whose six attention problems have
the sizes of `attention_models`; a test holds them against the recording. A load was of a machine
that had compiled nothing before. A GPU was held for what a verdict's `stage_s` calls `gpu`, and
stood still for `compile_wait`.

A full final took 9.7 s with eight other shapes. The short one leaves these and the sanitizers out
and times half the rounds: it took no longer than the 16 recorded ones without other shapes.
"""

from __future__ import annotations

from collections.abc import Iterable

from hotloop.core.verdict import Tier
from hotloop.verify.bundle import Bundle, Item

LOAD_S = 19.0
FAST_S = 1.7
FINAL_S = 9.7
SHORT_FINAL_S = 2.9


def item_s(item: Item) -> float:
    """Return the GPU seconds that one item takes once its problem is loaded."""
    if item.tier is None:
        return 0.0
    if item.tier is Tier.FAST:
        return FAST_S
    return SHORT_FINAL_S if item.short else FINAL_S


def group_seconds(bundle: Bundle) -> list[float]:
    """Return the seconds of each problem: one load, and all that is judged of it."""
    return [
        LOAD_S + sum(item_s(item) for item in bundle.items if item.problem_id == problem_id)
        for problem_id in bundle.problems
    ]


def wall_s(groups: Iterable[float], gpus: int) -> float:
    """Return when the last GPU is done, where each takes the longest group that is left."""
    busy_s = [0.0] * gpus
    for group_s in sorted(groups, reverse=True):
        busy_s[busy_s.index(min(busy_s))] += group_s
    return max(busy_s)


def trip_text(bundle: Bundle) -> str:
    """Return what a bundle asks for, and how long that takes on one and on two GPUs."""
    tiers = [item.tier for item in bundle.items]
    short = sum(item.short for item in bundle.items)
    parts = [f"{len(bundle.problems)} loads", f"{tiers.count(Tier.FAST)} fast"]
    if finals := tiers.count(Tier.FINAL):
        parts.append(f"{finals} final ({short} of them short)")
    one, two = (wall_s(group_seconds(bundle), gpus) for gpus in (1, 2))
    return f"{', '.join(parts)}: about {one:.0f} s on one GPU, {two:.0f} s on two"
