"""Frames are refused to a candidate's code, however it asks; libraries go on taking them."""

import gc
import logging
import sys
import timeit
import traceback
import warnings
from collections import namedtuple

import pytest

from hotloop.worker.frame_reads import FrameReads


@pytest.fixture
def frames():
    frames = FrameReads()
    frames.install()
    yield frames
    frames.remove()


def generator():
    yield 1


def caught():
    try:
        raise ValueError
    except ValueError as error:
        return error


REFUSED = {
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


@pytest.mark.parametrize("what", REFUSED)
def test_a_frame_is_refused_and_told(frames, what):
    with pytest.raises(RuntimeError, match=f"{what}: frames are not for kernels"):
        REFUSED[what]()
    assert frames.refused == [what]


def test_a_text_that_a_library_executes_gets_none(frames):
    with pytest.raises(RuntimeError, match="frames are not for kernels"):
        timeit.timeit("import sys; sys._getframe()", number=1)


def test_libraries_take_frames_as_ever(frames):
    assert namedtuple("Pair", "a b")(1, 2).b == 2
    assert "ValueError" in "".join(traceback.format_exception(caught()))
    logging.getLogger("hotloop").debug("text")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.warn("text", stacklevel=1)
    assert next(generator()) == 1
    assert frames.refused == []
