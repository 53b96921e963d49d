"""What an agent may ask for: a kernel, a tier, a model, a strategy; anything else is one line."""

from __future__ import annotations

from collections.abc import Collection

from hotloop.agent.workspace import Workspace
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Tier
from hotloop.errors import ConfigError
from hotloop.kernel_file import read_candidate
from hotloop.prompts.programs import read_program

AGENT = "agent"
"""The model of a run whose kernels the agent writes."""
BUILTIN = "builtin"
STRATEGIES = ("refine", "sample", "hybrid", "tune", "random")
"""Ours, by name: a path like `pkg.mod:Attr` would import what the agent wrote."""


def find_candidate(workspace: Workspace, source: str, file: str) -> Candidate:
    """Return the kernel of a text, or of a file in the workspace.

    Raises:
        ConfigError: both or none are given, or there is no such kernel file.
    """
    if bool(source.strip()) == bool(file):
        raise ConfigError("expected source or file, one of them")
    if file:
        return read_candidate(workspace.inside(file))
    entry = "kernel.py"
    language = read_program(source).language
    return Candidate(language=language, sources=(SourceFile(path=entry, text=source),), entry=entry)


def find_tier(name: str, device: str) -> Tier:
    """Return the tier of that name, which the device can give.

    Raises:
        ConfigError: there is none, or it needs a GPU.
    """
    if name not in (Tier.FAST.value, Tier.FINAL.value):
        raise ConfigError(f"tier: expected fast or final, got {name[:40]!r}")
    if name == Tier.FINAL.value and device == "cpu":
        raise ConfigError("tier final: it times kernels and needs a GPU; use fast on a CPU")
    return Tier(name)


def check_model(name: str, allowed: Collection[str]) -> None:
    """Refuse a model that whoever started the server did not name.

    A model's spec may have an address, and the API key goes there.

    Raises:
        ConfigError: it is not `agent`, `builtin`, or exactly one of `allowed`.
    """
    known = (AGENT, BUILTIN, *allowed)
    if name not in known:
        raise ConfigError(
            f"model: expected {' or '.join(known)}, got {name[:80]!r}; others are allowed by who "
            "starts the server: hotloop mcp --model SPEC"
        )


def check_strategy(name: str) -> None:
    """Refuse a strategy that is not one of ours.

    Raises:
        ConfigError: it is none of `STRATEGIES`.
    """
    if name not in STRATEGIES:
        raise ConfigError(f"strategy: expected {', '.join(STRATEGIES)}, got {name[:80]!r}")
