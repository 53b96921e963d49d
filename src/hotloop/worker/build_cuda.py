"""Compile a CUDA C++ candidate for sm_90 on a machine without a GPU.

Two forms. A `.cu` file with a launch description (see `launch_description.py`) becomes one cubin.
A `.py` file builds its extension itself, with torch's `load_inline`, when it is imported; that
needs a torch built for CUDA.

This is the inner part of a compile lane; it runs untrusted code and compilers, so it needs a
process of its own.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hotloop.worker.arguments import decode_args
from hotloop.worker.cubin import inspect_cubin
from hotloop.worker.cuda_compiler import Compiled, CompileFailedError, compile_cubin
from hotloop.worker.kernel_parameters import parameter_sizes
from hotloop.worker.launch_description import LaunchDescriptionError, parse
from hotloop.worker.launch_plan import ARGUMENT_BYTES, MAX_SHARED_BYTES, BoundLaunch, bind
from hotloop.worker.module_host import ContractError
from hotloop.worker.symbol_scan import RefusedCode, refuse_managed

REGISTERS_PER_BLOCK = 65536
MAX_ERRORS = 3

_ERROR = re.compile(r"^(?P<file>[^\s(]+)\((?P<line>\d+)\): (?:catastrophic )?error: (?P<text>.*)$")
_HOST_ERROR = re.compile(r"^(?P<file>[^\s:]+):(?P<line>\d+):\d+: (?:fatal )?error: (?P<text>.*)$")
_CARET = re.compile(r"^\s*(?:\|\s*)?\^[~^]*\s*$")
_PTXAS_ERROR = re.compile(r"^ptxas (?:error|fatal)\s*:\s*(?P<text>.*)$")
_PTXAS_SPILLS = re.compile(
    r"Function properties for (\w+)\n\s*\d+ bytes stack frame, (\d+) bytes spill stores"
)


def build(path: Path, message: Mapping[str, Any]) -> dict[str, Any]:
    """Compile the candidate at `path`.

    Args:
        path: the `.cu` file; its cubin is written beside it.
        message: `inputs` and `state` as for `build_triton.build`.

    Returns:
        A JSON object: `status` (`ok` or `failed`), `kernels`, `error` when failed, `cubin` (file
        name) and `compiler` when not.

    Raises:
        ContractError: the launch description is malformed or does not fit the inputs.
        ToolMissing: there is no CUDA compiler.
    """
    if path.suffix != ".cu":
        from hotloop.worker.build_extension import build_extension

        return build_extension(path, message)
    source = path.read_text(encoding="utf-8")
    try:
        plan = parse(source)
        inputs = [_shape_or_value(entry) for entry in message["inputs"]]
        bound = bind(plan, inputs, {k: _slot(v)["shape"] for k, v in message["state"].items()})
    except LaunchDescriptionError as error:
        raise ContractError(str(error)) from error
    try:
        compiled = compile_cubin(source, path.name)
    except CompileFailedError as failed:
        return {"status": "failed", "kernels": [], "error": first_error(failed.log, source)}
    try:
        refuse_managed(compiled.cubin)
    except RefusedCode as refused:
        raise ContractError(str(refused)) from refused
    target = path.with_suffix(".cubin")
    target.write_bytes(compiled.cubin)
    kernels, errors = [], []
    for launch in _by_name(bound.launches).values():
        described = describe_kernel(compiled, launch)
        kernels.append(described)
        errors += _limits(described, launch)
    answer: dict[str, Any] = {"kernels": kernels, "cubin": target.name}
    if errors:
        return {"status": "failed", **answer, "error": errors[0]}
    return {"status": "ok", **answer, "compiler": compiled.compiler}


def first_error(log: str, source: str) -> dict[str, Any]:
    """Return the first error of a compiler's log, with the source line where it names one.

    The message holds up to `MAX_ERRORS` errors, each with its line; `line` and `excerpt` are those
    of the first.
    """
    lines = log.splitlines()
    found = [error for i in range(len(lines)) if (error := _error_at(lines, i, source))]
    if found:
        message = "\n".join(error["message"] for error in found[:MAX_ERRORS])
        return {**found[0], "message": message, "errors": len(found)}
    assembler = (_PTXAS_ERROR.match(line) for line in lines)
    message = next((match["text"] for match in assembler if match), log.strip()[-1000:])
    return {"kind": "compile_error", "message": message}


def _error_at(lines: list[str], at: int, source: str) -> dict[str, Any] | None:
    """Return the error that begins at one line of a log; None if none does."""
    match = _ERROR.match(lines[at]) or _HOST_ERROR.match(lines[at])
    if match is None:
        return None
    number, below = int(match["line"]), lines[at + 1 : at + 4]
    text = source.splitlines()[number - 1] if number <= source.count("\n") + 1 and source else ""
    # The compilers print the line again and a caret below it.
    mark = next((i for i, entry in enumerate(below) if _CARET.match(entry)), 0)
    shown = below[mark - 1 : mark + 1] if mark else [text]
    excerpt = "\n".join(entry for entry in shown if entry.strip())
    message = f"{Path(match['file']).name}:{number}: {match['text']}\n{excerpt}".rstrip()
    return {"kind": "compile_error", "message": message, "line": number, "excerpt": excerpt}


def describe_kernel(compiled: Compiled, launch: BoundLaunch) -> dict[str, Any]:
    """Return name, launch shape and resources of one kernel as plain values.

    Raises:
        ContractError: the source has no such kernel.
    """
    try:
        resources = inspect_cubin(compiled.cubin, launch.name)
    except KeyError as error:
        raise ContractError(
            f'{error.args[0]}; declare it extern "C" __global__ and spell it as in the description'
        ) from error
    _check_arguments(compiled.cubin, launch)
    spills = {name: int(count) for name, count in _PTXAS_SPILLS.findall(compiled.log)}
    return {
        "name": launch.name,
        "registers": resources.registers,
        "local_bytes": resources.local_bytes,
        "spill_bytes": spills.get(launch.name, resources.local_bytes),
        "shared_bytes": launch.shared_bytes + resources.static_shared_bytes,
        "num_warps": -(-launch.threads // 32),
        "num_stages": None,
        "cubin_bytes": len(compiled.cubin),
        "cubin_sha256": hashlib.sha256(compiled.cubin).hexdigest(),
        "compile_s": compiled.compile_s,
        "grids": [list(launch.grid)],
        "block": list(launch.block),
    }


def _check_arguments(cubin: bytes, launch: BoundLaunch) -> None:
    """Compare the description's arguments with the kernel's parameters, by number and size.

    Raises:
        ContractError: they differ.
    """
    taken = parameter_sizes(cubin, launch.name)
    passed = tuple(ARGUMENT_BYTES[kind] for kind, _ in launch.args)
    if taken is not None and taken != passed:
        raise ContractError(
            f"kernel {launch.name} takes {len(taken)} parameters of {list(taken)} bytes, the "
            f"description passes {len(passed)} of {list(passed)}: a buffer is a pointer of 8 "
            "bytes, a size an int of 4"
        )


def _limits(kernel: Mapping[str, Any], launch: BoundLaunch) -> list[dict[str, Any]]:
    """Return what a block of the kernel asks for beyond sm_90."""
    errors = []
    if kernel["shared_bytes"] > MAX_SHARED_BYTES:
        errors.append(
            {
                "kind": "out_of_shared_memory",
                "message": f"kernel {launch.name} needs {kernel['shared_bytes']} bytes of shared "
                f"memory per block, sm_90 has {MAX_SHARED_BYTES}",
                "needed_bytes": kernel["shared_bytes"],
                "available_bytes": MAX_SHARED_BYTES,
            }
        )
    # Registers are handed out to warps in units of 256 (8 a thread).
    registers = -(-kernel["registers"] // 8) * 8 * kernel["num_warps"] * 32
    if registers > REGISTERS_PER_BLOCK:
        errors.append(
            {
                "kind": "out_of_registers",
                "message": f"kernel {launch.name} needs {registers} registers per block of "
                f"{launch.threads} threads, sm_90 has {REGISTERS_PER_BLOCK}; use __launch_bounds__",
            }
        )
    return errors


def _by_name(launches: tuple[BoundLaunch, ...]) -> dict[str, BoundLaunch]:
    """Return one launch a kernel: the one with the most threads, then the most shared memory."""
    chosen: dict[str, BoundLaunch] = {}
    for launch in launches:
        other = chosen.get(launch.name)
        key = (launch.threads, launch.shared_bytes)
        if other is None or key > (other.threads, other.shared_bytes):
            chosen[launch.name] = launch
    return chosen


def _slot(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    slot: Mapping[str, Any] = entry.get("slot", entry)
    return slot


def _shape_or_value(entry: Mapping[str, Any]) -> Any:
    if "value" in entry:
        (value,) = decode_args([entry["value"]])
        return value
    return tuple(_slot(entry)["shape"])
