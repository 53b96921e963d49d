"""Side streams: joined in plain sight they are allowed, all else is refused."""

import pytest

from hotloop.core.candidate import Candidate, SourceFile
from hotloop.core.problem import Policy
from hotloop.verify.static_rules import check_candidate

HEAD = """
import torch, triton
import triton.language as tl
from torch.cuda import stream as enter

@triton.jit
def double(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y + i, 2 * tl.load(x + i, mask=i < n), mask=i < n)

def launch(x, y):
    double[(triton.cdiv(x.numel(), 128),)](x, y, x.numel(), BLOCK=128)

class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        current, side = torch.cuda.current_stream(), torch.cuda.Stream()
        side.wait_stream(current)
"""
WITH = "with torch.cuda.stream(side):\n    launch(x, y)\n"
WAIT = "current.wait_stream(side)\n"
JOINED = {
    "at once": WITH + WAIT,
    "by the current stream": WITH + "torch.cuda.current_stream().wait_stream(side)\n",
    "after other work": WITH + "z = x + 1\nlaunch(x, z)\n" + WAIT,
    "two streams": (
        "other = torch.cuda.Stream()\nother.wait_stream(current)\n"
        + WITH
        + WITH.replace("side", "other")
        + WAIT
        + WAIT.replace("side", "other")
    ),
    "kept by the module": ("side.wait_stream(current)\n" + WITH + WAIT).replace(
        "side", "self.side"
    ),
    "one of several": ("side.wait_stream(current)\n" + WITH + WAIT).replace("side", "sides[0]"),
    "a loop inside": WITH + "    for _ in range(2):\n        continue\n" + WAIT,
    "a function between": WITH + "def g():\n    return 1\n" + WAIT,
    "in a branch": "if x.numel() > 1:\n    with torch.cuda.stream(side):\n        launch(x, y)\n"
    "    current.wait_stream(side)\n",
    "under another name": (WITH + WAIT).replace("torch.cuda.stream", "enter"),
    "never entered": "launch(x, y)\n",
    "with something else": "with torch.no_grad():\n    launch(x, y)\n",
}
UNJOINED = {
    "not at all": WITH,
    "before": WAIT + WITH,
    "another stream": WITH + WAIT.replace("side", "current"),
    "perhaps": WITH + "if x.numel() > 9:\n    current.wait_stream(side)\n",
    "after a return": WITH + "if x.numel() > 9:\n    return y\n" + WAIT,
    "after a return inside": WITH + "    return y\n" + WAIT,
    "the name was given away": WITH + "side = torch.cuda.Stream()\n" + WAIT,
    "given away inside": WITH + "    side = torch.cuda.Stream()\n" + WAIT,
    "the module's was given away": (
        "side.wait_stream(current)\n" + WITH + "side = torch.cuda.Stream()\n" + WAIT
    ).replace("side", "self.side"),
    "nobody was waited for": (
        "other = torch.cuda.Stream()\n" + (WITH + WAIT).replace("side", "other")
    ),
    "the current one of a loop": "for current in [side]:\n    pass\n" + WITH + WAIT,
    "the current one by :=": "(current := side)\n" + WITH + WAIT,
    "current inside": WITH + "    current = torch.cuda.current_stream()\n" + WAIT,
    "an assertion between": WITH + "assert x.numel() > 9\n" + WAIT,
    "by itself": WITH + "side.wait_stream(side)\n",
    "by something else": WITH + "self.other.wait_stream(side)\n",
    "by what is no longer current": "current = torch.cuda.Stream()\n" + WITH + WAIT,
    "a stream of the loop": "for s in self.sides:\n    with torch.cuda.stream(s):\n"
    "        launch(x, y)\ncurrent.wait_stream(side)\n",
    "by the accelerator": "torch.accelerator.set_stream(side)\nlaunch(x, y)\n" + WAIT,
    "by its module": "torch.get_device_module('cuda').set_stream(side)\nlaunch(x, y)\n",
    "without a name": "with torch.cuda.stream(torch.cuda.Stream()):\n    launch(x, y)\n",
    "entered as it is": "with side:\n    launch(x, y)\n" + WAIT,
    "entered where it is made": "with torch.cuda.Stream():\n    launch(x, y)\n",
    "entered by hand": "torch.cuda.stream(side).__enter__()\nlaunch(x, y)\n" + WAIT,
    "by a stack": "stack.enter_context(torch.cuda.stream(side))\nlaunch(x, y)\n" + WAIT,
    "by another name": "go = torch.cuda.stream\nwith go(side):\n    launch(x, y)\n",
    "by getattr": "with getattr(torch.cuda, 'str' + 'eam')(side):\n    launch(x, y)\n",
    "by its class": "with torch.cuda.StreamContext(side):\n    launch(x, y)\n" + WAIT,
    "for all that follows": "torch.cuda.set_stream(side)\nlaunch(x, y)\n" + WAIT,
}


def refusal(body):
    text = HEAD + "".join(f"        {line}\n" for line in body.splitlines()) + "        return y\n"
    source = SourceFile(path="kernel.py", text=text)
    return check_candidate(Candidate(language="triton", sources=(source,)), Policy())


@pytest.mark.parametrize("name", JOINED)
def test_a_stream_that_is_joined_is_allowed(name):
    found = refusal(JOINED[name])
    assert found is None, found


@pytest.mark.parametrize("name", UNJOINED)
def test_a_stream_that_is_not_joined_is_refused(name):
    found = refusal(UNJOINED[name])
    assert found is not None
    assert found.rule in ("unjoined_stream", "banned_name")
