"""Leases in the journal: their events, and the table that is derived from them.

    leased   a candidate goes to a judge        renewed      the judge still answers
    ended    there will be no result, or it     judged       the accepted result
             is set aside for another one
    judged_late   a result of a lease that was over: kept, not scored

Everything here works on a connection that its caller owns, inside its caller's transaction. That
there is one accepted verdict for a candidate and a tier is an index of the table.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from hotloop.core.lease import Lease
from hotloop.core.record import from_json
from hotloop.core.verdict import Tier, Verdict

KINDS = frozenset({"leased", "renewed", "ended", "judged", "judged_late"})

OPEN, ENDED, JUDGED = "open", "ended", "judged"

LEFT_OPEN = "the run was killed during it"
"""Why a lease of a dead session ended."""


def apply_lease(
    connection: sqlite3.Connection, seq: int, kind: str, payload: Mapping[str, Any]
) -> None:
    """Bring the table up to date with one event of `KINDS`, or with the stop of a session."""
    epoch = payload.get("epoch")
    if kind == "leased":
        connection.execute(
            "INSERT INTO leases (epoch, candidate_id, tier, attempt, judge, expires_at, state) "
            "VALUES (:epoch, :candidate_id, :tier, :attempt, :judge, :expires_at, 'open')",
            payload,
        )
    elif kind == "renewed":
        _set(connection, epoch, "expires_at = ?", payload["expires_at"])
    elif kind == "ended":
        why = payload["why"] if payload["is_failure"] else None
        _set(connection, epoch, f"state = '{ENDED}', failure = ?", why)
    elif kind == "judged":
        _set(connection, epoch, f"state = '{JUDGED}', result_seq = ?", seq)
    elif kind == "judged_late":
        _set(connection, epoch, "result_seq = ?", seq)
    elif kind == "stopped" and payload.get("reason") == "failed":
        connection.execute("UPDATE leases SET failure = NULL WHERE failure IS NOT NULL")


def new_lease(
    connection: sqlite3.Connection, candidate_id: str, tier: Tier, judge: str, expires_at: float
) -> dict[str, Any]:
    """Return the payload of the next lease.

    Raises:
        ValueError: the candidate has its verdict at this tier.
    """
    if read_verdict(connection, candidate_id, tier) is not None:
        raise ValueError(f"candidate {candidate_id} has its verdict ({tier.value}) already")
    (epoch,) = connection.execute("SELECT COALESCE(MAX(epoch), 0) + 1 FROM leases").fetchone()
    (attempt,) = connection.execute(
        "SELECT COUNT(*) + 1 FROM leases WHERE candidate_id = ? AND tier = ?",
        (candidate_id, tier.value),
    ).fetchone()
    return {
        "epoch": epoch,
        "candidate_id": candidate_id,
        "tier": tier.value,
        "attempt": attempt,
        "judge": judge,
        "expires_at": expires_at,
    }


def lease_of(payload: Mapping[str, Any]) -> Lease:
    """Return what a `leased` event stands for."""
    return Lease(
        epoch=payload["epoch"],
        candidate_id=payload["candidate_id"],
        tier=Tier(payload["tier"]),
        attempt=payload["attempt"],
    )


def epochs(connection: sqlite3.Connection, candidate_id: str, tier: Tier) -> list[int]:
    """Return the leases of an evaluation that nothing has ended."""
    rows = connection.execute(
        "SELECT epoch FROM leases WHERE candidate_id = ? AND tier = ? AND state = ?",
        (candidate_id, tier.value, OPEN),
    )
    return [epoch for (epoch,) in rows]


def epochs_that_count(connection: sqlite3.Connection, candidate_id: str, tier: Tier) -> list[int]:
    """Return the leases that brought the accepted verdict, or that count as failures."""
    rows = connection.execute(
        f"SELECT epoch FROM leases WHERE candidate_id = ? AND tier = ? "
        f"AND (state IN ('{OPEN}', '{JUDGED}') OR failure IS NOT NULL) ORDER BY epoch",
        (candidate_id, tier.value),
    )
    return [epoch for (epoch,) in rows]


def is_lease_open(connection: sqlite3.Connection, epoch: int) -> bool:
    """Whether a result of this lease would be accepted."""
    row = connection.execute("SELECT state FROM leases WHERE epoch = ?", (epoch,)).fetchone()
    return row is not None and row[0] == OPEN


def event_of_result(connection: sqlite3.Connection, epoch: int, verdict: Verdict) -> str | None:
    """Return the kind of event that a result makes; None when it was delivered before.

    Raises:
        ValueError: there was no such lease, or it was of another candidate or tier.
    """
    row = connection.execute(
        "SELECT candidate_id, tier, state, result_seq FROM leases WHERE epoch = ?", (epoch,)
    ).fetchone()
    if row is None or row[:2] != (verdict.candidate_id, verdict.tier.value):
        leased = "no lease" if row is None else f"candidate {row[0]} ({row[1]})"
        raise ValueError(
            f"epoch {epoch} is of {leased}, got a verdict on candidate {verdict.candidate_id} "
            f"({verdict.tier.value})"
        )
    if row[3] is not None:
        return None
    return "judged" if row[2] == OPEN else "judged_late"


def is_accepted(connection: sqlite3.Connection, epoch: int) -> bool:
    """Whether the result of this lease is the accepted one."""
    row = connection.execute("SELECT state FROM leases WHERE epoch = ?", (epoch,)).fetchone()
    return row is not None and row[0] == JUDGED


def read_verdict(connection: sqlite3.Connection, candidate_id: str, tier: Tier) -> Verdict | None:
    """Return the accepted verdict, also of journals that had no leases yet."""
    row = connection.execute(
        "SELECT events.payload FROM leases JOIN events ON events.seq = leases.result_seq "
        "WHERE candidate_id = ? AND tier = ? AND state = 'judged'",
        (candidate_id, tier.value),
    ).fetchone()
    if row is not None:
        return from_json(Verdict, json.loads(row[0])["verdict"])
    if tier is not Tier.FAST:
        return None
    row = connection.execute(
        "SELECT record FROM attempts WHERE candidate_id = ? AND status IS NOT NULL LIMIT 1",
        (candidate_id,),
    ).fetchone()
    return None if row is None else from_json(Verdict, json.loads(row[0])["verdict"])


def read_failures(connection: sqlite3.Connection, candidate_id: str, tier: Tier) -> tuple[str, ...]:
    """Return why leases of an evaluation failed, oldest first."""
    rows = connection.execute(
        "SELECT CASE state WHEN 'open' THEN ? ELSE failure END FROM leases "
        "WHERE candidate_id = ? AND tier = ? AND (state = 'open' OR failure IS NOT NULL) "
        "ORDER BY epoch",
        (LEFT_OPEN, candidate_id, tier.value),
    )
    return tuple(why for (why,) in rows)


def _set(connection: sqlite3.Connection, epoch: Any, what: str, value: Any) -> None:
    connection.execute(f"UPDATE leases SET {what} WHERE epoch = ?", (value, epoch))
