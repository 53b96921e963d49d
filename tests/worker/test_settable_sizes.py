"""Which constants of a file are sizes that settings can replace."""

from hotloop.worker.overrides import settable_sizes


def sizes(source, **now):
    namespace = {}
    exec(source, namespace)
    return settable_sizes(source, namespace | now)


def test_whole_numbers_that_are_written_out_are_found():
    assert sizes("M = 4\nN: int = 8\nB, H = 2, 16\nP = Q = 3\n") == {
        "M": 4, "N": 8, "B": 2, "H": 16, "P": 3, "Q": 3,
    }  # fmt: skip


def test_what_is_derived_or_no_whole_number_is_not():
    source = "M = 4\nN = 2 * M\neps = 1e-5\nflag = True\nname = 'x'\n(a, b) = (1, M)\nl = [1]\n"
    assert sizes(source) == {"M": 4, "a": 1}


def test_the_value_in_force_counts():
    assert sizes("M = 4\n", M=64) == {"M": 64}
    assert sizes("M = 4\n", M="text") == {}
