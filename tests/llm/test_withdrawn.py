"""A prompt in a folder that is taken back before anybody answers it."""

import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from asking import KEY, ask, prompt

from hotloop.errors import EndpointDown, Pending
from hotloop.llm import directory
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.directory import DirectoryModel
from hotloop.store.memory import MemoryStore

OLD, NEW = prompt("Make this one faster."), prompt("Mend this one.")
OLD_ID, NEW_ID = (f"{KEY.text}-{p.id[:8]}" for p in (OLD, NEW))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "answers"


@pytest.fixture
def model(folder):
    """A folder in which the old prompt waits."""
    model = DirectoryModel(folder, wait=False)
    with pytest.raises(Pending):
        ask(model, OLD.messages[0].text)
    return model


def names(folder):
    return sorted(path.name for path in folder.iterdir() if path.name != "README.md")


def test_an_unanswered_prompt_is_renamed_and_names_the_other(model, folder):
    assert model.withdraw(OLD, KEY, NEW)
    assert names(folder) == sorted([f"{OLD_ID}.withdrawn.md", f"{NEW_ID}.prompt.md"])
    assert (folder / f"{NEW_ID}.prompt.md").read_text() == "Mend this one."
    first, *_, last = (folder / f"{OLD_ID}.withdrawn.md").read_text().splitlines()
    assert f"{NEW_ID}.prompt.md" in first
    assert last == "Make this one faster."
    assert model.withdraw(OLD, KEY, NEW), "once more after a crash"


@pytest.mark.parametrize("text", ["x = 1", ""])
def test_what_is_answered_or_just_being_answered_stays(model, folder, text):
    (folder / f"{OLD_ID}.reply.md").write_text(text)
    assert not model.withdraw(OLD, KEY, NEW)
    assert f"{OLD_ID}.prompt.md" in names(folder)
    assert f"{OLD_ID}.withdrawn.md" not in names(folder)


def test_an_answer_at_the_very_moment_counts(model, folder, monkeypatch):
    write = directory.write_whole

    def answered_meanwhile(path, text):
        write(path, text)
        (folder / f"{OLD_ID}.reply.md").write_text("x = 1")

    monkeypatch.setattr(directory, "write_whole", answered_meanwhile)
    assert not model.withdraw(OLD, KEY, NEW)
    monkeypatch.undo()
    assert names(folder) == [f"{OLD_ID}.prompt.md", f"{OLD_ID}.reply.md"]
    assert ask(model, OLD.messages[0].text).text == "x = 1"


def test_a_late_answer_is_not_taken_for_that_to_the_other(model, folder):
    model.withdraw(OLD, KEY, NEW)
    with pytest.raises(Pending) as before:
        ask(model, NEW.messages[0].text)
    assert before.value.notice == ""
    (folder / f"{OLD_ID}.reply.md").write_text("x = 1")
    with pytest.raises(Pending) as after:
        ask(model, NEW.messages[0].text)
    assert f"{OLD_ID}.reply.md is not read" in after.value.notice
    (folder / f"{NEW_ID}.reply.md").write_text("x = 2")
    assert ask(model, NEW.messages[0].text).text == "x = 2"


def test_who_waits_is_told_once_of_a_late_answer(folder):
    model = DirectoryModel(folder, poll_s=0.001)
    with ThreadPoolExecutor() as pool:
        try:
            waiting = pool.submit(ask, model, NEW.messages[0].text)
            until(lambda: (folder / f"{NEW_ID}.prompt.md").exists())
            assert model.notice() == ""
            (folder / f"{OLD_ID}.withdrawn.md").write_text("withdrawn")
            (folder / f"{OLD_ID}.reply.md").write_text("x = 1")
            told = until(model.notice)
            assert f"{OLD_ID}.reply.md is not read" in told
            time.sleep(0.02)  # several looks
            assert model.notice() == ""
            (folder / f"{NEW_ID}.reply.md").write_text("x = 2")
            assert waiting.result(timeout=10).text == "x = 2"
        finally:
            model.close()


def until(found, patience_s=10.0):
    """Return what is found in the end."""
    end_s = time.monotonic() + patience_s
    while not (value := found()) and time.monotonic() < end_s:
        time.sleep(0.002)
    return value


def test_a_prompt_that_is_asked_again_is_there_again(model, folder):
    model.withdraw(OLD, KEY, NEW)
    model.withdraw(NEW, KEY, OLD)
    with pytest.raises(Pending):
        ask(model, OLD.messages[0].text)
    assert names(folder) == sorted([f"{OLD_ID}.prompt.md", f"{NEW_ID}.withdrawn.md"])


def test_a_folder_that_has_vanished_is_said(model, folder):
    for name in os.listdir(folder):
        (folder / name).unlink()
    folder.rmdir()
    with pytest.raises(EndpointDown, match="the folder is gone"):
        model.withdraw(OLD, KEY, NEW)


def test_the_journal_knows_which_prompt_was_sent_last():
    store = MemoryStore()
    notes = CallNotes(store)
    for sent in (OLD, NEW, OLD):
        notes.intend(KEY, sent)
        assert notes.prompt(KEY) == sent
    assert CallNotes(store).prompt(KEY) == OLD
