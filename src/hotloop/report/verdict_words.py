"""What a verdict says in words that the terminal and the report share."""

from __future__ import annotations

from hotloop.core.verdict import KernelResources, Verdict


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
