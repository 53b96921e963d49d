"""From a verdict to what a model may see of it: one focused section for each status.

Covered: what failed, where, and what that usually means. Never in it: seeds, limits of the gate,
held-out workloads, paths of this machine, code of the harness; text that a candidate or a compiler
wrote is cleaned, cut and fenced (`untrusted.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from hotloop.core.candidate import Candidate
from hotloop.core.language import GLUON
from hotloop.core.problem import Problem, ProblemInfo, ProblemKind, Role
from hotloop.core.verdict import CaseResult, Evidence, Stage, Status, Tier, Verdict
from hotloop.prompts import numerics, speed
from hotloop.prompts.compile_log import CompileError, excerpt, first_errors
from hotloop.prompts.failing_call import describe_call
from hotloop.prompts.gluon_hints import gluon_hint
from hotloop.prompts.meanings import meanings
from hotloop.prompts.places import axis_names
from hotloop.prompts.untrusted import clean, one_line, own_frames, quoted

KIND_HINTS = {
    "oom_gpu": "The call asked for more GPU memory than there is: allocate less between steps.",
    "oom_host": "The process ran out of host memory: allocate on the GPU, and less.",
    "cuda_error": "A kernel accessed memory it must not: look at pointers, strides and masks, and "
    "at indices that do not fit into 32 bits.",
    "out_of_bounds": "A load or store lies outside of its tensor: mask it, or fix its offset.",
    "misaligned_access": "A vector load or store is not at a multiple of its size: narrow it.",
    "uninitialised_read": "A kernel reads memory that nothing wrote: outputs and scratch hold "
    "nothing before a call; write them first, or mask the load.",
    "shared_memory_race": "Threads read and write the same shared memory without a barrier between "
    "them: put one between the phases.",
    "barrier_misuse": "Not all threads of a block reach one barrier: move it out of the branch.",
    "contract": "The interface was not kept: see the contract above.",
    "output_limit": "Too much was printed: remove the prints.",
    "crash": "The process ended without a Python error: usually a compiler assertion or an access "
    "to memory outside of a tensor.",
    "policy_violation": "It used something that a kernel has no need of: see the rules above.",
    "timed_call": "It passed the first checks and failed on later inputs: results must not depend "
    "on earlier calls, on addresses, or on values seen before, and must not race.",
    "clock": "The time it claims cannot be true.",
    "physics": "It took less time than moving its data takes.",
    "out_of_shared_memory": "Use smaller tiles or fewer stages.",
    "out_of_resources": "Use smaller tiles or fewer warps.",
}
"""What the kinds of evidence usually ask for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """What a model may see of one verdict."""

    status: Status
    headline: str
    """One sentence."""
    text: str
    """Markdown below the headline; may be empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A verdict and what it is about."""

    verdict: Verdict
    candidate: Candidate | None
    """None when the reply held none."""
    problem: Problem
    info: ProblemInfo | None = None

    @property
    def evidence(self) -> Evidence:
        """The verdict's evidence; an empty one for PASSED."""
        return self.verdict.evidence or Evidence(kind="", message="")


def make_feedback(judged: Judged) -> Feedback:
    """Return the feedback of a verdict."""
    verdict = judged.verdict
    if concerns_held_out(verdict, judged.problem):
        return Feedback(status=verdict.status, headline=_HEADLINES[verdict.status], text=_HELD_OUT)
    section = _SECTIONS[verdict.status]
    parts = [part for part in section(judged) if part]
    return Feedback(
        status=verdict.status, headline=_HEADLINES[verdict.status], text="\n\n".join(parts)
    )


def concerns_held_out(verdict: Verdict, problem: Problem) -> bool:
    """Whether a failure came, or may have come, from sizes that a model must not know."""
    held_out = {w.name for w in problem.workloads if w.role is Role.HELD_OUT}
    made = problem.policy.shape_scope == "generic"  # the judge holds out some of its own
    if verdict.passed or verdict.tier is not Tier.FINAL or not (held_out or made):
        return False
    workload = verdict.evidence.details.get("workload") if verdict.evidence else None
    if isinstance(workload, Mapping):
        return workload.get("role") not in (Role.NOMINAL, Role.BOUNDARY)
    failed = failed_case(verdict)
    if failed is not None:
        known = {w.name for w in problem.workloads} - held_out
        return failed.workload not in known if made else failed.workload in held_out
    # Nothing names the workload. Before anything ran, and once calls are timed, it is nominal.
    return "gpu" in verdict.stage_s and verdict.stage is not Stage.PERFORMANCE


def failed_case(verdict: Verdict) -> CaseResult | None:
    """Return the checked call that failed."""
    cases = verdict.correctness.cases if verdict.correctness else ()
    return next((case for case in reversed(cases) if not case.passed), None)


_HELD_OUT = (
    "It passed on the sizes that you know and failed on others that are not shown. Take every size "
    "from the tensors' shapes, mask every load and store at the ends, and assume nothing about "
    "divisibility or the alignment of addresses."
)

_HEADLINES = {
    Status.PASSED: "The kernel is correct.",
    Status.NO_CODE: "The reply held no kernel that could be judged.",
    Status.REJECTED_STATIC: "The kernel breaks a rule and was not run.",
    Status.COMPILE_ERROR: "The kernel does not compile.",
    Status.RUNTIME_ERROR: "The kernel compiled and failed when it ran.",
    Status.TIMEOUT: "The kernel did not finish in time and was stopped.",
    Status.INCORRECT_SHAPE: "The output has the wrong shape.",
    Status.INCORRECT_DTYPE: "The output has the wrong dtype.",
    Status.INCORRECT_NUMERICAL: "The kernel ran and its values are wrong.",
    Status.INPUT_MODIFIED: "The kernel wrote where it may only read.",
    Status.REWARD_HACK: "The kernel does not do the work that is asked for.",
    Status.INCONCLUSIVE: "The inputs are too ill-conditioned here to say whether it is right.",
    Status.COMPILED_ONLY: "The kernel compiles; this machine cannot run it: nothing was checked.",
}


def _no_code(judged: Judged) -> list[str]:
    return [
        _sentence(one_line(judged.evidence.message)),
        "Answer with one fenced block that holds the whole file and nothing else in it.",
    ]


def _rejected(judged: Judged) -> list[str]:
    line = judged.evidence.details.get("line")
    return [_sentence(one_line(judged.evidence.message)), _at_line(judged, line), _hint(judged)]


def _compile(judged: Judged) -> list[str]:
    details, message = judged.evidence.details, clean(judged.evidence.message)
    log = clean("\n".join(str(details.get(k) or "") for k in ("log", "traceback")))
    errors = first_errors(f"{message}\n{log}")
    kernel = one_line(str(details.get("kernel") or ""), 80)
    parts = [f"In kernel `{kernel}`:"] if kernel else []
    parts += [quoted(message, lines=16, chars=2000)] if message.strip() else []
    parts += [text for error in errors if (text := _compile_place(judged, error))]
    if not errors:
        parts.append(_at_line(judged, details.get("line")))
        parts.append(_traceback(judged))
    parts.append(_hint(judged))
    if judged.candidate is not None and judged.candidate.language == GLUON.name:
        parts.append(gluon_hint(message))
    return parts


def _compile_place(judged: Judged, error: CompileError) -> str:
    lines = excerpt(judged.candidate, error.path, error.line) if judged.candidate else None
    return f"Line {error.line} of {error.path}:\n{quoted(lines)}" if lines else ""


def _runtime(judged: Judged) -> list[str]:
    message = quoted(judged.evidence.message, lines=12, chars=1500)
    return [
        message,
        _kernels(judged),
        _traceback(judged),
        describe_call(judged.verdict),
        _hint(judged),
    ]


def _timeout(judged: Judged) -> list[str]:
    during = {Stage.COMPILE: "while it was compiled", Stage.CORRECTNESS: "in its first calls"}
    when = during.get(judged.verdict.stage, "while it was timed")
    usual = (
        "Usual causes: many values of a constexpr, each compiled on its own; a loop that is "
        "unrolled hundreds of times; one program that walks over everything."
        if judged.verdict.stage is Stage.COMPILE
        else "Usual causes: a loop whose end is never reached, a wait for another program, or a "
        "grid of one program that does the work of thousands."
    )
    return [f"It was stopped {when}.", describe_call(judged.verdict), usual]


def _interface(judged: Judged) -> list[str]:
    return [_sentence(one_line(judged.evidence.message)), describe_call(judged.verdict)]


def _numeric(judged: Judged) -> list[str]:
    evidence, case = judged.evidence, failed_case(judged.verdict)
    if evidence.kind == "timed_call":
        return [KIND_HINTS["timed_call"]]
    read = numerics.read_evidence(evidence.details)
    is_attention = judged.problem.kind is ProblemKind.ATTENTION
    axis = axis_names(len(read.shape), is_attention=is_attention)
    told = meanings(read, case, axis, is_attention=is_attention)
    meant = f"What it means: {' '.join(told)}" if told else ""
    if evidence.kind == "outside_tolerance" or not evidence.details:  # its numbers are not told
        close = "It is close, but not within the tolerance that the problem itself states."
        return [close, describe_call(judged.verdict), meant]
    passed = describe_call(judged.verdict, names_values=False)
    parts = [meant, " ".join(numerics.describe(read, case, axis)), passed]
    if case is not None and case.rule == "exact":
        parts.append("These inputs are whole numbers, on which the result must be exact.")
    table = numerics.sample_table(read)
    if table:
        parts.append(f"Some of the wrong elements, the worst first:\n{quoted(table)}")
    return parts


def _plain_message(judged: Judged) -> list[str]:
    told = _sentence(one_line(judged.evidence.message))
    return [told, describe_call(judged.verdict), _hint(judged)]


def _kernels(judged: Judged) -> str:
    """Say which kernel a fault of the device is in: an asynchronous one names none itself."""
    if judged.evidence.kind != "cuda_error":
        return ""
    names = list(dict.fromkeys(one_line(k.name, 80) for k in judged.verdict.resources))
    if not names:
        return ""
    if len(names) == 1:
        return f"The candidate has one kernel, `{names[0]}`: look there first."
    told = ", ".join(f"`{name}`" for name in names[:6])
    return f"The fault is reported late; it is in one of the kernels {told}."


def _compiled_only(judged: Judged) -> list[str]:
    told = _sentence(one_line(judged.evidence.message))
    return [told, _list(speed.describe_resources(judged.verdict.resources))]


def _passed(judged: Judged) -> list[str]:
    verdict = judged.verdict
    timed = speed.describe_speed(verdict, judged.info)
    lines = timed + speed.describe_resources(verdict.resources)
    if verdict.deterministic is False:
        lines.append("Repeated calls differ in their last bits (allowed).")
    return [_list(lines)]


_SECTIONS: dict[Status, Callable[[Judged], list[str]]] = {
    Status.PASSED: _passed,
    Status.NO_CODE: _no_code,
    Status.REJECTED_STATIC: _rejected,
    Status.COMPILE_ERROR: _compile,
    Status.RUNTIME_ERROR: _runtime,
    Status.TIMEOUT: _timeout,
    Status.INCORRECT_SHAPE: _interface,
    Status.INCORRECT_DTYPE: _interface,
    Status.INCORRECT_NUMERICAL: _numeric,
    Status.INPUT_MODIFIED: _plain_message,
    Status.REWARD_HACK: _plain_message,
    Status.INCONCLUSIVE: _plain_message,
    Status.COMPILED_ONLY: _compiled_only,
}


def _traceback(judged: Judged) -> str:
    details = judged.evidence.details
    trace = str(details.get("traceback") or details.get("log") or "")
    files = (
        {s.path.rsplit("/", 1)[-1] for s in judged.candidate.sources} if judged.candidate else ()
    )
    own = own_frames(trace, frozenset(files))
    return f"Its last words:\n{quoted(own, lines=24, chars=3000)}" if own.strip() else ""


def _at_line(judged: Judged, line: object) -> str:
    if not isinstance(line, int) or judged.candidate is None:
        return ""
    lines = excerpt(judged.candidate, judged.candidate.entry, line)
    return f"There:\n{quoted(lines)}" if lines else ""


def _hint(judged: Judged) -> str:
    return KIND_HINTS.get(judged.evidence.kind, "")


def _list(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _sentence(text: str) -> str:
    return text if not text or text[-1] in ".!?" else f"{text}."
