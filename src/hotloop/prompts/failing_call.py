"""Which call failed: on which sizes, with which values, and what had passed before it.

Only sizes that are the problem's own or its boundary ones are ever told; for held-out ones the
caller says nothing at all (`feedback.concerns_held_out`).
"""

from __future__ import annotations

from collections.abc import Mapping

from hotloop.core.problem import Role
from hotloop.core.verdict import Verdict

PROFILES = {
    "shipped": "the problem's own inputs",
    "normal": "normally distributed inputs",
    "positive_mean": "inputs that are all positive, so that sums grow",
    "negative": (
        "inputs in parts along a leading dimension, each of one sign or all 0 (so that in some no "
        "maximum is over 0), and up to 2**28 apart in size where the reference bears it"
    ),
    "large": "inputs of large magnitude",
    "far": "inputs of about 1e5, beyond what float16 holds",
    "opposed": "inputs of about 1e5 and weights as much smaller, so that products keep their size",
    "lowered": "inputs of about 1e-5 and weights as much larger, so that products keep their size",
    "biased": "the biases of products and convolutions far above or below 0",
    "alike": "inputs of one shape that are nearly equal, in some rows up to their last bits",
    "integers": "inputs that are small whole numbers",
    "needles": "inputs where a few far keys carry the result",
    "sink": "inputs where one key has a far higher score than all others",
    "parameters": "the problem's own inputs with other values in parameters that start as 0 or 1",
    "offset": "inputs whose scores are raised or lowered by 128 along whole rows",
    "uniform": "inputs uniform in -1 to 1",
    "small": "inputs of about 0.001",
    "sparse": "inputs of which four in five are 0",
    "constant_rows": "inputs whose rows hold one value each",
    "sorted": "inputs that ascend along their rows",
}
"""Value profiles in words; one that is not listed here is told by its name."""


def describe_call(verdict: Verdict, *, names_values: bool = True) -> str:
    """Return on what a verdict's check failed and what passed; empty when that is not known.

    `names_values` is False where the values were named already.
    """
    if verdict.evidence is None:
        return ""
    workload = verdict.evidence.details.get("workload")
    if not isinstance(workload, Mapping):
        return ""
    profile = verdict.evidence.details.get("profile")
    role, name = workload.get("role"), workload.get("name")
    if role not in (Role.NOMINAL, Role.BOUNDARY):
        return ""
    parts = []
    if role == Role.BOUNDARY:
        settings = workload.get("settings")
        sizes = (
            ", ".join(f"{k}={v}" for k, v in settings.items())
            if isinstance(settings, Mapping)
            else ""
        )
        parts.append(
            f"It failed on other sizes than the problem's own: {sizes}. It must work on them too."
        )
    if isinstance(profile, str) and profile:
        if names_values:
            parts.append(f"It failed on {values_in_words(profile)}.")
        passed = _passed_profiles(verdict, str(name), profile)
        if passed:
            parts.append(f"It had passed on {' and on '.join(passed)}.")
    return " ".join(parts)


def _passed_profiles(verdict: Verdict, workload: str, profile: str) -> list[str]:
    """Return the profiles of the same workload that passed before, in words."""
    cases = verdict.correctness.cases if verdict.correctness else ()
    failed = {c.profile for c in cases if not c.passed} | {profile}
    names = [c.profile for c in cases if c.workload == workload and c.profile not in failed]
    return [values_in_words(name) for name in dict.fromkeys(names)]


def values_in_words(profile: str) -> str:
    """Return what a value profile means."""
    return PROFILES.get(profile, f"{profile!r} inputs")
