"""The attention variants that tests and benchmarks of the templates go through."""

from __future__ import annotations

from graph_expressions import Builder, Expression


def full() -> tuple[Expression | None, Expression | None]:
    return None, None


def causal(S: int = 128, H: int = 2):
    g = Builder()
    return None, g.q >= g.kv


def relative(S: int = 128, H: int = 2):
    g = Builder()
    return g.score + (g.q - g.kv), None


def alibi(S: int = 128, H: int = 2):
    g = Builder()
    return g.score + 2.0 ** (-8 * (g.h + 1) / H) * (g.kv - g.q), None


def document(S: int = 128, H: int = 2):
    g = Builder()
    return None, g.read("doc", (S,), "int32", g.q).equals(g.read("doc", (S,), "int32", g.kv))


def softcap(S: int = 128, H: int = 2):
    g = Builder()
    return 20 * g.apply("tanh", g.score / 20), None


def neighbourhood_2d(*, width: int, height: int, radius: int, dilation: int = 1) -> Expression:
    """Return the mask: a window on an image, inside its borders, of every `dilation`th pixel."""
    g = Builder()

    def is_near(query: Expression, key: Expression, length: int) -> Expression:
        if dilation > 1:
            same_group = (query % dilation).equals(key % dilation)
            query, key, length = query // dilation, key // dilation, length // dilation
        centre = g.apply("minimum", g.apply("maximum", query, radius), length - 1 - radius)
        near = g.apply("abs", centre - key) <= radius
        return same_group & near if dilation > 1 else near

    rows = is_near(g.q // width, g.kv // width, height)
    return rows & is_near(g.q % width, g.kv % width, width)
