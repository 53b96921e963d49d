"""Opens the parts of a planned search: who writes kernels, who judges them, what is tried next.

The one place that knows which class stands behind which option. `hotloop.api` runs what it opens.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from hotloop import registry
from hotloop.core.attempt import FREE_ACTIONS, Attempt, RunSpec
from hotloop.core.audit import Audit
from hotloop.core.candidate import Candidate
from hotloop.core.event import Event, Listener
from hotloop.core.model import Model
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Generator, Store, Strategy, Verifier
from hotloop.core.record import from_json
from hotloop.core.space import Space
from hotloop.core.verdict import Tier, Verdict
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.continuing import ContinuingModel
from hotloop.llm.directory import DirectoryModel
from hotloop.llm.journaled import JournaledModel
from hotloop.llm.nobody import Nobody
from hotloop.llm.replay import ReplayModel
from hotloop.llm.spec import ModelOptions, SpecKind, open_model
from hotloop.plan import BUILTIN, SearchPlan
from hotloop.prompts.author import ModelGenerator
from hotloop.prompts.render import Sees
from hotloop.prompts.renewal import Post
from hotloop.prompts.starting import StartGenerator
from hotloop.retrieval.shelf import open_shelf
from hotloop.search.starting import WithStart
from hotloop.store.failure import store_errors
from hotloop.verify import LocalVerifier
from hotloop.verify.outside import OutsideVerifier
from hotloop.verify.ssh import SshVerifier
from hotloop.verify.static_stage import static_verdict
from hotloop.verify.turn_verifier import Stop, TurnVerifier
from hotloop.verify.turns import Turns


def make_folder_of_answers(plan: SearchPlan) -> None:
    """Make the folder that prompts are written to, where the model is one; do nothing else.

    Raises:
        ConfigError: it cannot be made or written.
    """
    if plan.model.kind is SpecKind.DIRECTORY and not plan.start_only:
        open_model(plan.model, ModelOptions(environ={})).close()


def open_verifier(plan: SearchPlan, store: Store) -> Verifier:
    """Return the judge of the plan: here, behind ssh, or by files. Its caller closes it.

    Raises:
        InfraError: this machine cannot give the isolation asked for.
        StoreError: the judge's log cannot be written.
    """
    if plan.judge.is_bundle:
        return OutsideVerifier(store, plan.problem, wants_full=not plan.spec.has_short_final)
    options: dict[str, Any] = {
        "min_isolation": plan.config.min_isolation,
        "profile": shows_counters(plan.spec) and plan.spec.device == "cuda",
    }
    with store_errors(plan.folder):
        log_path = plan.folder / "judge.log"
        verifier: LocalVerifier
        if plan.judge.is_local:
            verifier = LocalVerifier(plan.spec.device, log_path=log_path, gpu=plan.gpu, **options)
        else:
            verifier = SshVerifier(plan.judge, plan.spec.device, log_path=log_path, **options)
    verifier.known_audit = stored_audit(store.notes("setup"))
    verifier.short_final = plan.spec.has_short_final
    return verifier


def in_turns(verifier: Verifier, turns: Turns, stop: Stop) -> Verifier:
    """Return a judge on this machine as one that takes turns on a GPU; any other as it is."""
    if not isinstance(verifier, LocalVerifier) or isinstance(verifier, SshVerifier):
        return verifier

    def refuse(candidate: Candidate, problem: Problem, tier: Tier) -> Verdict | None:
        return static_verdict(
            candidate, problem, tier, device=verifier.device, environment=verifier.environment
        )

    return TurnVerifier(verifier, turns, stop, refuse=refuse)


def stored_audit(setups: Sequence[Mapping[str, Any]]) -> Audit | None:
    """Return the audit of a run's last set-up; None where it had none."""
    info = from_json(ProblemInfo, setups[-1]["info"]) if setups else None
    return info.audit if info is not None else None


def shows_counters(spec: RunSpec) -> bool:
    """Whether anything of a run shows hardware counters: a model's prompts, from a level on."""
    level = Sees[str(spec.options.get("sees", "memory")).upper()]
    return spec.generator != BUILTIN and level >= Sees.PERFORMANCE


def has_calls_left(spec: RunSpec, attempts: Iterable[Attempt]) -> bool:
    """Whether a run may ask its model once more: else no prompt shows what is found from now on."""
    limit = spec.budget.max_calls
    return limit is None or sum(a.action not in FREE_ACTIONS for a in attempts) < limit


@contextmanager
def open_generator(
    plan: SearchPlan, store: Store, listen: Listener = lambda event: None
) -> Iterator[Generator]:
    """Yield who writes the kernels; its calls and connections end with the block.

    Args:
        plan: what the search does.
        store: where its calls are kept.
        listen: called with a warning where a recording was not played as it was made.

    Raises:
        ConfigError: a key is missing, or a folder or recording cannot be used.
    """
    if plan.spec.generator == BUILTIN:
        builtin: Generator = registry.load(registry.GENERATORS, BUILTIN)(plan.problem.policy)
        yield builtin if plan.start is None else StartGenerator(builtin, plan.start, store)
        return
    options = ModelOptions(environ=os.environ, wait=plan.wait)
    source = Nobody() if plan.start_only else open_model(plan.model, options)
    notes = CallNotes(store)
    model: Model = ContinuingModel(JournaledModel(source, notes))
    try:
        yield ModelGenerator(
            model,
            notes,
            store,
            plan.problem,
            language=plan.spec.language,
            sees=plan.config.sees,
            start=plan.start,
            is_outside=plan.model.kind is SpecKind.DIRECTORY,
            post=Post(withdraw=source.withdraw, holds=source.holds)
            if isinstance(source, DirectoryModel)
            else None,
            notice=source.notice if isinstance(source, DirectoryModel) else lambda: "",
            examples=open_shelf(plan.spec, plan.problem),
        )
    finally:
        model.close()
        if isinstance(source, ReplayModel):
            settled = {call.key for call in notes.recorded()}
            for told in (source.summary(), source.unplayed(plan.problem.id, settled)):
                if told is not None:
                    store.note("warning", {"message": told})
                    listen(Event(kind="warning", payload={"message": told}))


def strategy_factory(plan: SearchPlan) -> Callable[[Space, int], Strategy]:
    """Return what makes the plan's strategy from a space and a seed.

    Raises:
        ConfigError: its name is unknown.
    """
    strategy: Callable[..., Strategy] = registry.load(registry.STRATEGIES, plan.spec.strategy)
    has_start = plan.start is not None
    if plan.spec.generator == BUILTIN:
        return partial(WithStart, strategy) if has_start else strategy
    return partial(
        strategy,
        width=plan.config.parallel,
        has_start=has_start,
        has_feedback=plan.config.sees != "nothing",
    )
