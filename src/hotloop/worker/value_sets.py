"""Value sets: whether results of torch's operations, together, hold the values of an output.

A result may be a piece of an output, hold more than it (padding, an imaginary part), or lie in
another order. So values are held against each other as sets, bit for bit, each together with its
next neighbours along a dimension: single values of 16 bits are few, and a kernel that selects
(`relu`, `max`, a sort) leaves single values as they were, and not their neighbours. Which of these
words are looked at is decided by a hash of their bits: both sides keep the same ones, though they
are seen at different times.

An output is told to be torch's where results nearly all of which lie in it cover nearly all of it.
Not told: integers (their values are few), results that kernels changed in the last bits, results a
tenth of which or more is left out, outputs that a kernel changed in more than a few places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import torch

KEPT = 4096
"""Words of an output that are looked at, along each dimension."""
MAX_WORDS = 1 << 20
"""Words of 8 bytes that are kept for all outputs together: 8 MiB. Where there would be more, every
second one is let go, by its hash: many cheap operations make the look coarser, and hide none."""
MAX_PIECES = 1024
"""Results of a smaller part of an output are not looked at."""
MAX_ENTRIES = 1 << 14
"""Results kept apart for an output, about 10 MB; then those of one operation are put together."""
WITHIN = 0.9
"""Share of a result that has to lie in an output, to be a piece of it."""
COVERED = 0.998
"""Share of an output that has to be torch's: a kernel that changes more adds to it."""
FEWEST = 16
"""Distinct words, without which there is nothing to tell."""
LEAST_DISTINCT = 0.5
PIECE = 1 << 22
"""Elements that are read at a time, each of which takes about 40 bytes then."""
_HASH = -7046029254386353131  # 2**64 over the golden ratio
_TOP = 1 << 40
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}
_NEIGHBOURS = {2: 4, 4: 2, 8: 2}


@dataclass(frozen=True, slots=True)
class _Entry:
    """Words of a result along one of its dimensions."""

    name: str
    dim: int
    volume: int
    """Elements of the result."""
    n_words: float
    """How many words it has, kept or not."""
    words: torch.Tensor


@dataclass(slots=True)
class _Wanted:
    numel: int
    dtype: torch.dtype
    limit: int
    entries: list[_Entry] = field(default_factory=list)

    @property
    def size(self) -> int:
        return torch.finfo(self.dtype).bits // 8

    @property
    def n_kept(self) -> int:
        return sum(len(entry.words) for entry in self.entries)


class ValueSets:
    """Values of results, to be held against outputs."""

    def __init__(self, outputs: Sequence[torch.Tensor]) -> None:
        """Look for outputs of the shapes and dtypes of these."""
        self._wanted = {
            i: _Wanted(t.numel(), t.dtype, min(_TOP, max(1, _TOP * KEPT // t.numel())))
            for i, t in enumerate(outputs)
            if t.dtype.is_floating_point and t.element_size() >= 2 and t.numel() >= FEWEST
        }
        self._kept = dict.fromkeys(self._wanted, 0)

    def keep(self, name: str, result: torch.Tensor) -> None:
        """Keep values of an operation's result."""
        parts = [result]
        if result.is_complex():
            parts = list(torch.view_as_real(result.resolve_conj()).unbind(-1))
        room = MAX_WORDS // max(1, len(self._wanted))
        for i, wanted in self._wanted.items():
            if result.numel() * MAX_PIECES < wanted.numel or result.numel() == 0:
                continue
            for part in parts:
                entries = list(_entries(name, part, wanted))
                wanted.entries += entries
                self._kept[i] += sum(len(entry.words) for entry in entries)
            while self._kept[i] > room and wanted.limit > 1:
                wanted.limit //= 2
                wanted.entries = [_thinned(entry, wanted.limit) for entry in wanted.entries]
                self._kept[i] = wanted.n_kept
            if len(wanted.entries) > MAX_ENTRIES:
                wanted.entries = _put_together(wanted.entries)

    def answers(self, outputs: Sequence[torch.Tensor]) -> list[tuple[str, int]]:
        """Return (operation, output) for each output whose values torch's operations made."""
        found = []
        for i, wanted in self._wanted.items():
            if i < len(outputs) and wanted.entries and outputs[i].dtype is wanted.dtype:
                found += [(name, i) for name in _covering(outputs[i].detach(), wanted)]
        return found


def _covering(output: torch.Tensor, wanted: _Wanted) -> list[str]:
    """Return the operations that hold an output, each by itself, or the chief of several."""
    lengths = torch.tensor([len(entry.words) for entry in wanted.entries])
    held = torch.cat([entry.words.to(output.device) for entry in wanted.entries])
    owner = torch.repeat_interleave(torch.arange(len(lengths)), lengths).to(held.device)
    for own in _entries("", output, wanted):
        values = torch.unique(own.words)
        if len(values) < max(FEWEST, LEAST_DISTINCT * len(own.words)):
            continue
        hits = torch.bincount(owner, torch.isin(held, values).double(), len(lengths)).cpu()
        within = ((hits >= WITHIN * lengths) & (lengths > 0)).nonzero().flatten().tolist()
        names = _names([wanted.entries[i] for i in within], values, own)
        if names:
            return names
    return []


def _names(pieces: Sequence[_Entry], values: torch.Tensor, own: _Entry) -> list[str]:
    by_name: dict[str, list[_Entry]] = {}
    for piece in pieces:
        by_name.setdefault(piece.name, []).append(piece)
    alone = [name for name, entries in by_name.items() if _covers(entries, values, own)]
    if alone or not _covers(pieces, values, own):
        return alone
    return [max(by_name, key=lambda name: sum(len(e.words) for e in by_name[name]))]


def _covers(pieces: Sequence[_Entry], values: torch.Tensor, own: _Entry) -> bool:
    """Whether pieces hold the words of an output, apart from those across their borders."""
    if sum(piece.volume for piece in pieces) < COVERED * own.volume:
        return False
    inside = min(1.0, sum(piece.n_words for piece in pieces) / own.n_words)
    hits = torch.isin(values, torch.cat([piece.words for piece in pieces]))
    return float(hits.double().mean()) >= COVERED * inside


def _entries(name: str, tensor: torch.Tensor, wanted: _Wanted) -> Iterator[_Entry]:
    """Yield the words that are kept along each dimension."""
    tensor = tensor.detach()
    joined = _NEIGHBOURS[wanted.size]
    for d in range(tensor.dim()):
        n = tensor.shape[d] - joined + 1
        if n <= 0:
            continue
        kept = [_kept(words, wanted.limit) for words in _words(tensor, d, wanted)]
        n_words = tensor.numel() / tensor.shape[d] * n
        yield _Entry(name, d, tensor.numel(), n_words, torch.cat(kept))


def _words(tensor: torch.Tensor, d: int, wanted: _Wanted) -> Iterator[torch.Tensor]:
    """Yield a hash of the bits of each element and its neighbours, where they are not all equal."""
    joined = _NEIGHBOURS[wanted.size]
    for piece in _pieces(tensor, d, joined):
        bits = piece.to(wanted.dtype).contiguous().view(_INTEGERS[wanted.size]).long()
        n = bits.shape[d] - joined + 1
        parts = [bits.narrow(d, k, n) for k in range(joined)]
        word = parts[0]
        for part in parts[1:]:
            word = word * _HASH + part
        yield word[parts[0] != parts[1]]


def _pieces(tensor: torch.Tensor, d: int, joined: int) -> Iterator[torch.Tensor]:
    """Yield parts of about `PIECE` elements: along another dimension, or overlapping along `d`."""
    longest = max(range(tensor.dim()), key=lambda k: tensor.shape[k] if k != d else 0)
    row = max(1, tensor.numel() // max(1, tensor.shape[longest]))
    if longest != d and row <= PIECE:
        yield from tensor.split(max(1, PIECE // row), dim=longest)
        return
    step = max(1, PIECE // max(1, tensor.numel() // tensor.shape[d]))
    for start in range(0, tensor.shape[d] - joined + 1, step):
        yield tensor.narrow(d, start, min(step + joined - 1, tensor.shape[d] - start))


def _kept(words: torch.Tensor, limit: int) -> torch.Tensor:
    return words[((words * _HASH) >> 24) & (_TOP - 1) < limit]


def _thinned(entry: _Entry, limit: int) -> _Entry:
    return replace(entry, words=_kept(entry.words, limit))


def _put_together(entries: Sequence[_Entry]) -> list[_Entry]:
    """Return half as many entries: two of an operation and dimension at a time as one."""
    alike: dict[tuple[str, int], list[_Entry]] = {}
    for entry in entries:
        alike.setdefault((entry.name, entry.dim), []).append(entry)
    return [
        _Entry(
            name,
            d,
            sum(entry.volume for entry in pair),
            sum(entry.n_words for entry in pair),
            torch.cat([entry.words for entry in pair]),
        )
        for (name, d), of_kind in alike.items()
        for pair in (of_kind[i : i + 2] for i in range(0, len(of_kind), 2))
    ]
