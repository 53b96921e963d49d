"""Tables of `prepare()` on their way to the replay: large ones arrive, tampered ones do not."""

import contextlib
import fcntl
import json
import mmap
import os
import threading

import pytest
import torch
from test_launch_recording import CUBIN, KEY, board, recording

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.verdict import Stage
from hotloop.worker.channel import Channel
from hotloop.worker.evaluation import Evaluation
from hotloop.worker.host import Host
from hotloop.worker.recorder import UnreplayableError, add_table
from hotloop.worker.recording import Recording
from hotloop.worker.replay import Refused, record_forward
from hotloop.worker.tables import MAX_TABLES_BYTES, Tables, TablesRefused, TableWriter

BIG_BYTES = (5 << 20) + 3
"""More than a message could carry as text beside another table of this size."""
ALL_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW


def is_open(fd):
    with contextlib.suppress(OSError):
        os.fstat(fd)
        return True
    return False


def open_test_files():
    """Return how many descriptors of this process lead to a `memory_file`."""
    links = []
    for name in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own
            links.append(os.readlink(f"/proc/self/fd/{name}"))
    return sum(link.startswith("/memfd:test") for link in links)


def memory_file(n_bytes=100, seals=ALL_SEALS):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, n_bytes)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, seals)
    return fd


def test_what_was_in_memory_is_what_is_read():
    writer = TableWriter()
    first = torch.randint(0, 256, (BIG_BYTES,), dtype=torch.uint8)
    second = torch.randn(1000, dtype=torch.bfloat16)
    places = [add_table(writer, t.untyped_storage()) for t in (first, second)]
    assert places == [0, BIG_BYTES]
    tables = Tables.take([writer.seal()])
    assert tables.size_bytes == BIG_BYTES + 2000
    assert tables.read(0, BIG_BYTES) == first.numpy().tobytes()
    assert tables.read(BIG_BYTES, 2000) == second.view(torch.uint8).numpy().tobytes()
    with pytest.raises(ValueError, match="expected 2 bytes of tables"):
        tables.read(BIG_BYTES + 1999, 2)
    tables.close()


def test_without_tables_there_is_no_file():
    assert TableWriter().seal() is None
    assert Tables.take([]) is None


def test_who_wrote_the_file_cannot_change_it_after_it_was_handed_over():
    writer = TableWriter()
    writer.add([b"right"])
    theirs = writer.seal()
    ours = Tables.take([os.dup(theirs)])
    for change in (
        lambda: os.pwrite(theirs, b"wrong", 0),
        lambda: os.ftruncate(theirs, 1),
        lambda: os.ftruncate(theirs, 100),
        lambda: mmap.mmap(theirs, 5, mmap.MAP_SHARED, mmap.PROT_WRITE),
        lambda: fcntl.fcntl(theirs, fcntl.F_ADD_SEALS, 0),
    ):
        with pytest.raises(PermissionError):
            change()
    assert ours.read(0, 5) == b"right"
    ours.close()
    os.close(theirs)


def test_a_file_that_is_mapped_for_writing_cannot_be_sealed():
    fd = memory_file(seals=0)
    with mmap.mmap(fd, 100) as mapping:
        with pytest.raises(OSError, match="busy"):
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, ALL_SEALS)
        mapping[0] = 1
    os.close(fd)


@pytest.mark.parametrize(
    ("seals", "missing"),
    [
        (0, "all"),
        (ALL_SEALS & ~fcntl.F_SEAL_WRITE, "write"),
        (ALL_SEALS & ~fcntl.F_SEAL_GROW, "grow"),
        (ALL_SEALS & ~fcntl.F_SEAL_SHRINK, "shrink"),
    ],
)
def test_a_file_that_can_be_changed_is_refused(seals, missing):
    fd = memory_file(seals=seals)
    with pytest.raises(TablesRefused, match="sealed file, got one that can be changed"):
        Tables.take([fd])
    assert not is_open(fd)


def test_a_sealed_file_that_cannot_be_read_is_refused_and_one_to_read_only_is_not():
    fd = memory_file()
    for flags in (os.O_RDONLY, os.O_RDWR):
        with contextlib.suppress(PermissionError):  # sealed for writing: some kernels refuse
            again = os.open(f"/proc/self/fd/{fd}", flags)
            tables = Tables.take([again])
            assert tables.read(0, 4) == bytes(4)
            tables.close()
    unreadable = os.open(f"/proc/self/fd/{fd}", os.O_WRONLY)
    with pytest.raises(TablesRefused, match="can be read, got one that cannot"):
        Tables.take([unreadable])
    assert not is_open(unreadable)
    os.close(fd)


def test_other_files_are_refused(tmp_path):
    (tmp_path / "file").write_bytes(b"x")
    read_end, write_end = os.pipe()
    files = [os.open(tmp_path / "file", os.O_RDONLY), read_end, os.open(tmp_path, os.O_RDONLY)]
    for fd in files:
        with pytest.raises(TablesRefused, match="memory file, got another"):
            Tables.take([fd])
        assert not is_open(fd)
    os.close(write_end)
    pair = [memory_file(), memory_file()]
    with pytest.raises(TablesRefused, match="one memory file, got 2 files"):
        Tables.take(pair)
    assert not any(is_open(fd) for fd in pair)


@pytest.mark.parametrize("n_bytes", [0, MAX_TABLES_BYTES + 1])
def test_an_empty_or_oversized_file_is_refused_and_the_largest_is_not(n_bytes):
    fd = memory_file(n_bytes)
    with pytest.raises(TablesRefused, match=f"at most {MAX_TABLES_BYTES} bytes of tables, got"):
        Tables.take([fd])
    assert not is_open(fd)
    largest = Tables.take([memory_file(MAX_TABLES_BYTES)])  # it has holes only: no memory
    assert largest.read(MAX_TABLES_BYTES - 1, 1) == b"\0"
    largest.close()


def test_more_than_the_limit_is_not_recorded_and_says_how_much():
    writer = TableWriter()
    add_table(writer, torch.zeros(8).untyped_storage())
    too_much = torch.empty(MAX_TABLES_BYTES - 31, dtype=torch.uint8, device="meta")
    with pytest.raises(UnreplayableError) as caught:
        add_table(writer, too_much.untyped_storage())
    text = f"launches read {MAX_TABLES_BYTES + 1} bytes that are older than this forward; at most "
    assert str(caught.value) == f"{text}{MAX_TABLES_BYTES} are recorded"
    writer.close()


def test_a_copy_is_private_and_never_written_over_another(tmp_path):
    writer = TableWriter()
    writer.add([b"abc", b"de"])
    tables = Tables.take([writer.seal()])
    tables.copy_to(tmp_path / "copy")
    assert (tmp_path / "copy").stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        tables.copy_to(tmp_path / "copy")
    tables.close()
    copy = Tables.open(tmp_path / "copy")
    assert copy.read(0, copy.size_bytes) == b"abcde"
    copy.close()
    (tmp_path / "link").symlink_to(tmp_path / "copy")
    with pytest.raises(OSError, match="symbolic links"):
        Tables.open(tmp_path / "link")
    with pytest.raises(ValueError, match="regular file"):
        Tables.open(tmp_path)


@pytest.mark.parametrize("table", [-1, 1, 10**30])
def test_a_table_outside_of_the_file_is_refused(table):
    raw = json.loads(recording(board()).to_json())
    n_bytes = raw["buffers"][1]["nbytes"]
    tables = Tables.take([memory_file(n_bytes)])
    raw["buffers"][1]["table"] = table
    with pytest.raises(ValueError, match="is outside of the"):
        Recording.from_json(json.dumps(raw), {KEY: CUBIN}, tables)
    raw["buffers"][1]["table"] = 0
    assert Recording.from_json(json.dumps(raw), {KEY: CUBIN}, tables).buffers[1].table == 0
    with pytest.raises(ValueError, match="is outside of the 0 bytes"):
        Recording.from_json(json.dumps(raw), {KEY: CUBIN})
    tables.close()


class OneForward(Host):
    """A process that has recorded a forward, and reads tables that it is sent, as a replay does."""

    def __init__(self, answer, files):
        super().__init__(None)
        self.answer, self.files = answer, files

    def load(self, message):
        came, self.received = self.received, []
        tables = Tables.take(came)
        assert tables.read(0, 4) == message["expected"].encode()
        tables.close()

    def prepare(self):
        pass

    def forward(self, index):
        raise NotImplementedError

    def poison(self):
        pass

    def record(self, message):
        self.sent += self.files
        return self.answer


class Peer:
    """The judge's side of a channel, without a process behind it."""

    def __init__(self, channel):
        self.channel = channel

    def exchange(self, message, timeout_s, fds=()):
        self.channel.send(message, fds)
        return self.channel.receive(timeout_s)


@pytest.fixture
def evaluate():
    """Return an evaluation whose candidate answers `record` like this."""
    channels, threads = [], []

    def start(answer, files):
        ours, theirs = Channel.pair()
        other = Channel(theirs)
        channels.extend((ours, other))
        threads.append(threading.Thread(target=OneForward(answer, files).serve, args=(other,)))
        threads[-1].start()
        kernel = Candidate(
            language="triton", sources=(SourceFile(path="k.py", text=""),), entry="k.py"
        )
        return Evaluation(Peer(ours), board(), kernel, "cpu")

    yield start
    for channel in channels:
        channel.close()
    for thread in threads:
        thread.join(10)


def big_tables():
    writer = TableWriter()
    writer.add([b"head", bytes(BIG_BYTES - 4), bytes(BIG_BYTES)])
    return writer.seal()


def test_a_big_table_reaches_the_judge_and_from_there_the_replay(evaluate):
    theirs = big_tables()
    evaluation = evaluate(recording(board()).to_answer(), [theirs])
    forward = record_forward(evaluation, ("multiply", "add"))
    assert forward.tables.size_bytes == 2 * BIG_BYTES
    message = {"op": "load", "sets": [], "expected": "head"}
    for _ in range(2):
        answer = evaluation.ask(message, 10, Stage.PERFORMANCE, fds=[forward.tables.fd])
        assert "prepare_ms" in answer
    forward.close()
    assert not is_open(theirs)  # closed by the process that sent it


def test_a_forward_without_tables_brings_none(evaluate):
    forward = record_forward(evaluate(recording(board()).to_answer(), []), ())
    assert forward.tables is None
    forward.close()


@pytest.mark.parametrize(
    ("answer", "files", "words"),
    [
        (None, [0], "sealed file, got one that can be changed"),
        (None, [ALL_SEALS, ALL_SEALS], "one memory file, got 2 files"),
        ({"refused": "no"}, [ALL_SEALS], "no"),
        ({"recording": "{}", "cubins": {}}, [ALL_SEALS], "malformed"),
    ],
    ids=["not sealed", "two files", "refused", "malformed"],
)
def test_what_is_refused_is_one_line_and_no_descriptor_stays(evaluate, answer, files, words):
    fds = [memory_file(seals=seals) for seals in files]
    evaluation = evaluate(answer or recording(board()).to_answer(), fds)
    assert open_test_files() == len(fds)
    with pytest.raises(Refused, match=words) as caught:
        record_forward(evaluation, ())
    assert "\n" not in str(caught.value)
    evaluation.ask({"op": "place", "sets": []}, 10, Stage.PERFORMANCE)  # the sender has closed its
    assert open_test_files() == 0
