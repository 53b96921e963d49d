"""`hotloop record`: what it writes plays again, names no folder, and bad input is one line."""

import gzip

import pytest
from model_run import KERNEL, plan_in

from hotloop.cli.main import main
from hotloop.core.model import CallKey, Message, Prompt, Reply, Role
from hotloop.errors import NotRecorded
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.recording import read_recording
from hotloop.llm.replay import ReplayModel
from hotloop.store.sqlite import SqliteStore

PROMPT = Prompt(messages=(Message(role=Role.USER, text="Write a kernel."),))


def write_run(folder, *, calls=2, model=None, **options):
    folder.mkdir(exist_ok=True)
    plan = plan_in(folder, **options)
    with SqliteStore(plan.folder) as store:
        store.begin(plan.spec, plan.problem)
        notes = CallNotes(store)
        for attempt in range(1, calls + 1):
            key = CallKey(problem_id=plan.problem.id, attempt=attempt)
            text = KERNEL.format(block=attempt)
            notes.intend(key, PROMPT)
            said = model or f"dir:{folder / 'answers'}"
            notes.respond(key, PROMPT.id, Reply(text=text, model=said))
    return plan


def test_a_recording_plays_again(tmp_path, capsys):
    plan, out = write_run(tmp_path / "a"), tmp_path / "calls.jsonl"
    assert main(["record", str(plan.folder), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "2 calls of 1 problem(s)" in told
    assert "to be replayed with --strategy hybrid --parallel 4 --language triton" in told
    assert read_recording(out).options == {
        plan.problem.id: {"strategy": "hybrid", "parallel": 4, "language": "triton"}
    }
    key = CallKey(problem_id=plan.problem.id, attempt=2)
    reply = ReplayModel(out).complete(PROMPT, key=key, deadline_s=None)
    assert "BLOCK = 2" in reply.text
    assert str(tmp_path) not in out.read_text()
    assert read_recording(out).model == "dir:"


def test_what_ends_a_line_elsewhere_ends_none_in_a_recording(tmp_path):
    plan, out = write_run(tmp_path / "a", calls=0), tmp_path / "calls.jsonl"
    key = CallKey(problem_id=plan.problem.id, attempt=1)
    text = "one\u2028two\u0085three\x0cfour\r\nfive"
    with SqliteStore(plan.folder) as store:
        CallNotes(store).intend(key, PROMPT)
        CallNotes(store).respond(key, PROMPT.id, Reply(text=text, model="m"))
    assert main(["record", str(plan.folder), "--out", str(out)]) == 0
    assert read_recording(out).calls[0].reply.text == text


def test_compressed_and_without_prompts_it_holds_the_same_replies(tmp_path):
    plan = write_run(tmp_path / "a")
    plain, packed = tmp_path / "calls.jsonl", tmp_path / "calls.jsonl.gz"
    assert main(["record", str(plan.folder), "--out", str(plain)]) == 0
    words = ["record", str(plan.folder), "--out", str(packed), "--no-prompts"]
    assert main([*words, "--model", "somebody"]) == 0
    found, bare = read_recording(plain), read_recording(packed)
    assert bare.model == "somebody"
    assert {call.reply.model for call in bare.calls} == {"somebody"}
    assert [c.prompt for c in bare.calls] == [None, None]
    texts = [[c.reply.text for c in r.calls] for r in (found, bare)]
    assert texts[0] == texts[1]
    before = packed.read_bytes()
    assert main([*words, "--model", "somebody"]) == 0
    assert packed.read_bytes() == before


def test_a_problem_that_was_never_asked_about_is_named(tmp_path):
    """A replay of the suite must not take it for a problem of another recording."""
    asked = write_run(tmp_path / "a")
    silent = write_run(tmp_path / "b", calls=0, settings={"S": 64})
    out = tmp_path / "calls.jsonl"
    assert main(["record", str(asked.folder), str(silent.folder), "--out", str(out)]) == 0
    assert set(read_recording(out).problems) == {asked.problem.id, silent.problem.id}
    model, key = ReplayModel(out), CallKey(problem_id=silent.problem.id, attempt=1)
    model.check_problem(silent.problem.id)
    with pytest.raises(NotRecorded):
        model.complete(PROMPT, key=key, deadline_s=None)


def test_bad_input_is_one_line(tmp_path, capsys):
    plan, out = write_run(tmp_path / "a", calls=0), tmp_path / "out"
    for words, said in (
        ([plan.folder, "--out", out], "none of these has a call"),
        ([tmp_path / "gone", "--out", out], "expected a run folder"),
        ([write_run(tmp_path / "b").folder, "--out", tmp_path / "no" / "out"], "no"),
        ([plan.folder, "--out", "."], "--out . is a folder; name a file in it"),
    ):
        assert main(["record", *map(str, words)]) != 0
        told = capsys.readouterr().err.strip()
        assert said in told
        assert len(told.splitlines()) == 1
        assert "run folder cannot be written" not in told
    assert not out.exists()


@pytest.mark.parametrize(
    "data",
    [b"no gzip", gzip.compress(b"{}")[:-3], gzip.compress(b"{}")],
    ids=["no gzip", "cut off", "no recording"],  # its bytes have the time in them
)
def test_a_damaged_compressed_recording_is_refused(tmp_path, capsys, data):
    plan_in(tmp_path)
    path = tmp_path / "calls.jsonl.gz"
    path.write_bytes(data)
    words = ["optimize", str(tmp_path / "relative.py"), "--device", "cpu"]
    assert main([*words, "--model", f"replay:{path}"]) == 2
    assert "calls.jsonl.gz" in capsys.readouterr().err
