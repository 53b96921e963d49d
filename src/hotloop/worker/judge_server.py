"""The judge's side of the pipe: requests in, answers out, each where it belongs.

`build` requests run on a few threads, everything that touches the GPU on the main thread, one at a
time; a `ping` is answered beside them.
"""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import IO, TYPE_CHECKING, Any

from hotloop import errors
from hotloop.core.record import from_json, to_json
from hotloop.core.wire import PROTOCOL_VERSION, Request, Response, read_frame, write_frame
from hotloop.errors import ConfigError, HotloopError, InfraError

if TYPE_CHECKING:
    from hotloop.worker.judge import Judge

END_S = 3.0
"""How long a judge may go on with its work after its connection has ended. A coordinator that waits
for it kills it later than that: `verify/transport.py`."""


class Server:
    """Reads requests, runs them where they belong, writes answers."""

    def __init__(
        self, judge: Judge, source: IO[bytes], sink: IO[bytes], lanes: ThreadPoolExecutor
    ) -> None:
        self._judge = judge
        self._source = source
        self._sink = sink
        self._write_lock = threading.Lock()
        self._main: queue.Queue[Request | None] = queue.Queue()
        self._lanes = lanes
        self._ended = threading.Event()
        """Set once no request is worked at any more."""

    def run(self) -> None:
        """Serve until the coordinator closes the pipe."""
        threading.Thread(target=self._read, daemon=True).start()
        handlers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "hello": self._judge.hello,
            "load": self._judge.load,
            "audit": self._judge.audit,
            "verify": self._judge.verify,
        }
        try:
            while (request := self._main.get()) is not None:
                self._answer(request, handlers.get(request.method, _unknown))
        finally:
            self._ended.set()
            self._judge.close()
            self._lanes.shutdown(wait=False, cancel_futures=True)

    def _read(self) -> None:
        try:
            while (frame := read_frame(self._source)) is not None:
                request = from_json(Request, frame)
                if request.method == "shutdown":
                    break
                if request.method == "ping":
                    self._answer(request, lambda params: None)
                elif request.method == "build":
                    self._lanes.submit(self._answer, request, self._judge.build)
                else:
                    self._main.put(request)
        finally:
            self._main.put(None)
            self._end_soon()

    def _end_soon(self) -> None:
        # Nobody reads an answer any more: the connection is gone. The GPU is not held for minutes
        # by a verification, or a load, whose result is lost.
        if not self._ended.wait(END_S):
            try:
                self._judge.close()
            finally:
                os._exit(1)

    def _answer(self, request: Request, handler: Callable[[dict[str, Any]], Any]) -> None:
        try:
            response = Response(id=request.id, result=handler(dict(request.params)))
        except HotloopError as exc:
            response = Response(id=request.id, error=public_name(exc), message=str(exc))
        except Exception as exc:  # noqa: BLE001  anything else here is this machine's fault
            traceback.print_exc()
            text = f"the judge failed: {type(exc).__name__}: {str(exc)[:500]}"
            response = Response(id=request.id, error=InfraError.__name__, message=text)
        with self._write_lock, contextlib.suppress(BrokenPipeError):  # `_read` sees the end too
            write_frame(self._sink, to_json(response))


def public_name(exc: HotloopError) -> str:
    """Return the name of an error's nearest class that the coordinator knows too."""
    names = (kind.__name__ for kind in type(exc).__mro__)
    return next(name for name in names if hasattr(errors, name))


def _unknown(_: dict[str, Any]) -> Any:
    raise ConfigError(f"expected a request of protocol {PROTOCOL_VERSION}; run one version of both")
