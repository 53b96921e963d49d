"""What `bench` says of its machines and of its shared budget: seconds of work, seconds granted."""

from __future__ import annotations

from typing import Any

from hotloop.cli.use_text import use_lines, use_record
from hotloop.suite.folder import SuiteRecord
from hotloop.suite.planning import SuitePlan


def closing(plan: SuitePlan, stored: SuiteRecord) -> str:
    """Return a line on each GPU, one on all together, and one on what was granted; or nothing."""
    lines = use_lines(stored.use, device=plan.jobs[0].plan.spec.device)
    if stored.grants:
        granted_s = sum(granted.wall_s for granted in stored.grants.values())
        lines.append(
            f"shared budget: {granted_s:.0f} s that others left over went to "
            f"{len(stored.grants)} problem(s)"
        )
    return "\n".join(lines)


def record(stored: SuiteRecord) -> dict[str, Any]:
    """Return what `bench --json` says of both."""
    return {
        "use": use_record(stored.use),
        "granted_s": {name: granted.wall_s for name, granted in stored.grants.items()},
    }
