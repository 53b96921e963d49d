"""A small run of a model in a folder, written through the store as the engine does it."""

from dataclasses import replace

from hotloop.core.attempt import Action, Asked, Attempt
from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.model import CallKey, Message, Prompt, Reply, Role, Usage
from hotloop.core.problem import ProblemInfo
from hotloop.core.record import to_json
from hotloop.core.verdict import Evidence, Stage, Status, Tier, Verdict
from hotloop.errors import Pending
from hotloop.llm.call_notes import CallNotes
from hotloop.plan import plan_search
from hotloop.store.sqlite import SqliteStore

PROBLEM = """\
B, H, S, D = 1, 2, 32, 16
dtype = "float32"


def score_mod(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx)
"""
KERNEL = "import torch\nBLOCK = {block}\n\n\nclass ModelNew(torch.nn.Module):\n    pass\n"
RED = "\x1b[31m"


def plan_in(folder, **options):
    problem = folder / "relative.py"
    problem.write_text(PROBLEM)
    given = {"model": f"dir:{folder / 'answers'}", "device": "cpu", "out": folder / "run"}
    return plan_search(problem, **given | options)


def info_of(problem):
    return ProblemInfo(
        problem_id=problem.id, device="cpu", inputs=(), outputs=(), parameters=(), graph=None,
        attention=None, flops=None, io_bytes=0, rankable=True,
    )  # fmt: skip


class Scribe:
    """Writes attempts and calls into a store."""

    def __init__(self, store, plan):
        self.store, self.plan, self.notes = store, plan, CallNotes(store)
        store.begin(plan.spec, plan.problem)

    def setup(self):
        info = to_json(info_of(self.plan.problem))
        self.store.note("setup", {"info": info, "setup_s": 1.0})

    def propose(self, number, action, *, parents=(), point=None):
        attempt = Attempt(
            id=number, action=action, point=point or {}, parents=parents, generator="model",
            candidate_id=None, verdict=None, objective=None, started_s=0.0, finished_s=None,
        )  # fmt: skip
        self.store.propose(attempt, None)
        return attempt

    def send(self, number, text):
        prompt = Prompt(messages=(Message(role=Role.USER, text=text),))
        self.notes.intend(self.key(number), prompt)
        return prompt

    def ask(self, number, action, *, text="Write a kernel.", **proposed):
        return self.propose(number, action, **proposed), self.send(number, text)

    def key(self, number):
        return CallKey(problem_id=self.plan.problem.id, attempt=number)

    def wait(self, number, prompt):
        name = f"answers/{number}.prompt.md"
        self.notes.fail(self.key(number), prompt.id, Pending(f"{name} awaits an answer"))
        return name

    def answer(self, asked, text, *, tokens=100, usd=None):
        attempt, prompt = asked
        usage = Usage(prompt=tokens, completion=50) if tokens is not None else Usage()
        reply = Reply(text=text, reasoning="First I think.", usage=usage, model="some-model")
        self.notes.respond(self.key(attempt.id), prompt.id, reply)
        total = None if tokens is None else tokens + 50
        cost = {"attempt": attempt.id, "calls": 1, "tokens": total, "usd": usd, "call_s": 12.0}
        self.store.note("call_cost", cost)

    def conclude(self, attempt, block, status, *, objective=None, message="", asked=None):
        kernel = None
        if block is not None:
            source = SourceFile(path="kernel.py", text=KERNEL.format(block=block))
            kernel = Candidate(language="triton", sources=(source,))
        found = replace(attempt, candidate_id=kernel and kernel.id, asked=asked)
        self.store.propose(found, kernel)
        failed = status is not Status.PASSED
        verdict = Verdict(
            status=status, stage=Stage.CORRECTNESS if block else Stage.EXTRACT, message=message,
            candidate_id=kernel.id if kernel else "", problem_id=self.plan.problem.id,
            tier=Tier.FAST, device="cpu",
            evidence=Evidence(kind="wrong", message=message, details={"log": f"{RED}line 3"})
            if failed else None,
        )  # fmt: skip
        self.store.conclude(replace(found, verdict=verdict, objective=objective, finished_s=9.0))


def asked_of(prompt, template, *, move=None, idea=None):
    return Asked(
        template=template, template_digest="0" * 16, prompt_id=prompt.id, sees="memory",
        move=move, idea=idea,
    )  # fmt: skip


def write_run(folder, **options):
    """Write a run: a draft that fails, its repair, a reply without code, and one that waits."""
    plan = plan_in(folder, **options)
    with SqliteStore(plan.folder) as store:
        scribe = Scribe(store, plan)
        scribe.setup()
        one = scribe.ask(1, Action.DRAFT, text="Write a kernel for 'relative'.")
        scribe.answer(one, f"```python\n{RED}KERNEL ONE\n```")
        scribe.conclude(
            one[0], 16, Status.INCORRECT_NUMERICAL, message=f"{RED}wrong\nvalues",
            asked=asked_of(one[1], "first", idea="keep K in shared memory"),
        )  # fmt: skip
        two = scribe.ask(2, Action.REPAIR, parents=(1,), text="It is wrong: repair it.")
        scribe.answer(two, "fixed", tokens=None)
        scribe.conclude(
            two[0], 32, Status.PASSED, objective=4.5,
            asked=asked_of(two[1], "repair", move="larger_tile"),
        )  # fmt: skip
        three = scribe.ask(3, Action.DRAFT, text="Write another one.")
        scribe.answer(three, "I cannot.")
        scribe.conclude(three[0], None, Status.NO_CODE, message="no code in the reply")
        four = scribe.ask(4, Action.OPTIMISE, parents=(2,), text="Make it faster.")
        name = scribe.wait(4, four[1])
        budget = to_json(plan.spec.budget)
        store.note("stopped", {"reason": "waiting", "budget": budget, "waiting": [name]})
    return plan
