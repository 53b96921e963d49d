"""Build a CUDA candidate that is a Python module with `load_inline` extensions.

The module is imported on fake CUDA tensors; torch's extension builder compiles while it runs, for
sm_90, into the current folder, where the candidate's own process finds the result. A refusal of
the compiler is a failure; a module that cannot be imported without a GPU is not.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from hotloop.errors import ToolMissing
from hotloop.worker.fake_device import replaced
from hotloop.worker.fake_tensors import fake_cuda
from hotloop.worker.module_host import ContractError, import_file
from hotloop.worker.symbol_scan import RefusedCode, refuse_banned_calls


class _BuildRefusedError(Exception):
    """torch's extension builder raised; the cause says what."""


def build_extension(path: Path, message: Mapping[str, Any]) -> dict[str, Any]:
    """Import the candidate at `path`, which builds its extensions.

    Returns:
        A JSON object: `status` (`ok`, `failed` or `needs_gpu`), `kernels` (empty: their resources
        are known when they run), `compile_s`, and `error` or `needs_gpu`.

    Raises:
        ContractError: the file cannot be loaded as a module.
        ToolMissing: this torch cannot build CUDA extensions, or ninja is not installed.
    """
    if torch.version.cuda is None or not cpp_extension.is_ninja_available():
        raise ToolMissing(
            "expected a torch built for CUDA and ninja to build a load_inline extension, got torch "
            f"{torch.__version__}; write a .cu file with a launch description instead"
        )
    os.environ.setdefault("TORCH_EXTENSIONS_DIR", str(path.parent / "extensions"))
    os.environ["TORCH_CUDA_ARCH_LIST"] = "9.0a"
    start = time.perf_counter()
    answer: dict[str, Any] = {"status": "ok"}
    with fake_cuda(), _marked_builders():
        try:
            import_file(path, message.get("pins", {}))
        except ContractError:
            raise
        except _BuildRefusedError as refused:
            answer = {"status": "failed", "error": _describe(refused)}
        except Exception as error:  # noqa: BLE001  untrusted code; only a refusal is a failure
            needs = {"kind": "not_followed", "type": type(error).__name__, "message": str(error)}
            answer = {"status": "needs_gpu", "needs_gpu": needs}
    try:
        refuse_banned_calls(Path(os.environ["TORCH_EXTENSIONS_DIR"]))
    except RefusedCode as refused:
        raise ContractError(str(refused)) from refused
    return {**answer, "kernels": [], "compile_s": time.perf_counter() - start}


@contextmanager
def _marked_builders() -> Iterator[None]:
    """Let failures inside torch's builders be told from those of the module itself."""

    def marked(builder: Any) -> Any:
        def build(*args: Any, **kwargs: Any) -> Any:
            try:
                return builder(*args, **kwargs)
            except Exception as error:
                raise _BuildRefusedError(str(error)) from error

        return build

    builders = {name: marked(getattr(cpp_extension, name)) for name in ("load", "load_inline")}
    with replaced(cpp_extension, builders):
        yield


def _describe(refused: _BuildRefusedError) -> dict[str, Any]:
    from hotloop.worker.build_cuda import first_error

    log = str(refused)
    return {**first_error(log, ""), "log": log[-4000:]}
