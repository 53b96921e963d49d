"""What can be wrong with a running kernel and has an exception of its own.

Raised where kernels run (Triton's interpreter, the host of CUDA kernels) and sorted by type in
`failure.py`, so that nobody has to read the words of a message.
"""

from __future__ import annotations

from triton.runtime.errors import InterpreterError


class OutOfBoundsError(IndexError):
    """A kernel reads or writes outside the memory of its arguments. The kernel's fault."""


class UnsupportedInInterpreterError(NotImplementedError):
    """A kernel uses something that has no meaning on a CPU. Not the kernel's fault."""


def cause_of(error: BaseException) -> BaseException:
    """Return the exception that a kernel raised, from under the interpreter's wrappers."""
    while isinstance(error, InterpreterError) and error.__cause__ is not None:
        error = error.__cause__
    return error
