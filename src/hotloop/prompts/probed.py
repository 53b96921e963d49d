"""Which elements of an input a wrong output was made from, in words.

The judge tells a law only where nearly all the wrong elements that it looked at follow it, so these
sentences are plain statements. What is not known here, or has another form, is left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

MAX_EXAMPLES = 3
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,79}")
_AXES = {
    (2, False): ("row", "column"),
    (4, True): ("batch", "head", "row", "column of D"),
}
Axis = Callable[[int], str]


def describe_probe(probe: object, *, is_attention: bool) -> str | None:
    """Return the law of a wrong index as a few sentences; None for an unknown form.

    Args:
        probe: from the evidence.
        is_attention: whether the input is q, k or v of an attention problem.
    """
    if not isinstance(probe, Mapping):
        return None
    try:
        return _describe(probe, is_attention=is_attention)
    except (KeyError, TypeError, ValueError, IndexError):
        return None  # of another version: what cannot be read is left out


def _describe(probe: Mapping[str, Any], *, is_attention: bool) -> str | None:
    if probe["kind"] == "pair":
        return _pair(probe)
    name, dims = str(probe["tensor"]), len(probe["shape"])
    tell = _LAWS.get(str(probe["kind"]))
    if tell is None or not _NAME.fullmatch(name):
        return None
    law = tell(probe, _axis(dims, is_attention=is_attention))
    if probe.get("meets"):
        return (
            "Index probe, with values by which row i of q matches row i of k alone: the output "
            f"shows that {law}. Rows of q, k and v that do not belong together meet: look at the "
            "row offsets of their loads."
        )
    examples = _examples(probe["examples"], name)
    end = "" if law.endswith("?") else "."
    return (
        f"Index probe, with values of `{name}` that tell where they lie: {law}{end}"
        f"{f' {examples}' if examples else ''} Look at the offsets and strides of the loads of "
        f"`{name}`, and of the store."
    )


def _axis(dims: int, *, is_attention: bool) -> Axis:
    axes = _AXES.get((dims, is_attention), ())

    def axis(dim: int) -> str:
        if dim < len(axes):
            return axes[dim]
        return "index" if dims == 1 else f"dimension-{dim} index"

    return axis


def _pair(probe: Mapping[str, Any]) -> str | None:
    names = str(probe["tensor"]), str(probe["other"])
    shapes = len(probe["shape"]), len(probe["other_shape"])
    first, second = (
        f"{_axis(dims, is_attention=False)(int(dim))}"
        for dims, dim in zip(shapes, probe["dims"], strict=True)
    )
    if not all(_NAME.fullmatch(name) for name in names):
        return None
    by = int(probe["by"])
    return (
        f"Index probe, with one {second} of `{names[1]}` at a time that is not 0: {second} i of "
        f"`{names[1]}` is multiplied with {first} i {'+' if by > 0 else '-'} {abs(by)} of "
        f"`{names[0]}`, where {first} i belongs. Look at the offsets of the two loads in the loop "
        "over the sum."
    )


def _examples(data: object, name: str) -> str:
    told = []
    for item in data if isinstance(data, Sequence) else ():
        reads, belongs = _index(item["reads"]), _index(item["belongs"])
        if reads != belongs:
            at = ", ".join(str(int(i)) for i in item["at"])
            told.append(f"output[{at}] is made from {name}[{reads}], not {name}[{belongs}]")
    return f"For example {'; '.join(told[:MAX_EXAMPLES])}." if told else ""


def _index(places: Sequence[Any]) -> str:
    return ", ".join(":" if place is None else str(int(place)) for place in places)


def _shift(law: Mapping[str, Any], axis: Axis) -> str:
    by, dim = int(law["by"]), axis(int(law["dim"]))
    source = f"i {'+' if by > 0 else '-'} {abs(by)}"
    end = ""
    if law.get("wraps"):
        end = ", counted round the end"
    elif law.get("clamps"):
        end = ", stopping at the end"
    return f"it reads {dim} {source} where {dim} i belongs{end}"


def _one_index(law: Mapping[str, Any], axis: Axis) -> str:
    dim = axis(int(law["dim"]))
    return f"it reads {dim} {int(law['reads'])} where {dim} {int(law['belongs'])} belongs"


def _constant(law: Mapping[str, Any], axis: Axis) -> str:
    dim = axis(int(law["dim"]))
    return f"it reads {dim} {int(law['index'])} whichever {dim} belongs"


def _reversed(law: Mapping[str, Any], axis: Axis) -> str:
    return f"it reads along the {axis(int(law['dim']))} in reverse order"


def _block(law: Mapping[str, Any], axis: Axis) -> str:
    return (
        f"it counts the {axis(int(law['dim']))} within its block of {int(law['block'])}: the "
        "block's start is not added"
    )


def _repeats(law: Mapping[str, Any], axis: Axis) -> str:
    dim, block = axis(int(law["dim"])), int(law["block"])
    return (
        f"of the sum along the {dim} it reads the first {block} only, in place of all: does a "
        "pointer stay where it is from block to block, or a loop end early?"
    )


def _transposed(law: Mapping[str, Any], axis: Axis) -> str:
    first, second = (axis(int(d)) for d in law["dims"])
    return f"it reads [j, i] where [i, j] belongs ({first} and {second} exchanged)"


def _tile(law: Mapping[str, Any], axis: Axis) -> str:
    first, second = (axis(int(d)) for d in law["dims"])
    size = int(law["tile"])
    if law.get("within"):
        return f"{first} and {second} are exchanged inside each tile of {size} x {size}"
    return f"tiles of {size} x {size} are read at each other's {first} and {second}"


def _mixed(law: Mapping[str, Any], axis: Axis) -> str:
    first, second = (axis(int(d)) for d in law["dims"])
    return (
        f"the number that counts {first} and {second} together is taken apart in the wrong "
        "order (what is divided by, and what is the rest)"
    )


def _modulo(law: Mapping[str, Any], axis: Axis) -> str:
    dim, out = axis(int(law["dim"])), int(law["out_dim"])
    return f"its {dim} is index {out} of the output modulo the size, where a division belongs"


def _divided(law: Mapping[str, Any], axis: Axis) -> str:
    dim, out = axis(int(law["dim"])), int(law["out_dim"])
    return f"its {dim} is index {out} of the output divided by the group, where another belongs"


def _crossed(law: Mapping[str, Any], axis: Axis) -> str:
    own, other = (int(d) for d in law["out_dims"])
    where = f" inside each tile of {int(law['tile'])}" if "tile" in law else ""
    return (
        f"its {axis(int(law['dim']))} follows index {other} of the output where index {own} "
        f"belongs{where}"
    )


def _stride(law: Mapping[str, Any], axis: Axis) -> str:
    return (
        f"the stride of its {axis(int(law['dim']))} is taken as {int(law['stride'])} elements, "
        f"it is {int(law['right'])}"
    )


def _layout(law: Mapping[str, Any], axis: Axis) -> str:
    first, second = (axis(int(d)) for d in law["dims"])
    return f"it is addressed as if {first} and {second} were stored the other way round"


def _flat(law: Mapping[str, Any], axis: Axis) -> str:
    by = int(law["by"])
    place = "further on" if by > 0 else "before it"
    return f"it reads the element that lies {abs(by)} {place} in memory"


_LAWS: dict[str, Callable[[Mapping[str, Any], Axis], str]] = {
    "shift": _shift,
    "index": _one_index,
    "constant": _constant,
    "reversed": _reversed,
    "block": _block,
    "repeats": _repeats,
    "transposed": _transposed,
    "tile": _tile,
    "mixed": _mixed,
    "modulo": _modulo,
    "divided": _divided,
    "crossed": _crossed,
    "stride": _stride,
    "layout": _layout,
    "flat": _flat,
}
