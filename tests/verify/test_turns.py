"""Turns on one GPU: first come, first served; room in its memory; what it did meanwhile."""

import threading
import time

import pytest

from hotloop.errors import TurnGivenUp
from hotloop.testing.fakes import FakeClock
from hotloop.verify.turns import KEPT_FRAC, KEPT_PER_IO, Turns

SOON_S = 10.0
MEMORY = 12_000
FITS = int(KEPT_FRAC * MEMORY / KEPT_PER_IO)
"""io_bytes of the largest problems that fit beside each other, together."""


def never():
    return False


def until(condition):
    end = time.monotonic() + SOON_S
    while not condition():
        assert time.monotonic() < end, "it never came to that"
        time.sleep(0.002)


class Waiter:
    """Waits for a turn in a thread; `ticket` once it has it, `error` where it gave up."""

    def __init__(self, turns, guest, candidate=None, given_up=never):
        self.turns, self.guest = turns, guest
        self.ticket = self.error = None
        self._call = (guest, candidate, given_up)
        self.thread = threading.Thread(target=self._work, daemon=True)
        self.thread.start()
        until(lambda: self._is_queued() or not self.thread.is_alive())

    def _is_queued(self):
        return any(ticket.guest is self.guest for ticket in list(self.turns._queue))

    def _work(self):
        try:
            self.ticket = self.turns.wait(*self._call)
        except TurnGivenUp as exc:
            self.error = exc

    def joined(self):
        self.thread.join(SOON_S)
        assert not self.thread.is_alive()
        return self


@pytest.fixture
def turns():
    return Turns(clock=FakeClock())


def guests(turns, count=3):
    return [turns.enter(lambda: None) for _ in range(count)]


def test_one_at_a_time_and_first_come_first_served(turns):
    first, second, third = guests(turns)
    ticket = turns.wait(first, None, never)
    waiting = [Waiter(turns, guest) for guest in (third, second, first)]
    order = []
    for waiter in waiting:
        assert all(w.ticket is None for w in waiting[len(order) :])
        turns.end(ticket)
        ticket = waiter.joined().ticket
        assert turns.has_turn(waiter.guest)
        order.append(waiter.guest)
    assert order == [third, second, first]


def test_who_asks_again_at_once_comes_behind_those_who_wait(turns):
    eager, patient = guests(turns, 2)
    ticket = turns.wait(eager, None, never)
    waiter = Waiter(turns, patient)
    turns.end(ticket)
    again = Waiter(turns, eager)
    assert waiter.joined().ticket is not None
    assert again.ticket is None
    turns.end(waiter.ticket)
    assert again.joined().ticket is not None


def test_who_gives_up_leaves_the_turn_to_others(turns):
    first, second, third = guests(turns)
    is_stopped = threading.Event()
    ticket = turns.wait(first, None, never)
    stopped = Waiter(turns, second, given_up=is_stopped.is_set)
    other = Waiter(turns, third)
    is_stopped.set()
    assert isinstance(stopped.joined().error, TurnGivenUp)
    turns.end(ticket)
    assert other.joined().ticket is not None


def test_a_run_that_leaves_waits_no_longer(turns):
    first, second = guests(turns, 2)
    turns.wait(first, None, never)
    waiter = Waiter(turns, second)
    turns.leave(second)
    assert isinstance(waiter.joined().error, TurnGivenUp)


def test_a_turn_that_is_free_is_taken_even_by_who_would_give_up(turns):
    (guest,) = guests(turns, 1)
    assert turns.wait(guest, None, lambda: True) is not None


def test_a_turn_that_was_taken_back_ends_once(turns):
    first, second = guests(turns, 2)
    lost = turns.wait(first, None, never)
    turns.take_back(second)
    assert turns.has_turn(first), "it is not the other's to give back"
    turns.take_back(first)
    turns.wait(second, None, never)
    turns.end(lost, is_verdict=True)
    assert turns.has_turn(second)
    assert turns.use().verdicts == 0


def test_time_is_work_idleness_or_nobodys(turns):
    clock, (guest, other) = turns._clock, guests(turns, 2)
    clock.advance(100.0)  # nothing to do
    ticket = turns.wait(guest, None, never)
    clock.advance(10.0)  # works
    turns.ready(other, "a")
    clock.advance(5.0)  # works, and something waits
    turns.end(ticket, is_verdict=True)
    clock.advance(3.0)  # does nothing, and something waits
    ticket = turns.wait(other, "a", never)
    clock.advance(1.0)
    turns.end(ticket, is_verdict=True)
    clock.advance(41.0)  # nothing to do
    use = turns.use()
    assert (use.worked_s, use.idle_s, use.wall_s, use.verdicts) == (16.0, 3.0, 160.0, 2)
    assert use.idle_frac == pytest.approx(3 / 19)
    assert use.verdicts_per_minute == pytest.approx(2 * 60 / 160)


def test_what_waits_no_more_is_not_waited_for(turns):
    (guest,) = guests(turns, 1)
    turns.ready(guest, "never verified")
    turns.ready(guest, "taken over")
    turns.not_ready(guest, "taken over")
    turns.leave(guest)
    turns._clock.advance(7.0)
    assert turns.use().idle_s == 0.0


@pytest.mark.parametrize(("is_over", "idle_s"), [(False, 7.0), (True, 0.0)])
def test_a_candidate_waits_until_it_has_its_verdict(turns, is_over, idle_s):
    (guest,) = guests(turns, 1)
    turns.ready(guest, "a")
    if is_over:
        turns.not_ready(guest, "a")
    turns._clock.advance(7.0)
    assert turns.use().idle_s == idle_s


def shared(*io_bytes, load_s=5.0):
    """A GPU with a judge for each problem, all of them loaded, in order; and who was dropped."""
    turns, dropped = Turns(memory_bytes=MEMORY, clock=FakeClock()), []
    held = [turns.enter(lambda i=i: dropped.append(i)) for i in range(len(io_bytes))]
    for guest, size in zip(held, io_bytes, strict=True):
        guest.io_bytes, guest.holds_judge, guest.load_s = size, True, load_s
        turns._clock.advance(1.0)
        guest.used_s = turns._clock()
    return turns, held, dropped


def test_judges_that_fit_stay():
    turns, held, dropped = shared(FITS // 3, FITS // 3, FITS // 3)
    turns.make_room(held[0])
    assert dropped == []


def test_the_judge_that_was_idle_for_longest_makes_room():
    turns, held, dropped = shared(FITS // 3, FITS // 3, FITS // 3)
    late = turns.enter(lambda: None)
    late.io_bytes = FITS // 2
    turns.make_room(late)
    assert dropped == [0, 1]
    assert [guest.holds_judge for guest in held] == [False, False, True]
    assert [guest.drops for guest in held] == [1, 1, 0]


def test_who_costs_another_its_judge_waits_as_long_as_that_load_takes():
    turns, held, _ = shared(FITS, 0, load_s=5.0)
    big, small = held
    returning = turns.enter(lambda: None)
    returning.io_bytes = FITS // 2
    waiter = Waiter(turns, returning)
    for guest in (small, big):  # what fits goes on meanwhile
        turns.end(turns.wait(guest, None, never))
    assert waiter.ticket is None
    turns._clock.advance(6.0)
    assert waiter.joined().ticket is not None


def test_a_judge_that_has_just_loaded_again_keeps_its_place_for_as_long():
    turns, held, _ = shared(FITS, load_s=5.0)
    (big,) = held
    returning = turns.enter(lambda: None)
    returning.io_bytes = FITS // 2
    ticket = turns.wait(big, None, never)
    waiter = Waiter(turns, returning)
    turns._clock.advance(5.0)  # it waits while the other one loads
    turns.loaded(big, 5.0)
    turns.end(ticket)
    turns.end(turns.wait(big, "a", never))
    assert waiter.ticket is None
    turns._clock.advance(5.0)
    assert waiter.joined().ticket is not None


def test_where_the_memory_is_unknown_nobody_is_dropped():
    turns = Turns(clock=FakeClock())
    dropped = []
    first, second = (turns.enter(lambda: dropped.append(1)) for _ in range(2))
    first.holds_judge, first.io_bytes, second.io_bytes = True, 10**15, 10**15
    turns.make_room(second)
    assert dropped == []
    assert turns.clear(second)
    assert dropped == [1]
    assert not turns.clear(second)
