"""Run a generated attention kernel in the interpreter and compare it with float64."""

from __future__ import annotations

from typing import Any

import numpy as np
from graph_expressions import Expression, positions

from hotloop.core.graph import AttentionSpec
from hotloop.templates.attention.family import AttentionFamily

TOLERANCE = {"float32": 2e-5, "float16": 2e-3, "bfloat16": 1.6e-2}
"""Largest error of an output of order 1: a few roundings of the dtype's epsilon."""


def draw(spec: AttentionSpec, seed: int) -> list[np.ndarray]:
    """Return q, k and v."""
    rng = np.random.default_rng(seed)
    shapes = [(spec.B, spec.H, spec.S, spec.D)] + [(spec.B, spec.Hkv, spec.Skv, spec.D)] * 2
    tensors = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    return [_rounded(t, spec.dtype) for t in tensors]


def _rounded(array: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "float16":
        return array.astype(np.float16).astype(np.float32)
    if dtype == "bfloat16":  # keep 8 bits of the significand
        return (array.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return array


def exact(
    spec: AttentionSpec,
    tensors: list[np.ndarray],
    buffers: dict[str, np.ndarray],
    *,
    score: Expression | None,
    mask: Expression | None,
) -> np.ndarray:
    """Return the attention output in float64, by its definition."""
    s = scores(spec, tensors)
    env = {**positions(spec), **buffers, "score": s}
    if score is not None:
        s = np.broadcast_to(np.asarray(score.compute(env), dtype=np.float64), s.shape)
    keep = np.ones_like(s, dtype=bool)
    if mask is not None:
        keep = np.broadcast_to(mask.compute(env), s.shape)
    return attend(spec, tensors, s, keep)


def scores(spec: AttentionSpec, tensors: list[np.ndarray]) -> np.ndarray:
    """Return q k^T times the scale, (B, H, S, Skv), in float64."""
    q, k = (t.astype(np.float64) for t in tensors[:2])
    return np.einsum("bhqd,bhkd->bhqk", q, np.repeat(k, spec.H // spec.Hkv, 1)) * spec.scale


def attend(
    spec: AttentionSpec, tensors: list[np.ndarray], s: np.ndarray, keep: np.ndarray
) -> np.ndarray:
    """Return the output for modified scores and a mask, in float64."""
    v = np.repeat(tensors[2].astype(np.float64), spec.H // spec.Hkv, 1)
    if spec.normalize == "sigmoid":
        p = np.where(keep, 1 / (1 + np.exp(-s)), 0.0)
        return np.einsum("bhqk,bhkd->bhqd", p, v)
    s = np.where(keep, s, -np.inf)
    top = s.max(-1, keepdims=True)
    p = np.exp(s - np.where(np.isfinite(top), top, 0.0))
    total = p.sum(-1, keepdims=True)
    return np.einsum("bhqk,bhkd->bhqd", p / np.where(total == 0, 1.0, total), v)


def check(
    interpreter: Any,
    spec: AttentionSpec,
    *,
    score: Expression | None = None,
    mask: Expression | None = None,
    buffers: dict[str, np.ndarray] | None = None,
    **point: Any,
) -> str:
    """Generate, run and compare; return the generated source."""
    family = AttentionFamily(spec)
    complete = family.space().complete(point)
    source = family.render(complete).text()
    tensors = draw(spec, seed=5)
    dtypes = {b.name: b.dtype for b in spec.buffers}
    state = {name: (value, dtypes[name]) for name, value in (buffers or {}).items()}
    inputs = [(t, spec.dtype) for t in tensors]
    (got,) = interpreter.run(source, inputs, state=state)
    want = exact(spec, tensors, buffers or {}, score=score, mask=mask)
    error = relative_error(got, want)
    limit = TOLERANCE[spec.dtype] * (8 if point.get("tanh") == "approx" else 1)
    assert error < limit, f"error {error:.2e} at {complete}\n{source}"
    return source


def relative_error(got: np.ndarray, want: np.ndarray) -> float:
    """Return the largest error in units of the largest value, infinity where one is not finite."""
    if not np.isfinite(got).all():
        return float("inf")
    return float(np.abs(got - want).max()) / max(1.0, float(np.abs(want).max()))
