"""Admission runs a reference no more often than there is something new to see."""

import torch
from problem_files import forward
from torch.utils._python_dispatch import TorchDispatchMode

from hotloop.worker.reference import build_reference

CONV = "self.c = torch.nn.Conv2d(4, 8, 3, bias=False); self.n = torch.nn.GroupNorm(4, 8)"


class Runs(TorchDispatchMode):
    """Counts runs in float32, each of which has one sinc."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        is_sinc = func is torch.ops.aten.sinc.default
        self.count += is_sinc and args[0].dtype is torch.float32
        return func(*args, **(kwargs or {}))


def runs(body, shape="24, 64", init="pass"):
    with Runs() as seen:
        build_reference(forward(body, f"torch.randn({shape})", init=init))
    return seen.count


def test_an_extremum_that_shows_at_once_costs_no_run():
    usual = runs("x + torch.sinc(y := x * 0) * y")
    assert runs("torch.softmax(x, 1) + torch.sinc(y := x * 0) * y") == usual
    assert runs("torch.logsumexp(x, 1) + torch.sinc(y := x[:, 0] * 0) * y") == usual


def test_where_none_shows_each_form_is_run_once():
    """Of five forms the first is run anyway."""
    body = "torch.sinc(x).{}(1)"
    assert runs(body.format("amax")) - runs(body.format("mean")) == 4


def test_products_without_a_bias_are_looked_at_twice_and_not_tried_in_vain():
    body = "self.n(self.c(x)).{} + torch.sinc(x).sum() * 0"
    shape = "4, 4, 8, 8"
    more = runs(body.format("amax(1)"), shape, CONV) - runs(body.format("mean(1)"), shape, CONV)
    assert more == 4 + 5
