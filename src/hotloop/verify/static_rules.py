"""The static stage: what a candidate may not even contain.

A screen, not the boundary: the cage and the judge's own buffers and clock are. It saves GPU time
and names the rule, so that the next attempt can keep it. Python is read as a syntax tree
(`static_python.py`), CUDA as identifiers outside comments (`static_cuda.py`); a file that does not
parse is left to the compiler, whose message is better.

Covered: reaching outside the process, patching or scanning the harness, hidden streams and threads,
fall-backs around the kernel, inheriting the reference, subclasses of tensors, managed memory,
multicast and device settings (these are never executed), library calls where the policy has none,
modules without a kernel. Not covered: what parameters and containers hide; what a candidate does is
looked at when it runs (`worker/conduct.py`).
"""

from __future__ import annotations

from hotloop.core.candidate import Candidate
from hotloop.core.language import allowed_names, is_allowed
from hotloop.core.problem import Policy
from hotloop.verify.static_cuda import check_cuda
from hotloop.verify.static_finding import Finding
from hotloop.verify.static_python import check_python

__all__ = ["Finding", "check_candidate"]


def check_candidate(candidate: Candidate, policy: Policy) -> Finding | None:
    """Return the first broken rule of a candidate, or None."""
    if not any(s.text.strip() for s in candidate.sources):
        return Finding("no_code", "expected source code, got an empty file")
    if not is_allowed(candidate.language, policy.languages):
        return Finding(
            "language",
            f"expected a kernel in {' or '.join(allowed_names(policy.languages))}, "
            f"got {candidate.language!r}",
        )
    for source in candidate.sources:
        is_python = source.path.endswith(".py")
        checked = check_python(source.text, policy, candidate.language) if is_python else None
        for finding in check_cuda(source.text) if checked is None else checked:
            where = f"{source.path} line {finding.line}: " if finding.line else ""
            return Finding(finding.rule, where + finding.message, finding.line)
    return None
