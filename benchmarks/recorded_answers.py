"""Recorded replies as answers in a `dir:` folder, so that a suite goes on where a recording ends.

`replay:FILE` plays a recording and ends with it. Here each prompt that waits in the folder gets the
recorded reply of its problem, attempt and sample; a prompt that no reply was recorded for is left
to whoever answers next.
"""

from __future__ import annotations

from pathlib import Path

from hotloop.llm.directory import WHO_FILE, write_whole
from hotloop.llm.recording import Recording

PROMPT, REPLY = ".prompt.md", ".reply.md"


def answer(folder: Path, recording: Recording) -> int:
    """Write what was recorded beside the prompts that wait in a folder; return how many replies.

    A reply that is there stays. Replies of calls that failed were never written anywhere.
    """
    replies = {call.key.text: call.reply for call in recording.calls if call.reply is not None}
    written = 0
    for prompt in sorted(folder.glob(f"*{PROMPT}")):
        call_id = prompt.name.removesuffix(PROMPT)
        reply, path = replies.get(key_of(call_id)), folder / f"{call_id}{REPLY}"
        if reply is not None and not path.exists():
            write_whole(path, reply.text)
            written += 1
    if written and not (folder / WHO_FILE).exists():
        write_whole(folder / WHO_FILE, f"{recording.model}\n")
    return written


def key_of(call_id: str) -> str:
    """Return the call's key in the name of a prompt, which ends with the prompt's own id."""
    return call_id.rpartition("-")[0]
