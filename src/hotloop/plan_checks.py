"""What is checked of a search's options, before anything is started, where they meet each other."""

from __future__ import annotations

import os
from pathlib import Path

from hotloop import registry
from hotloop.core.candidate import Candidate
from hotloop.core.language import GLUON, TRITON, allowed_names, is_allowed
from hotloop.core.problem import Problem
from hotloop.errors import ConfigError
from hotloop.llm.presets import find_preset
from hotloop.llm.replay import ReplayModel
from hotloop.llm.spec import ModelSpec, SpecKind, find_key
from hotloop.search_options import SearchOptions

MODEL_STRATEGY = "hybrid"
"""What a model's search follows by default."""
OF_A_MODEL = ("sees", "max_calls", "max_tokens", "max_usd")
"""Options that mean nothing where no model is asked."""


def check_model_options(options: SearchOptions, model: ModelSpec) -> list[str]:
    """Return the folders to take examples from, as absolute paths.

    Raises:
        ConfigError: one does not exist, or an option is of a model where nobody is asked.
    """
    folders = options.get("examples") or ()
    if model.kind is SpecKind.BUILTIN:
        if folders:
            raise ConfigError("--examples: the built-in generator reads none; name a --model")
        for name in OF_A_MODEL:
            if options.get(name) is not None:
                raise ConfigError(
                    f"--{name.replace('_', '-')}: the built-in generator asks no model; name a "
                    "--model, or drop it"
                )
    for folder in folders:
        if not Path(folder).is_dir():
            raise ConfigError(f"--examples: expected a folder of runs or a suite, {folder} is none")
    return [str(Path(folder).resolve()) for folder in folders]


def only_candidate(options: SearchOptions) -> int:
    """Return how many candidates a run may try that verifies its starting kernel alone: that one.

    Raises:
        ConfigError: there is no starting kernel, or another number was asked for.
    """
    if options.get("start") is None:
        raise ConfigError("--start-only: expected kernels to verify, got none; add --start")
    if options.get("max_candidates") not in (None, 1):
        raise ConfigError("--start-only: it tries one kernel a problem; drop --max-candidates")
    return 1


def find_language(
    asked: str | None, model: ModelSpec, start: Candidate | None, problem: Problem
) -> str | None:
    """Return the language to write in; None for the default.

    Raises:
        ConfigError: it contradicts the starting kernel, the generator or the problem's policy.
    """
    if start is not None and asked not in (None, start.language):
        raise ConfigError(
            f"--language {asked}: the kernel of --start is {start.language}, and a search improves "
            "it in its own language; leave --language out, or begin without --start"
        )
    language = asked or (start.language if start is not None else None)
    if language is not None and not is_allowed(language, problem.policy.languages):
        allowed = ", ".join(allowed_names(problem.policy.languages))
        raise ConfigError(f"--language {language}: this problem's policy allows {allowed}")
    is_known = language in (None, TRITON.name) or (asked is None and language == GLUON.name)
    if model.kind is SpecKind.BUILTIN and not is_known:
        raise ConfigError(
            f"--language {language}: the built-in generator writes triton; name a --model"
        )
    return language


def check_strategy(name: str, model: ModelSpec) -> None:
    """Find the strategy before any work, and refuse one of the other kind.

    Raises:
        ConfigError: it is unknown, or needs a model where there is none, or the other way round.
    """
    strategy = registry.load(registry.STRATEGIES, name)
    wants_model = bool(getattr(strategy, "for_models", False))
    has_model = model.kind is not SpecKind.BUILTIN
    if wants_model != has_model:
        other = "name a --model" if wants_model else f"with a model use {MODEL_STRATEGY}"
        raise ConfigError(
            f"--strategy {name}: it searches {'with a model' if wants_model else 'schedules'}; "
            f"{other}"
        )


def check_model(model: ModelSpec, problem: Problem) -> None:
    """Look for a model's key or recording before a folder is made for the run.

    Raises:
        ConfigError: a key is missing (names the variable), a file lies where a folder is wanted, or
            a recording is of another problem.
    """
    if model.kind is SpecKind.ENDPOINT:
        find_key(find_preset(model.preset), os.environ)
    if model.kind is SpecKind.DIRECTORY and model.path is not None:
        there = next(p for p in (model.path, *model.path.parents) if p.exists())
        if not there.is_dir():
            raise ConfigError(
                f"--model dir:{model.path}: expected a folder for prompts and replies, {there} is "
                "a file; name another"
            )
    if model.kind is SpecKind.REPLAY and model.path is not None:
        ReplayModel(model.path).check_problem(problem.id)
