"""The oracle: does a mutant give a wrong result on some input that the problem allows?

    TRITON_INTERPRET=1 python -m benchmarks.mutation.oracle     JSON lines in, JSON lines out
    python -m benchmarks.mutation.oracle cuda                   the same on a GPU, compiled

Apart from the verifier's gate: values, goldens, the criterion and the interpreter's memory checks
are this package's own. A result is wrong when an element is further from the float64 golden than
`FACTOR` times eager's own largest error on the same input and device, or not finite, or of another
shape or dtype. Mutants run in children, which may crash or hang; this process itself never starts
CUDA, so that it can be forked.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import torch

from benchmarks.mutation import oracle_memory
from benchmarks.mutation.oracle_child import Answer, Send, in_child, in_children
from benchmarks.mutation.oracle_inputs import cases
from benchmarks.mutation.oracle_kernel import InputModified, load_kernel, run
from benchmarks.mutation.oracle_reference import OracleCase, OracleProblem

FACTOR = 8.0
ORIGINAL_S = 120.0
"""For the correct kernel: processor time on a CPU, wall clock on a GPU."""
START_S = 30.0
"""Of CUDA in a child, on a GPU that many share."""


class Oracle:
    """The cases of one problem."""

    def __init__(self, message: Mapping[str, Any], device: str = "cpu") -> None:
        """Draw the cases.

        Args:
            message: `source` of the problem file, `settings`, `workloads` (further settings, by
                name), `fixed` (positions of inputs whose values have a meaning), `language`.
            device: `cpu` (Triton's interpreter) or `cuda`.
        """
        self._device = device
        self._language = message.get("language", "triton")
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
        """Run the correct kernel on all cases and widen the yardsticks by its own error.

        On a GPU the yardsticks are those of eager there; cases on which it is off are left out.
        """
        answer = self._child(lambda send: self._measure(source, send), ORIGINAL_S)
        kept = []
        for (problem, case), found in zip(self.cases, answer.pop("yardsticks", ()), strict=False):
            if found is not None:
                case.yardstick = found
                kept.append((problem, case))
        if answer["outcome"] == "ran":
            self.cases = kept
        return answer

    def try_mutants(self, sources: Sequence[str], limit_s: float, left_s: float) -> list[Answer]:
        """Search for an input on which each mutant is wrong; `left_s` is for all of them."""

        def search(number: int, send: Send) -> bool:
            return self._search(sources[number], send)

        if self._device == "cpu":
            return [in_child(partial(search, i), limit_s) for i in range(len(sources))]
        return in_children(len(sources), search, start_s=START_S, limit_s=limit_s, left_s=left_s)

    def _child(self, work: Any, limit_s: float) -> Answer:
        if self._device == "cpu":
            return in_child(work, limit_s)

        def once(_: int, send: Send) -> bool:
            work(send)
            return False

        return in_children(1, once, start_s=START_S, limit_s=limit_s, left_s=2 * limit_s)[0]

    def _measure(self, source: str, send: Send) -> None:
        kernel = load_kernel(source, self._language, self._device)
        worst, worst_case = 0.0, ""
        yardsticks: list[list[float] | None] = []
        for problem, case in self.cases:
            yardstick: list[float] | None = case.yardstick
            if self._device != "cpu":
                yardstick = problem.eager_yardstick(case, self._device)
            if yardstick is None:
                yardsticks.append(None)
                continue
            outputs = run(kernel, problem, case, self._device)
            errors = [error_of(o, g) for o, g in zip(outputs, case.golden, strict=True)]
            pairs = list(zip(errors, yardstick, strict=True))
            yardsticks.append([max(e, y) for e, y in pairs])
            ratio = max(e / y if y else (0.0 if e == 0 else 1e30) for e, y in pairs)
            if ratio >= worst:
                worst, worst_case = ratio, case.name
        send({"outcome": "ran", "yardsticks": yardsticks, "worst_ratio": worst,
              "worst_case": worst_case, "oob": _outside()})  # fmt: skip

    def _search(self, source: str, send: Send) -> bool:
        """Send what was found; return whether this process is fit for another mutant."""
        try:
            kernel = load_kernel(source, self._language, self._device)
        except Exception as exc:  # noqa: BLE001  any failure is the mutant's
            send({"outcome": "raises", "message": f"{type(exc).__name__}: {exc}"[:200]})
            return True
        witness = None
        for problem, case in self.cases:
            try:
                witness = difference(run(kernel, problem, case, self._device), case)
            except InputModified:
                witness = {"case": case.name, "kind": "input_modified"}
            except Exception as exc:  # noqa: BLE001
                text = f"{type(exc).__name__}: {exc}"[:200]
                send({"outcome": "raises", "message": text, "case": case.name, "oob": _outside()})
                return self._is_fit()
            if witness is not None:
                break
        outcome = "shown" if witness else "not_shown"
        send({"outcome": outcome, "witness": witness, "oob": _outside()})
        return True

    def _is_fit(self) -> bool:
        """Whether this process can go on after an exception: a GPU's context may be gone."""
        if self._device == "cpu":
            return False
        try:
            torch.cuda.synchronize()
        except Exception:  # noqa: BLE001  torch has several kinds for it
            return False
        return True


def _outside() -> dict[str, int]:
    """Return the accesses outside; a GPU does not tell."""
    return {"loads": oracle_memory.WATCH.loads, "stores": oracle_memory.WATCH.stores}


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


def serve(device: str) -> None:
    """Answer requests until the input ends."""
    torch.set_num_threads(1)
    # fills what torch.empty returns with NaN
    torch.use_deterministic_algorithms(True, warn_only=device != "cpu")
    if device == "cpu":
        oracle_memory.install()
    else:
        warnings.simplefilter("ignore")
        _warm()
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what a kernel prints is no answer
    oracle: Oracle | None = None
    for line in sys.stdin:
        message = json.loads(line)
        if message["op"] == "load":
            oracle = Oracle(message, device)
            answer: Answer = oracle.check_original(message["kernel"])
            answer["cases"] = len(oracle.cases)
        else:
            assert oracle is not None
            limit_s, left_s = message["limit_s"], message.get("left_s", 1e6)
            answer = {"answers": oracle.try_mutants(message["kernels"], limit_s, left_s)}
        answers.write(json.dumps(answer) + "\n")


def _warm() -> None:
    """Do once what every child's first compilation would; without a GPU they try themselves."""
    from hotloop.worker import warm_kernel

    with contextlib.suppress(Exception):
        warm_kernel.compile_once()
        warm_kernel.build_driver_module()


if __name__ == "__main__":
    serve(sys.argv[1] if len(sys.argv) > 1 else "cpu")
