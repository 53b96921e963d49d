"""The `best/` folder of a run: a kernel that stands without hotloop.

Written at the end of a run, and renamed once its kernel is refused: the importable kernel, the
problem with its sizes, a pytest file and a benchmark that need only torch, triton and pytest, the
verdict, and a README with the line that reproduces it. The test restates the reference as plain
formulas in float64; it does not call back into the verifier, so it is a second opinion, not the
protocol.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import jinja2

from hotloop.core import kill_points
from hotloop.core.candidate import Candidate
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind
from hotloop.core.record import to_json
from hotloop.core.units import format_ms
from hotloop.core.verdict import Verdict
from hotloop.report.pinned_source import with_settings

_TEMPLATES = Path(__file__).parent / "templates"

_OWN_FILES = {
    "problem_file": "problem.py",
    "test_file": "test_kernel.py",
    "benchmark_file": "benchmark.py",
    "verdict_file": "verdict.json",
    "readme_file": "README.md",
}
_ABOUT_PYTHON = "`ModelNew`, importable; needs torch, and triton or a CUDA compiler"
_ABOUT_CUDA = "CUDA C++ with a launch description in its first comment; `hotloop verify` runs it"

INTERPRETER_ELEMENTS = 1 << 26
"""Largest B * H * S * Skv * D that the generated test runs in Triton's interpreter: a few seconds
on one core (about 1e7 multiply-adds a second through numpy with small tiles)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BestResult:
    """What a run found and where it came from."""

    problem: Problem
    info: ProblemInfo
    candidate: Candidate
    verdict: Verdict
    verify_command: str
    """The command line that judges this kernel again."""
    search_command: str
    """The command line that found it."""
    model: str | None = None
    """The model whose run it came out of, as the user named it; None for the built-in generator."""


def write_best(folder: Path, result: BestResult) -> Path:
    """Write the result into `folder`, replacing what stood there, and return `folder`.

    The folder appears whole or not at all: it is written beside its place and renamed.

    Raises:
        ValueError: the candidate has a file outside its folder.
    """
    kill_points.reach("before-best")
    fresh = folder.with_name(folder.name + ".new")
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir(parents=True)
    for path, text in render_best(result).items():
        target = fresh / path
        if not target.resolve().is_relative_to(fresh.resolve()):
            raise ValueError(f"expected a relative path inside the candidate, got {path!r}")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    kill_points.reach("best-written")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
        kill_points.reach("best-moved-away")
    os.replace(fresh, folder)
    kill_points.reach("after-best")
    shutil.rmtree(old, ignore_errors=True)
    return folder


def retire_best(folder: Path) -> Path | None:
    """Rename a folder whose kernel no verdict stands behind any more, replacing an older one.

    Returns:
        Its new place; None where there was no folder.
    """
    if not folder.is_dir():
        return None
    refused = folder.with_name(folder.name + ".refused")
    shutil.rmtree(refused, ignore_errors=True)
    os.replace(folder, refused)
    return refused


def render_best(result: BestResult) -> dict[str, str]:
    """Return the files of the folder by relative path."""
    problem, candidate = result.problem, result.candidate
    files = {s.path: s.text for s in candidate.sources}
    names = _own_names(files)
    is_python = candidate.entry.endswith(".py")
    if is_python:
        for name, value in candidate.pins.items():
            files[candidate.entry] += f"\n{name} = {value!r}  # pinned\n"
    sizes = {**problem.settings, **problem.workloads[0].settings}
    verdict = json.dumps(to_json(result.verdict), indent=2, sort_keys=True) + "\n"
    files[names["problem_file"]] = with_settings(problem.source, sizes)
    files[names["verdict_file"]] = verdict
    family = "attention" if problem.kind is ProblemKind.ATTENTION else "model"
    values = {**_template_values(result), **names}
    if is_python:
        files[names["test_file"]] = _render(f"{family}_test.py.jinja", values)
        files[names["benchmark_file"]] = _render(f"{family}_benchmark.py.jinja", values)
    files[names["readme_file"]] = _render("best_readme.md.jinja", values)
    return files


def _own_names(taken: Collection[str]) -> dict[str, str]:
    """Return the names of our files; those of the candidate keep theirs: it imports them."""
    return {key: f"hotloop_{name}" if name in taken else name for key, name in _OWN_FILES.items()}


def _template_values(result: BestResult) -> dict[str, object]:
    attention, candidate = result.info.attention, result.candidate
    return {
        "name": result.problem.name,
        "entry": candidate.entry,
        "about_kernel": _ABOUT_PYTHON if candidate.entry.endswith(".py") else _ABOUT_CUDA,
        "others": sorted(s.path for s in candidate.sources if s.path != candidate.entry),
        "attention": attention,
        "interpretable": candidate.language == "triton" and _is_interpretable(result.info),
        "verdict": result.verdict,
        "result_line": result_line(result.verdict, model=result.model) + _unranked(result.info),
        "verify_command": result.verify_command,
        "search_command": result.search_command,
        "has_test": candidate.entry.endswith(".py"),
        "precision": result.problem.policy.precision,
    }


def _unranked(info: ProblemInfo) -> str:
    """Return what to add where a speed-up says little: the problem can be faked."""
    if info.rankable:
        return ""
    reasons = info.audit.reasons if info.audit is not None else info.notes
    return "; not ranked: " + (reasons[0] if reasons else "the problem can be faked")


def _is_interpretable(info: ProblemInfo) -> bool:
    """Whether Triton's interpreter gives right numbers for the problem in a few seconds.

    It computes float16 and bfloat16 products wrongly, so only float32 problems qualify.
    """
    if any(spec.dtype != "float32" for spec in info.inputs):
        return False
    if info.attention is None:
        return sum(math.prod(s.shape) for s in (*info.inputs, *info.outputs)) <= 1 << 18
    a = info.attention
    return a.B * a.H * a.S * a.Skv * a.D <= INTERPRETER_ELEMENTS


def result_line(verdict: Verdict, *, model: str | None = None) -> str:
    """Return one sentence on what was found; times only where they were measured."""
    found = "" if model is None else f"; found with the model {model}"
    performance = verdict.performance
    if performance is None:
        where = f"at tier {verdict.tier.value} on {verdict.device}"
        return f"{verdict.status.value} {where}; not timed{found}"
    text = f"{verdict.status.value}: {format_ms(performance.latency_ms)}"
    ratios = ", ".join(f"{x:.2f}x over {name}" for name, x in sorted(performance.speedup.items()))
    return f"{text}, {ratios}{found}" if ratios else f"{text}{found}"


def _render(template: str, values: dict[str, object]) -> str:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # the output is Python and Markdown, not HTML
    )
    return environment.get_template(template).render(values)
