"""Device reads: values that left for the host below torch's methods, as a dispatch mode sees them.

Single values are counted anywhere; copies, where they come from a device; and what is written into
memory that is not torch's own, since anyone may read it there.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hotloop.worker.call_memory import is_foreign
from hotloop.worker.host_reads import FOREIGN
from hotloop.worker.operation import Operation


class DeviceReads(dict[str, int]):
    """How they left -> values."""

    def __init__(self, shared: range) -> None:
        """Leave out what is written into the judge's memory, `shared`."""
        super().__init__()
        self._shared = shared

    def note(self, done: Operation) -> None:
        """Count values of a device that came to the host, and single ones anywhere."""
        name, n = done.name, 1
        if name != "_local_scalar_dense":
            name, there = "_device_to_host", [t for t in done.sources if t.device.type == "cuda"]
            here = [t for t in done.made if t.device.type == "cpu"]
            n = max((t.numel() for t in here), default=0) if there else 0
        if n:
            self[name] = self.get(name, 0) + n
        if done.writes:
            self.note_foreign(done.made)

    def note_foreign(self, written: Sequence[torch.Tensor]) -> None:
        """Count what is written into memory that is not torch's: anyone may read it there."""
        if n := sum(t.numel() for t in written if is_foreign(t, self._shared)):
            self[FOREIGN] = self.get(FOREIGN, 0) + n
