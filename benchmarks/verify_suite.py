"""What the throughput of the verifier is measured on: problems of different classes, with kernels.

The KernelBench problems have a kernel of `benchmarks/kernels`, plain and not tuned; the attention
problems get theirs from the built-in generator. Other values of a kernel's constants make further
sources, each a candidate that the verifier has not seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hotloop.core.candidate import Candidate, SourceFile

KERNELS = Path(__file__).parent / "kernels"
Constants = Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One problem of the suite."""

    problem: str
    """What `hotloop` takes: `kernelbench/LEVEL/ID`, or a path from the project's root."""
    kernel: str | None = None
    """Stem of the file in `kernels/`; None: the built-in generator writes it."""
    variants: tuple[Constants, ...] = ()
    """Two sets of other values for the kernel file's constants."""
    shrink: Mapping[str, int] = field(default_factory=dict)
    """Settings that make the problem small enough for a machine without a GPU."""
    library_anchor: bool = False
    """Whether a vendor call beside the kernel does the main work."""

    @property
    def source(self) -> str:
        """The text of the kernel file."""
        return (KERNELS / f"{self.kernel}.py").read_text(encoding="utf-8")

    def sources(self) -> tuple[str, ...]:
        """Return the kernel as it is, then with each set of constants."""
        return (self.source, *(with_constants(self.source, v) for v in self.variants))


def with_constants(source: str, values: Constants) -> str:
    """Return the source with other values of its module-level constants.

    Raises:
        ValueError: the source has no such constant, or the value is its own.
    """
    for name, value in values.items():
        pattern = re.compile(rf"^{name} = (\d+)$", re.MULTILINE)
        found = pattern.findall(source)
        if len(found) != 1 or int(found[0]) == value:
            raise ValueError(f"expected one line `{name} = N` with N other than {value}: {found}")
        source = pattern.sub(f"{name} = {value}", source)
    return source


def candidate(source: str) -> Candidate:
    """Return the Triton candidate of one source."""
    return Candidate(language="triton", sources=(SourceFile(path="kernel.py", text=source),))


def _blocks(*sizes: int) -> tuple[Constants, ...]:
    return tuple({"BLOCK": size} for size in sizes)


_TILES = ({"BLOCK_K": 16}, {"BLOCK_N": 32})
_ROWS = ({"BLOCK_R": 8}, {"BLOCK_C": 128})
_ELEMENTWISE = {"batch_size": 3, "dim": 5000}
_REDUCED = {"batch_size": 2, "dim1": 100, "dim2": 300}

KERNELBENCH = (
    Entry(problem="kernelbench/1/1", kernel="matmul", variants=_TILES, shrink={"N": 200}),
    Entry(
        problem="kernelbench/1/3", kernel="batched_matmul", variants=_TILES,
        shrink={"batch_size": 2, "m": 70, "k": 100, "n": 90},
    ),
    Entry(
        problem="kernelbench/1/4", kernel="matvec", variants=_blocks(2048, 8192),
        shrink={"M": 5, "K": 10000},
    ),
    Entry(
        problem="kernelbench/1/19", kernel="relu", variants=_blocks(2048, 8192),
        shrink=_ELEMENTWISE,
    ),
    Entry(
        problem="kernelbench/1/25", kernel="swish", variants=_blocks(2048, 8192),
        shrink=_ELEMENTWISE,
    ),
    Entry(
        problem="kernelbench/1/26", kernel="gelu", variants=_blocks(2048, 8192),
        shrink=_ELEMENTWISE,
    ),
    Entry(
        problem="kernelbench/1/23", kernel="softmax", variants=_blocks(4096, 16384),
        shrink={"batch_size": 3, "dim": 20000},
    ),
    Entry(
        problem="kernelbench/1/35", kernel="group_norm", variants=_blocks(4096, 16384),
        shrink={"batch_size": 2, "features": 8, "num_groups": 2, "dim1": 50, "dim2": 60},
    ),
    Entry(
        problem="kernelbench/1/36", kernel="rms_norm", variants=_blocks(32, 128),
        shrink={"batch_size": 2, "features": 20, "dim1": 12, "dim2": 15},
    ),
    Entry(
        problem="kernelbench/1/40", kernel="layer_norm", variants=_blocks(4096, 16384),
        shrink={"batch_size": 2, "features": 3, "dim1": 70, "dim2": 90},
    ),
    Entry(
        problem="kernelbench/1/42", kernel="max_pool", variants=_blocks(512, 2048),
        shrink={"batch_size": 2, "channels": 3, "height": 33, "width": 40},
    ),
    Entry(
        problem="kernelbench/1/44", kernel="average_pool", variants=_blocks(512, 2048),
        shrink={"batch_size": 2, "in_channels": 3, "input_length": 2000},
    ),
    Entry(
        problem="kernelbench/1/47", kernel="sum_reduction", variants=_ROWS, shrink=_REDUCED,
    ),
    Entry(problem="kernelbench/1/51", kernel="argmax", variants=_ROWS, shrink=_REDUCED),
    Entry(
        problem="kernelbench/1/89", kernel="cumsum", variants=_blocks(2048, 8192),
        shrink={"batch_size": 1},
    ),
    Entry(
        problem="kernelbench/1/94", kernel="mse_loss", variants=_blocks(2048, 8192),
        shrink={"batch_size": 1},
    ),
    Entry(
        problem="kernelbench/2/12", kernel="gemm_leaky_relu", variants=_TILES,
        shrink={"batch_size": 70, "in_features": 100, "out_features": 90},
    ),
    Entry(
        problem="kernelbench/2/17", kernel="conv_instance_norm",
        variants=({"NUM_WARPS": 4}, {"NUM_WARPS": 16}), library_anchor=True,
        shrink={"batch_size": 2, "in_channels": 4, "out_channels": 6, "height": 20, "width": 22},
    ),
    Entry(
        problem="kernelbench/2/57", kernel="conv_relu_hardswish", variants=_blocks(2048, 8192),
        library_anchor=True, shrink={"batch_size": 2, "height": 20, "width": 22},
    ),
    Entry(
        problem="kernelbench/2/88", kernel="gemm_group_norm_swish",
        variants=({"GROUPS": 16}, {"GROUPS": 64}), library_anchor=True,
        shrink={"batch_size": 5, "in_features": 60, "out_features": 320, "num_groups": 16},
    ),
)  # fmt: skip
ATTENTION = tuple(
    Entry(problem=f"examples/attention/{name}.py")
    for name in ("full", "causal", "relative", "alibi", "document", "softcap")
)
SUITE = KERNELBENCH + ATTENTION


def entry_of(problem: str) -> Entry:
    """Return the suite's entry for a problem.

    Raises:
        ValueError: it has none.
    """
    for entry in SUITE:
        if entry.problem == problem:
            return entry
    known = ", ".join(e.problem for e in SUITE)
    raise ValueError(f"expected a problem of the suite ({known}), got {problem!r}")
