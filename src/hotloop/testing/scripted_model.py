"""ScriptedModel: a language model that answers by a script, without a network or a disk."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

from hotloop.core.model import CallKey, Finish, Prompt, Reply, Usage
from hotloop.errors import Cancelled, DeadlinePassed, HotloopError

WAIT = object()
"""In a script: answer nothing until the call is cancelled, released, or out of time. Who releases
it changes the script first."""

Step = str | Reply | HotloopError | object
"""A text, a whole reply, an error to raise, or `WAIT`."""
Script = Mapping[int, Step] | Callable[[CallKey, Prompt], Step]
"""Steps by attempt, or a function of the call."""


class ScriptedModel:
    """Answers each call with its step of a script. Safe to use from several threads."""

    def __init__(self, script: Script, *, name: str = "scripted", paid: bool = True) -> None:
        """Take a script.

        Args:
            script: an attempt that is not in a mapping is a KeyError: nobody was to ask it.
            name: as the user would have written it.
            paid: whether the calls cost money.
        """
        self.name = name
        self.paid = paid
        self.calls: list[tuple[CallKey, Prompt]] = []
        """Calls that reached the model, in order."""
        self.began = threading.Event()
        """Set when a call waits."""
        self.script = script
        """May be changed while calls wait: what they answer is looked up when they are released."""
        self._released = threading.Event()
        self._cancelled: dict[CallKey, threading.Event] = {}
        self._mutex = threading.Lock()

    def complete(self, prompt: Prompt, *, key: CallKey, deadline_s: float | None) -> Reply:
        """Return the reply of the script.

        Raises:
            HotloopError: the script says so, the call was cancelled, or its time is over.
        """
        with self._mutex:
            self.calls.append((key, prompt))
            cancelled = self._cancelled.setdefault(key, threading.Event())
        cancelled.clear()
        step = self._step(key, prompt)
        if step is WAIT:
            self._wait(cancelled, deadline_s)
            step = self._step(key, prompt)
        if isinstance(step, HotloopError):
            raise step
        return step if isinstance(step, Reply) else told(str(step))

    def cancel(self, key: CallKey) -> None:
        """Give up a call that waits."""
        with self._mutex:
            event = self._cancelled.get(key)
        if event is not None:
            event.set()

    def release(self) -> None:
        """Let every call that waits answer."""
        self._released.set()

    def close(self) -> None:
        """Give up every call."""
        with self._mutex:
            events = list(self._cancelled.values())
        for event in events:
            event.set()

    def attempts(self) -> list[int]:
        """Return the attempts of the calls so far, in order."""
        with self._mutex:
            return [key.attempt for key, _ in self.calls]

    def prompt(self, attempt: int) -> str:
        """Return the text of the last prompt of an attempt's calls."""
        with self._mutex:
            return [p.messages[-1].text for key, p in self.calls if key.attempt == attempt][-1]

    def _step(self, key: CallKey, prompt: Prompt) -> Step:
        return self.script(key, prompt) if callable(self.script) else self.script[key.attempt]

    def _wait(self, cancelled: threading.Event, deadline_s: float | None) -> None:
        self.began.set()
        waited_s, step_s = 0.0, 0.01
        while not self._released.wait(step_s):
            waited_s += step_s
            if cancelled.is_set():
                raise Cancelled("the call was given up")
            if deadline_s is not None and waited_s >= deadline_s:
                raise DeadlinePassed(f"no answer within {deadline_s:.1f} s")


def told(text: str, *, finish: Finish = Finish.STOP) -> Reply:
    """Return a reply of 100 prompt and 50 completion tokens that cost one cent."""
    usage = Usage(prompt=100, completion=50)
    return Reply(
        text=text, finish=finish, usage=usage, cost_usd=0.01, model="scripted", seconds=2.0
    )
