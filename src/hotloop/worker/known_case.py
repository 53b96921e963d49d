"""Inputs whose right outputs are known, and what can be said of outputs beside them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from hotloop.worker.cases import Case
from hotloop.worker.compare import GateResult, gate
from hotloop.worker.part_rule import parts_beyond
from hotloop.worker.reference import Draw, Outputs, Reference
from hotloop.worker.row_errors import PART
from hotloop.worker.steps import only_steps
from hotloop.worker.tf32_cut import CutRuns
from hotloop.worker.ties import only_ties


@dataclass(frozen=True, slots=True)
class Known:
    """A case with its inputs and what belongs into the outputs."""

    reference: Reference
    case: Case
    draw: Draw
    goldens: Outputs

    def judge(self, i: int, output: torch.Tensor, cut: CutRuns | None = None) -> GateResult:
        """Judge output `i`: an index may name an equal element, TF32 be cut instead of rounded.

        The errors told are those of the output as it is.

        Args:
            i: position of the output.
            output: a candidate's.
            cut: of this draw, where other outputs are judged with it too.
        """
        golden = self.goldens[i]
        result = self._gate(i, output)
        if result.passed or result.rule == "nonfinite":
            return result
        is_exact = result.rule == "exact"
        if is_exact:
            excused = only_ties(self.reference, self.draw, i, output, golden) or only_steps(
                self.reference, self.draw, i, output
            )
        else:
            cut = cut or CutRuns(self.reference, self.draw)
            excused = cut.excuses(i, output, golden, lambda c: self._gate(i, c).passed)
        if not excused:
            return result
        return dataclasses.replace(result, passed=True, rule=None, is_cut=not is_exact)

    def is_right(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether every output passes (`judge`)."""
        cut = CutRuns(self.reference, self.draw)
        pairs = enumerate(zip(outputs, self.goldens, strict=True))
        return all(self.judge(i, output, cut).passed for i, (output, _) in pairs)

    def is_plain(self, outputs: Sequence[torch.Tensor]) -> bool:
        """Whether one value throughout, or a copy of an input, would be right for every output.

        Args:
            outputs: of the shapes and dtypes that a candidate returns; their values do not count.
        """
        return all(
            any(self._gate(i, guess).passed for guess in guesses)
            for i, guesses in enumerate(map(self._guesses, outputs, self.goldens))
        )

    def _gate(self, i: int, output: torch.Tensor) -> GateResult:
        """Return the gate's answer, with parts of the output held to limits of their own too."""
        golden, bound = self.goldens[i], self.case.bounds[i]
        result = gate(output, golden, bound)
        if not result.passed:
            return result
        beyond = parts_beyond(output, golden, bound, reference=self.reference, draw=self.draw)
        if not beyond:
            return result
        stats = dataclasses.replace(result.stats, worst=beyond[0])
        return GateResult(False, PART, stats, len(beyond))

    @property
    def largest(self) -> int:
        """Elements of the largest tensor among inputs and outputs."""
        return max((t.numel() for t in (*self._inputs(), *self.goldens)), default=0)

    @property
    def answer(self) -> int:
        """Elements of the largest output."""
        return max((t.numel() for t in self.goldens), default=0)

    def _inputs(self) -> list[torch.Tensor]:
        return [v for v in self.draw.inputs if isinstance(v, torch.Tensor)]

    def _guesses(self, output: torch.Tensor, golden: torch.Tensor) -> Iterator[torch.Tensor]:
        if golden.numel() == 0:
            yield golden.to(output.dtype)
            return
        yield golden.reshape(-1)[0].to(output.dtype).expand(output.shape).contiguous()
        for value in self._inputs():
            if value.numel() == golden.numel():
                yield value.to(output.dtype).reshape(output.shape)


def size_bytes(tensors: Sequence[object]) -> int:
    """Return the memory of the tensors among some values."""
    return sum(v.numel() * v.element_size() for v in tensors if isinstance(v, torch.Tensor))
