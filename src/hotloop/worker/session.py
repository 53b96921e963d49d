"""A judge's session with one problem: reference, cases, arena, baselines.

Everything secret lives here: seeds, inputs, goldens, bounds. It is built once and serves every
candidate; the final tier draws new seeds.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any

import torch

from hotloop.core.audit import Audit
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, Role
from hotloop.errors import HotloopError, ProblemError
from hotloop.worker.audit import audit, audit_key, cases_of
from hotloop.worker.baselines import ATTENTION_BASELINES
from hotloop.worker.cases import CaseBook
from hotloop.worker.device import environment, peaks
from hotloop.worker.fresh_books import fresh_books
from hotloop.worker.memory import release_memory
from hotloop.worker.other_views import OtherViews
from hotloop.worker.reference import Draw, Reference
from hotloop.worker.timed import TimedInputs, make_clock_once, rest_clock, secret_seed
from hotloop.worker.trace import trace_attention, trace_model
from hotloop.worker.view import FirstCase, Shape, WorkloadView, log_step

BASELINE_SAMPLES = 15
BASELINE_SECONDS = 0.5
KEPT_AT_FINAL_BYTES = 4 << 30
"""Cases may keep this much while the final tier draws new ones."""
SEARCH_BASELINES = ("compile", *ATTENTION_BASELINES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortcuts:
    """What makes a load shorter, or lets other work begin before it is over."""

    known: Audit | None = None
    """An earlier audit: it is not made again where it holds."""
    on_first_case: FirstCase = lambda reference, draw: None
    """Called as soon as shapes of inputs and state are known, seconds before all goldens are."""
    await_quiet: Callable[[], None] = lambda: None
    """Called when the goldens are made: returns when nothing that it began is at work any more.
    What follows tries fakes within seconds of wall clock, and times baselines."""


class Session:
    """Everything a judge knows about one problem."""

    def __init__(
        self,
        problem: Problem,
        device: str,
        *,
        isolation: str,
        tracing: bool = True,
        shortcuts: Shortcuts = Shortcuts(),  # noqa: B008  frozen
    ) -> None:
        start = time.monotonic()
        rest_clock()
        self.problem = problem
        self.device = device
        self.isolation = isolation
        nominal = next(w for w in problem.workloads if w.role is Role.NOMINAL)
        self.nominal = WorkloadView.build(
            problem, Shape(workload=nominal), device, on_first_case=shortcuts.on_first_case
        )
        log_step("reference, goldens and envelope", start)
        shortcuts.await_quiet()
        self._others = OtherViews(problem, self.nominal, device, self.forget_cases)
        self._others.deciding(held_out=False)
        self.timed: TimedInputs | None = None
        self.baselines: dict[str, Callable[[], Any]] = {}
        self.baselines_ms: dict[str, float] = {}
        self.missing_baselines: dict[str, str] = {}
        key = audit_key(problem.id, environment(device, isolation))
        self.audit = audit(self.reference, cases_of(self._books()), key=key, known=shortcuts.known)
        if device == "cuda":
            self._prepare_timing()
        self.info = self._describe(time.monotonic() - start, tracing=tracing)

    @property
    def reference(self) -> Reference:
        """The reference at the nominal workload."""
        return self.nominal.reference

    @property
    def init_args(self) -> tuple[Any, ...]:
        """Constructor arguments of the candidate's model."""
        return tuple(self.reference.loaded.init_args or ())

    def views(self, *, held_out: bool) -> list[WorkloadView]:
        """Return the shapes besides the problem's own that a candidate must be right on."""
        return self._others.deciding(held_out=held_out)

    def reported_views(self) -> Iterator[WorkloadView]:
        """Yield shapes on which being wrong is reported and decides nothing."""
        return self._others.reported()

    def reduced_view(self) -> WorkloadView | None:
        """Return the problem's own sizes, halved until they are small; None if they cannot be."""
        return self._others.reduced()

    def _books(self) -> Iterator[CaseBook]:
        yield self.nominal.book
        for view in self.views(held_out=False):  # asked only if a fake passed all before
            yield view.book

    def fresh_books(
        self, view: WorkloadView, skipped: MutableMapping[str, str]
    ) -> Iterator[CaseBook]:
        """Yield the books of the final tier: each of one case, with a seed that nobody saw.

        `skipped` gets what was left out, and why.

        A case is gone before the next one is drawn, and large known cases before the first.

        Peak of device memory for `smooth_l1_loss` of two inputs of 4 GiB (float32, KernelBench
        1/96), in GiB: the board's two sets 16, timed inputs 8, the case's inputs 8, the same in
        float64 16, the terms of the mean twice 16: 64, and some 10 for the contexts and what the
        candidate reserves. Three known cases and the one before would add 32, and 32 more where
        each golden kept its terms (`golden.compact`).
        """
        self.forget_large_cases()
        whole = view is self.nominal
        yield from fresh_books(view, self.forget_cases, skipped, whole=whole)

    def forget_large_cases(self) -> None:
        """Keep no cases where they take much; later checks draw them again from their seeds."""
        if sum(view.book.kept_bytes() for view in self._views()) > KEPT_AT_FINAL_BYTES:
            self.forget_cases()
            release_memory()

    def forget_cases(self) -> None:
        """Keep no inputs and goldens of any workload."""
        for view in self._views():
            view.book.forget()

    def _views(self) -> list[WorkloadView]:
        return [self.nominal, *self._others.built()]

    def close(self) -> None:
        """Free the buffers and all inputs; only after every candidate is gone."""
        self.forget_cases()
        for view in self._views():
            view.board.arena.close()
        self.timed = None
        self.baselines.clear()
        self._others.clear()
        gc.collect()  # compiled baselines refer to themselves
        release_memory()

    def _eager_tf32(self) -> bool | None:
        book = self.nominal.book
        return self.reference.eager_uses_tf32(book.draw_of(book.cases[0]))

    def _peaks(self, dtype: str, *, rounds: bool | None) -> dict[str, float]:
        """Return the ceilings that hold for what eager does; empty without a GPU."""
        if self.device != "cuda":
            return {}
        return peaks(dtype, tf32=bool(rounds) or self.reference.precision.matmul_tf32)

    def _prepare_timing(self) -> None:
        reference = self.reference
        book = CaseBook(reference, "timed", free_others=self.forget_cases)
        seed = secret_seed()
        draw = reference.draw(seed, reference.timed_profile, timed=True)
        book.add_draw(draw)
        for name in reference.baseline_names():
            start = time.monotonic()
            self._add_baseline(name, draw)
            log_step(f"baseline {name}", start)
        oracle = self.baselines.get("flex") or self.baselines.get("eager")
        if oracle is None:
            raise ProblemError(
                "expected `flex` or `eager` to run, so that timed outputs can be checked, got: "
                f"{self.missing_baselines}"
            )
        self.timed = TimedInputs.build(reference, draw, book.cases[0], oracle, self.audit)
        rest_clock()

    def _add_baseline(self, name: str, draw: Draw) -> None:
        if name not in SEARCH_BASELINES:
            return
        try:
            call = self.reference.baseline(name, draw)
            call()
            torch.cuda.synchronize()
        except (HotloopError, RuntimeError) as exc:
            self.missing_baselines[name] = str(exc).split("\n")[0][:200]
            return
        self.baselines[name] = call
        self.baselines_ms[name] = baseline_ms(call)

    def _describe(self, setup_s: float, *, tracing: bool) -> ProblemInfo:
        inputs, outputs, parameters = self.reference.specs()
        eager_tf32 = self._eager_tf32()
        attention = graph = None
        loaded = self.reference.loaded
        if self.problem.kind is ProblemKind.ATTENTION:
            attention = trace_attention(loaded)
        elif tracing:
            draw = self.nominal.book.draw_of(self.nominal.book.cases[0])
            assert loaded.model_class is not None
            with torch.device(self.device):
                model = loaded.model_class(*self.init_args)
            graph = trace_model(loaded, model, draw.inputs)
        return ProblemInfo(
            problem_id=self.problem.id,
            device=self.device,
            inputs=inputs,
            outputs=outputs,
            parameters=parameters,
            graph=graph,
            attention=attention,
            flops=self.reference.flops,
            io_bytes=self.reference.io_bytes,
            rankable=self.audit.rankable,
            notes=tuple(
                dict.fromkeys(
                    (
                        *self.audit.reasons,
                        *self.reference.notes,
                        *self.nominal.book.notes,
                        *self._others.notes,
                    )
                )
            ),
            baselines_ms=dict(self.baselines_ms),
            missing_baselines=dict(self.missing_baselines),
            peaks=self._peaks(outputs[0].dtype, rounds=eager_tf32),
            useful_flops=self.reference.useful_flops,
            useful_bytes=self.reference.useful_bytes,
            eager_tf32=eager_tf32,
            setup_s=setup_s,
            environment=environment(self.device, self.isolation),
            envelope=tuple(self.nominal.book.members),
            audit=self.audit,
        )


def baseline_ms(call: Callable[[], Any]) -> float:
    """Return the median kernel time of a baseline, cold L2, in this process."""
    clock = make_clock_once()
    call()
    samples: list[float] = []
    start = time.monotonic()
    while len(samples) < BASELINE_SAMPLES:
        samples.append(clock.measure(call)[1].elapsed_ms)
        if len(samples) >= 5 and time.monotonic() - start > BASELINE_SECONDS:
            break
    return statistics.median(samples)


def primary_baselines(ms: Mapping[str, float]) -> tuple[str, ...]:
    """Return the baselines that the final tier interleaves: all but a slow uncompiled eager."""
    if not ms:
        return ()
    fastest = min(ms.values())
    return tuple(name for name, value in ms.items() if value < 20 * fastest or name == "compile")
