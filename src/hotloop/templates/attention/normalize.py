"""Bring an attention problem into the form that the kernel template knows.

A score_mod may hide a mask: `torch.where(cond, score, -inf)`. Such a branch is moved into the
mask_mod, where whole tiles can be skipped. A row that is masked everywhere then gives 0, as for
any mask_mod.
"""

from __future__ import annotations

import math
from dataclasses import replace

from hotloop.core.graph import Arg, AttentionSpec, Graph, Node
from hotloop.templates.analysis import ScalarGraph


def move_masks_out_of_score(spec: AttentionSpec) -> AttentionSpec:
    """Return an equal problem whose score_mod does not mask by minus infinity at its end."""
    while spec.score_mod is not None:
        found = _outer_mask(ScalarGraph(spec.score_mod, spec))
        if found is None:
            break
        condition, is_kept, rest = found
        score = replace(spec.score_mod, outputs=(rest,))
        mask = _with_condition(spec.mask_mod, spec.score_mod, condition, is_kept=is_kept)
        spec = replace(spec, score_mod=without_dead_nodes(score), mask_mod=mask)
    return spec


def without_dead_nodes(graph: Graph) -> Graph:
    """Return `graph` without the nodes that its outputs do not need."""
    needed = set(graph.outputs)
    kept = []
    for node in reversed(graph.nodes):
        if node.name in needed:
            kept.append(node)
            needed.update(a.node for a in node.args if a.node is not None)
    return replace(graph, nodes=tuple(reversed(kept)))


def _outer_mask(score: ScalarGraph) -> tuple[str, bool, str] | None:
    """Find `where(condition, x, -inf)` at the end: the condition, whether it keeps, and x."""
    node = score.node[score.output]
    while node.op == "cast" and node.args[0].node is not None:
        node = score.node[node.args[0].node]
    if node.op != "where":
        return None
    condition, then, otherwise = node.args
    if condition.node is None or "score" in score.axes[condition.node]:
        return None
    for rest, masked, is_kept in ((then, otherwise, True), (otherwise, then, False)):
        if score.constant(masked) == -math.inf and rest.node is not None:
            return condition.node, is_kept, rest.node
    return None


def _with_condition(mask: Graph | None, source: Graph, condition: str, *, is_kept: bool) -> Graph:
    """Return `mask` and `condition` of graph `source` (negated unless `is_kept`) as one mask."""
    moved = without_dead_nodes(replace(source, outputs=(condition,)))
    taken = {n.name for n in mask.nodes} if mask is not None else set()
    rename: dict[str, str] = {}
    for node in moved.nodes:
        name = node.name
        while name in taken:
            name += "_s"
        taken.add(name)
        rename[node.name] = name
    nodes = [
        replace(
            n,
            name=rename[n.name],
            args=tuple(a if a.node is None else Arg(node=rename[a.node]) for a in n.args),
        )
        for n in moved.nodes
    ]
    output = rename[condition]
    if not is_kept:
        nodes.append(_boolean("logical_not", output, fresh_in=taken))
        output = nodes[-1].name
    if mask is not None:
        both = _boolean("logical_and", mask.outputs[0], output, fresh_in=taken)
        nodes, output = [*mask.nodes, *nodes, both], both.name
    return Graph(nodes=tuple(nodes), outputs=(output,))


def _boolean(op: str, *operands: str, fresh_in: set[str]) -> Node:
    name = f"keep_{op}"
    while name in fresh_in:
        name += "_s"
    fresh_in.add(name)
    return Node(name=name, op=op, args=tuple(Arg(node=o) for o in operands), dtype="bool")
