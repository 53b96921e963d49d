"""From a live function or module to a problem file: the library's way in without a file."""

from hotloop.capture.problem import capture

__all__ = ["capture"]
