"""Rules for CUDA C++ sources, on tokens. Their mutants need a GPU to be judged.

A rule gets the tokens and the place of one that is code, and yields texts for a range of tokens:
`(first, last, text)` replaces the tokens from first to before last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from benchmarks.mutation.cuda_tokens import Token, closing, code_places, text_of, tokens_of
from benchmarks.mutation.rule import Mutant

Edit = tuple[int, int, str]
Rewrite = Callable[[Sequence[Token], int], Iterator[Edit]]
CUDA_RULES: dict[str, tuple[str, Rewrite]] = {}


def _rule(name: str, group: str) -> Callable[[Rewrite], Rewrite]:
    def register(rewrite: Rewrite) -> Rewrite:
        CUDA_RULES[name] = (group, rewrite)
        return rewrite

    return register


def cuda_mutants(source: str) -> list[Mutant]:
    """Return the distinct mutants of a CUDA source, rule by rule."""
    tokens = tokens_of(source)
    places = code_places(tokens)
    seen, found = {source}, []
    for name, (group, rewrite) in CUDA_RULES.items():
        for place in places:
            for first, last, text in rewrite(tokens, place):
                mutant = text_of(tokens[:first]) + text + text_of(tokens[last:])
                if mutant not in seen:
                    seen.add(mutant)
                    found.append(Mutant(name, group, mutant))
    return found


def _neighbour(tokens: Sequence[Token], place: int, step: int) -> Token:
    """Return the next token of code in a direction; an empty one at the end."""
    i = place + step
    while 0 <= i < len(tokens):
        if tokens[i].is_code:
            return tokens[i]
        i += step
    return Token("sign", "")


def _swaps(pairs: dict[str, str], kind: str) -> Rewrite:
    def rewrite(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
        token = tokens[place]
        if token.kind == kind and token.text in pairs:
            yield place, place + 1, pairs[token.text]

    return rewrite


_LOOSER = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_rule("comparison_edge", "masks")(_swaps(_LOOSER, "sign"))
_rule("comparison_negated", "masks")(
    _swaps({"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}, "sign")
)
_rule("mask_and_to_or", "masks")(_swaps({"&&": "||", "||": "&&"}, "sign"))
_rule("accumulator_overwritten", "accumulators")(_swaps({"+=": "=", "*=": "="}, "sign"))
_rule("accumulator_sign", "accumulators")(_swaps({"+=": "-="}, "sign"))
_rule("multiply_divide", "arithmetic")(_swaps({"*": "/", "/": "*"}, "sign"))
_rule("quotient_remainder", "addresses")(_swaps({"/": "%", "%": "/"}, "sign"))
_rule("add_subtract", "arithmetic")(_swaps({"+": "-", "-": "+"}, "sign"))
_rule("maximum_minimum", "axes")(
    _swaps({"fmaxf": "fminf", "fminf": "fmaxf", "max": "min", "min": "max"}, "name")
)
_rule("function_swapped", "functions")(
    _swaps(
        {"expf": "exp2f", "exp2f": "expf", "__expf": "exp2f", "sqrtf": "rsqrtf",
         "rsqrtf": "sqrtf", "logf": "log2f", "sinf": "cosf", "cosf": "sinf"},
        "name",
    )
)  # fmt: skip
_rule("axis_of_thread", "tiles")(_swaps({"x": "y", "y": "x"}, "name"))
_rule("thread_for_block", "tiles")(
    _swaps({"threadIdx": "blockIdx", "blockIdx": "threadIdx", "blockDim": "gridDim"}, "name")
)
_rule("fewer_bits", "types")(_swaps({"float": "__half", "double": "float"}, "name"))
_rule("shuffle_swapped", "sync")(
    _swaps({"__shfl_xor_sync": "__shfl_up_sync", "__shfl_down_sync": "__shfl_up_sync"}, "name")
)


@_rule("sync_dropped", "sync")
def sync_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a barrier."""
    following = place + 1
    known = tokens[place].text in ("__syncthreads", "__syncwarp")
    if known and following < len(tokens) and tokens[following].text == "(":
        end = closing(tokens, following)
        if end is not None:
            yield place, end + 1, ""


@_rule("number_off_by_one", "constants")
def number_off_by_one(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Be off by one in a whole number."""
    token = tokens[place]
    if token.kind == "number" and token.text.isdigit():
        yield place, place + 1, str(int(token.text) + 1)
        if int(token.text) > 0:
            yield place, place + 1, str(int(token.text) - 1)


@_rule("number_scaled", "constants")
def number_scaled(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Halve a constant, nudge it, or take one for it."""
    token = tokens[place]
    digits = token.text.rstrip("fF")
    if token.kind == "number" and ("." in digits or "e" in digits) and "x" not in digits.lower():
        value = float(digits)
        for changed in (value * 0.5, value * 1.001, 1.0) if value else (1.0,):
            yield place, place + 1, f"{changed!r}f"


@_rule("bound_short", "masks")
def bound_short(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Stop one before a bound that is a name."""
    before = _neighbour(tokens, place, -1)
    if tokens[place].kind == "name" and before.text in ("<", "<="):
        yield place, place + 1, f"({tokens[place].text} - 1)"
        yield place, place + 1, f"({tokens[place].text} + 1)"


@_rule("stride_dropped", "addresses")
def stride_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a factor that is a name or a number."""
    following = place + 1
    while following < len(tokens) and not tokens[following].is_code:
        following += 1
    is_product = tokens[place].text == "*" and following < len(tokens)
    declares = _neighbour(tokens, place, -1).text in ("float", "int", "const", "double", "__half")
    if is_product and not declares and tokens[following].kind in ("name", "number"):
        yield place, following + 1, ""


@_rule("function_dropped", "functions")
def function_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a function of one argument."""
    known = ("expf", "exp2f", "sqrtf", "rsqrtf", "logf", "tanhf", "fabsf", "erff", "__expf")
    if tokens[place].text in known and _neighbour(tokens, place, 1).text == "(":
        yield place, place + 1, ""


@_rule("argument_only", "functions")
def argument_only(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Take the first argument of a maximum or minimum: a clamp or a running maximum left out."""
    following = place + 1
    if tokens[place].text not in ("fmaxf", "fminf", "max", "min") or following >= len(tokens):
        return
    if tokens[following].text == "(" and (end := closing(tokens, following)) is not None:
        inside = text_of(tokens[following + 1 : end])
        if "," in inside and "(" not in inside:
            yield place, end + 1, f"({inside.split(',')[0]})"


@_rule("identity_zero", "identities")
def identity_zero(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Start a maximum with zero."""
    if tokens[place].text in ("INFINITY", "CUDART_INF_F", "FLT_MAX"):
        yield place, place + 1, "0.0f"


@_rule("condition_dropped", "masks")
def condition_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out an if: every thread does what some should."""
    if tokens[place].text != "if":
        return
    opening = next((i for i in range(place + 1, len(tokens)) if tokens[i].is_code), None)
    if opening is not None and tokens[opening].text == "(":
        end = closing(tokens, opening)
        if end is not None:
            yield opening, end + 1, "(true)"


@_rule("update_deleted", "accumulators")
def update_deleted(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out `name += ...;`."""
    if tokens[place].kind != "name" or _neighbour(tokens, place, 1).text not in ("+=", "*="):
        return
    if _neighbour(tokens, place, -1).text in (";", "{", "}", ")"):
        end = next((i for i in range(place, len(tokens)) if tokens[i].text == ";"), None)
        if end is not None:
            yield place, end, ""
