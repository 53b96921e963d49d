"""Audit one problem after the other, in one process with one GPU, as a parent asks for them.

    python -m benchmarks.audit_child cuda

Reads one JSON object a line on stdin (`problem`, `settings`), writes one row a line on stdout; what
the problems print goes to stderr. A process for each problem would spend more time on importing
torch than on the audit. It ends after an error that is not the problem's own: the GPU's context may
be gone then, and the parent starts another.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Mapping
from typing import IO, Any

from benchmarks.results_file import Row
from hotloop.core.audit import Audit, TrialState
from hotloop.errors import ProblemError
from hotloop.problems import load_problem_spec
from hotloop.worker.audit_alone import audit_problem
from hotloop.worker.device import environment
from hotloop.worker.memory import release_memory

DATA_VARIABLE = "HOTLOOP_KERNELBENCH"
NOMINAL = "nominal: shipped"
"""The values that the file itself draws."""


def main() -> int:
    """Serve until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    return serve(device, sys.stdin, answers)


def serve(device: str, questions: IO[str], answers: IO[str]) -> int:
    """Answer each line of `questions`; return 1 when an error ended it."""
    for line in questions:
        row = audit_row(json.loads(line), device)
        print(json.dumps(row), file=answers, flush=True)
        if row["error"] is not None:
            return 1
        gc.collect()
        release_memory()
    return 0


def audit_row(question: Mapping[str, Any], device: str) -> Row:
    """Audit one problem and return its row; a reference that is refused is a row, no error."""
    name = str(question["problem"])
    row: Row = {
        "problem": name,
        "device": device,
        "settings": dict(question.get("settings") or {}),
        "rankable": None,
        "refused": None,
        "error": None,
        "environment": environment(device, "T0"),
    }
    start = time.monotonic()
    try:
        problem = load_problem_spec(
            name, device=device, data=os.environ.get(DATA_VARIABLE), settings=row["settings"]
        )
        row |= found(audit_problem(problem, device))
    except ProblemError as exc:
        row |= {"rankable": False, "refused": str(exc)[:500]}
    except Exception as exc:  # noqa: BLE001  whatever it was: the parent goes on with another child
        row["error"] = f"{type(exc).__name__}: {str(exc)[:300]}"
    row["wall_s"] = time.monotonic() - start
    return row


def found(audit: Audit) -> Row:
    """Return what a row tells of an audit."""
    tried = [t for t in audit.trials if t.state is not TrialState.SKIPPED]
    return {
        "rankable": audit.rankable,
        "reasons": list(audit.reasons),
        "findings": list(audit.findings),
        "spread_frac": dict(audit.spread_frac),
        "fakes_tried": len(tried),
        "passed_nominal": [t.name for t in tried if NOMINAL in t.passed],
        "caught_later": {
            t.name: t.caught_by for t in tried if t.passed and t.state is TrialState.CAUGHT
        },
        "accepted": [t.name for t in tried if t.state is TrialState.ACCEPTED],
        "same": [t.name for t in tried if t.state is TrialState.SAME],
        "skipped": dict(Counter(t.why for t in audit.trials if t.state is TrialState.SKIPPED)),
        "audit_s": audit.seconds,
    }


if __name__ == "__main__":
    sys.exit(main())
