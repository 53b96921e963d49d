"""Canaries: attacks that must fail, made from inside the very policy that a candidate will get.

A policy that looks right and is not in force is the usual way for sandboxes to fail, so behaviour
is what counts. The attacks aim at a parent process made for this purpose, never at the caller. This
file plants the secrets and reads the answer; `canary_attacks` runs on the other side.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import Any

import hotloop
from hotloop.errors import InfraError, SandboxUnavailable
from hotloop.sandbox.environment import scrubbed_environment
from hotloop.sandbox.processes import kill_tree
from hotloop.sandbox.spec import CageSpec

_TIMEOUT_S = 30.0
_BOOT = (
    "import sys; sys.path.insert(0, sys.argv[1]); "
    "from hotloop.sandbox import canary_attacks; canary_attacks.main()"
)


def run_canaries(spec: CageSpec) -> tuple[str, ...]:
    """Try to break out of a cage like `spec`, in a scratch folder beside its work folder.

    Returns:
        The names of the attacks that succeeded: empty at T1 and T2 on a sound machine.

    Raises:
        SandboxUnavailable: the cage could not be entered.
        InfraError: the attacking process gave no answer.
    """
    beside = os.path.dirname(os.path.realpath(spec.work_dir))
    token = secrets.token_hex(16)
    with (
        tempfile.TemporaryDirectory(prefix="hotloop-hidden-") as hidden,
        tempfile.TemporaryDirectory(prefix="hotloop-canary-", dir=beside) as scratch,
    ):
        _plant(hidden, token)
        order = {
            "spec": replace(spec, work_dir=scratch).to_json(),
            "hidden": hidden,
            "token": token,
        }
        answer = _ask(order, scratch, token)
    if "error" in answer:
        raise SandboxUnavailable(f"the canaries could not enter the cage: {answer['error']}")
    return tuple(answer["succeeded"])


def _plant(hidden: str, token: str) -> None:
    """Make a secret that file modes leave open to everybody, so that only the cage protects it."""
    os.chmod(hidden, 0o755)
    with open(os.path.join(hidden, "secret"), "w", encoding="ascii") as file:
        file.write(token)
    os.chmod(os.path.join(hidden, "secret"), 0o644)
    os.mkdir(os.path.join(hidden, "open"))
    os.chmod(os.path.join(hidden, "open"), 0o777)


def _ask(order: dict[str, Any], scratch: str, token: str) -> dict[str, Any]:
    """Start the sacrificial parent, the secret in its environment; return the attacker's answer."""
    source = os.path.dirname(os.path.abspath(hotloop.__path__[0]))
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", _BOOT, source],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=scrubbed_environment(scratch, {"HOTLOOP_CANARY": token}),
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
        answer = json.loads(out)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise InfraError(
            f"expected an answer from the canaries, got {out[:200]!r} and {err[-500:]!r}; "
            "check that this Python starts with -I -S"
        )
    return answer
