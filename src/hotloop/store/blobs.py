"""Candidates on disk, by content: blobs/ab/abcdef....json.

A blob is complete or absent: it is written under another name, synced, renamed, and its folder is
synced before anything refers to it. Its name is the sha256 of its bytes, so damage shows.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

from hotloop.core import kill_points
from hotloop.core.candidate import Candidate
from hotloop.core.record import dumps, from_json
from hotloop.errors import BlobDamaged

BLOB_FOLDER = "blobs"


def write_candidate(folder: Path, candidate: Candidate) -> str:
    """Store a candidate durably; return the sha256 of its bytes (64 hex digits).

    Raises:
        OSError: the file system refused.
    """
    data = dumps(candidate).encode()
    sha256 = hashlib.sha256(data).hexdigest()
    path = blob_path(folder, sha256)
    if path.exists() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
        return sha256
    _make_folder(path.parent)
    temporary = path.with_suffix(f".tmp{os.getpid()}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        kill_points.reach("before-blob-rename")
        os.replace(temporary, path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
    kill_points.reach("after-blob-rename")
    sync(path.parent)
    return sha256


def read_candidate(folder: Path, candidate_id: str, sha256: str) -> Candidate:
    """Return the candidate whose bytes have this hash.

    Raises:
        BlobDamaged: the file is missing, or its content is not what was stored.
    """
    path = blob_path(folder, sha256)
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise BlobDamaged(
            f"candidate {candidate_id}: {path} is missing; restore it, or use another --out"
        ) from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise BlobDamaged(
            f"candidate {candidate_id}: {path} is damaged (its sha256 is not its name); "
            "restore it, or use another --out"
        )
    candidate = from_json(Candidate, json.loads(data))
    if candidate.id != candidate_id:
        raise BlobDamaged(f"candidate {candidate_id}: {path} holds candidate {candidate.id}")
    return candidate


def blob_path(folder: Path, sha256: str) -> Path:
    """Return where the blob with this hash lies."""
    return folder / BLOB_FOLDER / sha256[:2] / f"{sha256}.json"


def _make_folder(path: Path) -> None:
    missing = [p for p in (path, *path.parents) if not p.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for created in missing:
        sync(created.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, written to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
