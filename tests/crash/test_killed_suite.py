"""`kill -9` in the middle of a suite, then the same command: it ends as if nothing had happened."""

import json
import signal
from collections import namedtuple

import pytest
from benchmarks.fake_run import PROBLEM, journal_of

from hotloop.suite.folder import read_suite

pytestmark = pytest.mark.slow

PROBLEMS = ("1-1", "1-2", "2-5")
Control = namedtuple("Control", "journals kernels")


@pytest.fixture(scope="module")
def bench(desk):
    """Give the suite's command in a folder."""

    def run(folder, **env):
        for name in PROBLEMS:
            level, number = name.split("-")
            file = folder / "data" / f"level{level}" / f"{number}_Relu.py"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(PROBLEM.replace("8, 64", f"{level}, {number}"))
        words = (
            f"bench kernelbench --data data --model openai:some-model@{desk.server.url} "
            "--judge ssh://nowhere --device cuda --strategy sample --max-calls 2 --parallel 1 "
            "--budget 10m --out s --json"
        )
        return desk.machine.run(*words.split(), cwd=folder, **env)

    return run


def kernels(folder):
    """The problems whose best kernel was written down."""
    return {name for name in PROBLEMS if (folder / "s" / "runs" / name / "best").is_dir()}


def runs(folder):
    return {name: journal_of(folder / "s" / "runs" / name) for name in PROBLEMS}


@pytest.fixture(scope="module")
def control(bench, tmp_path_factory):
    folder = tmp_path_factory.mktemp("control")
    done = bench(folder)
    assert done.status == 0, done.output
    assert len(kernels(folder)) > 1, "too few kernels passed to prove much"
    return Control(journals=runs(folder), kernels=kernels(folder))


def told(output):
    record = next(line for line in output.splitlines() if line.startswith("{"))
    return {row["problem"]: row["state"] for row in json.loads(record)["problems"]}


@pytest.mark.parametrize(
    "point",
    [
        "before-lock:1", "after-lock:1", "before-run:1", "before-intent:3", "after-propose:5",
        "before-verdict:3", "after-verdict:5", "before-stopped:2", "after-stopped:1",
        "before-best:1", "before-best:2",
    ],
)  # fmt: skip
def test_killed_and_gone_on_with(desk, bench, control, tmp_path, point):
    killed = bench(tmp_path, HOTLOOP_CRASH_AT=point)
    assert killed.status == -signal.SIGKILL, killed.output
    runs_of = tmp_path / "s" / "runs"
    finished = {name: journal_of(runs_of / name) for name in kernels(tmp_path)}
    paid_before = desk.paid()
    done = bench(tmp_path)
    assert done.status == 0, done.output
    assert set(told(done.output).values()) == {"done"}
    found = runs(tmp_path)
    for name in PROBLEMS:
        assert (found[name].attempts, found[name].events) == (
            control.journals[name].attempts, control.journals[name].events,
        )  # fmt: skip
    assert kernels(tmp_path) == control.kernels
    for name, before in finished.items():
        assert found[name].kinds == before.kinds, "what was over is not begun again"
    assert read_suite(tmp_path / "s").troubles == {}
    paid = desk.paid()
    assert paid - paid_before <= 2 * (len(PROBLEMS) - len(finished))
    assert bench(tmp_path).status == 0
    assert desk.paid() == paid, "a suite that is over asks nobody"


def test_the_first_interrupt_drains(bench, desk, control, tmp_path):
    bench(tmp_path, HOTLOOP_CRASH_AT="before-run:1")  # the data set is there now
    url = desk.server.url
    words = (
        f"bench kernelbench --data data --model openai:some-model@{url} --judge ssh://nowhere "
        "--device cuda --strategy sample --max-calls 2 --parallel 1 --budget 10m --out s --json"
    )
    verified = tmp_path / "verified"
    with desk.machine.started(
        *words.split(), cwd=tmp_path, JUDGE_S=1.0, VERIFIED=verified
    ) as command:
        while not verified.exists():
            assert not command.wait(0.02)
        command.send(signal.SIGINT)
    assert command.status == 1, command.output
    assert "open" in set(told(command.output).values())
    done = bench(tmp_path)
    assert done.status == 0, done.output
    assert {n: r.attempts for n, r in runs(tmp_path).items()} == {
        n: r.attempts for n, r in control.journals.items()
    }
