"""What can be wrong with a page, as one line that says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hotloop.errors import HotloopError

_OTHER_SHAPE = (ValueError, KeyError, TypeError, AttributeError, IndexError)
"""What records of another shape lead to."""


class PageTrouble(Exception):
    """A page that cannot be shown: an HTTP status, a title and one line."""

    def __init__(self, status: int, title: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.title = title
        self.message = message


def not_found(what: str) -> PageTrouble:
    """Return the trouble of something that is not below the served folder (any more)."""
    return PageTrouble(
        404, "Not here", f"there is no {what} below the served folder (any more); go to the list"
    )


@contextmanager
def readable(folder: Path) -> Iterator[None]:
    """Raise PageTrouble for whatever keeps a journal from being read.

    Raises:
        PageTrouble: the folder is gone, damaged, or of another version.
    """
    try:
        yield
    except HotloopError as exc:
        if not folder.exists():
            raise PageTrouble(
                404, "Deleted", f"{folder} was deleted while it was open; go back to the list"
            ) from exc
        raise PageTrouble(503, "Cannot be read", str(exc)) from exc
    except _OTHER_SHAPE as exc:
        told = " ".join(f"{type(exc).__name__}: {exc}".split())[:300]
        raise PageTrouble(
            503,
            "Cannot be read",
            f"{folder}: its journal holds records of another shape ({told}); restore it from a "
            "snapshot, or use the hotloop that wrote it",
        ) from exc
