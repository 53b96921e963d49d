"""Arithmetic in named sizes, as a launch description writes it: `cdiv(M * N, 256)`.

An expression is parsed to Python's syntax tree and walked; nothing is ever executed. Integers and
floats, names, `+ - * / // % << >>`, unary minus, and the functions below; nothing else. Results
are bounded, so that no expression can take long.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

Number = int | float

MAX_LENGTH = 400
MAX_MAGNITUDE = 1 << 62


class ExpressionError(ValueError):
    """An expression is malformed, names something unknown, or has no value."""


def cdiv(a: Number, b: Number) -> Number:
    """Divide, rounding up."""
    return -(-a // b)


def next_power_of_2(n: Number) -> int:
    """Return the smallest power of two that is at least `n`."""
    return 1 << max(0, int(n) - 1).bit_length()


FUNCTIONS: dict[str, tuple[int, Callable[..., Number]]] = {
    "cdiv": (2, cdiv),
    "min": (2, min),
    "max": (2, max),
    "next_power_of_2": (1, next_power_of_2),
}
"""Name -> number of arguments and function."""

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}
_SHIFTS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}


def evaluate(expression: str | Number, names: Mapping[str, Number]) -> Number:
    """Return the value of an expression.

    Args:
        expression: text, or already a number.
        names: values of the names that may occur.

    Raises:
        ExpressionError: see there.
    """
    if isinstance(expression, bool) or not isinstance(expression, (str, int, float)):
        raise ExpressionError(f"expected a number or text, got {type(expression).__name__}")
    if not isinstance(expression, str):
        return _bounded(expression, str(expression))
    if len(expression) > MAX_LENGTH:
        raise ExpressionError(f"expected at most {MAX_LENGTH} characters, got {len(expression)}")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
        return _value(tree.body, names, expression)
    except (SyntaxError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise ExpressionError(f"{expression!r}: {error}") from error


def evaluate_int(expression: str | Number, names: Mapping[str, Number]) -> int:
    """Return the value of an expression that must be a whole number.

    Raises:
        ExpressionError: it is not, or see `evaluate`.
    """
    value = evaluate(expression, names)
    if value != int(value):
        raise ExpressionError(f"{expression!r}: expected a whole number, got {value}")
    return int(value)


def _value(node: ast.expr, names: Mapping[str, Number], text: str) -> Number:
    result: Number
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            result = value
        case ast.Name(id=name):
            if name not in names:
                known = ", ".join(sorted(names)) or "none"
                raise ExpressionError(f"{text!r}: unknown name {name!r}; known are {known}")
            result = names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            result = -_value(operand, names, text)
        case ast.BinOp(left=left, op=op, right=right):
            result = _binary(op, _value(left, names, text), _value(right, names, text), text)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=[]) if name in FUNCTIONS:
            count, function = FUNCTIONS[name]
            if len(args) != count:
                raise ExpressionError(f"{text!r}: {name} takes {count} arguments, got {len(args)}")
            result = function(*(_value(arg, names, text) for arg in args))
        case _:
            raise ExpressionError(
                f"{text!r}: expected numbers, names, + - * / // % << >> and "
                f"{', '.join(FUNCTIONS)}, got {type(node).__name__}"
            )
    return _bounded(result, text)


def _binary(op: ast.operator, left: Number, right: Number, text: str) -> Number:
    if type(op) in _BINARY:
        return _BINARY[type(op)](left, right)
    if type(op) in _SHIFTS:
        if isinstance(left, int) and isinstance(right, int) and 0 <= right < 63:
            return _SHIFTS[type(op)](left, right)
        raise ExpressionError(f"{text!r}: a shift takes whole numbers, by 0 to 62")
    raise ExpressionError(f"{text!r}: operator {type(op).__name__} is not allowed")


def _bounded(value: Number, text: str) -> Number:
    if not -MAX_MAGNITUDE <= value <= MAX_MAGNITUDE:
        raise ExpressionError(f"{text!r}: the value is beyond 2^62")
    return value
