"""A session that closes a run in FOLDER, whose prompts lie in FOLDER.answers; 0.4 ms is refused.

HOTLOOP_CRASH_AT=successor-put:1 python withdrawal_crash_child.py FOLDER
"""

import sys
from pathlib import Path

from test_outdated_prompts import Answered

from hotloop.store.sqlite import SqliteStore


def main() -> None:
    folder = Path(sys.argv[1])
    answered = Answered(folder.with_suffix(".answers"))
    with SqliteStore(folder) as store:
        answered.store = store
        answered.run(closes=True, wrong={0.4})


if __name__ == "__main__":
    main()
