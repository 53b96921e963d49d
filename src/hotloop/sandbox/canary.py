"""Canaries: attacks that must fail, made from inside the very policy that a candidate will get.

A policy that looks right and is not in force is the usual way for sandboxes to fail, so behaviour
is what counts. The attacks aim at a parent process made for this purpose, never at the caller. This
file plants the secrets and reads the answers; `canary_attacks` runs on the other side.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import hotloop
from hotloop.errors import InfraError, SandboxUnavailable
from hotloop.sandbox import landlock
from hotloop.sandbox.environment import scrubbed_environment
from hotloop.sandbox.processes import kill_tree
from hotloop.sandbox.spec import CageSpec, Tier

BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from hotloop.sandbox import canary_attacks; canary_attacks.main()"
)
_TIMEOUT_S = 30.0
_HELD_SINCE_ABI = {"signal_parent": 6}
"""Attacks on the same user that Landlock alone refuses at T1, by the ABI that brought the rule."""
_SHARED_FOLDER = "/dev/shm"


def require_sound(*specs: CageSpec, boot: str = BOOT, abi: int | None = None) -> None:
    """Refuse to go on if `breaches` finds anything.

    Raises:
        SandboxUnavailable: an attack succeeded, or a cage could not be entered.
        InfraError: the attacking process gave no answer.
    """
    if worked := breaches(*specs, boot=boot, abi=abi):
        raise SandboxUnavailable(
            f"expected the cage ({specs[0].tier}) to refuse every attack before anything is run, "
            f"it let through: {', '.join(worked)}; run `hotloop doctor` and `hotloop selftest`, "
            "and keep the temporary folder (TMPDIR) out of PYTHONPATH and of system folders"
        )


def breaches(*specs: CageSpec, boot: str = BOOT, abi: int | None = None) -> tuple[str, ...]:
    """Return the attacks that get through cages of one tier and must not; none at T0.

    What no cage at T1 can refuse on an older kernel is left out: the probe names it.

    Args:
        specs: the cages that untrusted code will get.
        boot: see `run_canaries`.
        abi: the kernel's Landlock ABI; None asks it.

    Raises:
        SandboxUnavailable: a cage could not be entered.
        InfraError: the attacking process gave no answer.
    """
    tier = specs[0].tier
    if tier is Tier.NONE:
        return ()
    abi = landlock.abi_version() if abi is None else abi
    gaps = {name for name, since in _HELD_SINCE_ABI.items() if abi < since}
    worked = run_canaries(*specs, boot=boot)
    return tuple(n for n in worked if tier is Tier.NAMESPACES or n not in gaps)


def run_canaries(*specs: CageSpec, boot: str = BOOT) -> tuple[str, ...]:
    """Try to break out of cages like `specs`, each in a scratch folder beside its work folder.

    Args:
        specs: what to attack; all at the same time, below one sacrificial parent.
        boot: text of the program that attacks; a test gives one that weakens the cage first.

    Returns:
        The names of the attacks that succeeded in any of them, each once: none at T1 and T2 on a
        sound machine.

    Raises:
        SandboxUnavailable: a cage could not be entered.
        InfraError: the attacking process gave no answer.
    """
    token = secrets.token_hex(16)
    left = f"{_SHARED_FOLDER}/hotloop-canary-{token[:8]}"
    with ExitStack() as folders:
        hidden = folders.enter_context(tempfile.TemporaryDirectory(prefix="hotloop-hidden-"))
        _plant(hidden, token)
        placed = []
        for spec in specs:
            beside = os.path.dirname(os.path.realpath(spec.work_dir))
            scratch = tempfile.TemporaryDirectory(prefix="hotloop-canary-", dir=beside)
            placed.append(replace(spec, work_dir=folders.enter_context(scratch)))
        order = {
            "specs": [spec.to_json() for spec in placed],
            "hidden": hidden,
            "token": token,
            "left": left,
        }
        answers = _ask(order, placed[0].work_dir, boot)
    for answer in answers:
        if "error" in answer:
            raise SandboxUnavailable(f"the canaries could not enter the cage: {answer['error']}")
    succeeded = [name for answer in answers for name in answer["succeeded"]]
    with suppress(FileNotFoundError):
        os.unlink(left)
        succeeded.append("leave_file")
    return tuple(dict.fromkeys(succeeded))


def _plant(hidden: str, token: str) -> None:
    """Make a secret that file modes leave open to everybody, so that only the cage protects it."""
    os.chmod(hidden, 0o755)
    with open(os.path.join(hidden, "secret"), "w", encoding="ascii") as file:
        file.write(token)
    os.chmod(os.path.join(hidden, "secret"), 0o644)
    os.mkdir(os.path.join(hidden, "open"))
    os.chmod(os.path.join(hidden, "open"), 0o777)


def _ask(order: dict[str, Any], scratch: str, boot: str) -> Sequence[dict[str, Any]]:
    """Start the sacrificial parent, the secret in its environment; return the answers."""
    source = os.path.dirname(os.path.abspath(hotloop.__path__[0]))
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", boot, source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=scrubbed_environment(scratch, {"HOTLOOP_CANARY": order["token"]}),
        start_new_session=True,
    )
    try:
        out, err = process.communicate(json.dumps(order).encode(), timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired as exc:
        raise InfraError(
            f"expected the canaries to answer within {_TIMEOUT_S} s, they did not; "
            "look for a stopped process and report this"
        ) from exc
    finally:
        kill_tree(process.pid)
        process.wait()
    try:
        answers = [json.loads(line) for line in out.splitlines()]
    except ValueError:
        answers = []
    if len(answers) != len(order["specs"]) or not all(isinstance(a, dict) for a in answers):
        raise InfraError(
            f"expected an answer from each of {len(order['specs'])} canaries, got {out[:200]!r} "
            f"and {err[-500:]!r}; check that this Python starts with -I -S"
        )
    return answers
