"""Timed conduct: whether a forward does in timed calls what it does under watch.

Modes would be seen by a forward, and their time measured, so timed calls have none. Between two of
them, drawn, comes a call through the very same frames in which torch's profiler records; its time
is of no use. Torch must not work on more there than in a call under watch.

Not covered: kernels that are not torch's; they differ by name (decision 008).
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from hotloop.core.verdict import Evidence, Stage, Status
from hotloop.worker.beside_kernels import LARGE_SHARE
from hotloop.worker.call_rules import UNWATCHED
from hotloop.worker.evaluation import CALL_S, Evaluation, Failed
from hotloop.worker.reference import Draw
from hotloop.worker.untimed import Untimed

TRIES = 2
"""What differs counts where it differs again: libraries tune, too."""


def check_timed_conduct(
    evaluation: Evaluation, draw: Draw, on_new_values: Callable[[Callable[[int], int]], int]
) -> None:
    """Hold how much torch does in a call that looks timed against one under watch.

    Args:
        evaluation: of the candidate.
        draw: the timed inputs; of their sizes is what counts as work.
        on_new_values: puts new inputs into a set, makes a call on it, checks its output, and
            returns what the call does.

    Raises:
        Failed: torch does the more of the work, and again when both are repeated.
    """
    if not evaluation.candidate.entry.endswith(".py"):
        return
    tensors = [v for v in draw.inputs if isinstance(v, torch.Tensor)]
    sizes = [t.numel() for t in (*tensors, *evaluation.board.outputs(0))]
    at_least = max(2, int(LARGE_SHARE * max(sizes, default=0)))
    for _ in range(TRIES):
        watched = on_new_values(
            lambda index: evaluation.watched_call(index, CALL_S, Untimed()).work
        )
        timed = on_new_values(evaluation.timed_work)
        if timed - watched < at_least:
            return
    evidence = Evidence(kind="library_call", message=UNWATCHED)
    raise Failed(Status.REWARD_HACK, Stage.PERFORMANCE, evidence)
