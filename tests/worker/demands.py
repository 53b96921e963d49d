"""What a call on a small problem cannot do without, for an audit that saw named inputs matter."""

from __future__ import annotations

from hotloop.core.audit import Audit, FakeGroup, Trial, TrialState
from hotloop.worker.compulsory import compulsory
from hotloop.worker.load import LoadedProblem
from hotloop.worker.physics_floor import Demand
from hotloop.worker.reference import build_reference

X, Y = "torch.randn(32, 48)", "torch.randn(32, 48)"
BYTES = 32 * 48 * 4


def seen(*names: str, outputs: int = 1) -> Audit:
    """Return an audit of a ranked problem that saw its outputs change with these inputs."""
    trials = tuple(
        Trial(name=f"other values of {n}", group=FakeGroup.DEPENDENCE, state=TrialState.CAUGHT)
        for n in names
    )
    return Audit(key="k", trials=trials, spread_frac={f"output{i}": 1.0 for i in range(outputs)})


def demand(loaded: LoadedProblem, audit: Audit | None) -> Demand | None:
    """Return the demand of a loaded problem on its timed draw."""
    reference = build_reference(loaded)
    draw = reference.draw(3, reference.profiles[0], timed=True)
    return compulsory(reference, draw, audit)
