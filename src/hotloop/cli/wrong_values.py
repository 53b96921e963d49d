"""Wrong values in words, for `hotloop show`: where they are, what that means, some of them."""

from __future__ import annotations

from hotloop.core.verdict import Status, Verdict
from hotloop.prompts.feedback import failed_case
from hotloop.prompts.meanings import meanings
from hotloop.prompts.numerics import describe, read_evidence, sample_table
from hotloop.prompts.places import axis_names

SAID = frozenset(
    {
        "box", "density", "diagonal", "difference", "evenness", "exact_there", "masked_rows",
        "mismatches",
        "mistake", "nan", "nonfinite", "nonfinite_box", "nonfinite_patterns", "origin", "output",
        "patterns", "probe", "profile", "ratio", "rule", "samples", "shape", "small", "smaller",
        "times_eager", "times_eager_there", "total",
    }
)  # fmt: skip
"""Details of the evidence that the words are made of; their numbers are in --json."""


def wrong_values(verdict: Verdict, *, is_attention: bool) -> list[tuple[str, str]]:
    """Return labels and sentences on the values that are wrong; empty for other failures."""
    if verdict.status is not Status.INCORRECT_NUMERICAL or verdict.evidence is None:
        return []
    read = read_evidence(verdict.evidence.details)
    if not read.shape:
        return []
    case, axis = failed_case(verdict), axis_names(len(read.shape), is_attention=is_attention)
    told = [("wrong", text) for text in describe(read, case, axis)]
    if read.ratio is not None:
        law = read.ratio
        middle = f"{law.median:.4g} at the median, the middle 90 % within {law.spread:.2g}"
        told.append(("wrong", f"got / expected is {middle}."))
    told += [
        ("what it means", text) for text in meanings(read, case, axis, is_attention=is_attention)
    ]
    table = sample_table(read).splitlines()
    return [*told, *(("for example", " ".join(row.split())) for row in table)]
