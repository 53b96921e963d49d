"""Compare a traced score_mod or mask_mod with the function it came from.

A trace that is wrong somewhere would make every kernel built from it wrong there. Positions are
drawn at random, near the diagonal, and at the corners, where masks change.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from hotloop.core.graph import Graph
from hotloop.errors import ProblemError, UnsupportedOp
from hotloop.worker.attention_file import AttentionSizes
from hotloop.worker.attribution import user_code
from hotloop.worker.graph_eval import evaluate, leaf_key
from hotloop.worker.load import LoadedProblem
from hotloop.worker.tracing import IndexByTensor

POSITIONS = 512
_RTOL = 1e-5  # both sides run the same float32 operations; only their order of rounding may differ
_ATOL = 1e-5
_NEAR = 4


def compare_with_function(
    loaded: LoadedProblem, role: str, function: Callable[..., Any], graph: Graph
) -> None:
    """Evaluate both at `POSITIONS` positions.

    Raises:
        UnsupportedOp: they differ; the message has a position and both values.
        ProblemError: the function raises at a position.
    """
    if loaded.sizes is None:
        raise ProblemError(f"{loaded.problem.name}: expected an attention problem")
    leaves = draw_positions(loaded.sizes, loaded.device)
    if role == "mask_mod":
        leaves.pop("score")
    with user_code(loaded.problem, role), torch.no_grad(), IndexByTensor():
        expected = torch.vmap(lambda *a: torch.as_tensor(function(*a), device=loaded.device))(
            *leaves.values()
        )
    tensors = {**loaded.namespace, **loaded.fixed_buffers}
    buffers = {leaf_key(n): tensors[n.attrs["name"]] for n in graph.nodes if n.op == "buffer"}
    (traced,) = evaluate(graph, leaves | buffers)
    traced = traced.to(expected.dtype).expand(expected.shape)
    same = torch.isclose(traced, expected, rtol=_RTOL, atol=_ATOL, equal_nan=True)
    if bool(same.all()):
        return
    worst = int((~same).nonzero()[0])
    position = ", ".join(f"{name.removeprefix('index_')} {t[worst]}" for name, t in leaves.items())
    raise UnsupportedOp(
        f"{loaded.problem.name}: {role}: its trace differs from the function at {position}: "
        f"{traced[worst].item()} instead of {expected[worst].item()}"
    )


def draw_positions(sizes: AttentionSizes, device: str) -> dict[str, torch.Tensor]:
    """Return score (float32) and the four indices (int32) at `POSITIONS` positions."""
    generator = torch.Generator().manual_seed(0)

    def index(limit: int) -> torch.Tensor:
        return torch.randint(limit, (POSITIONS,), generator=generator, dtype=torch.int32)

    query, key = index(sizes.S), index(sizes.Skv)
    half = POSITIONS // 2
    shift = torch.randint(-_NEAR, _NEAR + 1, (half,), generator=generator, dtype=torch.int32)
    key[:half] = (query[:half] + shift).clamp(0, sizes.Skv - 1)
    corners = [(q, k) for q in (0, sizes.S - 1) for k in (0, sizes.Skv - 1)]
    query[-4:] = torch.tensor([q for q, _ in corners], dtype=torch.int32)
    key[-4:] = torch.tensor([k for _, k in corners], dtype=torch.int32)
    positions = {
        "score": 4 * torch.randn(POSITIONS, generator=generator),
        "index_b": index(sizes.B),
        "index_h": index(sizes.H),
        "index_q": query,
        "index_kv": key,
    }
    return {name: tensor.to(device) for name, tensor in positions.items()}
