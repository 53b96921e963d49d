"""A graph of a process that runs kernels lasts until what it reads or writes lies elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from hotloop.worker.host import Host


class CountingHost(Host):
    """Counts forwards; has no sets and no device."""

    def load(self, message: dict[str, Any]) -> None:
        """Load nothing."""

    def prepare(self) -> None:
        """Prepare nothing."""

    def forward(self, index: int) -> list[torch.Tensor]:
        """Compute nothing."""
        return []

    def poison(self) -> None:
        """Poison nothing."""

    def record(self, message: dict[str, Any]) -> dict[str, Any]:
        """Record nothing."""
        return {}


class Graph:
    """A graph that counts its replays."""

    replays = 0

    def replay(self) -> None:
        """Count."""
        self.replays += 1


BATCH = {"op": "batch", "capture": False, "repeats": 2}


def with_graph() -> tuple[CountingHost, Graph]:
    host, graph = CountingHost(None), Graph()
    host._graph = graph
    return host, graph


def test_a_graph_is_replayed_by_every_batch() -> None:
    host, graph = with_graph()
    assert host._handle(BATCH) == {"graph": True}
    assert graph.replays == 2


@pytest.mark.parametrize("op", ["prepare", "place", "loop"])
def test_a_graph_is_dropped(op: str) -> None:
    host, graph = with_graph()
    host._handle({"op": op, "sets": []})
    assert host._handle(BATCH) == {"graph": False}
    assert graph.replays == 0
