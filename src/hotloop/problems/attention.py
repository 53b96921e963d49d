"""Attention problems: from a file, or from the functions found in a prompt.

The coordinator checks names and traceability and chooses small sizes where there is no GPU. What
the functions compute, and whether the sizes fit each other, the judge finds out.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from hotloop.core.problem import Policy, Problem, ProblemKind, Role, Workload
from hotloop.errors import ConfigError
from hotloop.problems.classify import ATTENTION_SIZES, NATIVE_NAMES, parse_python
from hotloop.problems.constants import Constant, bound_names, fold_constants
from hotloop.problems.native import refuse_gradients
from hotloop.problems.settings import ATTENTION_SETTINGS, check_settings
from hotloop.problems.tracing_rules import check_traceable

POLICY = Policy(library_calls="none", shape_scope="nominal")
"""A kernel of the candidate's own, at the problem's own sizes."""

CPU_BATCH, CPU_HEADS, CPU_SEQUENCE = 1, 2, 128
"""The sizes that replace larger ones without a GPU."""
CPU_DECODE_BATCH, CPU_DECODE_KEYS = 2, 512
"""The same of a decode step: two batches, which may have other lengths and other pages."""
DECODE_QUERIES = 16
"""With so few, and more keys than that, work and memory are those of the keys."""

# Triton's interpreter does about 3 M scores a second, so this is about ten seconds a call.
_MAX_CPU_SCORES = 1 << 25
_MAX_CPU_DECODE_KEYS = 1 << 13
"""Keys of all batches and heads; of each a row is read for every check."""


def attention_problem(
    source: str,
    name: str,
    *,
    device: str,
    settings: Mapping[str, Constant],
    prompt: str | None = None,
) -> Problem:
    """Return the attention problem that `source` states.

    Args:
        source: Python text with sizes and, unless it is plain attention, the modifications.
        name: The problem's name; error messages carry it.
        device: `cuda` or `cpu`; on `cpu`, sizes too large for an interpreter are replaced.
        settings: Values of `--set`; they hold everywhere, also over the replaced sizes.
        prompt: The user's own words, when the source was taken from them.

    Raises:
        ConfigError: a size is missing, a setting is unknown, or a function cannot be traced.
    """
    tree = parse_python(source, name)
    refuse_gradients(tree, name)
    names = bound_names(tree)
    for key in sorted(NATIVE_NAMES & set(names)):
        raise ConfigError(f"{name} line {names[key]}: attention files have no `{key}`; remove it")
    check_settings(settings, tree, always=ATTENTION_SETTINGS)
    missing = [s for s in ATTENTION_SIZES if s not in names and s not in settings]
    if missing and "*" not in names:
        first = missing[0]
        raise ConfigError(
            f"{name}: expected the sizes B, H, S, D, missing {', '.join(missing)}; add "
            f"`{first} = ...` or --set {first}=..."
        )
    check_traceable(tree, name)
    small = _cpu_sizes(fold_constants(tree, settings), settings) if device == "cpu" else {}
    return Problem(
        name=name,
        kind=ProblemKind.ATTENTION,
        source=source,
        settings=dict(settings),
        policy=POLICY,
        workloads=(Workload(name="nominal", role=Role.NOMINAL, settings=small),),
        prompt=prompt,
    )


def attention_sizes(tree: ast.Module, overrides: Mapping[str, Constant]) -> dict[str, Constant]:
    """Return the attention settings that can be read without running the file."""
    values = fold_constants(tree, overrides)
    return {name: values[name] for name in ATTENTION_SETTINGS if name in values}


def _cpu_sizes(
    constants: Mapping[str, Constant], settings: Mapping[str, Constant]
) -> dict[str, Constant]:
    """Return replacements for sizes that an interpreter cannot do; never of what was `--set`."""
    sizes = {n: v for n in ("B", "H", "Hkv", "S", "Skv") if isinstance(v := constants.get(n), int)}
    if not {"B", "H", "S"} <= set(sizes):
        return {}
    heads, sequence = sizes["H"], sizes["S"]
    kv_heads, kv_sequence = sizes.get("Hkv", heads), sizes.get("Skv", sequence)
    group = heads // kv_heads if kv_heads > 0 else 1
    small_heads = max(CPU_HEADS, group)
    is_decode = sequence <= DECODE_QUERIES < kv_sequence
    if is_decode and sizes["B"] * kv_heads * kv_sequence <= _MAX_CPU_DECODE_KEYS:
        return {}
    if not is_decode and sizes["B"] * heads * sequence * kv_sequence <= _MAX_CPU_SCORES:
        return {}
    small = {"B": CPU_DECODE_BATCH if is_decode else CPU_BATCH, "H": small_heads, "S": CPU_SEQUENCE}
    if "Hkv" in sizes:
        small["Hkv"] = small_heads // max(group, 1)
    if is_decode and "Skv" in sizes:
        small["Skv"] = _decode_keys(constants.get("page_size"))
    elif "Skv" in sizes:
        small["Skv"] = max(1, kv_sequence * CPU_SEQUENCE // max(sequence, 1))
    return {n: min(v, sizes[n]) for n, v in small.items() if n not in settings}


def _decode_keys(page_size: Constant | None) -> int:
    """Return the keys of a small decode step: at least two pages, and a whole number of them."""
    if isinstance(page_size, int) and page_size > 0:
        return max(2 * page_size, CPU_DECODE_KEYS // page_size * page_size)
    return CPU_DECODE_KEYS
