"""Judge the mutants of all kernels: jobs of a few mutants each, spread over the workers."""

from __future__ import annotations

import collections
import threading
import time
import traceback
from collections.abc import Sequence
from dataclasses import replace

from benchmarks.mutation.plan import Choice, Chosen, Progress, Row
from benchmarks.mutation.substrates import Substrate
from benchmarks.mutation.worker import Books, Job, Setup, Worker
from hotloop.errors import InfraError

ALL = 10**6
"""More mutants than a kernel has."""
JOB_S = 15.0
"""No job is begun with less than this left: its problem would be loaded for nothing."""
MAX_TRIES = 2
"""Of a job whose judge failed: many share a GPU here, and each tests it for itself."""


def jobs_of(wanted: Sequence[Substrate], choice: Choice, part: int) -> list[Job]:
    """Return the first part of every kernel's mutants, then the second of every one, and so on.

    So a run that is stopped has seen all kernels.
    """
    jobs = []
    for substrate in wanted:
        limit = choice.limit_of(substrate.language)
        last = ALL if limit is None else limit
        step = last if limit is None else part
        jobs += [Job(substrate, at, min(last, at + step)) for at in range(0, last, step)]
    return sorted(jobs, key=lambda job: job.first)


def run_all(
    wanted: Sequence[Substrate], choice: Choice, progress: Progress, setup: Setup
) -> list[Row]:
    """Judge what is missing; return a note for each job, with its fault if it has one."""
    waiting = collections.deque(jobs_of(wanted, choice, setup.part))
    books = Books(choice, Chosen(choice), progress)
    notes: list[Row] = []

    def work(number: int) -> None:
        worker = Worker(setup, number, books)
        try:
            while setup.left_s() > JOB_S:
                job = waiting.popleft()
                try:
                    notes.append(worker.run(job))
                except InfraError as exc:
                    print(f"{job.substrate.name}: {exc}", flush=True)
                    if job.tries + 1 < MAX_TRIES:
                        waiting.append(replace(job, tries=job.tries + 1))
                    else:
                        notes.append({"substrate": job.substrate.name, "fault": str(exc)})
                    worker.renew()
        except IndexError:
            pass  # nothing is left
        except Exception:  # noqa: BLE001  the other workers go on; a resumed run tries again
            traceback.print_exc()
            notes.append({"substrate": "", "fault": "a worker ended, see above"})
        finally:
            worker.close()

    start, before = time.monotonic(), len(progress.rows)
    threads = [threading.Thread(target=work, args=(n,)) for n in range(len(setup.gpus))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_s = time.monotonic() - start
    print(throughput(list(progress.rows.values())[before:], took_s, len(threads)))
    if setup.left_s() <= JOB_S:
        print(f"the time is over, {len(waiting)} jobs were not begun; the same command goes on")
    return notes


def throughput(rows: Sequence[Row], took_s: float, workers: int) -> str:
    """Return how many mutants were judged in which time, and where it went."""
    means = []
    for name in ("oracle_s", "verify_s", "final_s"):
        known = [row[name] for row in rows if name in row]
        if known:
            means.append(f"{name[:-2]} {sum(known) / len(known):.2f} s")
    rate = len(rows) / took_s if took_s else 0.0
    return (
        f"{len(rows)} mutants in {took_s:.0f} s by {workers} workers: {rate:.2f} a second; "
        f"each {', '.join(means) or 'nothing'}"
    )
