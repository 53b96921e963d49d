"""Final verdicts are looks at held-out data: counted by problem and workspace, over restarts."""

import os
import stat

import anyio
import pytest
from mcp import Client
from test_mcp_client import KERNEL, ROW_SUM, call

from hotloop.agent.desk import Desk
from hotloop.agent.final_looks import PROBLEMS, FinalLooks
from hotloop.agent.jobs import Jobs
from hotloop.agent.runs import AgentRuns
from hotloop.agent.server import make_server
from hotloop.agent.workspace import Workspace
from hotloop.core.verdict import Status, Tier
from hotloop.errors import ConfigError, InfraError, WorkerDied
from hotloop.testing.fakes import FakeVerifier, make_problem
from hotloop.warm.judge import WarmJudge

A, B = make_problem("fake/a", "# a\n"), make_problem("fake/b", "# b\n")


@pytest.fixture
def looks(tmp_path):
    def make(root="work", **options):
        return FinalLooks(tmp_path / "state", tmp_path / root, **options)

    return make


def test_each_problem_has_its_own_and_the_last_is_refused(looks):
    ours = looks(limit=2)
    assert ours.told(A) == "final verdicts left for this problem: 2 of 2"
    for _ in range(2):
        ours.take(A)
    with pytest.raises(ConfigError, match="the 2 final verdicts of fake/a are used") as refused:
        ours.take(A)
    assert "\n" not in str(refused.value)
    assert "--final-looks N" in str(refused.value)
    ours.take(B)
    assert (ours.left(A), ours.left(B)) == (0, 1)


def test_neither_another_server_nor_a_restart_renews_them(looks):
    looks(limit=2).take(A)
    looks(limit=2).take(A)
    with pytest.raises(ConfigError, match="are used"):
        looks(limit=2).take(A)
    assert looks(limit=3).left(A) == 1, "who starts the server may allow more"
    assert looks("elsewhere", limit=2).left(A) == 2, "another workspace has its own"


def test_copies_of_a_problem_do_not_make_them_endless(looks):
    ours = looks(limit=1)
    for n in range(PROBLEMS):
        ours.take(make_problem("fake/a", f"# copy {n}\n"))
    with pytest.raises(ConfigError, match=f"the {PROBLEMS} final verdicts of this workspace"):
        ours.take(A)
    assert ours.left(A) == 0


def test_one_that_showed_nothing_is_given_back(looks):
    ours = looks(limit=1)
    ours.take(A)
    ours.give_back(A)
    ours.take(A)
    with pytest.raises(ConfigError):
        ours.take(A)


def test_none_at_all_may_be_allowed(looks):
    with pytest.raises(ConfigError, match="the 0 final verdicts"):
        looks(limit=0).take(A)


@pytest.mark.parametrize("text", ["no json", "[1]", '{"a": -4}', '{"a": "x"}', '{"a": null}'])
def test_a_count_that_cannot_be_read_gives_none(looks, tmp_path, text):
    looks().take(A)
    (file,) = (tmp_path / "state").iterdir()
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_text(text)
    with pytest.raises(InfraError, match="counts the final verdicts") as refused:
        looks().take(A)
    assert "\n" not in str(refused.value)


class Judge(FakeVerifier):
    """Judges as on a GPU; attempts at a fault are told by the kernel's text."""

    def verify(self, candidate, tier):
        text = candidate.sources[0].text
        if "machine" in text:
            raise WorkerDied("the machine is at fault")
        outcome = Status.COMPILE_ERROR if "no code" in text else 1.0
        self.behaviour = lambda pins, asked: outcome
        return super().verify(candidate, tier)


def desk_of(root, state, limit):
    workspace = Workspace(root, device="cuda")
    return Desk(
        workspace=workspace, judge=WarmJudge(Judge), jobs=Jobs(), runs=AgentRuns(workspace),
        looks=FinalLooks(state, workspace.root, limit=limit),
        run_table=lambda reader: "", find_attempt=lambda reader, number: None,
    )  # fmt: skip


def test_the_tool_says_what_is_left_and_refuses_the_next_one(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "row_sum.py").write_text(ROW_SUM)
    asked = {"problem": "row_sum.py", "tier": "final"}

    async def talk(limit, *sources):
        desk = desk_of(root, tmp_path / "state", limit)
        try:
            async with Client(make_server(desk)) as client:
                return [await call(client, "verify_kernel", source=s, **asked) for s in sources]
        finally:
            desk.close()

    async def fast():
        desk = desk_of(root, tmp_path / "state", 2)
        async with Client(make_server(desk)) as client:
            found = await call(
                client, "verify_kernel", problem="row_sum.py", source=KERNEL, tier=Tier.FAST.value
            )
        desk.close()
        return found

    first, broken, machine, second, third = anyio.run(
        talk, 2, KERNEL, "# no code", "# machine", KERNEL, KERNEL
    )
    assert first[0].startswith("PASSED (final tier)")
    assert first[0].endswith("final verdicts left for this problem: 1 of 2")
    assert broken[0].startswith("COMPILE_ERROR")
    assert broken[0].endswith("1 of 2"), "nothing held out was looked at"
    assert machine[1]
    assert "the machine is at fault" in machine[0]
    assert second[0].endswith("0 of 2")
    assert third[1]
    assert "the 2 final verdicts of" in third[0]
    assert len(third[0].splitlines()) == 1
    ((again, is_error),) = anyio.run(talk, 2, KERNEL)  # a server that was started anew
    assert is_error
    assert "are used" in again
    text, is_error = anyio.run(fast)
    assert not is_error
    assert "left for this problem" not in text
    assert not [name for name in os.listdir(root) if "final" in name], "kept elsewhere"
