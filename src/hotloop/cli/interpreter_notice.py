"""Warn, once a problem is loaded, when its sizes make every check slow, or others use the GPU."""

from __future__ import annotations

from hotloop.core.event import Event, Listener
from hotloop.core.problem import Problem, ProblemInfo
from hotloop.problems import count_elements, suggest_small_sizes
from hotloop.problems.small_sizes import MANY_ELEMENTS


def interpreter_notice(problem: Problem, info: ProblemInfo) -> str | None:
    """Return one line on how long a check takes and what shortens it.

    None on a GPU, and for inputs that an interpreter does quickly.
    """
    elements = count_elements(info)
    if info.device != "cpu" or elements <= MANY_ELEMENTS:
        return None
    line = (
        f"kernels are interpreted without a GPU, and {elements / 1e6:.0f} million elements take "
        "minutes a kernel"
    )
    small = suggest_small_sizes(problem, info)
    if not small:
        return f"{line}; make the problem's inputs smaller"
    chosen = ",".join(f"{name}={value}" for name, value in small.items())
    return f"{line}; smaller sizes are quick: --set {chosen}"


def with_interpreter_notice(problem: Problem, listen: Listener) -> Listener:
    """Return `listen` with a `warning` behind a `setup` that calls for one.

    Either the notice, or that somebody else uses the GPU.
    """

    def hear(event: Event) -> None:
        listen(event)
        if event.kind == "setup":
            shared = event.payload["info"].environment.get("gpu_shared")
            if shared:
                text = f"the GPU is not ours alone, so times may be too long: {shared}"
                listen(Event(kind="warning", payload={"message": text}))
            notice = interpreter_notice(problem, event.payload["info"])
            if notice is not None:
                listen(Event(kind="warning", payload={"message": notice}))

    return hear
