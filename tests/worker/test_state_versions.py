"""New values of parameters are seen by whoever counts versions, as after an optimiser's step."""

import torch

from hotloop.worker.module_host import HostedModel


class Folded(torch.nn.Module):
    """Folds its weight once for each version of it."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(3), requires_grad=False)
        self.register_buffer("shift", torch.zeros(3))
        self.register_buffer("absent", None)
        with torch.inference_mode():
            self.register_buffer("table", torch.arange(3))
        self._folded, self._key = None, None

    def forward(self, x):
        key = self.weight._version, self.shift._version
        if key != self._key:
            self._folded, self._key = self.weight + self.shift, key
        return x * self._folded


def write_unseen(tensor):
    """As the judge does it from its own process: no version counts it."""
    tensor.data.numpy()[...] = 5.0


def test_prepare_tells_that_parameters_and_buffers_changed():
    model = Folded()
    hosted = HostedModel(None, model, {})
    x = torch.ones(3)
    assert model(x).tolist() == [1, 1, 1]
    write_unseen(model.weight)
    assert model(x).tolist() == [1, 1, 1]  # nobody told it
    hosted.prepare()
    assert model(x).tolist() == [5, 5, 5]
    write_unseen(model.shift)
    hosted.prepare()
    assert model(x).tolist() == [10, 10, 10]


def test_nothing_looks_new_between_two_calls():
    model = Folded()
    HostedModel(None, model, {}).prepare()
    model(torch.ones(3))
    key = model._key
    model(torch.ones(3))
    assert key == model._key
