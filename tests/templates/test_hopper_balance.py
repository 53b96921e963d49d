"""How Hopper kernels deal out their work: every query tile once, and no program much more of it."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import attention_variants as variants
import pytest
from graph_expressions import Builder, make_spec
from hopper_check import source

from hotloop.templates.attention.plan import AttentionPlan
from hotloop.templates.hopper.family import HopperFamily
from hotloop.templates.hopper.schedule import schedule_of
from hotloop.templates.hopper.walk import most_masked

PROGRAMS = 132
"""Multiprocessors of an H100 SXM or H200."""


class _Dealing:
    """`count_rounds`, `seat` and `find_work` of a generated file, for plain numbers."""

    def __init__(self, text: str, programs: int = PROGRAMS) -> None:
        self.program = 0
        language = SimpleNamespace(
            program_id=lambda axis: self.program,
            num_programs=lambda axis: programs,
            where=lambda condition, x, y: x if condition else y,
            maximum=max,
            minimum=min,
            cdiv=lambda a, b: -(-a // b),
            constexpr=lambda x: x,
        )
        self.names: dict[str, Any] = {"gl": language, "gluon": SimpleNamespace(jit=lambda f: f)}
        numbers = ("B", "H", "S", "KV_LEN", "CONSUMERS", "BLOCK_M", "BLOCK_N")
        wanted = (*numbers, "Q_TILES", "KEY_TILES", "WORK")
        for line in text.splitlines():
            if line.split(" = ")[0] in wanted:
                exec(line, self.names)  # noqa: S102  our own template's text
        start = text.index("@gluon.jit\ndef count_rounds")
        exec(text[start : text.index("@gluon.jit\ndef ring")], self.names)  # noqa: S102

    def work_of(self, program: int) -> list[tuple[Any, ...]]:
        """Return what `find_work` says of the tiles that one program takes."""
        self.program = program
        return [self.names["find_work"](turn) for turn in range(self.names["count_rounds"]())]


def _causal(**sizes: Any) -> Any:
    _, mask = variants.causal()
    return make_spec(mask=mask, H=16, dtype="bfloat16", **sizes)


def _unevenness(text: str) -> float:
    """Return the work of the busiest of the programs over the mean, tiles counted with one more."""
    dealing = _Dealing(text)
    taken: Counter[tuple[int, int]] = Counter()
    loads = []
    for program in range(PROGRAMS):
        work = dealing.work_of(program)
        taken.update((head, first) for head, first, *_ in work)
        loads.append(sum(n_tiles + 1 for _, _, n_tiles, *_ in work))
    names = dealing.names
    heads, rows = range(names["B"] * names["H"]), range(0, names["S"], names["BLOCK_M"])
    assert taken == Counter((head, first) for head in heads for first in rows)
    return max(loads) * PROGRAMS / sum(loads)


@pytest.mark.parametrize("D", [64, 128])
@pytest.mark.parametrize(("S", "B"), [(1024, 4), (4096, 4), (16384, 2)])
def test_causal_work_is_shared_out_evenly(S, B, D):
    for block in (128, 64):
        assert _unevenness(source(_causal(B=B, S=S, D=D), BLOCK_N=block)) < 1.06


def test_an_order_that_repeats_with_the_rounds_is_seen():
    """Eight heads side by side have a period close to that of the seats: the check must see it."""
    text = source(_causal(B=4, S=4096, D=128))
    for right, wrong in (
        ("number // Q_TILES", "number // (8 * Q_TILES) * 8 + number % 8"),
        ("number % Q_TILES", "number % (8 * Q_TILES) // 8"),
    ):
        assert text.count(right) == 1
        text = text.replace(right, wrong)
    assert _unevenness(text) > 1.5


def _most(spec: Any, block_n: int) -> tuple[int | None, int]:
    """Return the most tiles under the mask by closed forms, and by what the kernel computes."""
    family = HopperFamily(spec)
    point = family.space().complete({"BLOCK_N": block_n, "tiles": "closed"})
    plan = AttentionPlan.of(spec)
    schedule = schedule_of(plan, point)
    dealing = _Dealing(family.render(point).text(), programs=1)
    found = max(n_masked for _, _, _, n_masked, *_ in dealing.work_of(0))
    return most_masked(plan, schedule.block_m, schedule.block_n), found


@pytest.mark.parametrize("S", [128, 1000, 1024])
@pytest.mark.parametrize("block_n", [64, 128])
def test_the_most_tiles_under_a_mask_are_known(S, block_n):
    g = Builder()
    masks = [g.q >= g.kv, (g.q >= g.kv) & (g.q - g.kv < 300), g.q - g.kv <= 70]
    for mask in masks:
        closed, computed = _most(make_spec(mask=mask, S=S, D=64, dtype="bfloat16"), block_n)
        assert closed == computed


def test_bounds_that_depend_on_the_head_are_not_guessed():
    g = Builder()
    mask = g.kv - g.q <= g.h
    plan = AttentionPlan.of(make_spec(mask=mask, H=4, S=256, D=64, dtype="bfloat16"))
    assert most_masked(plan, 128, 128) is None


def test_mask_code_stands_in_the_loop_only_where_it_can_run():
    spec = _causal(B=1, S=1024, D=64)
    wide, narrow = (source(spec, BLOCK_N=block) for block in (128, 64))
    assert "i < n_masked,\n" not in wide
    assert "i < n_masked,\n" in narrow
