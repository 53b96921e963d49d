"""Warn, once a problem is loaded, of what its audit found."""

from __future__ import annotations

from hotloop.cli.audit import audit_line
from hotloop.core.event import Event, Listener


def with_audit_notice(listen: Listener) -> Listener:
    """Return `listen` with a `warning` event behind a `setup` whose audit found something."""

    def hear(event: Event) -> None:
        listen(event)
        if event.kind == "setup":
            notice = audit_line(event.payload["info"].audit)
            if notice is not None:
                listen(Event(kind="warning", payload={"message": notice}))

    return hear
