"""Read a Triton or Gluon candidate for known weaknesses, by its syntax tree, without running it.

Findings join the verdict in the next prompt. They are advice, never a verdict: a rule speaks only
where the tree and the known sizes carry it, and an unusual but honest kernel may still be named.

Covered: accesses without a mask where a block does not divide its size, masked loads without
`other=` that are reduced, accumulators below float32, loops over single elements, TF32 products of
float32 operands, tiles beyond shared memory, accesses that run along neighbours in no direction,
kernels that tune themselves; in Gluon, copies by TMA without a fence.
Not covered: block pointers and descriptors (they check bounds themselves), what happens outside of
kernels, TF32 products in a file that makes 16-bit values, which may be the operands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from hotloop.core.problem import TensorSpec
from hotloop.prompts.arithmetic_rules import (
    FULL_PRECISION,
    large_tiles,
    low_accumulators,
    low_products,
)
from hotloop.prompts.autotune_rule import autotuned
from hotloop.prompts.coalescing_rules import scattered
from hotloop.prompts.findings import Finding
from hotloop.prompts.gluon_rules import low_warpgroup_products, unfenced_copies
from hotloop.prompts.kernel_syntax import read_kernels
from hotloop.prompts.memory_rules import serial_loops, unfilled, unmasked
from hotloop.prompts.programs import parse


def analyse(
    source: str,
    *,
    inputs: Sequence[TensorSpec] = (),
    precision: str = "as_shipped",
    eager_tf32: bool | None = None,
) -> tuple[Finding, ...]:
    """Return the findings of one Python file, by line; none where it does not parse.

    Args:
        source: the candidate's file.
        inputs: tensor arguments of `forward`, in order, where they are known.
        precision: the problem's precision policy.
        eager_tf32: `ProblemInfo.eager_tf32`; where eager rounds to TF32, so may the candidate.
    """
    tree = parse(source)
    if tree is None:
        return ()
    dtypes = {spec.dtype for spec in inputs}
    in_full = dtypes == {"float32"} and precision in FULL_PRECISION and not eager_tf32
    has_halves = "float16" in source or ".half(" in source
    plain = all(_is_contiguous(spec) for spec in inputs)
    found: list[Finding] = autotuned(tree)
    try:
        for kernel in read_kernels(tree, [spec.shape for spec in inputs]):
            found += unmasked(kernel)
            found += unfilled(kernel)
            found += low_accumulators(kernel)
            found += serial_loops(kernel)
            if in_full:
                found += low_products(kernel, may_be_halves=has_halves)
                found += low_warpgroup_products(kernel, may_be_halves=has_halves)
            found += large_tiles(kernel, dtypes)
            found += unfenced_copies(kernel)
            if plain:
                found += scattered(kernel)
    except RecursionError:  # an expression thousands of terms deep
        return ()
    unique = {(f.rule, f.line): f for f in found}
    return tuple(sorted(unique.values(), key=lambda f: f.line))


def _is_contiguous(spec: TensorSpec) -> bool:
    """Whether a tensor's strides are those of its shape; unknown ones are taken for that."""
    own = tuple(math.prod(spec.shape[i + 1 :]) for i in range(len(spec.shape)))
    return not spec.strides or all(
        a == b for a, b, n in zip(spec.strides, own, spec.shape, strict=True) if n > 1
    )
