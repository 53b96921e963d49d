"""Hoarding: memory ran out in the judge while a candidate's process was alive; whose fault is it?

The candidate is ended first. If the judge's golden fits then, the candidate held too much; if not,
something else on this machine does.
"""

from __future__ import annotations

import gc

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.errors import InfraError
from hotloop.worker.diagnosis import workload_of
from hotloop.worker.evaluation import Failed
from hotloop.worker.memory import DoesNotFit, release_memory
from hotloop.worker.session import Session
from hotloop.worker.view import WorkloadView

KINDS = {"cuda": "oom_gpu", "cpu": "oom_host"}
"""As a candidate's own out-of-memory errors are called: `failure.py`."""


def hoarded(session: Session, view: WorkloadView, lacked: str) -> Failed:
    """Return the failure of a candidate whose end, just now, gave the judge room again.

    Args:
        session: the judge's; all cases that it keeps are freed.
        view: the workload in whose check memory ran out; its golden is evaluated once more.
        lacked: what was said then, one line.

    Raises:
        InfraError: the golden does not fit without the candidate either.
    """
    session.forget_cases()
    gc.collect()
    release_memory()
    try:
        view.book.materialise(view.book.cases[0])
    except DoesNotFit as exc:
        raise no_room(exc) from None
    text = (
        "memory ran out while the candidate was checked, and did not once its process had ended: "
        f"it holds too much, free what forward does not need ({lacked})"
    )
    where = {"workload": workload_of(view.reference.loaded.problem, view.workload.name)}
    evidence = Evidence(kind=KINDS[session.device], message=text, details=where)
    return Failed(Status.RUNTIME_ERROR, Stage.CORRECTNESS, evidence)


def no_room(exc: DoesNotFit) -> InfraError:
    """Return the machine's failure where what fitted at the load of a problem fits no more."""
    return InfraError(
        f"expected room for what fitted when the problem was loaded, got: {exc}; see what else "
        "uses this device's memory"
    )
