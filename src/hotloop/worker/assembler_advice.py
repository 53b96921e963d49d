"""What the assembler says of a kernel that it could not make as fast as it was written.

`ptxas -v` reports such things as `(C7510) Potential Performance Loss: ...`: products of wgmma that
run one after the other, because their registers are touched while they run or do not suffice, and
registers of warp-specialised partitions that are ignored. The kernel is right and slow, and nothing
else tells why.
"""

from __future__ import annotations

import re

MAX_ADVICE, MAX_CHARS = 4, 300
"""Of one kernel; of one piece of advice."""
_LOSS = re.compile(r"\((C\d{3,5})\)\s*Potential Performance Loss:\s*([^\n]+)")
_PLACE = re.compile(r"\s+(?:in|for)\s+(?:the\s+)?function\s+'[^']*'(?:\s+in\s+line\s+\d+)?")


def performance_losses(log: str) -> tuple[str, ...]:
    """Return the losses in an assembler's log, each once: its code, and what was lost and why.

    Args:
        log: of `ptxas -v`, for one kernel.
    """
    found = [
        f"{code}: {_PLACE.sub('', text).strip()[:MAX_CHARS]}" for code, text in _LOSS.findall(log)
    ]
    return tuple(dict.fromkeys(found))[:MAX_ADVICE]
