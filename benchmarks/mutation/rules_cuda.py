"""Rules for CUDA C++ sources that change one token or one call. Their mutants need a GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.mutation.cuda_rule import Edit, cuda_rule, neighbour, swaps
from benchmarks.mutation.cuda_tokens import Token, closing, text_of

_LOOSER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
cuda_rule("comparison_edge", "masks")(swaps(_LOOSER, "sign"))
cuda_rule("comparison_negated", "masks")(
    swaps({"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}, "sign")
)
cuda_rule("mask_and_to_or", "masks")(swaps({"&&": "||", "||": "&&"}, "sign"))
cuda_rule("accumulator_overwritten", "accumulators")(swaps({"+=": "=", "*=": "="}, "sign"))
cuda_rule("accumulator_sign", "accumulators")(swaps({"+=": "-="}, "sign"))
cuda_rule("multiply_divide", "arithmetic")(swaps({"*": "/", "/": "*"}, "sign"))
cuda_rule("quotient_remainder", "addresses")(swaps({"/": "%", "%": "/"}, "sign"))
cuda_rule("add_subtract", "arithmetic")(swaps({"+": "-", "-": "+"}, "sign"))
cuda_rule("maximum_minimum", "axes")(
    swaps({"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max"}, "name")
)
cuda_rule("function_swapped", "functions")(
    swaps(
        {"expf": "exp2f", "exp2f": "expf", "__expf": "exp2f", "sqrtf": "rsqrtf",
         "rsqrtf": "sqrtf", "logf": "log2f", "sinf": "cosf", "cosf": "sinf"},
        "name",
    )
)  # fmt: skip
cuda_rule("axis_of_thread", "tiles")(swaps({"x": "y", "y": "x"}, "name"))
cuda_rule("thread_for_block", "tiles")(
    swaps({"threadIdx": "blockIdx", "blockIdx": "threadIdx", "blockDim": "gridDim"}, "name")
)
cuda_rule("fewer_bits", "types")(swaps({"float": "__half", "double": "float"}, "name"))
cuda_rule("shuffle_swapped", "sync")(
    swaps({"__shfl_xor_sync": "__shfl_up_sync", "__shfl_down_sync": "__shfl_up_sync"}, "name")
)


@cuda_rule("sync_dropped", "sync")
def sync_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a barrier."""
    following = place + 1
    known = tokens[place].text in ("__syncthreads", "__syncwarp")
    if known and following < len(tokens) and tokens[following].text == "(":
        end = closing(tokens, following)
        if end is not None:
            yield place, end + 1, ""


@cuda_rule("number_off_by_one", "constants")
def number_off_by_one(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Be off by one in a whole number."""
    token = tokens[place]
    if token.kind == "number" and token.text.isdigit():
        yield place, place + 1, str(int(token.text) + 1)
        if int(token.text) > 0:
            yield place, place + 1, str(int(token.text) - 1)


@cuda_rule("number_scaled", "constants")
def number_scaled(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Halve a constant, nudge it, or take one for it."""
    token = tokens[place]
    digits = token.text.rstrip("fF")
    if token.kind == "number" and ("." in digits or "e" in digits) and "x" not in digits.lower():
        value = float(digits)
        for changed in (value * 0.5, value * 1.001, 1.0) if value else (1.0,):
            yield place, place + 1, f"{changed!r}f"


@cuda_rule("bound_short", "masks")
def bound_short(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Stop one before a bound that is a name."""
    before = neighbour(tokens, place, -1)
    if tokens[place].kind == "name" and before.text in ("<", "<="):
        yield place, place + 1, f"({tokens[place].text} - 1)"
        yield place, place + 1, f"({tokens[place].text} + 1)"


@cuda_rule("stride_dropped", "addresses")
def stride_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a factor that is a name or a number."""
    following = place + 1
    while following < len(tokens) and not tokens[following].is_code:
        following += 1
    is_product = tokens[place].text == "*" and following < len(tokens)
    declares = neighbour(tokens, place, -1).text in ("float", "int", "const", "double", "__half")
    if is_product and not declares and tokens[following].kind in ("name", "number"):
        yield place, following + 1, ""


@cuda_rule("function_dropped", "functions")
def function_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a function of one argument."""
    known = ("expf", "exp2f", "sqrtf", "rsqrtf", "logf", "tanhf", "fabsf", "erff", "__expf")
    if tokens[place].text in known and neighbour(tokens, place, 1).text == "(":
        yield place, place + 1, ""


@cuda_rule("argument_only", "functions")
def argument_only(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Take the first argument of a maximum or minimum: a clamp or a running maximum left out."""
    following = place + 1
    if tokens[place].text not in ("fmaxf", "fminf", "max", "min") or following >= len(tokens):
        return
    if tokens[following].text == "(" and (end := closing(tokens, following)) is not None:
        inside = text_of(tokens[following + 1 : end])
        if "," in inside and "(" not in inside:
            yield place, end + 1, f"({inside.split(',')[0]})"


@cuda_rule("identity_zero", "identities")
def identity_zero(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Start a maximum with zero."""
    if tokens[place].text in ("INFINITY", "CUDART_INF_F", "FLT_MAX"):
        yield place, place + 1, "0.0f"


@cuda_rule("condition_dropped", "masks")
def condition_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out an if: every thread does what some should."""
    if tokens[place].text != "if":
        return
    opening = next((i for i in range(place + 1, len(tokens)) if tokens[i].is_code), None)
    if opening is not None and tokens[opening].text == "(":
        end = closing(tokens, opening)
        if end is not None:
            yield opening, end + 1, "(true)"


@cuda_rule("update_deleted", "accumulators")
def update_deleted(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out `name += ...;`."""
    if tokens[place].kind != "name" or neighbour(tokens, place, 1).text not in ("+=", "*="):
        return
    if neighbour(tokens, place, -1).text in (";", "{", "}", ")"):
        end = next((i for i in range(place, len(tokens)) if tokens[i].text == ";"), None)
        if end is not None:
            yield place, end, ""
