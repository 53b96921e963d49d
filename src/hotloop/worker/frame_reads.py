"""Frame reads: a candidate that takes hold of Python's frames, and so of the watch's variables.

Names in a text can be made. But Python says when a frame is asked for, by whatever name, and who
asks. `f_back` and `f_locals` say nothing: one frame is all frames. So it is judged whether the one
who asks lets go of it:

- a candidate gets none, nor does a library through which it asks (`heapq.merge`, `tree_map`): only
  code that itself names what it asks for;
- libraries that use a frame up at once (`sys._getframe(1).f_globals`) get it, whosever they are;
- torch, Triton and we ourselves get it, but for the functions that hand frames or variables out;
- of the standard library only those get it that are listed here and keep it, and while what they
  pass it to is what it was.

Covered: `sys._getframe` and its kin, the frames of tracebacks, generators and coroutines, trace and
profile functions, objects listed by `gc`, code that is made to look like a library's. Not covered:
what C hands out and says nothing of (torch's hook on evaluations, cells of closures), and
a loader of modules that brings a text of its own for a library's file.
"""

from __future__ import annotations

import builtins
import collections
import dis
import inspect
import itertools
import logging
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import CodeType, FrameType, MappingProxyType
from typing import Any

import torch
import triton

from hotloop.worker import call_sites
from hotloop.worker.call_sites import LIBRARIES, is_librarys, is_librarys_file

_getframe = sys._getframe  # ours, whatever `sys` names so later
_EVENTS = frozenset(
    {
        "code.__new__", "compile", "gc.get_objects", "gc.get_referents", "gc.get_referrers",
        "import", "marshal.loads", "sys._current_exceptions", "sys._current_frames",
        "sys._getframe", "sys.setprofile", "sys.settrace",
    }
)  # fmt: skip
_ATTRIBUTES = MappingProxyType(
    {
        "object.__getattr__": frozenset({"ag_frame", "cr_frame", "gi_frame", "tb_frame"}),
        "object.__setattr__": frozenset({"__code__"}),
    }
)
_HEARD = _EVENTS | _ATTRIBUTES.keys()
_SPELLED = MappingProxyType(
    {
        "code.__new__": frozenset({"CodeType", "replace"}),
        "__code__": frozenset({"__code__"}),
        "compile": frozenset({"compile"}),
        "marshal.loads": frozenset({"loads"}),
    }
)
"""Who makes code may say which file it came from."""
_FRAMES = frozenset({"sys._getframe", *_ATTRIBUTES["object.__getattr__"]})
_CACHE, _PRECALL = dis.opmap["CACHE"], dis.opmap.get("PRECALL", -1)
_LOADS = frozenset(dis.opmap[name] for name in ("LOAD_ATTR", "LOAD_METHOD") if name in dis.opmap)
_LOOKS = frozenset({"clear", "f_code", "f_globals", "f_lineno"})

_ROOTS = sorted(
    {
        *(f"{Path(str(package.__file__)).parents[1]}/" for package in (torch, triton)),
        f"{Path(__file__).parents[2]}/",
        *LIBRARIES,
    },
    key=len,
    reverse=True,
)
"""Folders of libraries, those within others first: one package may lie in any of them."""

_EXTRACT = "traceback.py:StackSummary._extract_from_extended_frame_gen"
_SYMPY = "sympy/multipledispatch/core.py:dispatch.<locals>._"
"""Imported by torch late: `torch._check` and custom operators want it."""
_KEEPS = frozenset(
    {
        _SYMPY,
        "logging/__init__.py:Handler.handleError", "logging/__init__.py:Logger.findCaller",
        "traceback.py:TracebackException.__init__",
        "traceback.py:extract_stack", "traceback.py:extract_tb", "traceback.py:format_stack",
        "traceback.py:print_stack", "typing_extensions.py:_has_generic_or_protocol_as_origin",
    }
)  # fmt: skip
"""Functions of the standard library, and one for it, that ask for frames and let go of them."""
_HANDS_ON = MappingProxyType(
    {
        "inspect.py:currentframe": frozenset({_SYMPY}),
        "logging/__init__.py:<lambda>": frozenset({"logging/__init__.py:Logger.findCaller"}),
        "traceback.py:_walk_tb_with_full_positions": frozenset({_EXTRACT}),
        _EXTRACT: frozenset(
            {"traceback.py:TracebackException.__init__", "traceback.py:extract_tb"}
        ),
    }
)
"""Those that hand a frame to their caller, and which callers in the standard library may have it.

Not `walk_stack` and `walk_tb`: who holds such a generator may let another take the first frame, or
copy it (`itertools.tee`), and take the next itself.
"""
_HANDS_OUT = (
    "torch/_custom_op/impl.py:", "torch/_dynamo/bytecode_debugger.py:",
    "torch/_dynamo/device_interface.py:", "torch/_dynamo/output_graph.py:",
    "torch/_inductor/", "torch/_jit_internal.py:createResolutionCallbackFromFrame",
    "torch/cuda/_sanitizer.py:", "torch/distributed/elastic/",
    "torch/export/_leakage_detection_utils.py:",
    "torch/fx/experimental/symbolic_shapes.py:ShapeEnv._get_user_frame",
    "torch/fx/experimental/symbolic_shapes.py:_find_user_code_frame",
    "torch/fx/experimental/unification/", "torch/fx/proxy.py:TracerBase._find_user_frame",
    "torch/utils/_traceback.py:", "torch/utils/viz/_cycles.py:",
)  # fmt: skip
"""Of torch, what returns frames, their variables or listed objects, or puts them into errors."""
_FORGING = ("torch/_dynamo/bytecode_transformation.py:", "torch/_dynamo/package.py:")
"""What makes code of any file's name for whoever asks."""


class FrameReads:
    """Refuses frames to whoever may hand them on, once installed; the hook stays for good."""

    def __init__(self) -> None:
        self.refused: list[str] = []
        """What was asked for."""
        self._on: list[bool] = []

    def install(self) -> None:
        """Listen from now on."""
        self._on.append(True)
        sys.addaudithook(_own_copy()["_hearing"](self.refused, self._on))

    def remove(self) -> None:
        """Refuse no more."""
        self._on.clear()


def _own_copy() -> dict[str, Any]:
    """Return this module's names, its functions bound to them: none that a candidate replaces."""
    own = {**vars(call_sites), **globals(), "__builtins__": dict(vars(builtins))}
    for name, value in list(own.items()):
        plain = inspect.unwrap(value) if callable(value) else value
        if inspect.isfunction(plain) and plain.__module__ in (__name__, call_sites.__name__):
            copy = type(plain)(plain.__code__, own, name, plain.__defaults__, plain.__closure__)
            own[name] = copy if plain is value else cache(copy)
    return own


def _hearing(refused: list[str], on: list[bool]) -> Callable[[str, Sequence[Any]], None]:
    """Return the hook."""
    stock = [(user, held, name, held.get(name, held)) for user, held, name in _passed_to()]
    own_looks: list[bool] = []  # the hook's own look at its caller is heard, too

    def hear(event: str, args: Sequence[Any]) -> None:
        if event not in _HEARD or own_looks or not on:
            return
        what = args[1] if event in _ATTRIBUTES else event
        if what not in _ATTRIBUTES.get(event, _EVENTS):
            return
        if _is_harmless(what, args):
            return
        own_looks.append(True)
        try:
            asker = _getframe(1)
        finally:
            own_looks.clear()
        if not _may_have(what, asker) or not (
            what not in _FRAMES
            or _looks_only(asker.f_code, asker.f_lasti)
            or _is_stock(stock, _place(asker.f_code))
        ):
            refused.append(what)
            raise RuntimeError(f"{what}: frames are not for kernels")

    return hear


def _is_harmless(what: str, args: Sequence[Any]) -> bool:
    """Whether what is asked for is text that says to be nobody's, or another module."""
    if what == "compile":
        return not is_librarys_file(str(args[1]))
    # In C, and its `gr_frame` tells nobody.
    return what == "import" and "greenlet" not in str(args[0])


def _is_stock(stock: Sequence[tuple[str, Mapping[str, Any], str, Any]], place: str) -> bool:
    """Whether those that a function passes a frame to are what they were."""
    return all(
        held.get(name, held) is value for user, held, name, value in stock if place.startswith(user)
    )


def _may_have(what: str, asker: FrameType) -> bool:
    """Whether who asks is a library that lets go of what it is given."""
    code = asker.f_code
    if not is_librarys(code) or what == "import":
        return False
    if what in _SPELLED:
        is_named = not _SPELLED[what].isdisjoint(_names(code))
        is_loader = code.co_filename.startswith("<frozen importlib")
        return (is_named or is_loader) and not _place(code).startswith(_FORGING)
    if what.rpartition(".")[2] not in _names(code):
        return False
    if what not in _FRAMES:
        return _is_trusted(_place(code))
    return _looks_only(code, asker.f_lasti) or _lets_go(asker)


def _lets_go(asker: FrameType) -> bool:
    """Whether neither who asks nor who is given the frame hands it to a candidate."""
    frame: FrameType | None = asker
    place = _place(asker.f_code)
    if place not in _HANDS_ON:
        return place in _KEEPS or _is_trusted(place)
    while place in _HANDS_ON:
        callers = _HANDS_ON[place]
        frame = frame.f_back if frame is not None else None
        if frame is None or not is_librarys(frame.f_code):
            return False
        place = _place(frame.f_code)
        if place not in callers:
            return "currentframe" in _names(frame.f_code) and _is_trusted(place)
    return place in _KEEPS


def _is_trusted(place: str) -> bool:
    return place.startswith(("torch/", "triton/", "hotloop/")) and not place.startswith(_HANDS_OUT)


def _place(code: CodeType) -> str:
    """Return where code stands, as `file:qualified.name`, the file below its library's folder."""
    name = code.co_filename
    root = next((root for root in _ROOTS if name.startswith(root)), "")
    return f"{name.removeprefix(root)}:{code.co_qualname}"


@cache
def _names(code: CodeType) -> frozenset[str]:
    """Return the names that code itself spells."""
    return frozenset(code.co_names) | {c for c in code.co_consts if isinstance(c, str)}


@cache
def _looks_only(code: CodeType, at: int) -> bool:
    """Whether what is asked for at an instruction is read and let go of by the next one."""
    text = code.co_code
    after = [i for i in range(at, len(text), 2) if text[i] != _CACHE]
    if text[at] == _PRECALL:  # Python 3.11 may do there what the next one says
        del after[1]
    if len(after) < 2 or text[after[1]] not in _LOADS:
        return False
    index = text[after[1] + 1] >> (sys.version_info >= (3, 12))  # the lowest bit says: a method
    return code.co_names[index] in _LOOKS


def _passed_to() -> Iterator[tuple[str, Mapping[str, Any], str]]:
    """Yield where functions that let go of frames find those that they pass them to, and whose."""
    kinds = (inspect.isfunction, inspect.ismodule, inspect.isclass)
    builtin = ("getattr", "hasattr", "isinstance")
    for user, module in (("torch/", inspect), ("", traceback), ("torch/", torch._library.utils)):
        held = vars(module)
        yield from ((user, held, n) for n, v in list(held.items()) if any(is_(v) for is_ in kinds))
        yield from ((user, held, name) for name in builtin)
    for user, owner, names in (
        ("logging/", logging, ("_is_internal_frame", "currentframe", "traceback")),
        ("torch/", torch.library, ("inspect",)),
        ("", traceback.StackSummary, ("extract", "_extract_from_extended_frame_gen")),
        ("", traceback.FrameSummary, ("__init__",)),
        ("", itertools, ("islice",)),
        ("", collections, ("deque",)),
        ("torch/", builtins, builtin),
    ):
        yield from ((user, vars(owner), name) for name in names)
