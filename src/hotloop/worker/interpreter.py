"""Make Triton's interpreter agree with the GPU: the CPU lane runs candidate kernels on it.

`install()` replaces the parts of Triton's interpreter that are wrong or missing. It is called once
in a worker process that was started with ``TRITON_INTERPRET=1``, before candidate code is imported,
and it is never undone. What it covers: bfloat16 and fp8 arithmetic, rounding of casts, TF32 dots,
NaN in extrema, reductions and scans by any combine function, libdevice, two PTX approximations,
tensor descriptors, float arguments, accesses outside the arguments' memory, autotuning without a
clock. What it refuses by name: other
inline assembly, Gluon, libdevice functions without a numpy twin.

It does not model races, shared memory or speed.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any, Literal

import numpy as np
import torch
import triton
import triton.language as tl
from triton.backends.nvidia.compiler import CUDAOptions
from triton.language.semantic import TritonSemantic
from triton.runtime import driver as triton_driver
from triton.runtime import interpreter as _stock
from triton.runtime.autotuner import Autotuner

from hotloop.worker import interpreter_reduce, interpreter_syntax
from hotloop.worker.fake_device import CudaMeans, TargetDriver, device_queries, run_untimed
from hotloop.worker.faults import OutOfBoundsError, UnsupportedInInterpreterError, cause_of
from hotloop.worker.interpreter_builder import GpuLikeBuilder
from hotloop.worker.interpreter_memory import Region

__all__ = ["OutOfBoundsError", "UnsupportedInInterpreterError", "cause_of", "install"]

AutotuneMode = Literal["first", "all"]

_installed = False
_launch_depth = 0


def install(*, autotune: AutotuneMode = "first") -> None:
    """Repair the interpreter of this process. A second call changes nothing but `autotune`.

    Args:
        autotune: `first` runs the first configuration that survives pruning; `all` runs each of
            them once, in order, then the first that did not fail for its own reasons.

    Raises:
        RuntimeError: triton was imported without `TRITON_INTERPRET=1`.
    """
    global _installed
    if not isinstance(tl.sum, _stock.InterpretedFunction):
        raise RuntimeError(
            "expected a process whose triton was imported with TRITON_INTERPRET=1, but its "
            "language functions are compiled ones; set the variable before the process starts"
        )
    _install_autotune(autotune)
    if _installed:
        return
    _stock.interpreter_builder = GpuLikeBuilder()
    _stock.interpreter_semantic = TritonSemantic(_stock.interpreter_builder)
    _stock._patch_reduce_scan = _patch_reduce_scan
    _stock._patch_lang = _patch_lang
    _stock._implicit_cvt = _wrap_implicit_cvt(_stock._implicit_cvt)
    _stock.FunctionRewriter.ast_transformer = interpreter_syntax.KernelSyntax()
    _stock.FunctionRewriter._compile_and_exec = _compile_and_exec
    _stock.GridExecutor.__call__ = _wrap_grid_call(_stock.GridExecutor.__call__)
    _stock.InterpretedFunction.__call__ = _call_device_function
    _install_libdevice()
    _install_gluon_guard()
    triton_driver.set_active(TargetDriver("cpu"))
    _install_device_queries()
    _installed = True


# --- language patches, in force while a grid runs ---


class _Globals:
    """A module's globals as an object, so that a patch scope can set and restore its entries."""

    def __init__(self, namespace: dict[str, Any]) -> None:
        object.__setattr__(self, "_namespace", namespace)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._namespace[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._namespace[name] = value

    def __delattr__(self, name: str) -> None:
        del self._namespace[name]


def _patch_lang(fn: Any) -> Any:
    """Switch the language to its interpreted form, also where it was imported name by name."""
    scope = _stock._LangPatchScope()
    builder = _stock.interpreter_builder
    for module in (tl, tl.core):
        _stock._patch_builtin(module, builder, scope)
        _stock._patch_builtin(module.tensor, builder, scope)
        _stock._patch_lang_tensor(module.tensor, scope)
        _stock._patch_lang_core(module, scope)
    _stock._patch_builtin(tl.math, builder, scope)
    _stock._patch_builtin(tl.core.tensor_descriptor_base, builder, scope)
    # Triton 3.6 converts a one-element array with int(), which numpy 2 no longer allows.
    scope.set_attr(tl.core.tensor, "__index__", lambda self: int(self.handle.data.item()))
    view = _Globals(fn.__globals__)
    for name, value in list(fn.__globals__.items()):
        if inspect.isfunction(value) and tl.core.is_builtin(value):
            _stock._patch_attr(view, name, value, builder, scope)
    return scope


def _patch_reduce_scan(scope: Any) -> None:
    for module in (tl, tl.core):
        scope.set_attr(module, "reduce", interpreter_reduce.reduce)
        scope.set_attr(module, "associative_scan", interpreter_reduce.associative_scan)


def _wrap_implicit_cvt(stock: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def implicit_cvt(arg: Any) -> Any:
        # A float argument is an fp32 scalar on the GPU: it promotes a 16-bit block, which the bare
        # Python number that the stock interpreter passes on would not.
        if isinstance(arg, bool):
            return tl.tensor(_stock.TensorHandle(np.array([arg], np.bool_), tl.int1), tl.int1)
        if isinstance(arg, float):
            handle = _stock.TensorHandle(np.array([arg], np.float32), tl.float32)
            return tl.tensor(handle, tl.float32)
        return stock(arg)

    return implicit_cvt


# --- running kernels and device functions ---


def _compile_and_exec(self: Any, transformed_ast: Any) -> Callable[..., Any]:
    """Build the rewritten function, without spilling the interpreter's names into its module.

    The stock version adds its own imports (`math`, `np`, ...) to the candidate's globals, so that a
    kernel with a missing import would pass here and fail on a GPU.
    """
    code = compile(transformed_ast, filename=self.filename, mode="exec")
    namespace = self.fn.__globals__
    captured = inspect.getclosurevars(self.fn).nonlocals
    if captured:
        namespace = {**namespace, **captured}
    namespace.update(interpreter_syntax.INJECTED)
    for name in ("interpreter_semantic", "_InterpreterComparison"):
        if hasattr(_stock, name):
            namespace[name] = getattr(_stock, name)
    defined: dict[str, Any] = {**self.kwargs}
    exec(code, namespace, defined)
    function: Callable[..., Any] = defined[self.fn.__name__]
    return function


def _wrap_grid_call(stock: Callable[..., None]) -> Callable[..., None]:
    options = set(CUDAOptions.__dataclass_fields__)

    def call(self: Any, *args: Any, **kwargs: Any) -> None:
        global _launch_depth
        parameters = inspect.signature(self.fn).parameters
        for name in kwargs:
            if name not in parameters and name not in options:
                raise KeyError(f"Keyword argument {name} was specified but unrecognised")
        named = {name: value for name, value in kwargs.items() if name in parameters}
        grid = self.grid
        if callable(grid):  # with plain numbers, as on the GPU, not with interpreted tensors
            grid = grid(inspect.getcallargs(self.fn, *args, **named))
        self.grid = tuple(int(extent) for extent in grid)
        bound = inspect.getcallargs(self.fn, *args, **named)
        _stock.interpreter_builder.set_regions(list(_regions(bound)))
        _launch_depth += 1
        try:
            with np.errstate(all="ignore"):
                stock(self, *args, **named)
        finally:
            _launch_depth -= 1

    return call


def _regions(arguments: dict[str, Any]) -> Iterator[Region]:
    """Yield the storage of each tensor among a launch's arguments."""
    for name, value in arguments.items():
        if isinstance(value, tuple):
            yield from _regions({f"{name}[{i}]": entry for i, entry in enumerate(value)})
            continue
        tensor = getattr(value, "base", value)  # of a descriptor or a reinterpreted tensor
        if isinstance(tensor, torch.Tensor):
            storage = tensor.untyped_storage()
            start = storage.data_ptr()
            yield Region(name, start, start + storage.nbytes())


def _call_device_function(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a jitted function from a kernel; the language is patched already."""
    if _launch_depth == 0:
        raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
    try:
        return self.rewrite()(*args, **kwargs)
    except Exception as error:  # noqa: BLE001  Triton's contract: a kernel's error has one type
        raise _stock.InterpreterError(repr(error)) from error


# --- libdevice, Gluon, autotuning, device queries: in force from `install` on ---


def _with_semantic(function: Any) -> Callable[..., Any]:
    def interpreted(*args: Any, **kwargs: Any) -> Any:
        kwargs["_semantic"] = _stock.interpreter_semantic
        return function(*args, **kwargs)

    interpreted.__name__ = function.__name__
    return interpreted


def _install_libdevice() -> None:
    """Make libdevice callable under each of the names it is imported by."""
    import triton.language.extra.cuda as cuda
    from triton.language.extra import libdevice as stubs
    from triton.language.extra.cuda import libdevice

    for module in (libdevice, cuda):
        for name, function in list(vars(module).items()):
            if inspect.isfunction(function) and tl.core.is_builtin(function):
                setattr(module, name, _with_semantic(function))
    for name, stub in list(vars(stubs).items()):
        if inspect.isfunction(stub) and hasattr(libdevice, name):
            setattr(stubs, name, getattr(libdevice, name))


def _install_gluon_guard() -> None:
    from triton.experimental.gluon._runtime import GluonJITFunction

    def refuse(self: Any, *_: Any, **__: Any) -> None:
        raise UnsupportedInInterpreterError(
            f"Gluon kernel {self.__name__} cannot be interpreted on a CPU: Gluon programs the "
            "hardware directly; verify it on a GPU"
        )

    GluonJITFunction.run = refuse


def _install_autotune(mode: AutotuneMode) -> None:
    """Choose a configuration without a clock: there is nothing to time on a CPU."""
    if not hasattr(Autotuner, "_stock_bench"):
        Autotuner._stock_bench = Autotuner._bench
    if mode == "first":
        Autotuner._bench = lambda self, *_, config, **__: [0.0, 0.0, 0.0]
    else:
        Autotuner._bench = Autotuner._stock_bench
    # A property, so that a benchmark that the candidate brought along is not used either.
    Autotuner.do_bench = property(lambda self: run_untimed)


def _install_device_queries() -> None:
    if torch.cuda.is_available():
        return  # a real GPU answers for itself
    for name, function in device_queries().items():
        if name != "device_count":  # torch itself asks this one before it touches a GPU
            setattr(torch.cuda, name, function)
    triton.testing.do_bench = run_untimed
    # A candidate may name the device it is written for; here its tensors are in host memory.
    CudaMeans(torch.device("cpu")).__enter__()
    torch.Tensor.is_cuda = property(lambda self: True)
