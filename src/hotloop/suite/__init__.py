"""Suites: many runs, one folder. A run in it is an ordinary run and is written once, by `api`."""
