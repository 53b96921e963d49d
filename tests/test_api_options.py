"""The library's front door names an option that it does not know, and takes those that it does."""

import pytest

import hotloop
from hotloop.errors import ConfigError


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: hotloop.optimize("x.py", bugdet="5m"), "unknown option 'bugdet'; known: budget"),
        (lambda: hotloop.verify("x.py", "k.py", budget=3), "unknown option 'budget'; known: data"),
        (
            lambda: hotloop.optimize(len, [1], settings={"N": 1}),
            "a live function has no constants",
        ),
        (lambda: hotloop.optimize("nowhere.py", budget="3s", device="cpu"), "no such file"),
    ],
)
def test_what_is_wrong_is_named(call, told):
    with pytest.raises(ConfigError, match=told):
        call()
