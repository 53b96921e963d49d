"""What to say when a problem's code failed because it wanted the network.

A reference is run here as it is, again for every run, often on machines without any network: it
must not need one. A connection that is refused, a name that is not found or an answer that does not
come is an error of the problem file.
"""

from __future__ import annotations

import socket
import urllib.error

HINT = "; a problem file should need no network: put what it loads beside it, or draw it"


def network_hint(error: BaseException | None) -> str:
    """Return what to add to the message of an error that the network caused; else nothing."""
    while error is not None:
        if isinstance(
            error, (ConnectionError, socket.gaierror, TimeoutError, urllib.error.URLError)
        ):  # fmt: skip
            return HINT
        error = error.__cause__ or error.__context__
    return ""
