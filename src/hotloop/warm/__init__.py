"""A judge that outlives one command: kept for the next call, ended by itself when nobody calls."""
