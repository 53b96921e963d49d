"""A search with a model in a real run folder that kills itself in the middle of its calls.

    python model_crash_child.py FOLDER [ID:STATUS]

dies by SIGKILL when the call of proposal ID begins, or when its verification does (STATUS `call` or
`verify`). The calls that were begun go to FOLDER.log, a line each.
"""

import os
import signal
import sys
import time
from pathlib import Path

from model_bench import ModelBench

from hotloop.store.sqlite import SqliteStore
from hotloop.testing.fake_model import FakeCall


def main() -> None:
    folder = Path(sys.argv[1])
    wanted, _, where = (sys.argv[2] if len(sys.argv) > 2 else "0:").partition(":")
    log = os.open(folder.with_suffix(".log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def reach(place, number):
        if place == where and number == int(wanted):
            time.sleep(0.05)  # the other calls begin meanwhile
            os.kill(os.getpid(), signal.SIGKILL)

    def script(proposal):
        os.write(log, f"{proposal.id} {proposal.action} {proposal.parents}\n".encode())
        reach("call", proposal.id)
        # Only the number decides what the kernel is worth: the same in every session.
        point = {"BLOCK": 64, "num_warps": 1 + proposal.id % 8, "split": False, "by": proposal.id}
        return FakeCall(seconds=2.0 * proposal.id, point=point)

    bench = ModelBench(script, calls=2, plan={"drafts": 4})
    bench.verifier.on_verify = lambda candidate, tier: reach("verify", candidate.pins["by"])
    with SqliteStore(folder) as store:
        bench.store = store
        result = bench.run()
    assert result.passed


if __name__ == "__main__":
    main()
