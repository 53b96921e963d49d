"""A dead child of which a stopped zygote does not tell: this machine's fault, not a hung GPU."""

from __future__ import annotations

import os
import signal

import pytest

from hotloop.errors import WorkerTimeout
from hotloop.worker import children
from hotloop.worker.workroom import Workroom

pytestmark = [pytest.mark.slow, pytest.mark.timeout(200)]


def test_a_silent_zygote_is_no_process_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    room = Workroom("cpu", tier="T0", gpu=None)
    zygote = room._runs._process.pid
    try:
        child = room.start_candidate(room.folder("a"), None)
        told = child.kill()
        assert told is not None
        assert told.signal == signal.SIGKILL
        child = room.start_candidate(room.folder("b"), None)
        monkeypatch.setattr(children, "KILL_S", 1.0)
        os.kill(zygote, signal.SIGSTOP)
        with pytest.raises(WorkerTimeout, match="zygote does not say"):
            child.kill()
    finally:
        os.kill(zygote, signal.SIGCONT)
        room.close()
