"""Honest kernels that the verifier must pass, each with its problem and the families it stands for.

Four sources: `honest_kernels/*.toml` (written for this benchmark, several to a problem, because
loading a problem costs more than judging a kernel), the honest rows of `tests/attacks`, kernels of
`mutants` unchanged, and what the built-in generator writes for the examples.

Side streams may be used where the text shows that they are joined (docs/decisions/011). A join in
C++ is refused by its text: that kernel is in the catalogue as `by_design`, counted apart. The
family `one_stream` holds what stands in for side streams: independent work in one grid, launches
that overlap, C++ that launches on the current stream.
"""

from __future__ import annotations

import importlib
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results_file import ROOT
from hotloop.core.candidate import Candidate, SourceFile

HERE = Path(__file__).parent / "honest_kernels"
CORPUS = ROOT / "tests" / "attacks"
MUTANTS = "benchmarks/mutants"
SHARED = "_shared"
"""Table of a kernels file with what stands before each kernel, and the settings of a small run."""

FAMILIES: Mapping[str, str] = {
    "atomics": "results added up in an order that differs from run to run",
    "split_k": "the long dimension of a product or sum cut into parts",
    "autotuned": "`triton.autotune`, heuristics or declared TUNABLES",
    "several_streams": "side streams that the current stream waits for",
    "one_stream": "what stands in for several streams: one grid, overlap, the current stream",
    "several_kernels": "two or more kernels in one forward",
    "in_place": "work in place on buffers of its own, or a workspace kept between calls",
    "custom_layout": "weights packed by `prepare()`, outputs or inputs in other strides",
    "tf32": "products in TF32 or 3xTF32 where the policy allows it",
    "bf16": "bfloat16 with float32 sums",
    "first_call": "compiles in the call itself: new specialisations for new sizes or types",
    "generic_shapes": "other sizes than the problem's own have to work too",
    "library": "a vendor product beside a kernel that does the rest",
    "cuda": "CUDA C++ by a launch description",
    "cuda_module": "CUDA C++ by `load_inline`",
    "builtin": "written by the built-in generator",
    "attention": "scores, normaliser and products in one kernel",
    "python": "unusual but honest Python around a kernel",
    "plain": "one kernel, nothing else",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HonestKernel:
    """One kernel that has to pass."""

    name: str
    problem: str
    """Path of the problem file from the project's root."""
    families: tuple[str, ...]
    origin: str
    """`own`, `corpus`, `mutants` or `builtin`."""
    text: str | None = None
    """None: the built-in generator writes it, at its schedule number `point`."""
    point: int = 0
    language: str = "triton"
    needs_gpu: bool = False
    by_design: bool = False
    """The contract refuses it by its text; the opposite of all others."""
    settings: Mapping[str, int | str] = field(default_factory=dict)
    """Sizes on a GPU that replace the file's own."""
    small: Mapping[str, int | str] = field(default_factory=dict)
    """Sizes without a GPU."""

    def candidate(self) -> Candidate:
        """Return the candidate of a kernel that has a text; a generator's are its own."""
        text = self.text
        assert text is not None, "the caller asks the generator"
        path = "kernel.cu" if self.language == "cuda" and "ModelNew" not in text else "kernel.py"
        source = SourceFile(path=path, text=text)
        return Candidate(language=self.language, sources=(source,), entry=path)


def catalogue() -> list[HonestKernel]:
    """Return all kernels; those of one problem are together.

    Raises:
        ValueError: two have one name, or a family is unknown.
    """
    kernels = [*_own(), *_corpus(), *_mutants(), *_built()]
    names = [kernel.name for kernel in kernels]
    if len(set(names)) < len(names):
        twice = sorted({n for n in names if names.count(n) > 1})
        raise ValueError(f"expected a name for each kernel, these stand for several: {twice}")
    for kernel in kernels:
        unknown = sorted(set(kernel.families) - set(FAMILIES))
        if unknown or not kernel.families:
            raise ValueError(f"{kernel.name}: expected families of {list(FAMILIES)}: {unknown}")
    return kernels


def chosen(kernels: Sequence[HonestKernel], names: str) -> list[HonestKernel]:
    """Return the kernels whose name, family, origin or problem is named, with commas between.

    Raises:
        ValueError: nothing is called that.
    """
    wanted = [name for name in names.split(",") if name]
    for name in wanted:
        if not any(name in _titles(kernel) for kernel in kernels):
            raise ValueError(
                f"expected kernels, problems, origins or families of {', '.join(FAMILIES)}; "
                f"got {name!r}"
            )
    return [k for k in kernels if not wanted or any(name in _titles(k) for name in wanted)]


def _titles(kernel: HonestKernel) -> set[str]:
    return {kernel.name, kernel.origin, Path(kernel.problem).stem, *kernel.families}


def _own() -> Iterator[HonestKernel]:
    for path in sorted(HERE.glob("*.toml")):
        rows = tomllib.loads(path.read_text(encoding="utf-8"))
        shared = rows.pop(SHARED)
        stem = shared.get("problem", path.stem)
        for name, row in rows.items():
            is_cuda = row.get("language") == "cuda"
            before = "" if is_cuda else shared.get("code", "")
            yield HonestKernel(
                name=f"{path.stem}/{name}",
                problem=f"benchmarks/honest_kernels/problems/{stem}.py",
                families=tuple(row["families"]),
                origin="own",
                text=f"{before}\n{row['code']}".lstrip() if before else row["code"].lstrip(),
                language=row.get("language", "triton"),
                needs_gpu=row.get("needs_gpu", is_cuda and not row.get("by_design", False)),
                by_design=row.get("by_design", False),
                small=shared.get("small", {}),
            )


def _corpus() -> Iterator[HonestKernel]:
    rows: Any = _corpus_rows()
    for row in rows:
        candidate = row.candidate()
        yield HonestKernel(
            name=f"corpus/{row.name}",
            problem=f"tests/attacks/cheats/problems/{row.problem}.py",
            families=CORPUS_FAMILIES.get(row.name, ("plain",)),
            origin="corpus",
            text=candidate.text(),
            language=row.language,
            needs_gpu=row.device == "cuda",
        )


def _corpus_rows() -> Any:
    """Return the honest rows, read by the corpus's own module, which belongs to the tests."""
    folder = str(CORPUS / "cheats")
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return importlib.import_module("corpus").load_rows(CORPUS / "honest")


def _mutants() -> Iterator[HonestKernel]:
    for name, families in FROM_MUTANTS.items():
        yield HonestKernel(
            name=f"mutants/{name}",
            problem=f"{MUTANTS}/problems/{name}.py",
            families=families,
            origin="mutants",
            text=(ROOT / MUTANTS / "kernels" / f"{name}.py").read_text(encoding="utf-8"),
        )


def _built() -> Iterator[HonestKernel]:
    for problem, families, points, settings, small in BUILT:
        for point in range(points):
            yield HonestKernel(
                name=f"builtin/{Path(problem).stem}-{point}",
                problem=problem,
                families=("builtin", *families),
                origin="builtin",
                point=point,
                settings=settings,
                small=small,
            )


CORPUS_FAMILIES: Mapping[str, tuple[str, ...]] = {
    "copies-and-views": ("custom_layout", "python"),
    "two-kernels-in-a-row": ("several_kernels", "in_place"),
    "in-place-on-its-own-copy": ("in_place",),
    "autotuned": ("autotuned", "first_call"),
    "heuristics": ("autotuned", "first_call"),
    "declared-tunables": ("autotuned",),
    "device-functions": ("first_call",),
    "dataclass-of-launches": ("python",),
    "try-finally-without-a-fallback": ("python",),
    "optional-import": ("python",),
    "checks-of-its-arguments": ("python",),
    "own-parameter-names": ("python",),
    "module-by-another-name": ("python",),
    "autograd-function": ("python",),
    "workspace-kept-between-calls": ("in_place", "several_kernels"),
    "allows-tf32": ("python",),
    "reads-the-device": ("python", "one_stream"),
    "strided-input": ("custom_layout",),
    "made-contiguous-first": ("custom_layout",),
    "output-in-a-layout-of-its-own": ("custom_layout",),
    "other-sizes": ("generic_shapes", "first_call"),
    "two-passes-with-a-scratch": ("several_kernels",),
    "epilogue-beside-a-library-product": ("library",),
    "epilogue-in-place": ("library", "in_place"),
    "bias-by-the-library-relu-by-a-kernel": ("library", "in_place"),
    "weights-turned-in-prepare": ("custom_layout", "library"),
    "split-over-k-with-atomics": ("split_k", "atomics", "several_kernels"),
    "split-over-k-summed-by-torch": ("split_k",),
    "bfloat16-with-a-float32-sum": ("bf16",),
    "bfloat16-in-larger-steps": ("bf16",),
    "outputs-as-views-of-one-buffer": ("custom_layout",),
    "attention-in-one-kernel": ("attention",),
    "attention-on-contiguous-copies": ("attention", "custom_layout"),
    "ties-by-the-last-index": ("several_kernels",),
    "goes-on-with-what-its-kernel-found": ("python",),
    "waits-for-its-kernel": ("python", "one_stream"),
    "workspace-kept-and-summed-by-torch": ("split_k", "in_place"),
    "operator-of-its-own": ("python",),
    "inference-mode": ("library", "python"),
    "workspace-that-holds-the-same-as-a-call-ago": ("in_place", "split_k"),
}
"""Of the rows of `tests/attacks/honest`; the others are `plain`."""

FROM_MUTANTS: Mapping[str, tuple[str, ...]] = {
    "embedding": ("plain",),
    "conv2d": ("plain",),
    "max_pool1d": ("plain",),
    "masked_cumsum": ("plain",),
    "cross_entropy": ("several_kernels",),
    "batch_norm_training": ("plain",),
    "log_softmax": ("plain",),
    "lower_triangular_matmul": ("plain",),
    "attention": ("attention",),
}
"""Kernels of other kinds of operation; a problem has one, so only a few are taken."""

_Sizes = Mapping[str, int | str]
_HEADS: _Sizes = {"B": 2, "H": 4, "S": 1024, "D": 64}
_SMALL_HEADS: _Sizes = {"B": 1, "H": 2, "S": 80, "D": 16, "dtype": "float32"}
BUILT: Sequence[tuple[str, tuple[str, ...], int, _Sizes, _Sizes]] = (
    ("examples/attention/causal.py", ("attention", "bf16"), 3, _HEADS, _SMALL_HEADS),
    ("examples/attention/relative.py", ("attention", "bf16"), 3, _HEADS, _SMALL_HEADS),
    ("examples/attention/document.py", ("attention", "bf16"), 2, _HEADS, _SMALL_HEADS),
    (
        "examples/layer_norm.py", ("plain",), 3, {"ROWS": 512, "COLUMNS": 1024},
        {"ROWS": 5, "COLUMNS": 80},
    ),
    (
        "examples/linear_relu.py", ("plain",), 3, {"M": 512, "K": 512, "N": 512},
        {"M": 40, "K": 50, "N": 70},
    ),
)  # fmt: skip
"""Problem, families, schedules, sizes on a GPU, sizes without one."""
