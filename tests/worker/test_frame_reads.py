"""Frames are refused to a candidate's code, however it asks; libraries go on taking them."""

import builtins
import contextlib
import dataclasses
import enum
import functools
import gc
import heapq
import importlib
import inspect
import io
import itertools
import logging
import marshal
import operator
import profile
import sys
import threading
import timeit
import traceback
import typing
import warnings
from bdb import Bdb
from collections import namedtuple

import pytest
import torch
import typing_extensions
from torch._dynamo.bytecode_transformation import transform_code_object
from torch.fx.proxy import TracerBase
from torch.utils import _pytree

from hotloop.worker import frame_reads
from hotloop.worker.frame_reads import FrameReads


def refused(ask):
    """Return what was refused while something was done, and the error that it ended in."""
    frames, error = FrameReads(), None
    frames.install()
    try:  # pytest takes frames itself: nothing of it may run in here
        ask()
    except (RuntimeError, AssertionError) as caught:
        error = caught
    finally:
        frames.remove()
    return frames.refused, error


def generator():
    yield 1


def caught():
    try:
        raise ValueError
    except ValueError as error:
        return error


def replaced(owner, name, call):
    """Do something while a library's function is the candidate's."""
    kept, held = getattr(owner, name), []
    setattr(owner, name, lambda *args, **named: held.append(args) or kept(*args, **named))
    try:
        call()
    finally:
        setattr(owner, name, kept)
    return held


def log(**named):
    logger = logging.Logger("a")
    logger.addHandler(logging.NullHandler())
    logger.error("text", **named)


class Extract(traceback.StackSummary):
    @classmethod
    def _extract_from_extended_frame_gen(cls, frame_gen, **named):
        return next(frame_gen)


class Entered(int):
    __enter__, __exit__ = sys._getframe, None


class Debugger(Bdb):
    def user_call(self, frame, args):
        raise AssertionError(frame)


def ended_stack():
    held = traceback.walk_stack(None)
    traceback.StackSummary.extract(held, limit=1)
    return next(held)


def copied_tb():
    one, other = itertools.tee(traceback.walk_tb(caught().__traceback__))
    traceback.StackSummary.extract(one)
    return next(other)


ITSELF = {
    "sys._getframe": lambda: sys._getframe(),
    "tb_frame": lambda: getattr(caught().__traceback__, "tb_" + "frame"),
    "gi_frame": lambda: generator().gi_frame,
    "sys._current_frames": lambda: sys._current_frames(),
    "sys.settrace": lambda: sys.settrace(sys.gettrace()),
    "sys.setprofile": lambda: sys.setprofile(sys.getprofile()),
    "gc.get_objects": lambda: gc.get_objects(),
    "code.__new__": lambda: generator.__code__.replace(co_filename="torch/x.py"),
    "__code__": lambda: setattr(generator, "__code__", caught.__code__),
}
FORGED = {
    "compile": lambda: compile("1", torch.__file__, "exec"),
    "marshal.loads": lambda: marshal.loads(marshal.dumps(generator.__code__)),
    "code.__new__": lambda: transform_code_object(
        generator.__code__, lambda _, options: options.update(co_filename=torch.__file__)
    ),
    "compile ": lambda: _pytree.tree_map(
        functools.partial(compile, filename=torch.__file__, mode="exec"), ["1"]
    ),
    "import": lambda: importlib.import_module("greenlet._greenlet_of_no_name"),
}
BY_A_LIBRARY = {
    "logging.currentframe": lambda: logging.currentframe(),
    "inspect.currentframe": lambda: inspect.currentframe(),
    "inspect.stack": lambda: inspect.stack(),
    "walk_stack": lambda: next(traceback.walk_stack(None)),
    "walk_stack, once for traceback": ended_stack,
    "extract by a class of its own": lambda: Extract.extract(traceback.walk_stack(None)),
    "fx": lambda: TracerBase()._find_user_frame(),
    "jit": lambda: torch._jit_internal.createResolutionCallbackFromFrame(2),
    "walk_tb": lambda: next(traceback.walk_tb(caught().__traceback__)),
    "walk_tb, copied": copied_tb,
    "positions": lambda: next(traceback._walk_tb_with_full_positions(caught().__traceback__)),
    "inner frames": lambda: inspect.getinnerframes(caught().__traceback__),
    "getgeneratorlocals": lambda: inspect.getgeneratorlocals(generator()),
    "attrgetter": lambda: operator.attrgetter("gi_frame")(generator()),
    "bdb": lambda: Debugger().runcall(caught),
    "profile": lambda: profile.Profile().runcall(caught),
}
THROUGH_A_LIBRARY = {
    "merge": lambda: list(heapq.merge(traceback.walk_stack(None))),
    "merge, of frames": lambda: list(heapq.merge(map(sys._getframe, [0]))),
    "exit stack": lambda: contextlib.ExitStack().enter_context(Entered()),
    "tree_map": lambda: _pytree.tree_map(sys._getframe, [0]),
    "tree_map, of inspect": lambda: _pytree.tree_map(lambda _: inspect.currentframe(), [0]),
    "tree_map, of attributes": lambda: _pytree.tree_map(
        operator.attrgetter("gi_frame"), [generator()]
    ),
    "tree_map, of gc": lambda: _pytree.tree_map(gc.get_referrers, [X]),
    "key of a path": lambda: _pytree.GetAttrKey("gi_frame").get(generator()),
}
X = [1]
PATCHED = {
    "logging": lambda: replaced(logging, "_is_internal_frame", log),
    "traceback": lambda: replaced(traceback, "walk_stack", traceback.format_stack),
    "classes": lambda: replaced(traceback.StackSummary, "extract", traceback.format_stack),
    "modules": lambda: replaced(itertools, "islice", lambda: traceback.format_stack(limit=1)),
    "inspect": lambda: replaced(inspect, "getfile", lambda: torch._library.utils.get_source(2)),
    "builtins": lambda: replaced(builtins, "hasattr", lambda: torch._library.utils.get_source(2)),
}


def by_the_guard(name, value):
    owner = builtins if hasattr(builtins, name) else frame_reads
    kept = getattr(owner, name)
    setattr(owner, name, value)
    try:
        PATCHED["logging"]()  # refused by the last thing that the guard looks at
    finally:
        setattr(owner, name, kept)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("all", lambda values: True),
        ("is_librarys", lambda code: True),
        ("_may_have", lambda *args: True),
        ("_looks_only", lambda *args: True),
        ("_FRAMES", frozenset()),
        ("_HEARD", frozenset()),
    ],
)
def test_the_guard_goes_by_names_of_its_own(name, value):
    told, error = refused(lambda: by_the_guard(name, value))
    assert told == ["sys._getframe"]
    assert "frames are not for kernels" in str(error)


def test_the_guard_asks_by_a_function_of_its_own(monkeypatch):
    held, real = [], sys._getframe
    monkeypatch.setattr(sys, "_getframe", lambda depth=0: held.append(real(depth)) or held[0])
    told, _ = refused(log)
    monkeypatch.undo()
    assert told
    assert held == []


@pytest.mark.parametrize("what", ITSELF)
def test_a_frame_is_refused_and_told(what):
    told, error = refused(ITSELF[what])
    assert told == [what]
    assert str(error) == f"{what}: frames are not for kernels"


@pytest.mark.parametrize("what", FORGED)
def test_code_is_not_made_to_look_like_a_librarys(what):
    told, error = refused(FORGED[what])
    assert told == [what.strip()]
    assert str(error) == f"{what.strip()}: frames are not for kernels"


@pytest.mark.parametrize("ask", [*BY_A_LIBRARY.values(), *THROUGH_A_LIBRARY.values()],
                         ids=[*BY_A_LIBRARY, *THROUGH_A_LIBRARY])  # fmt: skip
def test_a_library_hands_none_on(ask):
    told, error = refused(ask)
    assert told
    assert "frames are not for kernels" in str(error)


@pytest.mark.parametrize("how", PATCHED)
def test_what_a_library_passes_a_frame_to_is_its_own(how):
    told, error = refused(PATCHED[how])
    assert told == ["sys._getframe"]
    assert "frames are not for kernels" in str(error)


def test_a_text_that_a_library_executes_gets_none():
    told, _ = refused(lambda: timeit.timeit("import sys; sys._getframe()", number=1))
    assert told == ["sys._getframe"]


def warned():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("text", stacklevel=2)


def handled():
    handler = logging.StreamHandler()
    handler.format = lambda record: 1 / 0
    with contextlib.redirect_stderr(io.StringIO()):
        handler.handle(logging.makeLogRecord({"msg": "text"}))


def typed():
    class Pair(typing.NamedTuple):
        a: int

    class Kept(typing_extensions.Protocol[typing.TypeVar("T")]):
        a: int

    return Pair(1), Kept, typing.NewType("Size", int), typing.TypedDict("Sizes", {"a": int})


@pytest.mark.parametrize(
    "use",
    [
        log,
        lambda: log(stack_info=True, stacklevel=2),
        lambda: log(exc_info=caught()),
        handled,
        lambda: traceback.format_stack(),
        lambda: traceback.extract_stack(limit=2),
        lambda: traceback.format_exception(caught()),
        lambda: traceback.extract_tb(caught().__traceback__),
        lambda: traceback.clear_frames(caught().__traceback__),
        lambda: namedtuple("Pair", "a b"),
        typed,
        lambda: enum.Enum("Kind", "A B"),
        lambda: dataclasses.make_dataclass("Plan", ["block"]),
        warned,
        lambda: next(generator()),
        lambda: torch.library.Library("frames_of_a_test", "FRAGMENT"),
        lambda: torch._library.utils.get_source(2),
        lambda: threading.Thread(target=generator).start(),
        lambda: list(heapq.merge([1], [2])),
        lambda: compile("1", "<string>", "eval"),
        lambda: importlib.reload(heapq),
    ],
)
def test_libraries_take_frames_as_ever(use):
    assert refused(use) == ([], None)


def test_an_event_of_another_kind_costs_little():
    frames = FrameReads()
    frames.install()
    try:
        took = min(timeit.repeat(lambda: id(X), number=1000, repeat=20))
    finally:
        frames.remove()
    assert took < 0.05
