"""The book of rules for CUDA C++ sources, and how they are applied to tokens.

A rule gets the tokens and the place of one that is code, and yields texts for a range of tokens:
`(first, last, text)` replaces the tokens from first to before last.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from benchmarks.mutation.cuda_tokens import Token, code_places, text_of, tokens_of
from benchmarks.mutation.rule import Mutant, drawn

Edit = tuple[int, int, str]
Rewrite = Callable[[Sequence[Token], int], Iterator[Edit]]
CUDA_RULES: dict[str, tuple[str, Rewrite]] = {}


def cuda_rule(name: str, group: str) -> Callable[[Rewrite], Rewrite]:
    """Return a decorator that adds a rule to the book."""

    def register(rewrite: Rewrite) -> Rewrite:
        CUDA_RULES[name] = (group, rewrite)
        return rewrite

    return register


def cuda_mutants(
    source: str,
    names: Collection[str] | None = None,
    *,
    per_rule: int | None = None,
    seed: int = 0,
) -> list[Mutant]:
    """Return the distinct mutants of a CUDA source, rule by rule.

    Args:
        source: its text.
        names: rules to use; None: all.
        per_rule: how many of each rule at most, drawn by `seed`; None: all.
        seed: chooses among a rule's places.
    """
    tokens = tokens_of(source)
    places = code_places(tokens)
    seen, found = {source}, []
    for name, (group, rewrite) in CUDA_RULES.items():
        fresh: list[Mutant] = []
        for place in places if names is None or name in names else ():
            for first, last, text in rewrite(tokens, place):
                mutant = text_of(tokens[:first]) + text + text_of(tokens[last:])
                if mutant not in seen:
                    seen.add(mutant)
                    fresh.append(Mutant(name, group, mutant))
        found += drawn(fresh, name, per_rule, seed)
    return found


def neighbour(tokens: Sequence[Token], place: int, step: int) -> Token:
    """Return the next token of code in a direction; an empty one at the end."""
    i = place + step
    while 0 <= i < len(tokens):
        if tokens[i].is_code:
            return tokens[i]
        i += step
    return Token("sign", "")


def swaps(pairs: dict[str, str], kind: str) -> Rewrite:
    """Return a rule that writes another token of that kind in a token's place."""

    def rewrite(tokens: Sequence[Token], place: int) -> Iterator[Edit]:
        token = tokens[place]
        if token.kind == kind and token.text in pairs:
            yield place, place + 1, pairs[token.text]

    return rewrite
