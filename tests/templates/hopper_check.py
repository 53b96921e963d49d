"""Run a generated Hopper kernel on the emulator and compare it with float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from attention_check import TOLERANCE, draw, exact, relative_error
from gluon_emulator import Settings, run_gluon
from graph_expressions import Expression

from hotloop.core.graph import AttentionSpec
from hotloop.templates.hopper.family import HopperFamily


def source(spec: AttentionSpec, **point: Any) -> str:
    """Return the generated file."""
    family = HopperFamily(spec)
    return family.render(family.space().complete(point)).text()


def run(
    text: str,
    spec: AttentionSpec,
    buffers: dict[str, np.ndarray] | None = None,
    settings: Settings | None = None,
) -> np.ndarray:
    """Return the output of `text` for drawn inputs."""
    dtype = getattr(torch, spec.dtype)
    inputs = [torch.from_numpy(x).to(dtype) for x in draw(spec, seed=5)]
    state = {name: torch.from_numpy(np.ascontiguousarray(b)) for name, b in (buffers or {}).items()}
    return run_gluon(text, inputs, state=state, settings=settings)


def check_hopper(
    spec: AttentionSpec,
    *,
    score: Expression | None = None,
    mask: Expression | None = None,
    buffers: dict[str, np.ndarray] | None = None,
    settings: Settings | None = None,
    **point: Any,
) -> str:
    """Generate, run and compare; return the generated source."""
    text = source(spec, **point)
    got = run(text, spec, buffers, settings)
    want = exact(spec, draw(spec, seed=5), buffers or {}, score=score, mask=mask)
    error = relative_error(got, want)
    assert error < TOLERANCE[spec.dtype], f"error {error:.2e}\n{text}"
    return text
