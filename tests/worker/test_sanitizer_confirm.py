"""What a tool finds at sizes that need not work counts only where the problem's own show it too."""

from types import SimpleNamespace

import pytest
import sanitizer_logs as logs

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker.evaluation import Failed
from hotloop.worker.sanitizer import Sanitizer
from hotloop.worker.sanitizer_report import read_report
from hotloop.worker.sanitizer_tools import TOOLS, Outcome

KERNEL = Candidate(
    language="cuda", sources=(SourceFile(path="kernel.cu", text=""),), entry="kernel.cu"
)
FOUND = read_report(logs.OUT_OF_BOUNDS_NEW, {"add"}).findings


class Recorded:
    """Stands in for launches under the tools: one of them may find something."""

    def __init__(self, name, *, bad=None, slow=()):
        problem = Problem(name="p", kind=ProblemKind.KERNELBENCH, source="")
        loaded = SimpleNamespace(problem=problem)
        self.view = SimpleNamespace(
            workload=SimpleNamespace(name=name), reference=SimpleNamespace(loaded=loaded)
        )
        self.bad, self.slow, self.asked, self.limits = bad, slow, [], []

    def watch(self, room, tools, *, all_s):
        self.asked.append(tuple(tools))
        self.limits.append(all_s)
        skipped = {tool: "not done within 15 s" for tool in tools if tool in self.slow}
        ran = [tool for tool in tools if tool not in self.slow]
        if self.bad in ran:
            return Outcome(tuple(ran[: ran.index(self.bad)]), skipped, self.bad, FOUND)
        return Outcome(tuple(ran), skipped)


def sanitizer(nominal=None, refused=None):
    found = Sanitizer(shapes=None, room=None, candidate=KERNEL)
    found._recorded, found._refused = nominal, refused
    return found


def test_found_at_both_sizes_it_refuses_and_tells_of_the_problems_own():
    nominal = Recorded("nominal", bad="initcheck")
    subject = sanitizer(nominal)
    with pytest.raises(Failed) as refused:
        subject._watch_reduced(Recorded("reduced", bad="initcheck"), TOOLS)
    assert refused.value.evidence.kind == "out_of_bounds"
    assert refused.value.evidence.details["workload"]["name"] == "nominal"
    assert nominal.asked == [("initcheck",)]
    assert subject.ran == ("memcheck",)


def test_found_at_smaller_sizes_alone_it_is_named_and_the_other_tools_run():
    subject = sanitizer(Recorded("nominal"))
    subject._watch_reduced(Recorded("reduced", bad="initcheck"), TOOLS)
    assert subject.ran == ("memcheck", "racecheck", "synccheck")
    assert subject.skipped_checks() == {
        "sanitizer:initcheck": "an error at smaller sizes, which need not work; "
        "not there at the problem's own sizes"
    }


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        (sanitizer(Recorded("nominal", slow=("memcheck",))), "not done within 15 s"),
        (sanitizer(refused="its tensors take 20.0 GiB"), "its tensors take 20.0 GiB"),
    ],
)
def test_where_it_cannot_be_confirmed_it_is_named_and_nobody_is_refused(subject, why):
    subject._watch_reduced(Recorded("reduced", bad="memcheck"), TOOLS)
    assert why in subject.skipped["memcheck"]
    assert subject.ran == ("initcheck", "racecheck", "synccheck")


def test_at_sizes_that_must_work_it_refuses_at_once():
    with pytest.raises(Failed):
        sanitizer()._watch(Recorded("boundary", bad="memcheck"), TOOLS)


def test_all_runs_share_one_limit():
    nominal, reduced = Recorded("nominal"), Recorded("reduced", bad="memcheck")
    subject = sanitizer(nominal)
    subject._watch_reduced(reduced, TOOLS)
    limits = [reduced.limits[0], nominal.limits[0], reduced.limits[1]]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] == 30.0 > limits[-1]
