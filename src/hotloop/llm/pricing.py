"""What a call cost. Unknown stays unknown: a sum with an unknown part is None, never 0."""

from __future__ import annotations

from dataclasses import dataclass

from hotloop.core.model import Usage

TOKENS_A_PRICE_IS_FOR = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Dollars for a million tokens."""

    prompt: float
    cached: float
    """Of prompt tokens that came from the endpoint's cache."""
    completion: float
    """Of output tokens, reasoning included."""
    as_of: str
    """The day on which it was read, as YYYY-MM-DD."""


def cost_usd(usage: Usage, price: Price | None) -> float | None:
    """Return the dollars for these tokens; None when the price or a needed count is unknown.

    Where the endpoint does not say how many tokens were cached, all count as not cached: the
    result is an upper bound.
    """
    if price is None or usage.prompt is None or usage.completion is None:
        return None
    cached = min(usage.cached or 0, usage.prompt)
    dollars = (
        (usage.prompt - cached) * price.prompt
        + cached * price.cached
        + usage.completion * price.completion
    )
    return dollars / TOKENS_A_PRICE_IS_FOR
