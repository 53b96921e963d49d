"""Attention reference: the trusted side of a problem given by a score_mod and a mask_mod.

Captured tensors are globals of the problem's module; each call puts the draw's own there first
(float64 ones for the golden) and the nominal ones back after it.

Values: `attention_values.py`, and with the modifications `needles.py` and `attention_sink.py`.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from hotloop.core.problem import NOTHING_TELLS
from hotloop.core.verdict import Tier
from hotloop.errors import ProblemError
from hotloop.worker import attention_math, baselines, needles, paged
from hotloop.worker.attention_baselines import AttentionBaselines
from hotloop.worker.attention_file import check_fits
from hotloop.worker.attention_math import Mods, visible
from hotloop.worker.attention_sink import write_sink
from hotloop.worker.attention_values import fill_attention
from hotloop.worker.attribution import user_code
from hotloop.worker.captured_reach import check_reach
from hotloop.worker.draw import (
    Draw,
    Outputs,
    Reference,
    Specs,
    nbytes,
    output_specs,
    tensor_spec,
    unfit_reason,
)
from hotloop.worker.envelope import outlier_reason
from hotloop.worker.golden import Widen, float64_default, widen
from hotloop.worker.inputs import generator, own_memory
from hotloop.worker.load import draw_buffers
from hotloop.worker.module_runner import quiet
from hotloop.worker.precision import STRICT, applied
from hotloop.worker.uncompiled_flex import (
    flex_keeps_float32_scores,
    masked_score,
    too_large,
    uncompiled_flex,
)
from hotloop.worker.value_profiles import ATTENTION_PROFILES, names

PROFILES = names(ATTENTION_PROFILES)
NOMINAL_SEED = 1


class AttentionReference(Reference):
    """The reference of an attention file.

    Raises:
        ProblemError: the modifications cannot be evaluated, or the result is not finite.
    """

    def __init__(self, loaded: Any) -> None:
        super().__init__(loaded)
        s = loaded.sizes
        check_fits(loaded.problem, s, self.device)
        self.sizes = s
        self.mods = Mods(
            loaded.score_mod, loaded.mask_mod, s.scale, sigmoid=s.normalize == "sigmoid"
        )
        self._masked = masked_score(self.mods)  # one object: torch traces each function anew
        self.flops = 4.0 * s.B * s.H * s.S * s.Skv * s.D
        self._home = self._buffers(NOMINAL_SEED, timed=True)
        with self.bound(self._home):
            check_reach(loaded)
            seen = visible(self.mods, s.Hkv, (s.B, s.H, s.S, s.Skv), self.device)
        self.useful_flops = self.flops * seen.score_frac
        self._flex_scores_float32 = self.mods.sigmoid or flex_keeps_float32_scores(self.device)
        if not self._flex_scores_float32:
            self.note("uncompiled flex_attention rounds scores here; the envelope up-casts q, k, v")
        self._baselines = AttentionBaselines(self)
        self._compiles = self.device == "cuda"
        nominal = self.draw(NOMINAL_SEED, "normal", timed=True)
        # the golden first: it runs the modifications as plain Python, so errors name their line
        self._degenerate = self._degenerate_reasons(nominal)
        self.flex_fault: str | None = self._try_flex(nominal)
        outputs = self.eager(nominal)
        self._specs = (
            tuple(tensor_spec(n, t) for n, t in zip("qkv", nominal.inputs, strict=True)),
            output_specs(outputs),
            tuple(tensor_spec(n, t) for n, t in nominal.state.items()),
        )
        moved = [nominal.inputs[0], *nominal.state.values(), *outputs]
        self.io_bytes = nbytes([*moved, *nominal.inputs[1:]])
        self.useful_bytes = nbytes(moved) + s.kv_bytes(seen.key_frac)
        del nominal, outputs
        fast = names(ATTENTION_PROFILES, Tier.FAST)
        self.profiles = tuple(p for p in fast if loaded.wants(p) and self._admit(p))
        if not self.profiles:
            reasons = "; ".join(self.notes)
            raise ProblemError(f"{NOTHING_TELLS}: {reasons}")
        self.final_profiles = names(ATTENTION_PROFILES, Tier.FINAL)

    def resized(self, loaded: Any) -> AttentionReference:
        """Return this reference for the same file at other sizes, without captured tensors."""
        other = copy.copy(self)
        other.loaded, other.sizes, other._compiles = loaded, loaded.sizes, False
        other.mods = dataclasses.replace(
            self.mods, score_mod=loaded.score_mod, mask_mod=loaded.mask_mod
        )
        other._masked = masked_score(other.mods)
        return other

    def draw(self, seed: int, profile: str, *, timed: bool = False) -> Draw:
        """Draw q, k, v and the captured tensors; timed draws use the file's `buffer_seed`."""
        if profile not in PROFILES:
            raise ValueError(f"expected a profile of {PROFILES}, got {profile!r}")
        s = self.sizes
        shapes = ((s.B, s.H, s.S, s.D), s.kv_shape, s.kv_shape)
        tensors = tuple(torch.empty(n, dtype=s.dtype, device=self.device) for n in shapes)
        draw = Draw(tensors, self._buffers(seed, timed=timed), seed, profile)
        self.redraw_inputs(draw, seed)
        return draw

    def redraw_inputs(self, draw: Draw, seed: int) -> None:
        """Write new q, k, v in place; captured tensors stay."""
        self._fill(draw, seed)

    def in_order(self, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
        """Return q, and k and v as (B, Hkv, Skv, D); of a paged cache these are copies."""
        return draw.inputs if self.sizes.page_size is None else paged.in_order(draw)

    def _fill(self, draw: Draw, seed: int) -> needles.NeedlePlan | None:
        """Write q, k, v of a seed; return where the needles are, if there are any."""
        gen = generator(seed, self.device)
        draw.seed = seed
        s, plan = self.sizes, None
        q, k, v = self.in_order(draw)
        fill_attention((q, k, v), draw.profile, gen, self.mods)
        if draw.profile == "sink":
            with self.wide(draw.state), applied(STRICT):
                write_sink(q, k, self.mods)
        if draw.profile == "needles":
            with self.wide(draw.state), applied(STRICT):
                plan = needles.plan_needles((s.B, s.H, s.Hkv, s.S, s.Skv), self.mods, gen)
            needles.write_needles(q, k, plan, self.mods.scale)
        if s.page_size is not None:
            paged.write_back(draw, k, v, gen)
        return plan

    def eager(self, draw: Draw) -> Outputs:
        """Run uncompiled FlexAttention, or the same operations in blocks where it cannot run."""
        q, k, v = self.in_order(draw)
        with applied(self.precision), self.bound(draw.state):
            if self.mods.sigmoid or self.flex_fault is not None:
                return (attention_math.unfused(q, k, v, self.mods),)
            return (self.flex(q, k, v),)

    def golden(self, draw: Draw) -> Outputs:
        """Run exact attention in float64, in blocks."""
        q, k, v = self.in_order(draw)
        with applied(STRICT), self.wide(draw.state), Widen():
            return (attention_math.exact(q, k, v, self.mods),)

    def envelope(self, draw: Draw) -> dict[str, Outputs]:
        """Return eager with float32 scores, two tiled online softmaxes, compiled FlexAttention.

        FlexAttention compiles anew for every draw's block mask (seconds), so it joins once, for the
        first draw; the tiled member rounds where it rounds.
        """
        q, k, v = self.in_order(draw)
        members = {"eager": self._eager_member(draw)}
        with applied(self.precision), self.bound(draw.state):
            members["tiled"] = (attention_math.tiled(q, k, v, self.mods),)
            wide = attention_math.WIDE_KEY_TILE
            members["tiled_wide"] = (attention_math.tiled(q, k, v, self.mods, key_tile=wide),)
        if self._compiles:
            self._compiles = False
            name = "compile" if self.mods.sigmoid else "flex"
            try:
                compiled: Outputs = (self.baseline(name, draw)(),)
            except Exception as exc:  # noqa: BLE001  an optional member; the others stand alone
                self.note(f"envelope member 'compiled' left out: {baselines.one_line(exc)}")
                return members
            reason = outlier_reason(compiled, members["eager"], [members["tiled"]])
            if reason is None:
                members["compiled"] = compiled
            else:
                self.note(f"envelope member 'compiled' left out ({draw.profile}): {reason}")
        return members

    def is_exact(self, profile: str) -> bool:
        """Whether outputs must be equal: never, attention rounds."""
        return False

    def baseline_names(self) -> tuple[str, ...]:
        """Return the baselines that apply to these modifications on this device."""
        return self._baselines.names()

    def baseline(self, name: str, draw: Draw) -> Callable[[], Any]:
        """Return a callable on the draw's q, k, v; the block mask is made here, `prepare_ms`."""
        baselines.require(name, self.baseline_names())
        return self._baselines.build(name, draw)

    def specs(self) -> Specs:
        """Return q, k, v; the output; the captured tensors."""
        return self._specs

    def degenerate(self) -> tuple[str, ...]:
        """Return why a constant would pass."""
        return self._degenerate

    def flex(self, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        """Run uncompiled FlexAttention on the problem's modifications."""
        return uncompiled_flex(q, k, v, self._masked, self.mods.scale)

    @contextmanager
    def bound(self, state: dict[str, Tensor]) -> Iterator[None]:
        """Make the modifications see the captured tensors of `state`."""
        with torch.no_grad(), quiet(), user_code(self.loaded.problem, "score_mod or mask_mod"):
            self._install(state)
            try:
                yield
            finally:
                self._install(self._home)

    @contextmanager
    def wide(self, state: dict[str, Tensor]) -> Iterator[None]:
        """Make the modifications see the captured tensors of `state`, in float64."""
        with float64_default(), self.bound({n: widen(t) for n, t in state.items()}):
            yield

    def _buffers(self, seed: int, *, timed: bool) -> dict[str, Tensor]:
        pinned = self.loaded.buffer_seed if timed else None
        drawn = draw_buffers(self.loaded, seed if pinned is None else pinned)
        state = {n: own_memory(t) for n, t in {**self.loaded.fixed_buffers, **drawn}.items()}
        return paged.with_page_table(state, self.loaded, seed)

    def _install(self, state: dict[str, Tensor]) -> None:
        namespace = self.loaded.namespace
        for name, tensor in state.items():
            if name == paged.PAGE_TABLE and self.sizes.page_size is not None:
                continue  # modifications count keys in their order
            # a tensor fixed in a closure is no global; another global may have its name
            if name not in self.loaded.fixed_buffers or isinstance(namespace.get(name), Tensor):
                namespace[name] = tensor

    def _eager_member(self, draw: Draw) -> Outputs:
        if self._flex_scores_float32:
            return self.eager(draw)
        q, k, v = (t.float() for t in self.in_order(draw))
        with applied(self.precision), self.bound(draw.state):
            return (attention_math.unfused(q, k, v, self.mods).to(self.sizes.dtype),)

    def _try_flex(self, draw: Draw) -> str | None:
        """Return why uncompiled FlexAttention cannot run here, or None."""
        if self.mods.sigmoid:
            return "FlexAttention has no sigmoid normalisation"
        reason = too_large(self.sizes, self.device)
        if reason is not None:
            return reason
        try:
            with applied(self.precision), self.bound(draw.state):
                self.flex(*self.in_order(draw))
        except ProblemError as exc:
            # the golden ran the same modifications, so this is a limit of FlexAttention
            self.note(f"eager is written out: uncompiled flex_attention fails ({exc})")
            return str(exc)
        return None

    def _admit(self, profile: str) -> bool:
        reason = self._unfit(profile)
        if reason is not None:
            self.note(f"value profile {profile!r} left out: {reason}")
        return reason is None

    def _unfit(self, profile: str) -> str | None:
        if profile == "needles" and self.sizes.D < 4 * needles.RESERVED:
            return f"it reserves {needles.RESERVED} dimensions, too many of {self.sizes.D}"
        draw = self.draw(NOMINAL_SEED, profile)
        plan = self._fill(draw, NOMINAL_SEED)
        golden = self.golden(draw)
        if profile == "normal" and not bool(torch.isfinite(golden[0]).all()):
            raise ProblemError(
                "attention should be finite on N(0, 1) inputs, got Inf or NaN; mend score_mod"
            )
        reason = unfit_reason(self.eager(draw), golden)
        if reason is None and plan is not None:
            q, k, v = self.in_order(draw)
            with self.wide(draw.state), applied(STRICT):
                reason = needles.needles_fault(q, k, v, self.mods, plan)
        return reason

    def _degenerate_reasons(self, draw: Draw) -> tuple[str, ...]:
        if not bool(self.golden(draw)[0].any()):
            return ("the output is zero everywhere: every key is masked",)
        return ()
