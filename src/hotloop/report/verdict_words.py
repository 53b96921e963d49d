"""What a verdict says in words that the terminal and the report share."""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.core.verdict import CaseResult, Correctness, KernelResources, Rigour, Verdict

LOOSER: Mapping[Rigour | None, str] = {
    Rigour.ROUGH: "held to wider bounds",
    Rigour.GROSS: "looked at for NaN, Inf and gross errors only",
    Rigour.CUT: "right but for operands cut to TF32 where PyTorch rounds them",
}
"""What is said of a call that was not held to all rules of the gate as it is."""


def exactness(correctness: Correctness) -> str:
    """Return how many calls are as exact as PyTorch, of those that were asked for it.

    Whoever reads it learns where no other values than the file's own were tried.
    """
    asked = [case for case in correctness.cases if not is_looser(case)]
    passed = sum(case.passed for case in asked)
    only = ", all on values that the file draws" if _is_shipped_only(correctness) else ""
    return f"{passed} of {len(asked)} calls as exact as PyTorch{only}"


def _is_shipped_only(correctness: Correctness) -> bool:
    cases = correctness.cases
    return all(case.passed for case in cases) and {case.profile for case in cases} == {"shipped"}


def is_looser(case: CaseResult) -> bool:
    """Whether a call is known to have been held to fewer rules, or to wider bounds."""
    return case.rigour in LOOSER


def looser_words(correctness: Correctness) -> list[str]:
    """Return what was done with the other calls, and on which values; nothing where all are."""
    told = []
    for rigour, words in LOOSER.items():
        cases = [case for case in correctness.cases if case.rigour is rigour]
        values = dict.fromkeys(f"{case.profile} values, {case.output}" for case in cases)
        if cases:
            told.append(f"{len(cases)} more {words} ({'; '.join(values)})")
    return told


def resource_words(kernel: KernelResources) -> str:
    """Return what a compiler reported of a kernel, without its name."""
    parts = (
        (kernel.registers, "{} registers"),
        (kernel.spill_bytes, "{} bytes spilled"),
        (kernel.shared_bytes, "{} bytes shared"),
        (kernel.num_warps, "{} warps"),
    )
    known = ", ".join(text.format(value) for value, text in parts if value is not None)
    return known or "nothing reported"


def skipped_by_reason(verdict: Verdict) -> dict[str, list[str]]:
    """Return the checks that did not run, by the reason why, in order."""
    found: dict[str, list[str]] = {}
    for name, why in verdict.checks_skipped.items():
        found.setdefault(why, []).append(name)
    return found
