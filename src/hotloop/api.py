"""The library's front door: `optimize`, `verify`, `load_run`. The command line calls these too.

This is the one place where the parts are wired: problem, generator, strategy, verifier, store and
engine meet here and know nothing of each other. Nothing here prints.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Unpack

from hotloop.capture import capture
from hotloop.config import DEFAULT_LANES, Settings
from hotloop.core.candidate import Candidate
from hotloop.core.event import Event, Listener
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.record import from_json
from hotloop.core.verdict import Tier, Verdict
from hotloop.engine import Parts, RunResult, StopFlag, run_search
from hotloop.errors import ConfigError
from hotloop.kernel_file import read_candidate
from hotloop.plan import BEST_FOLDER, BUILTIN, SearchPlan, find_problem, plan_search
from hotloop.report.best import BestResult, retire_best, write_best
from hotloop.search_options import ProblemOptions, SearchOptions
from hotloop.store.failure import store_errors
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import SqliteStore
from hotloop.verify import LocalVerifier, find_device
from hotloop.verify.bundle import Verdicts, read_verdicts
from hotloop.verify.outside import take_in
from hotloop.verify.turns import Turns
from hotloop.warm.client import Request, verify_warm
from hotloop.warm.watch import JudgeSilent
from hotloop.wiring import (
    in_turns,
    make_folder_of_answers,
    open_generator,
    open_verifier,
    strategy_factory,
)

DEFAULT_ISOLATION: str = Settings.model_fields["min_isolation"].default


def run_plan(
    plan: SearchPlan,
    *,
    listen: Listener = lambda event: None,
    stop: StopFlag | None = None,
    turns: Turns | None = None,
) -> RunResult:
    """Run a plan, or go on with it where its folder left off, and write `best/` if one passed.

    Where none passes any more, a `best/` of before becomes `best.refused/`.

    Args:
        plan: what to do.
        listen: called with every event, from the calling thread.
        stop: lets another thread end the search.
        turns: of the GPU that it shares with other runs, for a judge on this machine; None: the
            GPU is its own.

    Raises:
        HotloopError: see `optimize`.
    """
    stop = stop or StopFlag()
    make_folder_of_answers(plan)  # one that cannot be made is told of before a run's folder is
    brought = None if plan.verdicts is None else read_verdicts(plan.verdicts)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        if store.warning is not None:
            listen(Event(kind="warning", payload={"message": store.warning}))
        if brought is not None:
            _take_in(plan, store, brought, listen)
        verifier = open_verifier(plan, store)
        if turns is not None:
            verifier = in_turns(verifier, turns, stop)
        try:
            with open_generator(plan, store, listen) as generator:
                parts = Parts(
                    generator=generator,
                    strategy=strategy_factory(plan),
                    verifier=verifier,
                    store=store,
                    lanes=plan.config.parallel if plan.spec.generator == BUILTIN else DEFAULT_LANES,
                    calls=plan.config.parallel,
                    closes=plan.closes,
                )
                result = run_search(plan.problem, parts, spec=plan.spec, listen=listen, stop=stop)
        finally:
            verifier.close()
        refused = None
        with store_errors(plan.folder):
            if result.passed:
                write_best(plan.folder / BEST_FOLDER, _best(plan, store, result))
            else:
                refused = retire_best(plan.folder / BEST_FOLDER)
    if refused is not None:
        message = f"no kernel of this run passes any more: what was in best/ is in {refused} now"
        listen(Event(kind="warning", payload={"message": message}))
    return result


def _take_in(plan: SearchPlan, store: SqliteStore, brought: Verdicts, listen: Listener) -> None:
    taken = take_in(store, plan.problem, brought)
    told = list(taken.warnings)
    if not (taken.infos or taken.verdicts or taken.errors or told):
        told.append(f"{plan.verdicts} holds nothing new for this run")
    for message in told:
        listen(Event(kind="warning", payload={"message": message}))


def optimize(
    problem: Any,
    inputs: Sequence[Any] | None = None,
    *,
    init: Sequence[Any] | None = None,
    listen: Listener = lambda event: None,
    stop: StopFlag | None = None,
    **options: Unpack[SearchOptions],
) -> RunResult:
    """Search for a faster kernel for `problem`; the same call on the same folder goes on.

    Args:
        problem: a problem file, `kernelbench/LEVEL/ID` (with `data`), or a loaded Problem; or, with
            `inputs`, a function of tensors, an `nn.Module` class or an instance of one.
        inputs: example arguments of one call, whose shapes and dtypes count: the judge draws other
            values. What the function names is written down with it (`hotloop.capture`).
        init: arguments of the module's class, where an instance's attributes do not tell them.
        listen: called with every event, from the calling thread.
        stop: lets another thread end the search.
        **options: `budget`, `device`, `model`, `start`, `out`, ...: see
            `hotloop.search_options.SearchOptions`.

    Raises:
        ConfigError: an option or the problem file is wrong, or the folder is another run's.
        ProblemError: the reference is broken, or no generator covers it.
        ProviderError: the model cannot be asked; the folder keeps what was found.
        InfraError: the machine is at fault; the folder keeps what was found.
        StoreError: the folder cannot be written.
    """
    _require_known(options, SearchOptions)
    found = _captured(problem, inputs, init, options)
    return run_plan(plan_search(found, **options), listen=listen, stop=stop)


def verify(
    problem: Any,
    candidate: str | Path | Candidate,
    inputs: Sequence[Any] | None = None,
    *,
    init: Sequence[Any] | None = None,
    device: str = "auto",
    tier: str | None = None,
    short: bool = False,
    warm: bool = False,
    min_isolation: str = DEFAULT_ISOLATION,
    listen: Listener = lambda event: None,
    **options: Unpack[ProblemOptions],
) -> Verdict:
    """Judge one kernel; a bad kernel is a verdict, not an exception.

    Args:
        problem: as for `optimize`.
        candidate: a `.py` file with `ModelNew`, or a Candidate.
        inputs: as for `optimize`.
        init: as for `optimize`.
        device: `auto`, `cuda` or `cpu`.
        tier: `fast` or `final`; by default `final` on a GPU. There is no final tier on `cpu`.
        short: take the short final tier: no sanitizers, no shapes that decide nothing, half the
            interleaved rounds.
        warm: use the judge that an earlier such call left, which has the problem loaded, and leave
            it to the next; it ends by itself after five minutes without one. One that does not
            answer is ended, with a `warning` event, and a judge of this call's own takes its place.
        min_isolation: `T0`, `T1` or `T2`.
        listen: called with the `setup` event once the problem is loaded, and with warnings.
        **options: `settings`, `data`: see `hotloop.search_options.ProblemOptions`.

    Raises:
        ConfigError: an option, the problem file or the candidate's file is wrong.
        ProblemError: the reference is broken.
        InfraError: the machine is at fault; the candidate was not judged.
    """
    _require_known(options, ProblemOptions)
    where = find_device(device)
    wanted = wanted_tier(tier, where, short=short)
    found = find_problem(
        _captured(problem, inputs, init, {**options, "device": where}), where, options
    )
    kernel = candidate if isinstance(candidate, Candidate) else read_candidate(Path(candidate))

    loaded = _once(lambda info: listen(Event(kind="setup", payload={"info": info})))
    if warm:
        request = Request(problem=found, candidate=kernel, tier=wanted, short=short)
        try:
            return verify_warm(request, device=where, min_isolation=min_isolation, loaded=loaded)
        except JudgeSilent as silent:
            listen(_goes_on_cold(silent))
    verifier = LocalVerifier(where, min_isolation=min_isolation)
    verifier.short_final = short
    try:
        loaded(verifier.load(found))
        return verifier.verify(kernel, wanted)
    finally:
        verifier.close()


def _once(tell: Callable[[ProblemInfo], None]) -> Callable[[ProblemInfo], None]:
    """Return what tells only the first time: a second judge loads the problem again."""
    told: list[ProblemInfo] = []

    def tell_once(info: ProblemInfo) -> None:
        told.append(info)
        if len(told) == 1:
            tell(info)

    return tell_once


def _goes_on_cold(silent: JudgeSilent) -> Event:
    message = f"{silent}; this call goes on with a judge of its own"
    return Event(kind="warning", payload={"message": message})


def _require_known(options: Mapping[str, object], kind: type) -> None:
    known = {name for base in kind.__mro__ for name in getattr(base, "__annotations__", ())}
    known |= set(getattr(kind, "__optional_keys__", ()))
    unknown = sorted(set(options) - known)
    if unknown:
        raise ConfigError(f"unknown option {unknown[0]!r}; known: {', '.join(sorted(known))}")


def _captured(
    problem: Any,
    inputs: Sequence[Any] | None,
    init: Sequence[Any] | None,
    options: Mapping[str, Any],
) -> str | Path | Problem:
    """Return a problem as it is, and a live function or module as a problem."""
    if isinstance(problem, (str, Path, Problem)):
        if inputs is not None or init is not None:
            raise ConfigError("inputs, init: a problem file has its own; leave them out")
        return problem
    if inputs is None:
        raise ConfigError("inputs: expected the example arguments of one call, got none")
    if options.get("settings"):
        raise ConfigError("settings: a live function has no constants of a file; leave them out")
    return capture(problem, inputs, init=init, device=find_device(options.get("device") or "auto"))


def load_run(folder: str | Path) -> RunReader:
    """Open a run's folder for reading, also while it runs; close it, or use it in `with`.

    Raises:
        ConfigError: there is no run in the folder, or a newer hotloop wrote it.
        StoreError: it cannot be read.
    """
    return RunReader(Path(folder))


def wanted_tier(tier: str | None, device: str, *, short: bool) -> Tier:
    """Return the tier that `verify` judges at on a device.

    Raises:
        ConfigError: there is no such tier, or none of that kind on the device.
    """
    if tier not in (None, Tier.FAST.value, Tier.FINAL.value):
        raise ConfigError(f"--tier: expected fast or final, got {tier!r}")
    if tier == Tier.FINAL.value and device == "cpu":
        raise ConfigError("--tier final: it times kernels and needs a GPU; use fast on cpu")
    found = Tier(tier or (Tier.FINAL if device == "cuda" else Tier.FAST))
    if short and found is not Tier.FINAL:
        raise ConfigError("--short: there is no short fast tier; use --tier final, on a GPU")
    return found


def _best(plan: SearchPlan, store: SqliteStore, result: RunResult) -> BestResult:
    attempt = next(a for a in result.attempts if a.id == result.best_attempt_id)
    verdict = result.final or result.fast
    assert verdict is not None, "a result that passed has a verdict"
    assert attempt.candidate_id is not None, "an attempt that passed has a candidate"
    info = from_json(ProblemInfo, store.notes("setup")[-1]["info"])
    kernel = store.candidate(attempt.candidate_id)
    return BestResult(
        problem=plan.problem,
        info=info,
        candidate=kernel,
        verdict=verdict,
        verify_command=plan.verify_command(kernel.entry),
        search_command=plan.search_command(),
        model=plan.config.model,
    )
