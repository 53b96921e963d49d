"""Ending processes: a tree, a daemon that left it, and nobody else.

`sweep` kills children of the calling process, so it only ever runs in a forked subreaper here.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time

from caging import run_outside

from hotloop.sandbox import become_subreaper, kernel, kill_tree, living_below, sweep
from hotloop.sandbox.processes import descendants


def wait_for(condition: object, timeout_s: float = 5.0) -> bool:
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        if condition():  # type: ignore[operator]
            return True
        time.sleep(0.005)
    return False


def start(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["/bin/sh", "-c", script], start_new_session=True)


def test_tree_is_killed_across_sessions() -> None:
    process = start("setsid sleep 100 & sleep 100 & trap '' TERM INT; sleep 100")
    assert wait_for(lambda: len(descendants(process.pid)) >= 3)
    below = [p.pid for p in descendants(process.pid)]
    assert kill_tree(process.pid, 5.0)
    process.wait()
    assert process.returncode == -signal.SIGKILL
    assert wait_for(lambda: not any(is_running(pid) for pid in below))


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def test_stopped_process_is_killed() -> None:
    process = start("kill -STOP $$")
    assert kill_tree(process.pid, 5.0)
    assert process.wait() == -signal.SIGKILL


def test_dead_process_is_dead() -> None:
    process = start("true")
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert kill_tree(process.pid, 1.0)
    process.wait()
    assert kill_tree(process.pid, 1.0)


def test_neighbours_are_spared() -> None:
    victim, neighbour = start("sleep 100"), start("sleep 100")
    try:
        assert kill_tree(victim.pid, 5.0)
        assert neighbour.poll() is None
    finally:
        victim.wait()
        kill_tree(neighbour.pid, 5.0)
        neighbour.wait()


def leave_daemons(count: int) -> None:
    """Fork twice with a new session: the daemon is no descendant that its tree knows."""
    for _ in range(count):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.closerange(0, 64)
                signal.pause()
            os._exit(0)
        os.wait()


def test_sweep_ends_what_a_candidate_left() -> None:
    def inside(_: int) -> tuple[int, int, int]:
        become_subreaper()
        candidate = os.fork()
        if candidate == 0:
            leave_daemons(3)
            os._exit(0)
        os.waitpid(candidate, 0)
        return len(descendants(os.getpid())), sweep(), len(descendants(os.getpid()))

    assert run_outside(inside) == (3, 3, 0)


def test_sweep_spares_what_is_kept() -> None:
    def inside(_: int) -> tuple[int, list[int], int]:
        become_subreaper()
        kept = os.fork()
        if kept == 0:
            leave_daemons(0)
            signal.pause()
        leave_daemons(2)
        killed = sweep([kept])
        alive = [p.pid - kept for p in descendants(os.getpid())]
        return killed, alive, sweep()

    killed, alive, rest = run_outside(inside)
    # Daemons of the subreaper itself come back to it as children.
    assert (killed, alive, rest) == (2, [0], 1)


def test_sweep_reaps_zombies_without_counting_them() -> None:
    def inside(_: int) -> tuple[int, int]:
        for _ in range(5):
            if os.fork() == 0:
                os._exit(0)
        wait_for(lambda: all(p.zombie for p in descendants(os.getpid())))
        return sweep(), len(descendants(os.getpid()))

    assert run_outside(inside) == (0, 0)


def leave_without_a_first_thread() -> int:
    """Fork a process that lives by its second thread, and looks like a zombie; return it."""
    pid = os.fork()
    if pid == 0:
        threading.Thread(target=time.sleep, args=(100,)).start()
        kernel.syscall(60)  # exit(2), of this thread
    assert wait_for(lambda: not is_running(pid))
    return pid


def test_living_are_told_from_ended_ones_also_behind_a_fork_too_many() -> None:
    def inside(_: int) -> tuple[int, bool, int]:
        become_subreaper()
        leave_daemons(2)  # first: it waits for whichever child ends
        zombie = os.fork()
        if zombie == 0:
            os._exit(0)
        assert wait_for(lambda: not is_running(zombie))
        hidden = leave_without_a_first_thread()
        found, none = living_below(os.getpid()), living_below(1 << 30)
        sweep()
        return len(found), hidden in found, len(none)

    assert run_outside(inside) == (3, True, 0)


def test_sweep_ends_what_looks_ended() -> None:
    def inside(_: int) -> tuple[int, int]:
        leave_without_a_first_thread()
        return sweep(), len(descendants(os.getpid()))

    assert run_outside(inside) == (1, 0)


def test_sweep_of_nothing() -> None:
    assert run_outside(lambda _: sweep()) == 0
