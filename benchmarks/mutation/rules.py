"""All rules by name: those for Triton sources, and which of either language are asked for."""

from __future__ import annotations

from benchmarks.mutation import (  # noqa: F401  each adds its rules to the book
    rules_addresses,
    rules_arithmetic,
    rules_cuda,
    rules_cuda_statements,
    rules_launch,
    rules_loops,
    rules_masks,
    rules_numbers,
    rules_reductions,
    rules_types,
)
from benchmarks.mutation.cuda_rule import CUDA_RULES
from benchmarks.mutation.rule import BOOK, Rule

GROUPS = (
    "counts", "epsilons", "constants", "identities", "accumulators", "products", "axes", "masks",
    "other_values", "tiles", "loops", "types", "functions", "missing_parts", "arithmetic",
    "weights", "outputs", "launches", "addresses",
)  # fmt: skip
"""Where two rules write the same mutant it counts for the first, the more telling one."""
RULES: dict[str, Rule] = {
    rule.name: rule for rule in sorted(BOOK.rules.values(), key=lambda r: GROUPS.index(r.group))
}


def rules_of(names: str) -> list[Rule]:
    """Return the Triton rules or groups named, with commas between; all for an empty text.

    Raises:
        ValueError: neither language has such a rule or group.
    """
    wanted = _wanted(names)
    return [r for r in RULES.values() if not wanted or r.name in wanted or r.group in wanted]


def cuda_rules_of(names: str) -> list[str]:
    """Return the names of the CUDA rules or groups named; all for an empty text.

    Raises:
        ValueError: neither language has such a rule or group.
    """
    wanted = _wanted(names)
    pairs = ((name, group) for name, (group, _) in CUDA_RULES.items())
    return [n for n, group in pairs if not wanted or n in wanted or group in wanted]


def _wanted(names: str) -> list[str]:
    wanted = [n for n in names.split(",") if n]
    known = set(RULES) | {r.group for r in RULES.values()} | set(CUDA_RULES)
    known |= {group for group, _ in CUDA_RULES.values()}
    for name in wanted:
        if name not in known:
            raise ValueError(
                f"expected rules or groups of {', '.join(sorted(known))}; got {name!r}"
            )
    return wanted
