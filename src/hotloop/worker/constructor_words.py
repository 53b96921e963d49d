"""How `ModelNew` is called, said where its constructor does not take what it is given."""

from __future__ import annotations

import dataclasses

from hotloop.core.verdict import Evidence

_CONSTRUCTOR = "ModelNew.__init__()"
"""How Python names it where the arguments do not fit."""


def with_call(evidence: Evidence, count: int) -> Evidence:
    """Return the evidence of a failed load, with how many values the constructor was given.

    Args:
        evidence: of any failure; one that does not name the constructor stays as it is.
        count: values that `get_init_inputs()` returned.
    """
    if evidence.kind != "exception" or _CONSTRUCTOR not in evidence.message:
        return evidence
    text = (
        f"{evidence.message}; it is called as the reference's constructor is, with the {count} "
        "value(s) of get_init_inputs()"
    )
    return dataclasses.replace(evidence, message=text)
