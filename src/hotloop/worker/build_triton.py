"""Compile a candidate's Triton kernels for sm_90 on a machine without a GPU.

Runs the candidate's forward on fake CUDA tensors, lets Triton compile every kernel that it would
launch, and reports their resources. The results are in `TRITON_CACHE_DIR`, under the keys that the
same forward looks up on an sm_90 GPU. This is the inner part of a compile lane: it runs untrusted
code and a compiler that can crash, so it needs a process of its own, one that imported triton
without `TRITON_INTERPRET`.

Only the compiler's refusals are failures. When the forward cannot be followed on fake tensors (it
looks at a value, or uses a part of CUDA that is not faked), the answer says `needs_gpu`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import triton.language as tl
from triton.runtime.errors import OutOfResources
from triton.runtime.jit import JITFunction

from hotloop.worker.arguments import decode_args
from hotloop.worker.assembler_advice import performance_losses
from hotloop.worker.compile_error import describe_compile_error, describe_out_of_resources
from hotloop.worker.cubin import inspect_cubin, spilled_bytes, spills_in
from hotloop.worker.failure import own_frames
from hotloop.worker.fake_launch import CompiledLaunch, Recorder, recording
from hotloop.worker.fake_tensors import fake_cuda, fake_tensor
from hotloop.worker.module_host import ContractError, host_model, import_file
from hotloop.worker.unfollowed import why_unfollowed

MAX_AUTOTUNE_CONFIGS = 16
"""More configurations than this are left to the run on the GPU, which compiles what it misses."""


def build(
    path: Path,
    *,
    pins: Mapping[str, Any],
    init_args: Sequence[Any],
    inputs: Sequence[Mapping[str, Any]],
    state: Mapping[str, Mapping[str, Any]],
    max_configs: int = MAX_AUTOTUNE_CONFIGS,
) -> dict[str, Any]:
    """Compile all kernels that one forward of the candidate at `path` launches.

    Args:
        path: the entry file, with its other sources beside it.
        pins: module attributes to set after import.
        init_args: arguments of `ModelNew`.
        inputs: per argument of forward, `{"slot": tensor description}`, a tensor description (see
            `fake_tensor`), or `{"value": value as by encode_args}`.
        state: tensor descriptions of parameters and buffers, by the reference's names.
        max_configs: configurations compiled per autotuned kernel.

    Returns:
        A JSON object: `status` (`ok`, `failed` or `needs_gpu`), `kernels` (compiled, launchable),
        `rejected` (autotuner configurations that do not compile or do not fit), `error` when
        failed, `needs_gpu` with type and message when the forward could not be followed.

    Raises:
        ContractError: there is no usable `ModelNew`.
        RuntimeError: this process imported triton for its interpreter.
    """
    if not isinstance(tl.sum, JITFunction):
        raise RuntimeError(
            "expected a process that imported triton without TRITON_INTERPRET, got one for the "
            "interpreter; start the compile lane with the variable unset"
        )
    os.environ.pop("TRITON_INTERPRET", None)  # Triton reads it again at each `@triton.jit`
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # torch's guards then find no device to switch to
    answer: dict[str, Any] = {"status": "ok"}
    with fake_cuda(), recording(max_configs=max_configs) as recorder:
        try:
            run_forward(path, pins, init_args, inputs, state)
        except ContractError:
            raise
        except Exception as error:  # noqa: BLE001  untrusted code; sorted by type and stage below
            answer = _explain(error, recorder, path)
    answer["kernels"] = [
        describe_kernel(entry) for entry in recorder.compiled.values() if entry.fits
    ]
    answer["rejected"] = _rejected(recorder)
    return answer


def run_forward(
    path: Path,
    pins: Mapping[str, Any],
    init_args: Sequence[Any],
    inputs: Sequence[Mapping[str, Any]],
    state: Mapping[str, Mapping[str, Any]],
) -> None:
    """Import, construct, bind, prepare and call the candidate once, on fake tensors."""
    hosted = host_model(import_file(path, pins), init_args, "cuda")
    hosted.model._apply(lambda tensor: tensor.to("cuda"))
    hosted.bind({name: fake_tensor(spec) for name, spec in state.items()})
    hosted.prepare()
    hosted.model(*(_argument(spec) for spec in inputs))


def _argument(spec: Mapping[str, Any]) -> Any:
    if "slot" in spec:
        return fake_tensor(spec["slot"])
    if "shape" in spec:
        return fake_tensor(spec)
    (value,) = decode_args([spec["value"]])
    return value


def _explain(error: Exception, recorder: Recorder, path: Path) -> dict[str, Any]:
    """Say whether the compiler refused a kernel or the forward could not be followed."""
    trace = own_frames(error, str(path.parent))
    causes = list(_chain(error))
    refused = next((failed for failed in recorder.failed if failed.error in causes), None)
    if refused is not None:
        described = describe_compile_error(refused, path)
    elif isinstance(error, OutOfResources):
        described = describe_out_of_resources(error, recorder.last_launched)
    else:
        kind = why_unfollowed(error)
        needs = {"kind": kind, "type": type(error).__name__, "message": str(error)[:2000]}
        return {"status": "needs_gpu", "needs_gpu": {**needs, "traceback": trace}}
    return {"status": "failed", "error": {**described, "traceback": trace}}


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what it was raised from."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def _rejected(recorder: Recorder) -> list[dict[str, Any]]:
    rejected: list[dict[str, Any]] = [
        {"name": failed.name, "constexprs": failed.constexprs, "reason": "compile_error"}
        for failed in recorder.failed
    ]
    rejected += [
        {
            "name": str(entry.kernel.metadata.name),
            "constexprs": entry.constexprs,
            "reason": "out_of_shared_memory",
            "shared_bytes": int(entry.kernel.metadata.shared),
        }
        for entry in recorder.compiled.values()
        if not entry.fits
    ]
    return rejected


def describe_kernel(entry: CompiledLaunch) -> dict[str, Any]:
    """Return name, launch shape and resources of a compiled kernel as plain values."""
    kernel, metadata = entry.kernel, entry.kernel.metadata
    cubin: bytes = kernel.asm["cubin"]
    name = str(metadata.name)
    resources = inspect_cubin(cubin, name)
    stores = loads = 0
    if resources.local_bytes:
        options = _assembler_options(metadata)
        stores, loads = spills_in(entry.assembler_log) or spilled_bytes(
            kernel.asm["ptx"], "sm_90a", options
        )
    return {
        "name": name,
        "registers": resources.registers,
        "local_bytes": resources.local_bytes,
        "spill_bytes": stores,
        "spill_load_bytes": loads,
        "shared_bytes": int(metadata.shared) + resources.static_shared_bytes,
        "is_gluon": entry.is_gluon,
        "num_warps": int(metadata.num_warps),
        "num_stages": None if entry.is_gluon else int(metadata.num_stages),
        "cubin_bytes": len(cubin),
        "cubin_sha256": hashlib.sha256(cubin).hexdigest(),
        "cache_key": str(kernel.hash),
        "compile_s": entry.compile_s,
        "advice": list(performance_losses(entry.assembler_log)),
        "signature": entry.signature,
        "constexprs": entry.constexprs,
        "grids": [list(grid) for grid in entry.grids],
    }


def _assembler_options(metadata: Any) -> list[str]:
    """Return the options that change register allocation, as Triton passes them."""
    fused = bool(getattr(metadata, "enable_fp_fusion", True))
    extra = str(getattr(metadata, "ptx_options", None) or "").split()
    return ["-lineinfo", *([] if fused else ["--fmad=false"]), *extra]
