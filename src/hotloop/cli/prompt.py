"""`hotloop prompt PROBLEM|RUN`: the next prompt of a problem or a run, without calling anybody.

For a run everything comes from its journal, so no judge and no GPU is needed; nothing is written.
For a problem a judge has to load it first, because a prompt states what was found there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, cast

import typer

from hotloop import api, registry
from hotloop.cli import options
from hotloop.cli.calls import stored_calls
from hotloop.cli.output import Output
from hotloop.cli.wording import printable
from hotloop.config import DEFAULT_CALLS
from hotloop.core.attempt import FREE_ACTIONS, Action, Asked, Attempt, Proposal, RunSpec
from hotloop.core.candidate import Candidate
from hotloop.core.finals import FINAL_NOTE, refusals, with_refusals
from hotloop.core.language import LANGUAGES, TRITON
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.core.protocols import Store, Strategy
from hotloop.core.record import from_json
from hotloop.core.space import Space
from hotloop.errors import ConfigError
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.directory import prompt_text
from hotloop.llm.nobody import Nobody
from hotloop.plan import MODEL, find_problem
from hotloop.problems.kernelbench import is_kernelbench_name
from hotloop.problems.precision import describe_precision
from hotloop.prompts.author import ModelGenerator
from hotloop.prompts.ideas import NOTE as IDEAS_NOTE
from hotloop.prompts.prompt_writer import NOTE as ASKED_NOTE
from hotloop.prompts.render import Sees
from hotloop.retrieval.shelf import open_shelf
from hotloop.search_options import ProblemOptions
from hotloop.store.memory import MemoryStore
from hotloop.store.reader import RunReader
from hotloop.store.sqlite import JOURNAL_FILE
from hotloop.verify import LocalVerifier, find_device

MAX_FREE = 10_000
"""Sweeps and other free proposals that may stand before the next one that needs a prompt."""
LEVELS = tuple(level.name.lower() for level in Sees)
IDEAS = "ideas"


@dataclass(frozen=True, slots=True, kw_only=True)
class NextPrompt:
    """What a model is asked next."""

    prompt: str
    template: str
    problem_id: str
    attempt: int
    """0 for the call that asks for ideas before the first drafts."""
    parents: tuple[int, ...] = ()


def prompt(
    subject: Annotated[
        str, typer.Argument(metavar="PROBLEM|RUN", help="A problem, or the folder of a run.")
    ],
    language: Annotated[
        str | None, typer.Option(help="triton, gluon or cuda; of a problem. [default: triton]")
    ] = None,
    sees: Annotated[
        str | None, typer.Option(help="What a model is shown; of a problem. [default: memory]")
    ] = None,
    device: options.Device = "auto",
    set_: options.Set = None,
    precision: options.Precision = None,
    data: options.Data = None,
    min_isolation: options.MinIsolation = None,
    json: options.Json = False,
) -> None:
    """Print the next prompt of PROBLEM or RUN without calling a model."""
    output = Output(as_json=json)
    folder = Path(subject)
    if folder.is_dir() or (folder / JOURNAL_FILE).exists():
        given = {
            "--language": language, "--sees": sees, "--set": set_, "--precision": precision,
            "--data": data if options.is_given(data) else None,
        }  # fmt: skip
        wrong = [name for name, value in given.items() if value is not None]
        if wrong:
            raise ConfigError(f"{', '.join(wrong)}: a run has its own; leave it out")
        with api.load_run(folder) as reader:
            found = of_run(reader)
    else:
        if not (folder.exists() or is_kernelbench_name(subject)):
            raise ConfigError(
                f"{subject}: there is no such file or folder; expected a problem file, a name like "
                "kernelbench/1/19 with --data PATH, or the folder of a run"
            )
        _check_choice("--language", language, tuple(LANGUAGES))
        _check_choice("--sees", sees, LEVELS)
        where = find_device(device)
        wanted: ProblemOptions = {
            "settings": options.settings_of(set_),
            "data": options.data_of(subject, data),
            "precision": precision,
        }  # fmt: skip
        problem = find_problem(subject, where, wanted)
        if precision is not None:
            output.say(describe_precision(problem))
        output.say("loading the reference; on a GPU its baselines are timed first")
        info = _load(problem, where, min_isolation or api.DEFAULT_ISOLATION)
        found = of_problem(problem, info, language=language or TRITON.name, sees=sees or LEVELS[-1])
    output.result(found, printable(found.prompt).rstrip("\n"))


def of_problem(problem: Problem, info: ProblemInfo, *, language: str, sees: str) -> NextPrompt:
    """Return the first prompt of a problem: that of a draft without an idea."""
    store = MemoryStore()
    generator = ModelGenerator(
        Nobody(), CallNotes(store), store, problem, language=language, sees=sees
    )
    return _of_proposal(generator, info, Proposal(id=1, action=Action.DRAFT))


def of_run(reader: RunReader) -> NextPrompt:
    """Return the prompt that awaits an answer, else the one that would be sent next.

    Raises:
        ConfigError: no model writes in this run, it was not loaded yet, or nothing can be asked
            until a verdict is there.
    """
    spec, attempts = reader.spec(), reader.attempts()
    if spec.generator != MODEL:
        raise ConfigError(f"{reader.folder}: no model writes in this run, so it has no prompts")
    pending = _pending(reader, attempts)
    if pending is not None:
        return pending
    setups = reader.notes("setup")
    if not setups:
        raise ConfigError(f"{reader.folder}: the problem was not loaded yet; start the run first")
    info = from_json(ProblemInfo, setups[-1]["info"])
    # A reader has all that is read of a store; nothing here writes.
    store = cast(Store, reader)
    generator = ModelGenerator(
        Nobody(),
        CallNotes(store),
        store,
        reader.problem(),
        language=spec.language,
        sees=str(spec.options.get("sees", "memory")),
        start=_start(reader, attempts),
        examples=open_shelf(spec, reader.problem()),
    )
    waiting = [a for a in attempts if a.verdict is None and a.candidate_id is None]
    called = next((a for a in waiting if a.action not in FREE_ACTIONS), None)
    if called is not None:  # proposed, but not sent: that one comes next
        proposal = Proposal(
            id=called.id, action=called.action, point=called.point, parents=called.parents
        )
    else:
        seen = with_refusals(attempts, refusals(reader.notes(FINAL_NOTE)))
        proposal = _next_call(_strategy(spec, seen), reader)
    wants_idea = proposal.action == Action.DRAFT and "idea" in proposal.point
    if wants_idea and not reader.notes(IDEAS_NOTE):
        return _ideas(generator, info, reader.problem().id)
    return _of_proposal(generator, info, proposal)


def _pending(reader: RunReader, attempts: Sequence[Attempt]) -> NextPrompt | None:
    """Return the first prompt that was sent and has no answer, of an attempt that is open."""
    is_open = {a.id: a for a in attempts if a.verdict is None and a.candidate_id is None}
    notes = {int(n["attempt"]): from_json(Asked, n["asked"]) for n in reader.notes(ASKED_NOTE)}
    # Of a prompt that was withdrawn and the one in its place, the later one waits.
    calls = {call.key: call for call in stored_calls(reader) if call.reply is None}
    for call in calls.values():
        number = call.key.attempt
        if number and number not in is_open:
            continue
        if not number and not (is_open and call.is_pending):
            continue
        asked = notes.get(number)
        return NextPrompt(
            prompt=call.prompt_text,
            template=IDEAS if not number else asked.template if asked else is_open[number].action,
            problem_id=call.key.problem_id,
            attempt=number,
            parents=is_open[number].parents if number else (),
        )
    return None


def _next_call(strategy: Strategy, reader: RunReader) -> Proposal:
    for _ in range(MAX_FREE):
        asked = strategy.ask(1)
        if not asked:
            break
        if asked[0].action not in FREE_ACTIONS:
            return asked[0]
    raise ConfigError(
        f"{reader.folder}: no prompt yet: attempts that are under way must get their verdicts "
        "first; go on with the run"
    )


def _strategy(spec: RunSpec, attempts: Sequence[Attempt]) -> Strategy:
    strategy: Strategy = registry.load(registry.STRATEGIES, spec.strategy)(
        Space(dimensions=()),
        spec.seed,
        width=DEFAULT_CALLS,
        has_start="start" in spec.options,
        has_feedback=spec.options.get("sees") != "nothing",
    )
    strategy.restore(attempts)
    return strategy


def _start(reader: RunReader, attempts: Sequence[Attempt]) -> Candidate | None:
    started = next((a for a in attempts if a.action == Action.START and a.candidate_id), None)
    return None if started is None else reader.candidate(str(started.candidate_id))


def _ideas(generator: ModelGenerator, info: ProblemInfo, problem_id: str) -> NextPrompt:
    text = prompt_text(generator.ideas_prompt(info))
    return NextPrompt(prompt=text, template=IDEAS, problem_id=problem_id, attempt=0)


def _of_proposal(generator: ModelGenerator, info: ProblemInfo, proposal: Proposal) -> NextPrompt:
    rendered = generator.prompt_for(info, proposal)
    return NextPrompt(
        prompt=prompt_text(rendered.prompt),
        template=rendered.asked.template,
        problem_id=info.problem_id,
        attempt=proposal.id,
        parents=proposal.parents,
    )


def _load(problem: Problem, device: str, min_isolation: str) -> ProblemInfo:
    verifier = LocalVerifier(device, min_isolation=min_isolation)
    try:
        return verifier.load(problem)
    finally:
        verifier.close()


def _check_choice(option: str, given: str | None, choices: Sequence[str]) -> None:
    if given is not None and given not in choices:
        raise ConfigError(f"{option}: expected one of {', '.join(choices)}, got {given!r}")
