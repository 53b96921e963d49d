"""The zygote: torch and triton imported, no CUDA context, exactly one thread; it forks children.

Importing torch and triton costs seconds, a fork of this process milliseconds. The judge asks for a
child over a socket and passes the child's own control socket, output pipe and arena along. The
zygote holds nothing secret: it is started with a scrubbed environment, and everything that a
candidate may know arrives over its control socket.

    judge -> zygote   {"id", "role": "candidate" | "lane", "cage": CageSpec, "env": {...}}
                      with descriptors [control, output, arena?]
    zygote -> judge   {"ready"}, {"id", "pid"}, {"exited": pid, "status": wait status}
"""

from __future__ import annotations

import contextlib
import gc
import os
import select
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from hotloop import sandbox
from hotloop.worker.channel import Channel, ChannelClosed


def main() -> None:
    """Serve fork requests on the inherited socket until the judge closes it."""
    fd = int(sys.argv[1])
    interpret = os.environ.get("TRITON_INTERPRET") == "1"
    channel = Channel(socket.socket(fileno=fd))
    _import_heavy(interpret)
    sandbox.become_subreaper()
    gc.freeze()  # a collection in a child would copy every page of the imports
    threads = threading.active_count()
    channel.send({"ready": True, "threads": threads, "kernel_threads": _kernel_threads()})
    _serve(channel)
    os._exit(0)  # torch and triton have nothing to save, and take long to be torn down


def _import_heavy(interpret: bool) -> None:
    # Everything a child needs is imported here, once; the children inherit it.
    import torch
    import triton
    import triton.language  # noqa: F401

    from hotloop.worker import candidate, lane, replay_host  # noqa: F401

    torch.set_num_threads(1)
    with contextlib.suppress(ImportError):  # optional: a kernel clock better than events
        import cupti.cupti  # noqa: F401
    if interpret:
        from hotloop.worker import interpreter

        interpreter.install()
    else:
        _warm_compiler()
        _warm_fake_tensors()
    if torch.cuda.is_initialized():
        raise RuntimeError("expected a zygote without a CUDA context; an import made one")


def _warm_compiler() -> None:
    from hotloop.worker import warm_kernel

    warm_kernel.compile_once()
    try:
        warm_kernel.build_driver_module()
    except Exception as exc:  # noqa: BLE001  it is built at the first launch then
        if Path("/dev/nvidiactl").exists():  # without a driver there is nothing to build
            print(f"no driver module: {type(exc).__name__}", file=sys.stderr)


def _warm_fake_tensors() -> None:
    # A lane runs the forward on fake tensors; making the first mode imports for two seconds.
    from torch._subclasses.fake_tensor import FakeTensorMode

    FakeTensorMode()


def _kernel_threads() -> int:
    return len(os.listdir("/proc/self/task"))


def _serve(channel: Channel) -> None:
    children: dict[int, int] = {}  # pidfd -> pid
    poller = select.poll()
    poller.register(channel.sock, select.POLLIN | select.POLLHUP)
    while True:
        for fd, _ in poller.poll(1000):
            if fd == channel.sock.fileno():
                try:
                    message, fds = channel.receive()
                except ChannelClosed:
                    _kill_all(children)
                    return
                pid = _fork_child(channel, message, fds)
                pidfd = os.pidfd_open(pid)
                children[pidfd] = pid
                poller.register(pidfd, select.POLLIN)
                channel.send({"id": message["id"], "pid": pid})
            elif fd in children:
                poller.unregister(fd)
                pid = children.pop(fd)
                os.close(fd)
                _, status = os.waitpid(pid, 0)
                sandbox.sweep(keep=frozenset(children.values()))
                channel.send({"exited": pid, "status": status})


def _kill_all(children: dict[int, int]) -> None:
    for pid in children.values():
        os.kill(pid, signal.SIGKILL)
    sandbox.sweep(keep=frozenset())


def _fork_child(channel: Channel, message: dict[str, Any], fds: list[int]) -> int:
    pid = os.fork()
    if pid:
        for fd in fds:
            os.close(fd)
        return pid
    code = 70  # EX_SOFTWARE: the child never got as far as an exit code of its own
    try:
        channel.sock.close()  # this copy only: a shutdown would reach the zygote's own
        code = _run_child(message, fds)
    except BaseException as exc:  # noqa: BLE001  a forked child must never return into the zygote
        print(f"hotloop child: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
    finally:
        os._exit(code)


def _run_child(message: dict[str, Any], fds: list[int]) -> int:
    control, output, *rest = fds
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(message["env"])
    tempfile.tempdir = None  # the zygote's own may have been looked up by an import
    spec = sandbox.CageSpec.from_json(message["cage"])
    os.chdir(spec.work_dir)
    sandbox.become_subreaper()  # what forks twice in there stays below it, where the judge looks
    report = sandbox.enter(spec, keep_fds=(0, 1, 2, control, *rest))
    channel = Channel(socket.socket(fileno=control))
    channel.send({"cage": report.to_json()})
    from hotloop.worker import candidate, lane, replay_host

    if message["role"] == "lane":
        return lane.serve(channel)
    serve = replay_host.serve if message["role"] == "replay" else candidate.serve
    return serve(channel, rest[0] if rest else None)


if __name__ == "__main__":
    main()
