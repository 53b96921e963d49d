"""Problems as the coordinator sees them: text, classified by syntax tree, never run.

`load_problem_spec` is the way in; the judge runs what it returns.
"""

from __future__ import annotations

from hotloop.problems.kernelbench import (
    KernelBenchEntry,
    is_kernelbench_name,
    list_kernelbench,
    load_kernelbench,
    pin_data,
)
from hotloop.problems.settings import parse_settings
from hotloop.problems.small_sizes import count_elements, suggest_small_sizes
from hotloop.problems.spec import describe_sizes, load_problem_spec

__all__ = [
    "KernelBenchEntry",
    "count_elements",
    "describe_sizes",
    "is_kernelbench_name",
    "list_kernelbench",
    "load_kernelbench",
    "pin_data",
    "load_problem_spec",
    "parse_settings",
    "suggest_small_sizes",
]
