"""Operation history: which of torch's operations stand behind a tensor's values.

One node an operation, with its parents; a storage, by its address, has the node of its last write.
What is asked for at the end are sums over the nodes that a result or a kernel's argument reaches.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_NODES = 1 << 18
"""Nodes of a call, about 50 MB; what comes later counts as behind everything."""


class OperationHistory:
    """The operations of one call."""

    def __init__(self) -> None:
        self._names: list[str] = []  # "" where several histories meet
        self._sizes: list[int] = []
        self._parents: list[tuple[int, ...]] = []
        self._node: dict[int, int] = {}  # of a storage
        self._taken: set[int] = set()  # behind what kernels were given
        self._late: dict[str, int] = {}

    def note(
        self,
        name: str | None,
        size: int,
        sources: Iterable[int],
        made: Iterable[int],
        *,
        partly: bool = False,
    ) -> None:
        """Note an operation.

        Args:
            name: of the operation; None where it only moved or made values.
            size: elements that it touched.
            sources: addresses of the storages that its result depends on.
            made: addresses of the storages that hold the result.
            partly: whether it wrote a part of them, and the rest keeps its history.
        """
        made = set(made)
        behind = [*sources, *(made if partly else ())]
        parents = tuple(sorted({self._node[a] for a in behind if a in self._node}))
        node = parents[0] if parents else None
        if name is not None or len(parents) > 1:
            node = self._add(name, size, parents)
        for address in made:
            if node is None:
                self._node.pop(address, None)
            else:
                self._node[address] = node

    def take(self, addresses: Iterable[int]) -> None:
        """Note that a kernel was given storages; what they hold then has no history of torch's."""
        for address in addresses:
            node = self._node.pop(address, None)
            if node is not None:
                self._taken.add(node)

    def take_all(self) -> None:
        """Note that a kernel was given an address, which may be that of any storage."""
        self._taken.update(self._node.values())

    def behind(self, addresses: Iterable[int]) -> dict[str, int]:
        """Return operation -> elements, of all its calls behind these storages or kernels."""
        found = dict(self._late)
        left = [*self._taken, *(self._node[a] for a in addresses if a in self._node)]
        seen = set(left)
        while left:
            node = left.pop()
            if self._names[node]:
                name = self._names[node]
                found[name] = found.get(name, 0) + self._sizes[node]
            new = [p for p in self._parents[node] if p not in seen]
            seen.update(new)
            left += new
        return found

    def _add(self, name: str | None, size: int, parents: tuple[int, ...]) -> int | None:
        if len(self._names) >= MAX_NODES:
            if name is not None:
                self._late[name] = self._late.get(name, 0) + size
            return parents[0] if parents else None
        self._names.append(name or "")
        self._sizes.append(size if name else 0)
        self._parents.append(parents)
        return len(self._names) - 1
