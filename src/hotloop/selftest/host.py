"""The sacrificial process that hosts the attacks: plants, forks, watches, judges by facts.

It starts with a secret in its environment, as a shell with an API key would start hotloop, and
replaces itself by a process with a scrubbed one, as the judge starts a zygote. With `private` it
first moves into throw-away namespaces, so that a process that gets out of its cage gets nowhere.
One JSON object a case goes to standard output.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from dataclasses import replace
from typing import Any, NoReturn

from hotloop.errors import HotloopError
from hotloop.sandbox import credentials, environment, kernel, namespaces, processes
from hotloop.sandbox.spec import CageSpec
from hotloop.selftest.cases import CASES
from hotloop.selftest.judge import judge
from hotloop.selftest.scene import Scene
from hotloop.selftest.trial import Trial

_PRIVATE = kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC | kernel.CLONE_NEWUTS
_STDOUT = 1


def main() -> NoReturn:
    """Take the stage from the last argument: `private` or `plain` first, `scene` second."""
    stage = sys.argv[-1]
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if stage == "private":
        enter_throw_away_namespaces()
    if stage != "scene":
        scrubbed = environment.scrubbed_environment(os.getcwd())
        os.execve(sys.executable, [*sys.orig_argv[:-1], "scene"], scrubbed)
    order = json.load(sys.stdin)
    results = os.dup(_STDOUT)
    processes.become_subreaper()
    for name in order["cases"]:
        scene = Scene(order["token"], order["uid"], private=order["private"])
        try:
            answer = run_case(name, scene, order)
        finally:
            scene.close()
        os.write(results, json.dumps(answer).encode() + b"\n")
    os._exit(0)


def run_case(name: str, scene: Scene, order: dict[str, Any]) -> dict[str, Any]:
    """Run the programs of one case in cages of their own; return what was found."""
    case = next(c for c in CASES if c.name == name)
    spec = CageSpec.from_json(order["specs"][case.stage])
    spec = replace(spec, read_paths=(*spec.read_paths, scene.allowed))
    if case.limits is not None:
        spec = replace(spec, limits=case.limits)
    found: list[str] = []
    answer: dict[str, Any] = {"name": name}
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for position, program in enumerate(case.programs):
        work_dir = f"{scene.base}/work-{position}-{os.urandom(4).hex()}"
        os.mkdir(work_dir, 0o700)
        if order["uid"] is not None:
            os.chown(work_dir, order["uid"], order["uid"])
        trial = Trial(case, replace(spec, work_dir=work_dir), scene, order)
        try:
            trial.run(program)
        except (HotloopError, OSError) as exc:
            return {**answer, "end": f"not entered: {exc}", "found": [], "steps": {}, "wall_s": 0.0}
        is_last = position == len(case.programs) - 1
        found += judge(trial, scene, secrets_count=is_last)
        answer |= {"end": trial.end, "steps": trial.steps, "wall_s": round(trial.wall_s, 3)}
        answer |= {"missing": trial.missing, "left": answer.get("left", 0) + len(trial.left)}
        if trial.end.startswith("broken"):
            break
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - grown
    if grown > 100 * 1024:
        found.append(f"the harness grew by {grown // 1024} MiB")
    return {**answer, "found": sorted(set(found))}


def enter_throw_away_namespaces() -> None:
    """Go on as the first process of a private pid, mount, IPC and host-name namespace."""
    flags = _PRIVATE
    uid, gid = os.geteuid(), os.getegid()
    if not credentials.has_capability(credentials.CAP_SYS_ADMIN):
        flags |= kernel.CLONE_NEWUSER
    kernel.unshare(flags)
    if flags & kernel.CLONE_NEWUSER:
        namespaces.map_own_user(uid, gid)
    child = os.fork()
    if child:
        os.close(_STDOUT)
        _, status = os.waitpid(child, 0)
        os._exit(0 if status == 0 else 1)
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    kernel.mount("none", "/", flags=kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("proc", "/proc", kind="proc", flags=kernel.MS_NOSUID | kernel.MS_NODEV)
