import os
import shutil
import threading
import time

import pytest
from asking import KEY, ask, prompt

from hotloop.core.model import Message, Prompt, Role, Usage
from hotloop.errors import (
    BadReply,
    ConfigError,
    DeadlinePassed,
    EndpointDown,
    Pending,
    ReplyTooLong,
)
from hotloop.llm import directory
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


def test_a_reply_that_is_a_link_is_refused_in_one_line(folder, tmp_path):
    model = open_folder(folder)
    (tmp_path / "secret").write_text("secret")
    reply = folder / f"{ID}.reply.md"
    reply.symlink_to(tmp_path / "secret")
    with pytest.raises(BadReply, match="is a symbolic link; put the reply itself there") as caught:
        ask(model, TEXT)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)
    reply.unlink()
    write_reply(folder, "x = 1")
    assert ask(model, TEXT).text == "x = 1"


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


def test_an_empty_reply_is_not_there_yet(folder):
    model = open_folder(folder, wait=False)
    write_reply(folder, " \n")
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


def test_a_reply_that_is_no_text_is_told(folder):
    model = open_folder(folder)
    (folder / f"{ID}.reply.md").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadReply, match="UTF-8"):
        ask(model, TEXT)


def test_a_reply_that_is_too_long_is_told(folder, monkeypatch):
    monkeypatch.setattr(directory, "MAX_REPLY_BYTES", 100)
    model = open_folder(folder)
    write_reply(folder, "x" * 101)
    with pytest.raises(ReplyTooLong, match="100 bytes"):
        ask(model, TEXT)


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
