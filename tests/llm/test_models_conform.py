"""Every model of ours passes the suite that plug-ins pass."""

import pytest
from asking import NO_RETRY, PLANTED_KEY

from hotloop.llm import ModelOptions, open_model, parse_spec
from hotloop.llm.call_notes import CallNotes
from hotloop.llm.continuing import ContinuingModel
from hotloop.llm.journaled import JournaledModel
from hotloop.llm.recording import RecordedCall, Recording, write_recording
from hotloop.store.memory import MemoryStore
from hotloop.testing.model_server import ModelServer
from hotloop.testing.suites import ModelSuite

OPTIONS = ModelOptions(environ={"OPENAI_API_KEY": PLANTED_KEY}, retry=NO_RETRY)


class TestOpenAIModel(ModelSuite):
    @pytest.fixture(autouse=True)
    def _servers(self):
        pytest.importorskip("openai")
        self.servers = []
        yield
        for server in self.servers:
            server.__exit__()

    def make(self, folder, script):
        answers = {call.prompt.messages[-1].text: call.text for call in script}
        self.servers.append(ModelServer(answers=answers).__enter__())
        return open_model(parse_spec(f"openai:m@{self.servers[-1].url}"), OPTIONS)


class TestDirectoryModel(ModelSuite):
    def make(self, folder, script):
        for call in script:
            name = f"{call.key.text}-{call.prompt.id[:8]}.reply.md"
            (folder / name).write_text(call.text, encoding="utf-8")
        return open_model(parse_spec(f"dir:{folder}"), OPTIONS)


class TestReplayModel(ModelSuite):
    def make(self, folder, script):
        return replay(folder, script)


class TestWrappedModel(ModelSuite):
    def make(self, folder, script):
        journal = CallNotes(MemoryStore())
        return ContinuingModel(JournaledModel(replay(folder, script), journal))


def replay(folder, script):
    from hotloop.core.model import Reply

    calls = tuple(
        RecordedCall(key=c.key, prompt_id=c.prompt.id, reply=Reply(text=c.text, model="m"))
        for c in script
    )
    problems = {c.key.problem_id: "fake/copy" for c in script}
    path = folder / "calls.jsonl"
    write_recording(path, Recording(model="m", problems=problems, calls=calls))
    return open_model(parse_spec(f"replay:{path}"), OPTIONS)
