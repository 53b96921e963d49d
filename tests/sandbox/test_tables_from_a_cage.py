"""A caged process can make, seal and send the file of tables that a replay needs."""

from __future__ import annotations

import os
import socket

from caging import Cage

from hotloop.worker.tables import Tables, TableWriter


def test_tables_leave_a_cage_and_stay_as_they_were(needs_t1: None, cage: Cage) -> None:
    def inside(_: int) -> tuple[bytes, str]:
        writer = TableWriter()
        writer.add([b"\x01" * 5_000_000, b"end"])
        fd = writer.seal()
        assert fd is not None
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        socket.send_fds(theirs, [b"x"], [fd])
        came = socket.recv_fds(ours, 1, 8)[1]
        try:
            os.pwrite(fd, b"x", 0)
        except PermissionError:
            changed = "refused"
        else:
            changed = "changed"
        tables = Tables.take(came)
        assert tables is not None
        return tables.read(4_999_999, 4), changed

    assert cage.run(inside) == (b"\x01end", "refused")
