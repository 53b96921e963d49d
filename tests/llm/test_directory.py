import os
import shutil
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from asking import KEY, ask, prompt

from hotloop.core.model import Message, Prompt, Role, Usage
from hotloop.errors import ConfigError, DeadlinePassed, EndpointDown, Pending
from hotloop.llm import directory, reply_file
from hotloop.llm.directory import DirectoryModel

TEXT = "Write a kernel."
ID = f"{KEY.text}-{prompt(TEXT).id[:8]}"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "answers"


def open_folder(folder, **options):
    return DirectoryModel(folder, **{"poll_s": 0.01, **options})


def write_reply(folder, text, name=ID):
    (folder / "draft").write_text(text, encoding="utf-8")
    os.rename(folder / "draft", folder / f"{name}.reply.md")


def later(action, *args):
    def wait_and_act():
        time.sleep(0.1)
        action(*args)

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def bad_files(folder, tmp_path):
    """Return what makes the reply's file bad, and what is said of each."""
    reply = folder / f"{ID}.reply.md"
    (tmp_path / "secret").write_text("secret")
    return {
        "is a symbolic link; put the reply itself": lambda: reply.symlink_to(tmp_path / "secret"),
        "is no UTF-8 text; rewrite it": lambda: reply.write_bytes(b"\xff\xfe\x00"),
        "is longer than 100 bytes; shorten it": lambda: reply.write_text("x" * 101),
        "is empty; write the reply to it": lambda: reply.write_text(" \n"),
        "is no plain file": reply.mkdir,
    }


def test_a_bad_reply_is_named_and_costs_no_call(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(reply_file, "MAX_REPLY_BYTES", 100)
    model = open_folder(folder, wait=False)
    reply = folder / f"{ID}.reply.md"
    for told, make in bad_files(folder, tmp_path).items():
        make()
        with pytest.raises(Pending, match="awaits") as caught:
            ask(model, TEXT)
        fault = caught.value.fault
        assert f"{ID}.reply.md" in fault
        assert told in fault
        assert "no call is spent" in fault
        assert "\n" not in fault + str(caught.value)
        assert "secret" not in fault
        reply.rmdir() if reply.is_dir() else reply.unlink()
    write_reply(folder, "x = 1")
    assert ask(model, TEXT).text == "x = 1"


def test_who_waits_is_told_of_a_bad_reply_once_for_each_change(folder, monkeypatch):
    monkeypatch.setattr(directory, "STAYS_S", 0.03)
    model, reply = open_folder(folder, poll_s=0.002), folder / f"{ID}.reply.md"
    with ThreadPoolExecutor() as pool:
        try:
            waiting = pool.submit(ask, model, TEXT)
            told = []
            for data in (b"", b"\xff", b"\xff\xfe"):
                reply.write_bytes(data)
                told.append(until(model.notice))
                time.sleep(0.05)  # several looks
                assert model.notice() == ""
            assert ["is empty" in line for line in told] == [True, False, False]
            assert ["is no UTF-8" in line for line in told] == [False, True, True]
            assert len(set(told)) == 3
            write_reply(folder, "x = 1")
            assert waiting.result(timeout=10).text == "x = 1"
        finally:
            model.close()


def test_a_file_that_is_just_being_written_is_not_complained_of(folder):
    model, reply = open_folder(folder, poll_s=0.002), folder / f"{ID}.reply.md"
    folder.mkdir(exist_ok=True)
    reply.write_text("")
    thread = later(reply.write_text, "x = 1")
    assert ask(model, TEXT).text == "x = 1"
    thread.join()
    assert model.notice() == ""


def until(found, patience_s=10.0):
    """Return what is found in the end."""
    end_s = time.monotonic() + patience_s
    while not (value := found()) and time.monotonic() < end_s:
        time.sleep(0.002)
    return value


def test_a_reply_that_comes_is_taken(folder):
    model = open_folder(folder)
    thread = later(write_reply, folder, "<think>hm</think>x = 1")
    reply = ask(model, TEXT)
    thread.join()
    assert (reply.reasoning, reply.text) == ("hm", "x = 1")
    assert reply.usage == Usage()
    assert reply.cost_usd is None
    assert reply.seconds >= 0.05
    assert (folder / f"{ID}.prompt.md").read_text(encoding="utf-8") == TEXT


def test_without_waiting_it_is_pending_until_it_is_answered(folder):
    model = open_folder(folder, wait=False)
    for _ in range(2):
        with pytest.raises(Pending, match=f"{ID}.reply.md") as caught:
            ask(model, TEXT)
        assert caught.value.waiting == (str(folder / f"{ID}.prompt.md"),)
        assert caught.value.exit_code == 4
    write_reply(folder, "x = 1")
    assert ask(model, TEXT).text == "x = 1"


def test_nothing_half_written_lies_in_the_folder(folder):
    with pytest.raises(Pending):
        ask(open_folder(folder, wait=False), TEXT)
    assert sorted(p.name for p in folder.iterdir()) == [f"{ID}.prompt.md", "README.md"]


def test_foreign_replies_are_ignored(folder):
    model = open_folder(folder, wait=False)
    for name in ("other", KEY.text, f"{KEY.text}-00000000", f"{ID}x"):
        write_reply(folder, "foreign", name)
    with pytest.raises(Pending):
        ask(model, TEXT)


def test_a_deadline_ends_the_wait(folder):
    with pytest.raises(DeadlinePassed, match=r"0\.2 s"):
        ask(open_folder(folder), TEXT, deadline_s=0.2)


def test_a_folder_that_vanishes_is_one_error(folder):
    thread = later(shutil.rmtree, folder)
    with pytest.raises(EndpointDown, match="the folder is gone") as caught:
        ask(open_folder(folder), TEXT)
    thread.join()
    assert str(folder) in str(caught.value)


def test_a_folder_that_vanished_before_is_the_same_error(folder):
    model = open_folder(folder)
    shutil.rmtree(folder)
    with pytest.raises(EndpointDown, match="the folder is gone"):
        ask(model, TEXT)


def test_a_path_that_is_no_folder_is_refused(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(ConfigError, match="folder"):
        open_folder(tmp_path / "file")


def test_who_answers_is_kept_with_the_reply(folder):
    model = open_folder(folder)
    write_reply(folder, "x = 1")
    assert ask(model, TEXT).model == model.name
    (folder / "model.txt").write_text("somebody-1\n", encoding="utf-8")
    assert ask(model, TEXT).model == "somebody-1"


def test_several_messages_are_marked_by_their_role():
    messages = (
        Message(role=Role.SYSTEM, text="You write kernels."),
        Message(role=Role.USER, text="Go."),
    )
    text = directory.prompt_text(Prompt(messages=messages))
    assert text == "<!-- system -->\n\nYou write kernels.\n\n<!-- user -->\n\nGo."
