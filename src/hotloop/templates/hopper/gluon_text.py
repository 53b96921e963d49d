"""From Triton expressions to Gluon ones: the same lowering, in the other dialect's names.

Elementwise operations, loads and reductions have the same names in `triton.language` and in
Gluon's; layouts follow from the operands. What Gluon lacks is a function of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from hotloop.templates.activation import DEVICE_FUNCTIONS
from hotloop.templates.attention.expressions import MapExpressions

_MODULE = re.compile(r"\btl\.")
_DEVICE_FUNCTION = re.compile(rf"(?<![\w.])({'|'.join(['tanh', *DEVICE_FUNCTIONS])})\(")
_SIGMOID = re.compile(r"\btl\.sigmoid\(")

SIGMOID = '''@gluon.jit
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return 1.0 / (1.0 + gl.exp2(x * -1.442695041))
'''


def as_gluon(text: str) -> str:
    """Return a statement, an expression or a device function in Gluon's names."""
    text = _SIGMOID.sub("sigmoid(", text)
    return _MODULE.sub("gl.", text).replace("@triton.jit", "@gluon.jit")


def as_gluon_lines(lines: Iterable[str]) -> list[str]:
    """Return statements in Gluon's names."""
    return [as_gluon(line) for line in lines]


def gluon_functions(functions: Iterable[str], used_in: Iterable[str]) -> list[str]:
    """Return device functions in Gluon's names, and what Gluon lacks of those in `used_in`."""
    texts = [as_gluon(f) for f in functions]
    if any(re.search(r"(?<![\w.])sigmoid\(", t) for t in (*texts, *used_in)):
        texts.insert(0, SIGMOID)
    return texts


def map_functions(functions: Iterable[str]) -> list[str]:
    """Return Triton's own device functions, under names that Gluon's leave free."""
    return [_renamed(text) for text in functions]


def for_map(tile_map: MapExpressions) -> MapExpressions:
    """Return the mask of the map of tiles, a Triton kernel, calling `map_functions`."""
    return replace(
        tile_map,
        outer_lines=[_renamed(line) for line in tile_map.outer_lines],
        loop_lines=[_renamed(line) for line in tile_map.loop_lines],
        keep=_renamed(tile_map.keep),
    )


def _renamed(text: str) -> str:
    return _DEVICE_FUNCTION.sub(r"map_\1(", text)
