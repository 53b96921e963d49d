"""Strategies: what to try next. One strategy a file; no clock, no I/O, seeded."""
