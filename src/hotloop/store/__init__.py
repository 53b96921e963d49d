"""The journal of a run: SQLite on disk, or memory for tests. One writer, append-only."""
