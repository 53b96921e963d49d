"""From what the user typed to a Problem, and a line that says which sizes were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ConfigError
from hotloop.problems import kernelbench, native
from hotloop.problems.attention import attention_problem, attention_sizes
from hotloop.problems.classify import FileKind, classify, parse_python, read_text
from hotloop.problems.constants import Constant, fold_constants
from hotloop.problems.precision import with_precision
from hotloop.problems.prompt import prompt_problem
from hotloop.problems.settings import check_settings

_DEVICES = ("cuda", "cpu")


def load_problem_spec(
    path_or_name: str | Path,
    *,
    device: str,
    data: str | Path | None = None,
    settings: Mapping[str, Constant] | None = None,
    precision: str | None = None,
) -> Problem:
    """Return the problem at a path, or the one called `kernelbench/LEVEL/ID`.

    Nothing of the user's code runs.

    Args:
        path_or_name: A .py, .txt or .md file, or a KernelBench name.
        device: `cuda` or `cpu`: where it will be judged; sizes that are left open depend on it.
        data: The KernelBench data set, for a name.
        settings: Values of `--set` (`parse_settings`).
        precision: As `--precision` takes it; None: the problem's own.

    Raises:
        ConfigError: the file is missing, states no problem, a setting does not fit it, or there is
            no such precision.
    """
    if device not in _DEVICES:
        raise ConfigError(f"expected the device cuda or cpu, got {device!r}")
    return with_precision(_load(path_or_name, device, data, dict(settings or {})), precision)


def _load(
    path_or_name: str | Path,
    device: str,
    data: str | Path | None,
    chosen: Mapping[str, Constant],
) -> Problem:
    """Return the problem with its settings, by the file's own policy."""
    text = str(path_or_name)
    if kernelbench.is_kernelbench_name(text):
        problem = kernelbench.load_kernelbench(text, data).problem()
        check_settings(chosen, parse_python(problem.source, text))
        return replace(problem, settings=dict(chosen))
    path = Path(path_or_name)
    if path.is_dir():
        raise ConfigError(
            f"{text} is a folder; expected a problem file in it (.py, .txt, .md), or for the "
            "folder of a run or suite one of hotloop show, prompt, report"
        )
    if not path.is_file():
        raise ConfigError(
            f"{text}: there is no such file; expected a problem file (.py, .txt, .md) or a name "
            "like kernelbench/1/19 with --data PATH"
        )
    kind, source, name = classify(path), read_text(path), _name(path)
    if kind is FileKind.PROMPT:
        return prompt_problem(source, name, device=device, settings=chosen)
    if kind is FileKind.ATTENTION:
        return attention_problem(source, name, device=device, settings=chosen)
    return _model_problem(source, name, kind, chosen)


def describe_sizes(problem: Problem) -> str:
    """Return one line with the sizes at the nominal workload, as far as the file's text tells.

    For attention: `B 4, H 16, S 4096, D 128, bfloat16`; for a model, its numeric constants.
    """
    overrides = {**problem.settings, **problem.workloads[0].settings}
    tree = parse_python(problem.source, problem.name)
    if problem.kind is not ProblemKind.ATTENTION:
        values = fold_constants(tree, overrides)
        return ", ".join(f"{n} {v}" for n, v in values.items() if not isinstance(v, str))
    sizes = attention_sizes(tree, overrides)
    line = ", ".join(str(v) if n == "dtype" else f"{n} {v}" for n, v in sizes.items())
    if problem.workloads[0].settings:
        stated = attention_sizes(tree, problem.settings)
        replaced = ", ".join(f"{n} {stated[n]}" for n in problem.workloads[0].settings)
        line += f" (small, for lack of a GPU; the problem states {replaced})"
    return line


def _model_problem(
    source: str, name: str, kind: FileKind, settings: Mapping[str, Constant]
) -> Problem:
    tree = parse_python(source, name)
    native.refuse_gradients(tree, name)
    check_settings(settings, tree)
    return Problem(
        name=name,
        kind=ProblemKind.NATIVE if kind is FileKind.NATIVE else ProblemKind.KERNELBENCH,
        source=source,
        settings=dict(settings),
        policy=native.read_policy(tree, name),
        workloads=native.read_workloads(tree, name),
        tolerances=native.read_tolerances(tree, name),
    )


def _name(path: Path) -> str:
    """Return `attention/full` for `.../attention/full.py`, else the file's stem."""
    parent = path.resolve().parent.name
    return f"{parent}/{path.stem}" if parent == "attention" else path.stem
