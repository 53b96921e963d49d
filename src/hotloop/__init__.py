"""hotloop turns a PyTorch reference into a verified, faster GPU kernel.

The public names are loaded on first use, so that importing the package stays cheap and never loads
torch.
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hotloop.api import load_run, optimize, verify
    from hotloop.core.candidate import Candidate, SourceFile
    from hotloop.core.problem import Problem
    from hotloop.core.verdict import Status, Tier, Verdict
    from hotloop.errors import ConfigError, HotloopError, InfraError, ProblemError

__version__ = "0.1.0"

_HOME = {
    "optimize": "api",
    "verify": "api",
    "load_run": "api",
    "Candidate": "core.candidate",
    "SourceFile": "core.candidate",
    "Problem": "core.problem",
    "Status": "core.verdict",
    "Tier": "core.verdict",
    "Verdict": "core.verdict",
    "ConfigError": "errors",
    "HotloopError": "errors",
    "InfraError": "errors",
    "ProblemError": "errors",
}

__all__ = [
    "Candidate",
    "ConfigError",
    "HotloopError",
    "InfraError",
    "Problem",
    "ProblemError",
    "SourceFile",
    "Status",
    "Tier",
    "Verdict",
    "__version__",
    "load_run",
    "optimize",
    "verify",
]


def __getattr__(name: str) -> Any:
    """Load a public name from the module that defines it."""
    if name not in _HOME:
        raise AttributeError(f"module 'hotloop' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"hotloop.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, loaded or not."""
    return sorted(__all__)


class _Package(ModuleType):
    """Keeps `hotloop.verify` the function: importing the subpackage would put itself there."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOME or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
