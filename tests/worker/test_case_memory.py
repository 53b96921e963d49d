"""What a judge holds while a golden is evaluated: the case under way, and no earlier ones."""

import gc
import weakref

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

from hotloop.core.problem import Problem, ProblemKind
from hotloop.errors import ProblemError
from hotloop.worker import session as sessions
from hotloop.worker.golden import compact, run_wide
from hotloop.worker.kept_memory import kept_bytes
from hotloop.worker.load import load_problem
from hotloop.worker.memory import DoesNotFit, ran_out
from hotloop.worker.reference import build_reference
from hotloop.worker.session import Session

SIDE = 512
INPUT_BYTES = 4 * SIDE * SIDE
SOURCE = f"""
import torch
LOOK = lambda x: None
class Model(torch.nn.Module):
    def forward(self, predictions, targets):
        LOOK(predictions)
        return torch.nn.functional.smooth_l1_loss(predictions, targets)
def get_inputs():
    return [torch.rand({SIDE}, {SIDE}) * torch.rand(()), torch.rand({SIDE}, {SIDE})]
"""


@pytest.fixture
def loss():
    """KernelBench 1/96 at a small size, as a judge on the CPU loads it."""
    problem = Problem(name="loss", kind=ProblemKind.KERNELBENCH, source=SOURCE)
    session = Session(problem, "cpu", isolation="T0", tracing=False)
    yield session
    session.close()


def look_with(session, look):
    """Call `look` in every forward that runs in float64."""
    namespace = session.reference.loaded.namespace
    namespace["LOOK"] = lambda x: look() if x.dtype is torch.float64 else None


def tensors_kept(book):
    return [weakref.ref(t) for c in book if c.kept for t in c.kept[0].inputs]


def alive(refs):
    return sum(ref() is not None for ref in refs)


def peak_bytes(work):
    """Return the most bytes of tensors that were allocated at a time inside `work`."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        work()
    results = record.profiler.kineto_results.events()
    events = sorted((e.start_ns(), e.nbytes()) for e in results if e.name() == "[memory]")
    now = most = 0
    for _, nbytes in events:
        now += nbytes
        most = max(most, now)
    return most


def draw_fresh(session):
    """Go through the fresh books as the correctness stage does; return weak references."""
    refs = []
    for book in session.fresh_books(session.nominal, {}):
        for _ in book:
            refs += tensors_kept(book)
    return refs


def test_an_earlier_fresh_case_is_gone_when_the_next_golden_is_evaluated(loss):
    seen, refs = [], []
    look_with(loss, lambda: seen.append(alive(refs)))
    for book in loss.fresh_books(loss.nominal, {}):
        for _ in book:
            refs += tensors_kept(book)
        assert alive(refs) == 2
    assert len(seen) > len(loss.nominal.book.cases)  # all profiles, of which some judge nothing
    assert set(seen) == {0}
    assert 2 * len(loss.nominal.book.cases) < len(refs) <= 2 * len(seen)


def test_large_known_cases_are_gone_when_the_final_tier_draws_and_small_ones_stay(
    loss, monkeypatch
):
    known = tensors_kept(loss.nominal.book)
    assert len(known) == 2 * len(loss.nominal.book.cases)
    seen = []
    look_with(loss, lambda: seen.append(alive(known)))
    draw_fresh(loss)
    assert set(seen) == {len(known)}
    seen.clear()
    monkeypatch.setattr(sessions, "KEPT_AT_FINAL_BYTES", loss.nominal.book.kept_bytes() - 1)
    draw_fresh(loss)
    assert set(seen) == {0}


@pytest.mark.filterwarnings("ignore:Warning. Profiler clears events:UserWarning")  # torch 2.11
def test_the_peak_of_the_final_tier_is_that_of_one_case(loss):
    # Inputs, the same in float64, and twice the float64 terms of the mean: `Session.fresh_books`.
    one = 2 * INPUT_BYTES + 4 * INPUT_BYTES + 4 * INPUT_BYTES
    assert one <= peak_bytes(lambda: draw_fresh(loss)) < 1.1 * one


def test_a_closed_session_holds_no_inputs(loss):
    known = tensors_kept(loss.nominal.book)
    assert alive(known) == len(known) > 0
    loss.close()
    assert alive(known) == 0


def test_a_case_that_was_forgotten_has_the_same_inputs_and_goldens(loss):
    book = loss.nominal.book
    case = book.cases[0]
    draw, goldens = case.kept
    book.forget()
    assert case.kept is None
    assert book.kept_bytes() == 0
    again, evaluated = book.materialise(case)
    pairs = zip((*draw.inputs, *goldens), (*again.inputs, *evaluated), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    assert torch.equal(book.draw_of(case).inputs[0], draw.inputs[0])


def test_inputs_alone_cost_no_golden(loss):
    seen = []
    look_with(loss, lambda: seen.append(1))
    loss.nominal.book.forget()
    loss.nominal.book.draw_of(loss.nominal.book.cases[0])
    assert not seen
    loss.nominal.book.materialise(loss.nominal.book.cases[0])
    assert len(seen) == 1


def test_where_memory_runs_out_all_that_is_kept_is_freed_and_it_is_done_once_more(loss):
    known = tensors_kept(loss.nominal.book)

    def look():
        if alive(known):
            raise torch.OutOfMemoryError("no room beside the known cases")

    look_with(loss, look)
    assert len(draw_fresh(loss)) > 2 * len(loss.nominal.book.cases)
    assert alive(known) == 0


@pytest.mark.parametrize("error", [torch.OutOfMemoryError, MemoryError])
def test_what_never_fits_is_one_clear_line_after_the_second_try(loss, error):
    calls = []

    def look():
        calls.append(1)
        raise error("never\nfits")

    look_with(loss, look)
    with pytest.raises(ProblemError) as caught:
        draw_fresh(loss)
    text = str(caught.value)
    assert "'loss' on 'shipped' inputs does not fit on the device" in text
    assert "GiB" in text
    assert "use smaller sizes" in text
    assert "\n" not in text
    assert len(calls) == 2 * (2 if error is MemoryError else 1)  # also without the lifting mode


def test_running_out_while_inputs_are_drawn_counts_and_other_failures_do_not(loss):
    namespace = loss.reference.loaded.namespace
    calls = []

    def look():
        calls.append(1)
        raise ValueError("broken")

    look_with(loss, look)
    with pytest.raises(ProblemError, match="cannot be evaluated in float64: ValueError: broken"):
        draw_fresh(loss)
    assert len(calls) == 2  # with and without the lifting mode, and not tried again

    def get_inputs():
        calls.append(1)
        raise torch.OutOfMemoryError("no room")

    look_with(loss, lambda: None)
    calls.clear()
    loss.reference.loaded.get_inputs = namespace["get_inputs"] = get_inputs
    with pytest.raises(ProblemError, match="does not fit"):
        draw_fresh(loss)
    assert len(calls) == 2


def test_a_mean_that_keeps_its_terms_is_copied_out_and_other_results_are_not():
    x, y = torch.rand(64, 64), torch.rand(64, 64)
    mean = torch.nn.functional.smooth_l1_loss(x, y)
    small = compact(mean)
    assert torch.equal(small, mean)
    assert small.untyped_storage().nbytes() == 4
    assert compact(x) is x
    assert compact(x[1:]).data_ptr() == x[1:].data_ptr()
    row = compact(x[:, -1])
    assert row.untyped_storage().nbytes() == 64 * 4
    assert torch.equal(row, x[:, -1])
    one = torch.rand(())
    assert compact(one.expand(8, 8)).data_ptr() == one.data_ptr()


def test_kept_goldens_hold_their_own_values_only(loss):
    for case in loss.nominal.book:
        draw, goldens = case.kept
        assert kept_bytes(draw, goldens) == 2 * INPUT_BYTES + 8
    draw = loss.reference.draw(1, "shipped")
    with_terms = torch.nn.functional.smooth_l1_loss(*draw.inputs)
    # what is counted is what is held
    assert kept_bytes(draw, (with_terms,)) == 3 * INPUT_BYTES


def test_a_float64_run_that_failed_leaves_nothing_behind():
    refs = []

    def run(values):
        refs.append(weakref.ref(values[0]))
        raise ValueError("broken")

    gc.disable()
    try:
        with pytest.raises(ProblemError):
            run_wide(run, (torch.rand(8),))
        assert len(refs) == 2
        assert alive(refs) == 0
    finally:
        gc.enable()


def test_what_counts_as_running_out():
    wrapped = ProblemError("m: forward: OutOfMemoryError")
    wrapped.__cause__ = torch.OutOfMemoryError("CUDA out of memory")
    for error in (torch.OutOfMemoryError(), MemoryError(), DoesNotFit("x"), wrapped):
        assert ran_out(error)
    for error in (None, ProblemError("CUDA out of memory"), RuntimeError("out of memory")):
        assert not ran_out(error)


def test_a_golden_that_cannot_be_split_says_that_it_does_not_fit(loss):
    draw = loss.reference.draw(1, "shipped")

    def look():
        raise torch.OutOfMemoryError("no room")

    look_with(loss, look)
    with pytest.raises(DoesNotFit, match="cannot be split; use smaller sizes"):
        loss.reference.golden(draw)


def test_a_batch_that_can_be_split_is_split_where_the_whole_runs_out():
    source = SOURCE.replace("smooth_l1_loss(predictions, targets)", "relu(predictions) * targets")
    problem = Problem(name="rows", kind=ProblemKind.KERNELBENCH, source=source)
    reference = build_reference(load_problem(problem, device="cpu", settings={}))
    draw = reference.draw(1, "shipped")
    whole = reference.golden(draw)[0]
    rows = []

    def look(x):
        rows.append(x.shape[0])
        if x.dtype is torch.float64 and x.shape[0] > SIDE // 8:
            raise torch.OutOfMemoryError("no room")

    reference.loaded.namespace["LOOK"] = look
    assert torch.equal(reference.golden(draw)[0], whole)
    assert max(rows[-8:]) <= SIDE // 8

    wide = []

    def look_again(x):
        wide.append(x.shape[0])
        if x.dtype is torch.float64 and len(wide) > 5:  # the whole, eager, and three rows to probe
            raise torch.OutOfMemoryError("no room")

    reference.loaded.namespace["LOOK"] = look_again
    with pytest.raises(DoesNotFit, match="one row"):
        reference.golden(draw, blocks=2)
    assert wide[-1] == 1
