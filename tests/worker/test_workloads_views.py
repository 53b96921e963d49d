"""Which shapes decide, which are reported, which are held out, and how their inputs lie."""

import dataclasses

import pytest
import torch

from hotloop.core.problem import Policy, Problem, ProblemKind, Role, Workload
from hotloop.core.verdict import Tier
from hotloop.worker import fresh_books
from hotloop.worker.arena import Arena, Layout, Offset
from hotloop.worker.boundary_sizes import HELD_OUT_FRAC
from hotloop.worker.diagnosis import workload_of
from hotloop.worker.fresh_books import FINAL_SEEDS
from hotloop.worker.other_views import BUILD_S, FAST_SHAPES
from hotloop.worker.session import Session, Shortcuts
from hotloop.worker.value_profiles import MODEL_PROFILES, names

SOURCE = """
import torch
ROWS, COLUMNS = 40, 48
class Model(torch.nn.Module):
    def forward(self, x, n):
        return x * 2 + n[:, :1]
def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randint(0, 9, (ROWS, COLUMNS))]
"""
LISTED = (
    Workload(name="wide", role=Role.BOUNDARY, settings={"COLUMNS": 80}),
    Workload(name="secret", role=Role.HELD_OUT, settings={"ROWS": 5}),
)


def session_of(scope, *, source=SOURCE, listed=()):
    problem = Problem(
        name="m", kind=ProblemKind.KERNELBENCH, source=source, policy=Policy(shape_scope=scope)
    )
    problem = dataclasses.replace(problem, workloads=(*problem.workloads, *listed))
    return Session(problem, "cpu", isolation="T0", tracing=False)


@pytest.fixture(scope="module")
def generic():
    session = session_of("generic", listed=LISTED)
    yield session
    session.close()


@pytest.fixture(scope="module")
def nominal():
    session = session_of("nominal", listed=LISTED)
    yield session
    session.close()


def sizes(views):
    return [dict(view.workload.settings) for view in views]


def test_where_any_shape_must_work_a_few_decide_at_first_and_all_at_last(generic):
    fast, final = generic.views(held_out=False), generic.views(held_out=True)
    assert [v.workload.role for v in fast] == [Role.BOUNDARY] * (1 + FAST_SHAPES)
    assert fast[0].workload.name == "wide"
    assert all(v in final for v in fast)
    held_out = [v for v in final if v.workload.role is Role.HELD_OUT]
    assert len(held_out) >= HELD_OUT_FRAC * len(final)
    assert "secret" in [v.workload.name for v in held_out]
    assert list(generic.reported_views()) == []
    made = [v for v in final if "made" in v.workload.name]
    for name, own in (("ROWS", 40), ("COLUMNS", 48)):
        assert any(v.workload.settings[name] != own for v in made)
    assert generic.views(held_out=True) == final  # the same for the next candidate


def test_where_only_its_own_sizes_must_work_all_others_are_reported(nominal):
    assert nominal.views(held_out=False) == nominal.views(held_out=True) == []
    reported = list(nominal.reported_views())
    assert reported[0].shape.offset is Offset.SIXTEEN
    assert reported[0].workload.settings == nominal.nominal.workload.settings
    roles = [v.workload.role for v in reported]
    assert roles.count(Role.HELD_OUT) >= HELD_OUT_FRAC * len(roles)
    assert {"wide", "secret"} < {v.workload.name for v in reported}
    assert all(v.shape.offset is Offset.NONE for v in reported[1:])


def test_shown_shapes_follow_from_the_problem_and_held_out_ones_do_not(generic):
    other = session_of("generic", listed=LISTED)
    try:
        views = {v.workload.name: v for v in generic.views(held_out=True)}
        again = {v.workload.name: v for v in other.views(held_out=True)}
        assert views.keys() == again.keys()
        shown = [name for name in views if name.startswith("boundary")]
        hidden = [name for name in views if name.startswith("held_out")]
        assert sizes(views[n] for n in shown) == sizes(again[n] for n in shown)
        assert sizes(views[n] for n in hidden) != sizes(again[n] for n in hidden)
    finally:
        other.close()


def test_what_is_held_out_has_no_sizes_in_what_is_told(generic):
    for view in generic.views(held_out=True):
        told = workload_of(view.reference.loaded.problem, view.workload.name)
        if view.workload.role is Role.HELD_OUT:
            assert told == {"role": "held_out"}
        else:
            assert view.workload.settings.items() <= told["settings"].items()
            assert ("input_offset" in told["settings"]) == (view.shape.offset is not Offset.NONE)


def test_inputs_are_offset_where_a_kernel_must_not_assume_alignment(generic):
    offsets = {view.shape.offset for view in generic.views(held_out=True)}
    assert offsets == set(Offset)
    assert Offset.ELEMENT in {view.shape.offset for view in generic.views(held_out=False)}
    for view in generic.views(held_out=True):
        inputs, outputs = view.board.sets[0]
        for slot, itemsize in zip(inputs, (4, 8), strict=True):
            expected = {"none": 0, "sixteen": 16, "element": itemsize}[view.shape.offset]
            assert slot.offset % 512 == expected
            assert view.board.arena.view(slot).data_ptr() % 256 == expected
        assert all(slot.offset % 512 == 0 for slot in outputs)


@pytest.mark.parametrize("offset", list(Offset))
def test_a_write_just_before_an_offset_tensor_shows(offset):
    layout = Layout()
    slot = layout.place((5,), (1,), torch.float32, offset=offset)
    arena = Arena.create("cpu", layout.size_bytes)
    arena.fill_gaps(layout)
    arena.view(slot).fill_(1.5)
    assert arena.gaps_intact(layout)
    arena.bytes[slot.offset - 1] = 0
    assert not arena.gaps_intact(layout)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("before", [(3,), (4,)], ids=["odd bytes before", "even bytes before"])
def test_what_lies_beside_a_tensor_is_not_a_number(dtype, before):
    layout = Layout()
    layout.place(before, (1,), torch.uint8)
    slot = layout.place((5,), (1,), dtype, offset=Offset.ELEMENT)
    arena = Arena.create("cpu", layout.size_bytes)
    arena.fill_gaps(layout)
    end = slot.offset + slot.span_bytes
    after = arena.bytes[end : end + 64 * dtype.itemsize].view(dtype)
    assert bool(after.isnan().all())
    near = arena.bytes[slot.offset - 64 * dtype.itemsize : slot.offset].view(dtype)
    assert bool(near.isnan().all())
    arena.view(slot).fill_(2)
    assert arena.gaps_intact(layout)
    after[0] = after[1]  # the same bits
    assert arena.gaps_intact(layout)
    for stored in (0.0, float("nan")):
        after[3] = stored
        assert not arena.gaps_intact(layout)
        arena.fill_gaps(layout)
    after.view(torch.uint8)[:8] = 255  # a whole number, -1
    assert not arena.gaps_intact(layout)


def test_the_final_tier_has_every_profile_and_new_seeds(nominal):
    known = {case.seed for case in nominal.nominal.book}
    cases = [case for book in nominal.fresh_books(nominal.nominal, {}) for case in book]
    assert not known & {case.seed for case in cases}
    assert len({case.seed for case in cases}) == len(cases)
    profiles = [case.profile for case in cases]
    assert profiles.count("shipped") == FINAL_SEEDS >= 5
    not_here = {
        "integers",
        "parameters",
        "biased",
        "opposed",
        "lowered",
        "alike",
    }  # of no use to it
    assert set(profiles) == set(names(MODEL_PROFILES)) - not_here
    assert {case.profile for case in nominal.nominal.book} == set(profiles) & set(
        names(MODEL_PROFILES, Tier.FAST)
    )


def test_a_final_tier_that_takes_long_leaves_out_what_is_optional_and_says_so(nominal, monkeypatch):
    monkeypatch.setitem(fresh_books.LATE_S, "cpu", 0.0)
    skipped = {}
    cases = [case for book in nominal.fresh_books(nominal.nominal, skipped) for case in book]
    known = [case.profile for case in nominal.nominal.book]
    assert [case.profile for case in cases] == known
    assert "correctness:a further seed of shipped" in skipped
    assert len(skipped) == 1 + len(nominal.nominal.reference.final_profiles)
    assert all("no time was left" in why for why in skipped.values())
    skipped.clear()
    monkeypatch.setitem(fresh_books.LATE_S, "cpu", 600.0)
    assert len(list(nominal.fresh_books(nominal.nominal, skipped))) > len(known)
    assert skipped == {}


def test_a_fast_check_has_few_cases(nominal, generic):
    """Three seeds of the file's values and one of each other profile; two on a shape of ours."""
    assert len(nominal.nominal.book.cases) == 8
    made = [v for v in generic.views(held_out=False) if "made" in v.workload.name]
    assert [len(v.book.cases) for v in made] == [2] * FAST_SHAPES


@pytest.mark.parametrize(("slow", "left"), [("boundary", "held_out"), ("held_out", "boundary")])
def test_shapes_of_one_role_take_no_time_from_those_of_the_other(slow, left):
    session = session_of("generic")
    session._others._spent_s[Role(slow)] = 2 * BUILD_S
    try:
        made = [v.workload for v in session.views(held_out=True) if "made" in v.workload.name]
        kept = FAST_SHAPES if slow == "boundary" else 0  # made before, for the fast tier
        assert sum(w.role == slow for w in made) == kept
        assert sum(w.role == left for w in made) >= 3
    finally:
        session.close()


def test_a_problem_without_sizes_says_so_once():
    source = SOURCE.replace("(ROWS, COLUMNS)", "(40, 48)").replace("ROWS, COLUMNS)", "40, 48)")
    session = session_of("generic", source=source)
    try:
        assert session.views(held_out=True) == []
        assert sum("no other sizes" in note for note in session.info.notes) == 1
    finally:
        session.close()


COUNTED = SOURCE.replace("    def forward", "    calls = 0\n    def forward").replace(
    "return x * 2", "Model.calls += 1\n        return x * 2"
)


def test_shapes_are_told_once_before_the_other_cases_are_made():
    problem = Problem(name="m", kind=ProblemKind.KERNELBENCH, source=COUNTED, policy=Policy())
    told = []

    def calls(reference):
        return reference.loaded.model_class.calls

    def note(reference, draw):
        told.append((calls(reference), [tuple(x.shape) for x in draw.inputs]))

    shortcuts = Shortcuts(on_first_case=note, await_quiet=lambda: told.append("quiet"))
    session = Session(problem, "cpu", isolation="T0", tracing=False, shortcuts=shortcuts)
    (at_first, shapes), quiet = told
    assert (shapes, quiet) == ([(40, 48), (40, 48)], "quiet")
    assert 0 < at_first < calls(session.reference) / 2
    session.close()
