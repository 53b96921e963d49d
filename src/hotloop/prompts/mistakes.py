"""Mistakes that the judge recognised in an output, and where values came from, in words.

The judge tells a name only when the mistake explains the output within the gate's own bounds, so
these sentences are plain statements. A name that is not known here is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_NAMED = {
    "no_mask": "attention without the mask",
    "mask_inverted": "attention with the mask turned round: it keeps what should be masked",
    "masked_scores_zero": "attention with masked scores set to 0 instead of -inf",
    "mask_after_softmax": "attention with the mask applied after the softmax: masked keys still "
    "count in the sum",
    "no_score_mod": "attention without the change of the scores",
    "no_scale": "attention without the scale of the scores",
    "scale_twice": "attention with the scale of the scores applied twice",
    "score_mod_before_scale": "attention with the scores changed before they are scaled; the scale "
    "comes first",
    "score_mod_on_log2_scores": "attention with the scores changed after the multiplication by "
    "log2(e); multiply by log2(e) last",
    "exp2_without_log2e": "attention with 2^s in place of e^s: the scores lack the factor log2(e) "
    "= 1.4427 that exp2 needs",
    "log2e_twice": "attention with the scores multiplied by log2(e) once too often: it is "
    "for exp2 only",
    "query_index_plus_1": "attention with a query index that is 1 too large",
    "query_index_minus_1": "attention with a query index that is 1 too small",
    "head_index_0": "attention with head index 0 in place of each head's own",
    "head_index_plus_1": "attention with a head index that is 1 too large",
    "batch_index_0": "attention with batch index 0 in place of each batch's own",
    "batch_and_head_exchanged": "attention with batch and head index exchanged",
    "no_division": "attention without the division by the sum of the weights",
    "k_and_v_exchanged": "attention with k and v exchanged",
}
_COUNTED: tuple[tuple[str, str], ...] = (
    (
        r"key_index_within_block_(\d+)",
        "attention with the key index counted within its block of {0}: add the block's start",
    ),
    (
        r"query_index_within_block_(\d+)",
        "attention with the query index counted within its block of {0}: add the block's start",
    ),
    (r"last_(\d+)_keys_left_out", "attention that leaves out the last {0} keys"),
    (r"first_(\d+)_keys_left_out", "attention that leaves out the first {0} keys"),
    (
        r"padded_by_(\d+)_keys",
        "attention in which {0} keys past the end count with score 0: mask them to -inf",
    ),
)


def describe_mistake(name: object) -> str | None:
    """Return a recognised mistake as a sentence; None for an unknown name."""
    if not isinstance(name, str):
        return None
    told = _NAMED.get(name)
    for pattern, text in _COUNTED:
        match = re.fullmatch(pattern, name)
        told = text.format(match[1]) if match else told
    return f"Your output equals {told}." if told else None


def describe_origin(origin: object, axis: Callable[[int], str]) -> str | None:
    """Return where the wrong values come from as a sentence; None for an unknown form.

    Args:
        origin: from the evidence.
        axis: the words for a dimension.
    """
    if not isinstance(origin, Mapping):
        return None
    tell = _ORIGINS.get(str(origin.get("kind")))
    try:
        return tell(origin, axis) if tell else None
    except (KeyError, TypeError, ValueError, IndexError):
        return None  # of another version: what cannot be read is left out


def _shift(origin: Mapping[str, Any], axis: Callable[[int], str]) -> str:
    by, dim = int(origin["by"]), axis(int(origin["dim"]))
    source = f"i {'+' if by > 0 else '-'} {abs(by)}"
    end = " (counted round the end)" if origin.get("wraps") else ""
    return (
        f"The right values are there, shifted along {dim}: index i holds what belongs at "
        f"{source}{end}. Look at the offsets of loads and stores."
    )


def _transposed(origin: Mapping[str, Any], axis: Callable[[int], str]) -> str:
    first, second = (axis(int(d)) for d in origin["dims"])
    return (
        f"The right values are there, stored with {first} and {second} transposed: look at the "
        "strides of the store."
    )


def _slices(origin: Mapping[str, Any], axis: Callable[[int], str]) -> str:
    dim, places = axis(int(origin["dim"])), [int(i) for i in origin["map"]]
    return f"The right values are there, in other places of {dim}: {_map_in_words(places)}."


def _map_in_words(places: Sequence[int]) -> str:
    if len(set(places)) == 1:
        return f"every index holds what belongs at {places[0]}"
    if list(places) == list(range(len(places)))[::-1]:
        return "in reverse order"
    moved = [(here, there) for here, there in enumerate(places) if here != there]
    told = ", ".join(f"{here} holds what belongs at {there}" for here, there in moved[:4])
    return f"{told}{', ...' if len(moved) > 4 else ''}"


def _input(origin: Mapping[str, Any], axis: Callable[[int], str]) -> str:
    return f"The wrong elements are a copy of input {int(origin['index'])} (from 0), unchanged."


def _zero(origin: Mapping[str, Any], axis: Callable[[int], str]) -> str:
    return "All wrong elements are 0: masked away, or terms were never added to them."


_ORIGINS: dict[str, Callable[[Mapping[str, Any], Callable[[int], str]], str]] = {
    "shift": _shift,
    "transposed": _transposed,
    "slices": _slices,
    "input": _input,
    "zero": _zero,
}
