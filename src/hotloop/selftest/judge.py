"""From facts to findings: each line names one thing that an attack achieved."""

from __future__ import annotations

import os

from hotloop.selftest import facts
from hotloop.selftest.scene import Scene
from hotloop.selftest.trial import Trial

_GRACE_S = 2.0
"""How long past its deadline a process may live."""


def judge(trial: Trial, scene: Scene, *, secrets_count: bool) -> list[str]:
    """Return what speaks against the cage; nothing means that the attack was refused.

    Args:
        trial: one finished trial.
        scene: what was planted.
        secrets_count: look for secrets in the output; False for a program that only prepares.
    """
    found = [f"reached the {name}" for name in scene.contacts()]
    if secrets_count:
        found += _leaks(trial, scene)
    found += _harm(trial)
    if trial.sight is not None:
        gained = facts.gained(*trial.sight, trial.spec.limits)
        found += [g for g in gained if trial.caged or not g.startswith("capabilities")]
    size = facts.largest_file(trial.spec.work_dir)
    if size > trial.spec.limits.file_bytes:
        found.append(f"a file of {size} bytes over the limit")
    if trial.core_dumped or any(n.startswith("core") for n in os.listdir(trial.spec.work_dir)):
        found.append("a core dump")
    if trial.outlived:
        found.append("outlived its parent")
    if trial.siblings:
        found.append("a child of the parent, where nobody looks for it")
    if trial.left:
        found.append(f"{len(trial.left)} processes left")
    if trial.wall_s > trial.case.deadline_s + _GRACE_S:
        found.append(f"ended {trial.wall_s - trial.case.deadline_s:.1f} s after its deadline")
    return found


def _leaks(trial: Trial, scene: Scene) -> list[str]:
    secrets = [*scene.secrets, trial.memory[0]]
    if not trial.caged or "T1" not in trial.case.tiers:
        secrets += scene.outline()
    count = sum(secret in trial.said for secret in secrets)
    return [f"{count} planted secrets came out"] if count else []


def _short(value: object) -> str:
    return str(value) if len(str(value)) < 80 else "..."


def _harm(trial: Trial) -> list[str]:
    before, after = trial.state
    found = [
        f"the victim's {name}: {_short(before.get(name))} -> {_short(value)}"
        for name, value in after.items()
        if before.get(name) != value
    ]
    if trial.memory[0] != trial.memory[1]:
        found.append(f"the victim's memory: {trial.memory[1][:40]!r}")
    before, after = trial.files
    changed = [path for path in {*before, *after} if before.get(path) != after.get(path)]
    found += [f"changed {os.path.basename(path)}" for path in sorted(changed)]
    return found
