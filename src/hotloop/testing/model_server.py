"""A server on 127.0.0.1 that speaks the OpenAI chat protocol, and misbehaves on purpose.

Give it `Turn`s; each request takes the next one, and the last one stays. Without turns it answers
by the table `answers`, from the text of the last message. It keeps what it was asked.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Fault = str
"""`drip`, `silent`, `reset`, `early_end`, `empty_choices`, `broken_json`, `error_event`, `plain`,
`html`, `flood`, `endless_line`: how a turn goes wrong after its status line."""

USAGE: Mapping[str, Any] = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 30},
}

FLOOD_BYTES = 10_000_000
DRIP_S = 0.02
PATIENCE_S = 20.0
"""After which a silent or dripping turn ends by itself, so that no thread outlives its test."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What the server does with one request."""

    text: str = ""
    reasoning: str = ""
    reasoning_field: str = "reasoning_content"
    finish: str | None = "stop"
    usage: Mapping[str, Any] | None = field(default_factory=lambda: dict(USAGE))
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    error: Mapping[str, Any] | None = None
    """The error record of a status that is not 200, of `error_event` and of `plain`."""
    fault: Fault | None = None
    pause_s: float = 0.0
    """Before the answer begins."""
    keep_alives: int = 0
    """Comments before the first delta, one every `DRIP_S`."""
    piece: int = 7
    """Characters in one delta."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    at_s: float
    """On the monotonic clock."""


class ModelServer:
    """A context manager; `url` is what goes behind the @ of a model spec."""

    def __init__(self, *turns: Turn, answers: Mapping[str, str] | None = None) -> None:
        self._turns: Sequence[Turn] = turns
        self._answers = dict(answers or {})
        self._mutex = threading.Lock()
        self.asked: list[Asked] = []
        self.hung_up = threading.Event()
        """Set when a client closed its connection before its turn was over."""
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.owner = self
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.005}, daemon=True
        )

    @property
    def url(self) -> str:
        """The base URL."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def __enter__(self) -> ModelServer:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def take(self, asked: Asked) -> Turn:
        """Keep a request and return what to do with it."""
        with self._mutex:
            self.asked.append(asked)
            if self._turns:
                return self._turns[min(len(self.asked), len(self._turns)) - 1]
        question = asked.body["messages"][-1]["content"]
        return Turn(text=self._answers.get(question, f"no answer to {question!r}"))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    owner: ModelServer

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that hangs up is what many tests are about.
        self.owner.hung_up.set()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""

    def do_POST(self) -> None:  # noqa: N802  the name is http.server's
        """Answer one chat request."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {k.lower(): v for k, v in self.headers.items()}
        turn = self.server.owner.take(
            Asked(path=self.path, headers=headers, body=body, at_s=time.monotonic())
        )
        self.close_connection = True
        self._pause(turn.pause_s)
        if turn.status != 200:
            self._send_json(turn.status, {"error": turn.error or {"message": "no"}}, turn.headers)
        elif turn.fault == "plain":
            self._send_json(200, _plain_body(turn), turn.headers)
        elif turn.fault == "html":
            self._head("text/html", {})
            self._write(b"<html>\n<body>Please log in</body>\n</html>\n")
        else:
            self._head("text/event-stream", turn.headers)
            self._stream(turn)

    def _head(self, content_type: str, headers: Mapping[str, str]) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Connection", "close")
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()

    def _send_json(self, status: int, value: Any, headers: Mapping[str, str]) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Connection", "close")
        for name, header in headers.items():
            self.send_header(name, header)
        self.end_headers()
        self._write(data)

    def _stream(self, turn: Turn) -> None:
        for _ in range(turn.keep_alives):
            self._write(b": keep-alive\n\n")
            self._pause(DRIP_S)
        if turn.fault == "empty_choices":
            self._event({"choices": []})
        elif turn.fault == "error_event":
            self._event({"error": dict(turn.error or {"message": "broken"})})
        elif turn.fault == "flood":
            self._flood()
        elif turn.fault == "endless_line":
            self._write(b'data: {"choices": "' + b"x" * FLOOD_BYTES)
        else:
            self._deltas(turn)
        if turn.fault in ("early_end", "reset"):
            self._break_off(turn.fault)
            return
        if turn.usage is not None:
            self._event({"choices": [], "usage": dict(turn.usage)})
        self._write(b"data: [DONE]\n\n")

    def _deltas(self, turn: Turn) -> None:
        self._event(_chunk({"role": "assistant", "content": ""}))
        for piece in _pieces(turn.reasoning, turn.piece):
            self._event(_chunk({turn.reasoning_field: piece}))
        pieces = _pieces(turn.text, turn.piece)
        for number, piece in enumerate(pieces):
            is_middle = number == len(pieces) // 2
            if is_middle and turn.fault is not None and self._go_wrong(turn.fault):
                return
            self._event(_chunk({"content": piece}))
        if turn.fault != "early_end":
            self._event(_chunk({}, turn.finish))

    def _go_wrong(self, fault: Fault) -> bool:
        """Misbehave in the middle of the text; return whether the rest is left out."""
        if fault == "broken_json":
            self._write(b'data: {"choices": [{"delta": {"cont\n\n')
        elif fault == "silent":
            self._pause(PATIENCE_S)
        elif fault == "drip":
            self._drip()
        return fault in ("early_end", "reset")

    def _drip(self) -> None:
        end_s = time.monotonic() + PATIENCE_S
        self._write(b"data: ")
        while time.monotonic() < end_s and not self.server.owner.closing.is_set():
            self._write(b" ")
            self._pause(DRIP_S)

    def _flood(self) -> None:
        piece = "x" * 50_000
        for _ in range(FLOOD_BYTES // len(piece)):
            self._event(_chunk({"content": piece}))
        self._event(_chunk({}, "stop"))

    def _break_off(self, fault: Fault) -> None:
        if fault == "reset":
            # Linger of 0 s: closing sends RST instead of FIN.
            linger = struct.pack("ii", 1, 0)
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            self.wfile.flush()
            self.connection.close()

    def _event(self, value: Any) -> None:
        self._write(b"data: " + json.dumps(value).encode() + b"\n\n")

    def _write(self, data: bytes) -> None:
        self.wfile.write(data)
        self.wfile.flush()

    def _pause(self, seconds: float) -> None:
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s and not self.server.owner.closing.wait(DRIP_S):
            # Whoever reads no more has closed: then recv has an end, not a wait.
            with suppress(BlockingIOError):
                if not self.connection.recv(1, socket.MSG_DONTWAIT | socket.MSG_PEEK):
                    raise ConnectionAbortedError("the client hung up")


def _plain_body(turn: Turn) -> Mapping[str, Any]:
    if turn.error is not None:
        return {"error": dict(turn.error)}
    message = {"role": "assistant", "content": turn.text, turn.reasoning_field: turn.reasoning}
    choice = {"index": 0, "message": message, "finish_reason": turn.finish}
    return {"id": "chat-1", "model": "scripted", "choices": [choice], "usage": turn.usage}


def _chunk(delta: Mapping[str, Any], finish: str | None = None) -> Mapping[str, Any]:
    choice = {"index": 0, "delta": dict(delta), "finish_reason": finish}
    return {"id": "chat-1", "model": "scripted", "choices": [choice]}


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]
