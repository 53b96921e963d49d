"""How often an agent has looked at held-out data: so many final verdicts a problem, and no more.

Each final verdict says something of sizes and values that no prompt shows; who asks for enough of
them searches against what is to stay unseen. The count is kept outside of the workspace, by the
workspace's path: neither another server nor a restart of this one renews it.

Not covered: an agent that may write to its user's own folders. Give it another user.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

from hotloop.core.problem import Problem
from hotloop.errors import ConfigError, InfraError

DEFAULT_LOOKS = 5
"""Final verdicts of one problem."""
PROBLEMS = 8
"""A workspace has as many looks as so many problems have: a copied problem file is another one."""


class FinalLooks:
    """The final verdicts that a workspace has left. Safe beside other servers of it."""

    def __init__(self, state: Path, root: Path, *, limit: int = DEFAULT_LOOKS) -> None:
        """Read nothing yet.

        Args:
            state: folder that the count is kept in; made when it is needed.
            root: the workspace.
            limit: final verdicts of one problem; 0 for none at all.
        """
        digest = sha256(os.fsencode(root)).hexdigest()[:24]
        self._path = state / f"{digest}.json"
        self.limit = limit
        self.limit_of_all = limit * PROBLEMS

    def take(self, problem: Problem) -> None:
        """Take one look, before it is made: a server that is killed meanwhile has used it.

        Raises:
            ConfigError: none is left.
            InfraError: the count cannot be kept.
        """
        with self._counts() as counts:
            used = counts.get(problem.id, 0)
            if used >= self.limit or sum(counts.values()) >= self.limit_of_all:
                raise ConfigError(self._refusal(problem, used))
            counts[problem.id] = used + 1

    def give_back(self, problem: Problem) -> None:
        """Give back a look that showed nothing.

        Raises:
            InfraError: the count cannot be kept.
        """
        with self._counts() as counts:
            counts[problem.id] = max(0, counts.get(problem.id, 0) - 1)

    def left(self, problem: Problem) -> int:
        """Return how many looks at a problem are left.

        Raises:
            InfraError: the count cannot be read.
        """
        with self._counts() as counts:
            of_all = self.limit_of_all - sum(counts.values())
            return max(0, min(self.limit - counts.get(problem.id, 0), of_all))

    def told(self, problem: Problem) -> str:
        """Return what an answer says of it."""
        return f"final verdicts left for this problem: {self.left(problem)} of {self.limit}"

    def _refusal(self, problem: Problem, used: int) -> str:
        what = f"the {self.limit} final verdicts of {problem.name} are used"
        if used < self.limit:
            what = f"the {self.limit_of_all} final verdicts of this workspace are used"
        return (
            f"tier final: {what}, for each is a look at held-out data; go on with tier fast: a "
            "run's best kernel has a final check of its own. Who starts the server may allow "
            "more: hotloop mcp --final-looks N"
        )

    @contextmanager
    def _counts(self) -> Iterator[dict[str, int]]:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with open(self._path, "a+", encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(0)
                before = file.read()
                counts = _read(before)
                yield counts
                after = json.dumps(counts, sort_keys=True)
                if after != before:
                    file.truncate(0)
                    file.write(after)
                    file.flush()
                    os.fsync(file.fileno())
        except (OSError, ValueError, TypeError) as exc:
            raise InfraError(
                f"tier final: {self._path} counts the final verdicts of this workspace and cannot "
                f"be used ({exc}); make it writable, or remove it to count from 0"
            ) from exc


def _read(text: str) -> dict[str, int]:
    found = json.loads(text) if text.strip() else {}
    if not isinstance(found, dict):
        raise ValueError("it holds no counts")
    counts = {str(name): int(count) for name, count in found.items()}
    if any(count < 0 for count in counts.values()):
        raise ValueError("a count is below 0")
    return counts
