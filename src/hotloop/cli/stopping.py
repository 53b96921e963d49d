"""Ctrl-C with words: the first drains and says so."""

from __future__ import annotations

import os

from hotloop.engine import StopFlag

_NOTICE = (
    b"\nstopping after what runs now: loading the problem, or a verification and the final check; "
    b"Ctrl-C again stops at once\n"
)
_STDERR = 2


class LoudStop(StopFlag):
    """A StopFlag that tells the user what the first Ctrl-C did."""

    def request(self) -> None:
        """Ask once more; writes past Python's buffers, because a signal may interrupt them."""
        super().request()
        if not self.now:
            os.write(_STDERR, _NOTICE)
