"""Small sizes of a decode step where there is no GPU: whole pages, and two batches."""

import pytest

from hotloop.errors import ConfigError
from hotloop.problems.attention import attention_problem

SIZES = "B, H, Hkv, S, Skv, D = 32, 32, 8, 1, 8192, 128\n"
SMALL = {"B": 2, "H": 4, "Hkv": 1, "S": 1, "Skv": 512}


def small(source, device="cpu", **settings):
    problem = attention_problem(source, "p", device=device, settings=settings)
    return problem.workloads[0].settings


@pytest.mark.parametrize(
    ("page_size", "keys"), [("", 512), ("16", 512), ("64", 512), ("256", 512)]
)  # fmt: skip
def test_a_large_decode_step_shrinks_to_whole_pages(page_size, keys):
    source = SIZES + (f"page_size = {page_size}\n" if page_size else "")
    assert small(source) == {**SMALL, "Skv": keys}
    assert small(source, device="cuda") == {}


def test_what_is_set_stays_and_pages_divide_the_rest():
    assert small(SIZES, page_size=128, B=3) == {n: v for n, v in SMALL.items() if n != "B"}
    assert "Skv" not in small(SIZES, Skv=4096)


def test_a_small_decode_step_stays():
    assert small("B, H, Hkv, S, Skv, D = 2, 4, 2, 4, 1024, 64\n") == {}


def test_many_queries_shrink_as_before():
    source = "B, H, S, D = 4, 16, 4096, 128\n"
    assert small(source) == {"B": 1, "H": 2, "S": 128}
    assert small("B, H, S, D = 1, 2, 16, 64\n") == {}


def test_a_page_size_can_be_set_where_the_file_has_none():
    attention_problem(SIZES, "p", device="cuda", settings={"page_size": 64})
    with pytest.raises(ConfigError, match="did you mean page_size"):
        attention_problem(SIZES, "p", device="cuda", settings={"pagesize": 64})
