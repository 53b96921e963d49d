"""An audit by itself: the reference and its cases, and nothing that a candidate needs.

What `hotloop audit` asks of a judge, and the benchmark of many problems. No baseline is timed and
nothing is compiled, so the checks are at most stricter than those of a run, whose envelope may also
have the compiled model (`envelope.py`). One draw of each value profile is taken, and only while
there is a fake that passed those before.
"""

from __future__ import annotations

from collections.abc import Iterator

from hotloop.core.audit import Audit
from hotloop.core.problem import Problem, Role, Workload
from hotloop.worker.audit import Checked, audit, audit_key
from hotloop.worker.cases import CaseBook
from hotloop.worker.device import environment
from hotloop.worker.kept_memory import cache_budget_bytes
from hotloop.worker.load import load_problem
from hotloop.worker.memory import release_memory
from hotloop.worker.reference import Reference, build_reference
from hotloop.worker.timed import secret_seed


def audit_problem(problem: Problem, device: str) -> Audit:
    """Load a problem at its nominal workload and audit it.

    Args:
        problem: what to load; its other workloads are asked where a fake passes the nominal one.
        device: `cuda` or `cpu`.

    Raises:
        ProblemError: the reference is broken, or its inputs do not fit on the device.
    """
    nominal = next(w for w in problem.workloads if w.role is Role.NOMINAL)
    reference = _reference(problem, nominal, device)
    key = audit_key(problem.id, environment(device, "T0"))
    try:
        return audit(reference, _cases(problem, reference, nominal), key=key)
    finally:
        release_memory()


def _reference(problem: Problem, workload: Workload, device: str) -> Reference:
    reference = build_reference(load_problem(problem, device=device, settings=workload.settings))
    reference.skip_compiled()
    return reference


def _cases(problem: Problem, reference: Reference, nominal: Workload) -> Iterator[Checked]:
    yield from _one_a_profile(reference, nominal)
    for workload in problem.workloads:
        if workload.role is Role.BOUNDARY:
            yield from _one_a_profile(_reference(problem, workload, reference.device), workload)


def _one_a_profile(reference: Reference, workload: Workload) -> Iterator[Checked]:
    """Yield a case of each profile; the next is evaluated only when it is asked for."""
    book = CaseBook(reference, workload.name)
    for profile in reference.profiles:
        known = len(book.cases)
        book.add(profile, secret_seed(), cache_bytes=cache_budget_bytes(reference.device))
        if len(book.cases) > known:
            yield book, book.cases[-1]
            book.forget()
