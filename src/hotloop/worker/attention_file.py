"""Sizes and captured tensors of an executed attention file, checked."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from hotloop.core.problem import Problem
from hotloop.core.python_source import parse_python
from hotloop.core.units import GIB
from hotloop.errors import ProblemError
from hotloop.worker.captured import captured_tensors
from hotloop.worker.memory import memory_bytes

DTYPES = (torch.bfloat16, torch.float16, torch.float32)
NORMALIZERS = ("softmax", "sigmoid")
FLOAT64_BYTES = 8
PAGE_SIZES = (16, 32, 64, 128, 256)
SPARE_PAGES = 3
"""Pages of a paged cache that no batch uses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionSizes:
    """q is (B, H, S, D); k and v are (B, Hkv, Skv, D), or pages of that."""

    B: int
    H: int
    Hkv: int
    S: int
    Skv: int
    D: int
    dtype: torch.dtype
    scale: float
    """Factor of the scores before score_mod; 1/sqrt(D) unless the file sets `scale`."""
    normalize: str
    """`softmax` or `sigmoid`."""
    page_size: int | None = None
    """Keys of one page where k and v are a paged cache; None: they are contiguous."""

    @property
    def kv_shape(self) -> tuple[int, int, int, int]:
        """The shape of k and of v as they are passed."""
        if self.page_size is None:
            return self.B, self.Hkv, self.Skv, self.D
        pages = self.B * (self.Skv // self.page_size) + SPARE_PAGES
        return pages, self.Hkv, self.page_size, self.D

    def kv_bytes(self, frac: float) -> int:
        """Return the bytes of a share, 0 to 1, of the keys and values that may be seen."""
        return 2 * round(frac * self.B * self.Hkv * self.Skv) * self.D * self.dtype.itemsize


def read_sizes(problem: Problem, namespace: Mapping[str, Any]) -> AttentionSizes:
    """Return the sizes that the file's namespace states.

    Raises:
        ProblemError: one is missing, of the wrong type, or does not fit the others.
    """
    sizes = {name: _size(problem, namespace, name) for name in ("B", "H", "S", "D")}
    for name, default in (("Hkv", "H"), ("Skv", "S")):
        known = name in namespace
        sizes[name] = _size(problem, namespace, name) if known else sizes[default]
    if sizes["H"] % sizes["Hkv"]:
        raise _wrong(
            problem, "Hkv", f"H must be a multiple of Hkv, got H {sizes['H']}, Hkv {sizes['Hkv']}"
        )
    normalize = namespace.get("normalize", "softmax")
    if normalize not in NORMALIZERS:
        raise _wrong(problem, "normalize", f"normalize is softmax or sigmoid, got {normalize!r}")
    scale = namespace.get("scale", 1 / math.sqrt(sizes["D"]))
    if isinstance(scale, bool) or not isinstance(scale, (int, float)) or not math.isfinite(scale):
        raise _wrong(problem, "scale", f"scale must be a finite number, got {scale!r}")
    return AttentionSizes(
        **sizes,
        dtype=_dtype(problem, namespace.get("dtype", "bfloat16")),
        scale=float(scale),
        normalize=normalize,
        page_size=_page_size(problem, namespace.get("page_size"), sizes["Skv"]),
    )


def check_fits(problem: Problem, sizes: AttentionSizes, device: str) -> None:
    """Refuse sizes whose tensors alone are larger than the device's memory.

    Counted are q, k, v, an output, and the output in float64: what no way of computing avoids.

    Raises:
        ProblemError: names the sizes, what they take and what there is.
    """
    s = sizes
    rows, keys = s.B * s.H * s.S, math.prod(s.kv_shape[:3])
    needed = s.D * (s.dtype.itemsize * 2 * (rows + keys) + FLOAT64_BYTES * rows)
    there = memory_bytes(device)
    if needed > there:
        raise ProblemError(
            f"{problem.name}: B {s.B}, H {s.H}, S {s.S}, Skv {s.Skv}, D {s.D} need at least "
            f"{needed / GIB:.0f} GiB and this machine's {device} memory is {there / GIB:.0f} GiB; "
            "make them smaller, for example with --set S=4096"
        )


def captured_buffers(
    problem: Problem,
    functions: Iterable[Callable[..., Any] | None],
    drawn: Mapping[str, torch.Tensor],
    device: str,
) -> dict[str, torch.Tensor]:
    """Return tensors captured besides the `drawn` ones, by name, moved to the device.

    Raises:
        ProblemError: two different ones have the same name.
    """
    fixed: dict[str, torch.Tensor] = {}
    for capture in captured_tensors(iter(functions)):
        if any(capture.tensor is tensor for tensor in drawn.values()):
            continue
        if capture.name in fixed or capture.name in drawn:
            raise ProblemError(
                f"{problem.name}: two captured tensors are called {capture.name!r}; rename one"
            )
        fixed[capture.name] = capture.tensor.detach().to(device)
        capture.replace(fixed[capture.name])
    return fixed


def _size(problem: Problem, namespace: Mapping[str, Any], name: str) -> int:
    if name not in namespace:
        raise ProblemError(
            f"{problem.name}: expected the size {name}, got none; add it to the file"
        )
    value = namespace[name]
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise _wrong(problem, name, f"{name} must be an int over 0, got {value!r}")
    return value


def _dtype(problem: Problem, value: Any) -> torch.dtype:
    dtype = getattr(torch, value, None) if isinstance(value, str) else value
    if dtype not in DTYPES:
        names = ", ".join(str(d).removeprefix("torch.") for d in DTYPES)
        raise _wrong(problem, "dtype", f"dtype is one of {names}, got {value!r}")
    return dtype


def _page_size(problem: Problem, value: Any, keys: int) -> int | None:
    if value is None:
        return None
    if not isinstance(value, int) or value not in PAGE_SIZES:
        sizes = ", ".join(map(str, PAGE_SIZES))
        raise _wrong(problem, "page_size", f"page_size is one of {sizes}, or None; got {value!r}")
    if keys % value:
        raise _wrong(
            problem, "page_size",
            f"page_size {value} must divide the number of keys, got Skv {keys}; change one",
        )  # fmt: skip
    return int(value)


def _wrong(problem: Problem, name: str, message: str) -> ProblemError:
    """Return the error with the line that assigns `name` last, if one does."""
    line = None
    for statement in parse_python(problem.source).body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        targets = [statement.target] if isinstance(statement, ast.AnnAssign) else targets
        if any(isinstance(n, ast.Name) and n.id == name for t in targets for n in ast.walk(t)):
            line = statement.lineno
    where = problem.name if line is None else f"{problem.name} line {line}"
    return ProblemError(f"{where}: {message}")
