"""The oracle: does a mutant give a wrong result on some input that the problem allows?

    TRITON_INTERPRET=1 python -m benchmarks.mutation.oracle     JSON lines in, JSON lines out

Apart from the verifier's gate: values, goldens, the criterion and the interpreter's memory checks
are this package's own. A result is wrong when an element is further from the float64 golden than
`FACTOR` times eager's own largest error on the same input, or not finite, or of another shape or
dtype. Each mutant runs in a child, which may crash or hang.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from benchmarks.mutation import oracle_memory
from benchmarks.mutation.oracle_inputs import cases
from benchmarks.mutation.oracle_reference import OracleCase, OracleProblem, outputs_of

FACTOR = 8.0
WALL_FACTOR = 20.0
"""The machine may be shared: a child that waits is not a child that hangs."""
Answer = dict[str, Any]


class Oracle:
    """The cases of one problem."""

    def __init__(self, message: Mapping[str, Any]) -> None:
        """Draw the cases.

        Args:
            message: `source` of the problem file, `settings`, `workloads` (further settings, by
                name), `fixed` (positions of inputs whose values have a meaning).
        """
        named = {"nominal": {}, **message["workloads"]}
        self.cases: list[tuple[OracleProblem, OracleCase]] = []
        for profile, seed in cases():
            for name, more in named.items():
                problem = OracleProblem(message["source"], {**message["settings"], **more})
                case = problem.case(profile, seed, message["fixed"])
                if case is not None:
                    case.name = f"{name}: {case.name}"
                    self.cases.append((problem, case))

    def check_original(self, source: str) -> Answer:
        """Run the correct kernel on all cases and widen the yardsticks by its own error."""
        answer = in_child(lambda send: self._measure(source, send), 120.0)
        for (_, case), errors in zip(self.cases, answer.get("errors", ()), strict=False):
            case.yardstick = [max(y, e) for y, e in zip(case.yardstick, errors, strict=True)]
        return answer

    def try_mutant(self, source: str, limit_s: float) -> Answer:
        """Search for an input on which the mutant is wrong."""
        return in_child(lambda send: self._search(source, send), limit_s)

    def _measure(self, source: str, send: Any) -> None:
        module = load(source)
        ratios, errors = [], []
        for problem, case in self.cases:
            outputs = run(module, problem, case)
            found = [error_of(o, g) for o, g in zip(outputs, case.golden, strict=True)]
            errors.append(found)
            pairs = zip(found, case.yardstick, strict=True)
            ratios.append(max(e / y if y else (0.0 if e == 0 else 1e30) for e, y in pairs))
        worst = max(range(len(ratios)), key=ratios.__getitem__)
        send({"outcome": "ran", "errors": errors, "worst_ratio": ratios[worst],
              "worst_case": self.cases[worst][1].name, "oob": _outside()})  # fmt: skip

    def _search(self, source: str, send: Any) -> None:
        try:
            module = load(source)
        except Exception as exc:  # noqa: BLE001  any failure is the mutant's
            send({"outcome": "raises", "message": f"{type(exc).__name__}: {exc}"[:200]})
            return
        witness = None
        for problem, case in self.cases:
            try:
                outputs = run(module, problem, case)
                witness = difference(outputs, case)
            except InputModified:
                witness = {"case": case.name, "kind": "input_modified"}
            except Exception as exc:  # noqa: BLE001
                text = f"{type(exc).__name__}: {exc}"[:200]
                send({"outcome": "raises", "message": text, "case": case.name, "oob": _outside()})
                return
            if witness is not None:
                break
        outcome = "shown" if witness else "not_shown"
        send({"outcome": outcome, "witness": witness, "oob": _outside()})


def _outside() -> dict[str, int]:
    return {"loads": oracle_memory.WATCH.loads, "stores": oracle_memory.WATCH.stores}


def load(source: str) -> Any:
    """Import a kernel file."""
    folder = Path(tempfile.mkdtemp(prefix="mutant-"))
    path = folder / "mutant_kernel.py"
    path.write_text(source, encoding="utf-8")
    try:
        spec = importlib.util.spec_from_file_location("mutant_kernel", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["mutant_kernel"] = module
        spec.loader.exec_module(module)
    finally:
        path.unlink()
        with contextlib.suppress(OSError):
            folder.rmdir()
    return module


def run(module: Any, problem: OracleProblem, case: OracleCase) -> list[torch.Tensor]:
    """Run a kernel file's `ModelNew` on copies of a case's inputs and parameters."""
    with torch.no_grad():
        model = module.ModelNew(*problem.init_args)
        mapping = {ref: own for own, ref in getattr(module, "PARAMETERS", {}).items()}
        for name, value in case.state.items():
            _set(model, mapping.get(name, name), value.clone())
        if hasattr(model, "prepare"):
            model.prepare()
        inputs = [v.clone() if isinstance(v, torch.Tensor) else v for v in case.inputs]
        outputs = outputs_of(model(*inputs))
    for kept, given in zip(case.inputs, inputs, strict=True):
        if isinstance(kept, torch.Tensor) and not torch.equal(kept, given):
            raise InputModified("an input was modified")
    return outputs


class InputModified(Exception):
    """A forward wrote into its arguments."""


def _set(model: torch.nn.Module, dotted: str, value: torch.Tensor) -> None:
    *path, leaf = dotted.split(".")
    owner: Any = model
    for part in path:
        owner = getattr(owner, part, None)
    if owner is None:
        return
    if leaf in owner._parameters:
        owner._parameters[leaf] = torch.nn.Parameter(value, requires_grad=False)
    elif leaf in owner._buffers:
        owner._buffers[leaf] = value


def error_of(output: torch.Tensor, golden: torch.Tensor) -> float:
    """Return the largest error; infinite where a value is not finite."""
    if output.shape != golden.shape:
        return float("inf")
    error = (output.double() - golden.double()).abs()
    worst = float(error.max()) if error.numel() else 0.0
    return worst if worst == worst else float("inf")


def difference(outputs: Sequence[torch.Tensor], case: OracleCase) -> Answer | None:
    """Return where outputs are wrong, or None."""
    if len(outputs) != len(case.golden):
        return {"case": case.name, "kind": "count"}
    for i, (output, golden) in enumerate(zip(outputs, case.golden, strict=True)):
        if output.shape != golden.shape:
            return {"case": case.name, "kind": "shape", "output": i}
        wanted = torch.float32 if golden.is_floating_point() else golden.dtype
        if output.dtype != wanted:
            return {"case": case.name, "kind": "dtype", "output": i}
        error, allowed = error_of(output, golden), FACTOR * case.yardstick[i]
        if error > allowed:
            return {"case": case.name, "kind": "value", "output": i,
                    "error": error if error < 1e300 else "not finite",
                    "allowed": allowed, "golden_max": float(golden.abs().max())}  # fmt: skip
    return None


def in_child(work: Any, limit_s: float) -> Answer:
    """Run `work(send)` in a forked child and return what it sent.

    Args:
        work: gets a function that takes the answer.
        limit_s: processor time that it may take; `WALL_FACTOR` times that on the clock.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        cpu_s = max(1, int(limit_s))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s + 1))
        try:
            work(lambda answer: os.write(writer, json.dumps(answer).encode() + b"\n"))
            code = 0
        except BaseException as exc:  # noqa: BLE001  the child says what it can and is gone
            os.write(writer, json.dumps({"outcome": "fault", "message": repr(exc)[:300]}).encode())
        finally:
            os._exit(code)
    os.close(writer)
    data, deadline = b"", time.monotonic() + WALL_FACTOR * limit_s
    hung = False
    while True:
        ready, _, _ = select.select([reader], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            hung = True
            os.kill(child, signal.SIGKILL)
            break
        part = os.read(reader, 65536)
        if not part:
            break
        data += part
    os.close(reader)
    _, status = os.waitpid(child, 0)
    if hung or (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU):
        return {"outcome": "hangs"}
    return json.loads(data) if data else {"outcome": "crashes"}


def serve() -> None:
    """Answer requests until the input ends."""
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)  # fills what torch.empty returns with NaN
    oracle_memory.install()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a kernel prints is no answer
    oracle: Oracle | None = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "load":
            oracle = Oracle(message)
            answer = oracle.check_original(message["kernel"])
            answer.pop("errors", None)
            answer["cases"] = len(oracle.cases)
        else:
            assert oracle is not None
            answer = oracle.try_mutant(message["kernel"], message["limit_s"])
        answers.write(json.dumps(answer) + "\n")


if __name__ == "__main__":
    serve()
