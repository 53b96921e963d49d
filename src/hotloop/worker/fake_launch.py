"""Intercept Triton launches: compile for sm_90, write down what would run, launch nothing.

Triton's own `JITFunction.run` does all the work that decides what is compiled: it binds and
specialises the arguments, applies autotuner and heuristics, computes the cache key and fills the
cache. Only the driver below it is replaced, that is the answers about the device, the loading of a
binary and the launch itself. So a key made here is the key that the same call makes on an sm_90
GPU, as long as Triton, the environment variables it mixes in, and the arguments' types, values and
alignment are the same.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from triton import knobs
from triton.errors import TritonError
from triton.runtime import driver as triton_driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from hotloop.worker.cubin import inspect_cubin
from hotloop.worker.fake_device import (
    SHARED_MEMORY_OPTIN_BYTES,
    TRITON_PROPERTIES,
    TargetDriver,
    replaced,
    run_untimed,
)

MAX_THREADS_PER_BLOCK = 1024


@dataclass(slots=True)
class CompiledLaunch:
    """One kernel variant that a launch needed."""

    kernel: Any
    """Triton's CompiledKernel."""
    signature: dict[str, str]
    """Argument name -> Triton type, `constexpr` where it is compiled in."""
    constexprs: dict[str, str]
    """Compiled-in argument -> its value, as text."""
    compile_s: float
    assembler_log: str = ""
    """What the assembler said; empty where the compiler had the binary in its cache."""
    is_gluon: bool = False
    grids: list[tuple[int, int, int]] = field(default_factory=list)
    """Grid of each launch in order; empty when the kernel was compiled but not launched."""

    @property
    def fits(self) -> bool:
        """Whether a block's shared memory exists on sm_90."""
        return int(self.kernel.metadata.shared) <= SHARED_MEMORY_OPTIN_BYTES


@dataclass(slots=True)
class FailedCompile:
    """A kernel variant that did not compile."""

    name: str
    error: Exception
    constexprs: dict[str, str]
    diagnostics: str
    """What the compiler's C++ part wrote to standard error; empty for errors of the front end."""


@dataclass(slots=True)
class Recorder:
    """What was compiled and launched, in order."""

    compiled: dict[str, CompiledLaunch] = field(default_factory=dict)
    """By Triton's cache hash."""
    failed: list[FailedCompile] = field(default_factory=list)
    last_launched: str = ""
    """Name of the kernel whose launch was prepared last."""


@contextlib.contextmanager
def recording(*, max_configs: int) -> Iterator[Recorder]:
    """Record launches instead of making them, for the block.

    Args:
        max_configs: how many configurations of an autotuned kernel are compiled, the first ones
            after its own pruning.
    """
    recorder = Recorder()
    prune = Autotuner.prune_configs

    def first_configs(self: Any, kwargs: Any) -> Any:
        return prune(self, kwargs)[:max_configs]

    tuner = {"prune_configs": first_configs, "do_bench": property(lambda self: run_untimed)}
    with (
        replaced(Autotuner, tuner),
        replaced(JITFunction, {"_do_compile": _recorded_compile(recorder)}),
        _active_driver(RecordingDriver(recorder)),
    ):
        yield recorder


@contextlib.contextmanager
def _active_driver(driver: Any) -> Iterator[None]:
    former = triton_driver._active
    triton_driver.set_active(driver)
    try:
        yield
    finally:
        triton_driver._active = former


class RecordingDriver(TargetDriver):
    """A driver for a GPU that is not there: loads and launches nothing, and remembers the grids."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__("cuda")
        self._recorder = recorder
        self.utils = SimpleNamespace(
            get_device_properties=lambda _device: dict(TRITON_PROPERTIES),
            load_binary=self._load_binary,
            unload_module=lambda module: None,
        )

    def launcher_cls(self, src: Any, metadata: Any) -> Any:
        """Return the function that Triton calls to launch one kernel."""
        self._recorder.last_launched = str(metadata.name)

        def launch(x: int, y: int, z: int, *_: Any) -> None:
            entry = self._recorder.compiled.get(metadata.hash)
            if entry is not None:
                entry.grids.append((int(x), int(y), int(z)))

        return launch

    @staticmethod
    def _load_binary(name: str, cubin: bytes, shared_bytes: int, device: int) -> tuple[Any, ...]:
        # Code that sizes its grid by occupancy reads these. No module: there is none to unload.
        resources = inspect_cubin(cubin, name)
        spilled_words = resources.local_bytes // 4
        return None, 0, resources.registers, spilled_words, MAX_THREADS_PER_BLOCK


def _recorded_compile(recorder: Recorder) -> Any:
    stock = JITFunction._do_compile

    def compile_kernel(self: Any, *args: Any, **kwargs: Any) -> Any:
        bound = dict(zip(("key", "signature", "device", "constexprs"), args, strict=False)) | kwargs
        constants = _named_constants(self, bound["constexprs"])
        start = time.perf_counter()
        try:
            # A failing assembler makes Triton print the whole program; the error has the log.
            with _assembler_log() as log:
                kernel = stock(self, *args, **kwargs)
        except Exception as error:
            said = "" if isinstance(error, TritonError) else _diagnostics(stock, self, args, kwargs)
            recorder.failed.append(FailedCompile(self.__name__, error, constants, said))
            raise
        seconds = time.perf_counter() - start
        if kernel is not None and kernel.hash not in recorder.compiled:
            signature = {name: str(kind) for name, kind in bound["signature"].items()}
            recorder.compiled[kernel.hash] = CompiledLaunch(
                kernel, signature, constants, seconds, log.getvalue(), self.is_gluon()
            )
        return kernel

    return compile_kernel


@contextlib.contextmanager
def _assembler_log() -> Iterator[io.StringIO]:
    """Keep what is printed during a compilation, and let Triton print the assembler's log too."""
    text = io.StringIO()
    with knobs.nvidia.scope(), contextlib.redirect_stdout(text):
        knobs.nvidia.dump_ptxas_log = True
        yield text


def _diagnostics(stock: Any, function: Any, args: Any, kwargs: Any) -> str:
    """Compile once more with standard error captured.

    Not the first time: when the compiler aborts the process, its last words must reach the caller.
    """
    with captured_stderr() as text, contextlib.suppress(Exception):
        stock(function, *args, **kwargs)
    return text[0]


@contextlib.contextmanager
def captured_stderr() -> Iterator[list[str]]:
    """Collect what C++ code writes to standard error; the list holds the text after the block."""
    text: list[str] = []
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)
        try:
            yield text
        finally:
            os.dup2(saved, 2)
            os.close(saved)
            file.seek(0)
            text.append(file.read().decode(errors="replace"))


def _named_constants(function: Any, constexprs: dict[Any, Any]) -> dict[str, str]:
    named = {}
    for path, value in constexprs.items():
        name = path if isinstance(path, str) else function.arg_names[path[0]]
        named[name] = str(getattr(value, "value", value))
    return named
