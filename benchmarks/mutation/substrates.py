"""Correct kernels that mutants are made of, each with a problem at sizes that an interpreter bears.

Four sources: `benchmarks/mutants` (small kernels of many families with native problem files),
`benchmarks/kernels` (KernelBench; they need the data set), what the built-in generator writes for
the examples, and CUDA C++ files, which need a GPU. Sizes are no powers of two, and smaller blocks
than usual make several of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results_file import ROOT
from benchmarks.verify_suite import KERNELS, with_constants

MUTANTS = ROOT / "benchmarks" / "mutants"
Settings = Mapping[str, int | str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Substrate:
    """One correct kernel and its problem."""

    name: str
    family: str
    problem: str
    """What `hotloop` takes: `kernelbench/LEVEL/ID`, or a path from the project's root."""
    kernel: Path | None
    """None: the built-in generator writes it."""
    settings: Settings = field(default_factory=dict)
    constants: Mapping[str, int] = field(default_factory=dict)
    """Other values of the kernel file's constants."""
    fixed_inputs: tuple[int, ...] = ()
    """Arguments whose values have a meaning: the oracle leaves them to `get_inputs`."""
    workloads: Mapping[str, Settings] = field(default_factory=dict)
    """Further sizes that a problem of generic shapes allows."""
    devices: tuple[str, ...] = ("cpu", "cuda")
    """Where both the verifier and the oracle can run it."""

    @property
    def language(self) -> str:
        """`cuda` for a `.cu` file, else `triton`."""
        return "cuda" if self.kernel is not None and self.kernel.suffix == ".cu" else "triton"

    @property
    def needs_data(self) -> bool:
        """Whether the problem is one of KernelBench."""
        return self.problem.startswith("kernelbench/")

    def source(self) -> str:
        """Return the kernel file with its constants; not for the built-in generator's.

        Raises:
            ValueError: the generator writes it.
        """
        if self.kernel is None:
            raise ValueError(
                f"{self.name}: expected a kernel file, the built-in generator writes it"
            )
        return with_constants(self.kernel.read_text(encoding="utf-8"), self.constants)


def _own(
    family: str, *names: str, fixed: tuple[int, ...] = (), **more: Settings
) -> list[Substrate]:
    return [
        Substrate(
            name=name,
            family=family,
            problem=f"benchmarks/mutants/problems/{name}.py",
            kernel=MUTANTS / "kernels" / f"{name}.py",
            fixed_inputs=fixed,
            workloads=more,
        )
        for name in names
    ]


def _shared(family: str, name: str, **constants: int) -> Substrate:
    """Return a kernel of `benchmarks/kernels` with a problem file of ours, of smaller sizes."""
    return Substrate(
        name=name,
        family=family,
        problem=f"benchmarks/mutants/problems/{name}.py",
        kernel=KERNELS / f"{name}.py",
        constants=constants,
    )


def _bench(
    family: str, number: str, kernel: str, settings: Settings, **constants: int
) -> Substrate:
    return Substrate(
        name=f"kernelbench_{kernel}",
        family=family,
        problem=f"kernelbench/{number}",
        kernel=KERNELS / f"{kernel}.py",
        settings=settings,
        constants=constants,
    )


def _built(family: str, path: str, settings: Settings, **more: Any) -> Substrate:
    name = f"builtin_{Path(path).stem}"
    return Substrate(name=name, family=family, problem=path, kernel=None, settings=settings, **more)


def _cuda(family: str, *names: str, **more: Settings) -> list[Substrate]:
    """Return kernels in CUDA C++ with a problem file of ours."""
    return [
        Substrate(
            name=f"cuda_{name}",
            family=family,
            problem=f"benchmarks/mutants/problems/{name}.py",
            kernel=MUTANTS / "cuda" / f"{name}.cu",
            workloads=more,
            devices=("cuda",),
        )
        for name in names
    ]


def _from_examples(family: str, name: str, kernel: Path, settings: Settings) -> Substrate:
    """Return a kernel in CUDA C++ with a problem of the examples."""
    return Substrate(
        name=f"cuda_{name}", family=family, problem=f"examples/{name}.py", kernel=kernel,
        settings=settings, devices=("cuda",),
    )  # fmt: skip


_FLAT = {"batch_size": 3, "dim": 150}
_CUBE = {"batch_size": 2, "dim1": 21, "dim2": 37}
_TILES = {"BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_K": 16}
_HEADS: Settings = {"B": 1, "H": 2, "S": 80, "D": 16, "dtype": "float32"}

OWN = (
    *_own("elementwise", "mish", "gelu_tanh", "elu", "hard_tanh", "swiglu"),
    *_own("reduction", "min_reduction", "max_reduction", "variance", "argmin", "log_sum_exp"),
    *_own("reduction", "mean_reduction", unlisted={"B": 3, "R": 1, "C": 7}),
    *_own("softmax", "channel_softmax"),
    *_own("softmax", "log_softmax", unlisted={"ROWS": 3, "COLUMNS": 19}),
    *_own("norm", "batch_norm", "batch_norm_training"),
    *_own("norm", "l2_normalize", unlisted={"ROWS": 3, "COLUMNS": 5}),
    *_own("scan", "reverse_cumsum", "masked_cumsum"),
    *_own("convolution", "conv1d", "conv2d", "depthwise_conv2d", "conv_transpose1d"),
    *_own("pooling", "average_pool2d", "max_pool1d"),
    *_own("loss", "cross_entropy", "huber", "cosine_similarity", "triplet_loss"),
    *_own("loss", "hinge_loss", fixed=(1,)),
    *_own("loss", "kl_divergence", fixed=(0, 1)),
    *_own("matmul", "transposed_matmul"),
    *_own("matmul", "lower_triangular_matmul", fixed=(0, 1)),
    *_own("matmul", "linear_gelu_residual", unlisted={"M": 50}),
    *_own("indexing", "rotary_embedding", fixed=(1, 2)),
    *_own("indexing", "embedding"),
    *_own("attention", "attention"),
    _shared("scan", "cumsum", BLOCK=64),
    _shared("loss", "mse_loss", BLOCK=64, PROGRAMS=7),
)
BENCH = (
    _bench("elementwise", "1/19", "relu", _FLAT, BLOCK=64),
    _bench("elementwise", "1/25", "swish", _FLAT, BLOCK=64),
    _bench("elementwise", "1/26", "gelu", _FLAT, BLOCK=64),
    _bench("softmax", "1/23", "softmax", _FLAT, BLOCK=64),
    _bench("matmul", "1/1", "matmul", {"N": 50}, **_TILES),
    _bench(
        "matmul", "1/3", "batched_matmul", {"batch_size": 2, "m": 35, "k": 40, "n": 27}, **_TILES
    ),
    _bench("matmul", "1/4", "matvec", {"M": 5, "K": 150}, BLOCK=64),
    _bench(
        "norm",
        "1/35",
        "group_norm",
        {"batch_size": 2, "features": 6, "num_groups": 2, "dim1": 9, "dim2": 7},
        BLOCK=64,
    ),
    _bench(
        "norm",
        "1/36",
        "rms_norm",
        {"batch_size": 2, "features": 11, "dim1": 5, "dim2": 9},
        BLOCK=16,
    ),
    _bench(
        "norm",
        "1/40",
        "layer_norm",
        {"batch_size": 2, "features": 3, "dim1": 7, "dim2": 9},
        BLOCK=64,
    ),
    _bench(
        "pooling",
        "1/42",
        "max_pool",
        {"batch_size": 1, "channels": 2, "height": 11, "width": 14},
        BLOCK=16,
    ),
    _bench(
        "pooling",
        "1/44",
        "average_pool",
        {"batch_size": 2, "in_channels": 2, "input_length": 45},
        BLOCK=16,
    ),
    _bench("reduction", "1/47", "sum_reduction", _CUBE, BLOCK_R=8, BLOCK_C=16),
    _bench("reduction", "1/51", "argmax", _CUBE, BLOCK_R=8, BLOCK_C=16),
    _bench(
        "matmul",
        "2/12",
        "gemm_leaky_relu",
        {"batch_size": 35, "in_features": 50, "out_features": 40},
        **_TILES,
    ),
    _bench(
        "norm",
        "2/17",
        "conv_instance_norm",
        {"batch_size": 2, "in_channels": 2, "out_channels": 3, "height": 8, "width": 9},
    ),
    _bench(
        "elementwise",
        "2/57",
        "conv_relu_hardswish",
        {"batch_size": 2, "in_channels": 2, "out_channels": 3, "height": 8, "width": 9},
        BLOCK=64,
    ),
    _bench(
        "norm",
        "2/88",
        "gemm_group_norm_swish",
        {"batch_size": 3, "in_features": 20, "out_features": 36, "num_groups": 6},
        GROUPS=4,
    ),
)
_GPU_ONLY = {"devices": ("cuda",)}
BUILT = (
    # Of the attention template's kernels Triton's stock interpreter, which the oracle runs on,
    # takes this one; in the others nested compile-time constants defeat it.
    _built("attention", "examples/attention/document.py", _HEADS),
    *(
        _built("attention", f"examples/attention/{name}.py", _HEADS, **_GPU_ONLY)
        for name in ("causal", "relative", "alibi", "softcap")
    ),
    _built("norm", "examples/layer_norm.py", {"ROWS": 5, "COLUMNS": 80}),
    _built("matmul", "examples/linear_relu.py", {"M": 40, "K": 50, "N": 70}),
    _built("softmax", "examples/row_softmax.py", {"ROWS": 5, "COLUMNS": 83}),
)
CUDA = (
    *_cuda("elementwise", "relu", "hard_tanh", "bias_gelu", "swiglu"),
    *_cuda("reduction", "argmin", "log_sum_exp"),
    *_cuda("reduction", "mean_reduction", unlisted={"B": 3, "R": 1, "C": 7}),
    *_cuda("norm", "group_norm"),
    *_cuda("scan", "cumsum"),
    *_cuda("convolution", "conv1d"),
    *_cuda("pooling", "max_pool1d", "average_pool2d"),
    *_cuda("loss", "huber"),
    *_cuda("matmul", "matmul"),
    *_cuda("indexing", "transpose"),
    _from_examples(
        "norm", "layer_norm", MUTANTS / "cuda" / "layer_norm.cu", {"ROWS": 5, "COLUMNS": 80}
    ),
    _from_examples(
        "softmax",
        "row_softmax",
        ROOT / "examples" / "cuda" / "row_softmax.cu",
        {"ROWS": 5, "COLUMNS": 83},
    ),
)
SUBSTRATES = (*OWN, *BENCH, *BUILT, *CUDA)


def substrates_of(names: str) -> list[Substrate]:
    """Return the substrates, families or languages named, with commas between; all for none.

    Raises:
        ValueError: there is no such substrate, family or language.
    """
    wanted = {n for n in names.split(",") if n}
    known = {name for s in SUBSTRATES for name in (s.name, s.family, s.language)}
    for name in sorted(wanted - known):
        raise ValueError(
            f"expected problems or families of {', '.join(sorted(known))}; got {name!r}"
        )
    return [s for s in SUBSTRATES if not wanted or wanted & {s.name, s.family, s.language}]
