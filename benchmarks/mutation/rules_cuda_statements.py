"""Rules for CUDA C++ sources that change a statement, a loop's head or an operand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.mutation.cuda_rule import Edit, cuda_rule, neighbour
from benchmarks.mutation.cuda_tokens import Token, closing, text_of

BFLOAT16 = "__uint_as_float(__float_as_uint({}) & 0xffff0000u)"
"""A float32 value with the bits that bfloat16 has; both functions need no header."""
ASSIGNING = ("=", "+=", "-=", "*=", "/=")


def _next(tokens: Sequence[Token], place: int, step: int = 1) -> int | None:
    """Return the place of the next token of code in a direction."""
    i = place + step
    while 0 <= i < len(tokens):
        if tokens[i].is_code:
            return i
        i += step
    return None


def _end_of_expression(tokens: Sequence[Token], start: int) -> int | None:
    """Return the place of the `;`, or the closing bracket or comma, that ends an expression."""
    depth = 0
    for i in range(start, len(tokens)):
        text = tokens[i].text
        if depth == 0 and text in (";", ",", ")", "]", "}"):
            return i
        depth += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
    return None


def _in_kernel_body(tokens: Sequence[Token], place: int) -> bool:
    """Whether a place lies inside braces: parameters and constants of the file do not."""
    before = [t.text for t in tokens[:place] if t.kind == "sign"]
    return before.count("{") > before.count("}")


@cuda_rule("value_fewer_bits", "types")
def value_fewer_bits(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Round what a float variable starts with, or what is added to one, to bfloat16's bits."""
    name = _next(tokens, place)
    sign = None if name is None else _next(tokens, name)
    if tokens[place].text == "float" and name is not None and sign is not None:
        if tokens[name].kind != "name" or tokens[sign].text != "=":
            return
    elif tokens[place].text == "+=" and neighbour(tokens, place, -1).text == "]":
        sign = place
    else:
        return
    end = _end_of_expression(tokens, sign + 1)
    if end is not None and _in_kernel_body(tokens, place):
        inside = text_of(tokens[sign + 1 : end]).strip()
        if "." not in inside or "[" in inside or "(" in inside:  # not a plain number
            yield sign + 1, end, " " + BFLOAT16.format(inside)


def _head(tokens: Sequence[Token], place: int) -> tuple[int, int, int, int] | None:
    """Return the places of `(`, both `;` and `)` of the `for` at a place."""
    opening = _next(tokens, place)
    if tokens[place].text != "for" or opening is None:
        return None
    end = closing(tokens, opening)
    marks = [i for i in range(opening, end or opening) if tokens[i].text == ";"]
    if end is None or len(marks) != 2:
        return None
    return opening, marks[0], marks[1], end


@cuda_rule("loop_starts_late", "loops")
def loop_starts_late(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a loop's first value."""
    if head := _head(tokens, place):
        yield head[1], head[1], " + 1"


@cuda_rule("loop_stops_early", "loops")
def loop_stops_early(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a loop's last step, where it counts up to a bound."""
    if (head := _head(tokens, place)) and any(t.text == "<" for t in tokens[head[1] : head[2]]):
        yield head[2], head[2], " - 1"


@cuda_rule("loop_step_doubled", "loops")
def loop_step_doubled(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out every other step of a loop with a stride."""
    if head := _head(tokens, place):
        for i in range(head[2], head[3]):
            if tokens[i].text == "+=":
                yield i + 1, i + 1, " 2 *"


@cuda_rule("loop_once", "loops")
def loop_once(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Run a loop's body at most once."""
    if head := _head(tokens, place):
        condition = text_of(tokens[head[1] + 1 : head[2]])
        yield place, head[3] + 1, (f"{text_of(tokens[head[0] + 1 : head[1] + 1])} if ({condition})")


@cuda_rule("index_shifted", "addresses")
def index_shifted(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Read or write the element beside the right one."""
    before = neighbour(tokens, place, -1)
    if tokens[place].text == "[" and before.kind == "name" and _in_kernel_body(tokens, place):
        end = closing(tokens, place)
        if end is not None and any(t.kind == "name" for t in tokens[place:end]):
            yield end, end, " + 1"


@cuda_rule("address_term_dropped", "addresses")
def address_term_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out the last term of an index."""
    if tokens[place].text != "[":
        return
    end = closing(tokens, place)
    inside = range(place + 1, end or place)
    plus = [i for i in inside if tokens[i].text in ("+", "-")]
    if end is not None and plus and _end_of_expression(tokens, plus[-1] + 1) == end:
        yield plus[-1], end, ""


@cuda_rule("negation_dropped", "arithmetic")
def negation_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out a minus before a value."""
    before = neighbour(tokens, place, -1)
    if tokens[place].text == "-" and before.text in ("(", ",", "=", "?", ":", "return"):
        yield place, place + 1, ""


@cuda_rule("atomic_dropped", "accumulators")
def atomic_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Store where several blocks add."""
    opening = _next(tokens, place)
    if tokens[place].text != "atomicAdd" or opening is None:
        return
    end = closing(tokens, opening)
    comma = next((i for i in range(opening, len(tokens)) if tokens[i].text == ","), None)
    if end is not None and comma is not None:
        pointer, value = text_of(tokens[opening + 1 : comma]), text_of(tokens[comma + 1 : end])
        yield place, end + 1, f"*({pointer}) = {value.strip()}"
        yield place, end + 1, f"*({pointer}) += {value.strip()}"


@cuda_rule("constant_nudged", "constants")
def constant_nudged(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Be off by one in a hundred in a number with a point."""
    token = tokens[place]
    if token.kind == "number" and "." in token.text and token.text.rstrip("fF"):
        value = float(token.text.rstrip("fF"))
        if value:
            yield place, place + 1, f"{value * 1.01:.9g}f"


@cuda_rule("epsilon_dropped", "epsilons")
def epsilon_dropped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out the epsilon below a root."""
    token = tokens[place]
    if token.text == "EPSILON" and _in_kernel_body(tokens, place):
        yield place, place + 1, "0.0f"


@cuda_rule("count_off_by_one", "counts")
def count_off_by_one(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Divide by one fewer."""
    following = _next(tokens, place)
    if tokens[place].text == "/" and following is not None and tokens[following].kind == "name":
        yield following, following + 1, f"({tokens[following].text} - 1)"


@cuda_rule("warp_size", "tiles")
def warp_size(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Take a warp for half or twice as many threads, or begin a shuffle too late."""
    if tokens[place].text in ("16", "32") and _in_kernel_body(tokens, place):
        yield place, place + 1, str(int(tokens[place].text) // 2)
        yield place, place + 1, str(int(tokens[place].text) * 2)


@cuda_rule("statement_deleted", "missing_parts")
def statement_deleted(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Leave out an assignment to something that is declared before."""
    before = neighbour(tokens, place, -1).text
    if tokens[place].kind != "name" or before not in (";", "{", "}"):
        return
    end = next((i for i in range(place, len(tokens)) if tokens[i].text == ";"), None)
    following = neighbour(tokens, place, 1).text
    if end is None or following not in (*ASSIGNING, "[", "."):
        return
    if any(t.text in ASSIGNING for t in tokens[place:end]) and _in_kernel_body(tokens, place):
        yield place, end, ""


@cuda_rule("operands_swapped", "arithmetic")
def operands_swapped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Subtract the other way round, where both sides are names."""
    left, right = _next(tokens, place, -1), _next(tokens, place)
    if tokens[place].text != "-" or left is None or right is None:
        return
    is_alone = neighbour(tokens, left, -1).text in ("(", "=", ",", "[", "return")
    if is_alone and tokens[left].kind == tokens[right].kind == "name":
        yield left, right + 1, f"{tokens[right].text} - {tokens[left].text}"


@cuda_rule("branches_swapped", "functions")
def branches_swapped(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
    """Swap what a condition chooses from."""
    if tokens[place].text != "?":
        return
    depth = 0
    for i in range(place + 1, len(tokens)):
        text = tokens[i].text
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if text == ":" and depth == 0:
            end = _end_of_expression(tokens, i + 1)
            if end is not None:
                first, second = text_of(tokens[place + 1 : i]), text_of(tokens[i + 1 : end])
                yield place + 1, end, f"{second} :{first.rstrip()}"
            return
