"""Every mutation rule changes what it says it changes, and leaves the rest of the file alone."""

import ast

import pytest
from benchmarks.mutation.rule import BOOK, canonical, difference, mutants
from benchmarks.mutation.rules import GROUPS, RULES, rules_of
from benchmarks.mutation.substrates import MUTANTS

KERNEL = """
import torch
import triton
import triton.language as tl

BLOCK = 32


@triton.jit
def softmax_kernel(x_ptr, w_ptr, y_ptr, n, m, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0) // m
    top = tl.full([BLOCK], float("-inf"), tl.float32)
    acc = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + i, mask=(i < n) & (row < m), other=float("-inf"))
        new_top = tl.maximum(top, x)
        acc = acc * tl.exp(top - new_top) + tl.exp(x - new_top)
        top = new_top
        acc += 0.0
    w = tl.load(w_ptr + row, mask=row < m, other=0.0)
    mean = tl.sum(acc, 0) / n
    y = tl.where(mean > 0.5, -w, w) * 1.4427 / tl.sqrt(mean + eps)
    p = tl.dot(y, w, acc, input_precision="ieee")
    s = tl.cumsum(p, 0)
    tl.store(y_ptr + row * tl.cdiv(n, BLOCK) + 1, s[:, None], mask=row < m)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.eps = 1e-5

    def forward(self, x):
        y = torch.empty_like(x)
        n = x.shape[1]
        softmax_kernel[(triton.cdiv(n, BLOCK), n)](
            x, self.norm.weight, y, n, x.shape[0], self.eps, KERNEL=n, BLOCK=BLOCK
        )
        return y
"""

EXPECTED = {
    "load_mask_dropped": "+        x = tl.load(x_ptr + row * n + i)",
    "store_mask_dropped": "+    tl.store(y_ptr + row * tl.cdiv(n, BLOCK) + 1, s[:, None])",
    "comparison_edge": "mask=(i <= n) & (row < m)",
    "comparison_negated": "mask=(i >= n) & (row < m)",
    "bound_short": "mask=(i < n - 1) & (row < m)",
    "bound_long": "mask=(i < n + 1) & (row < m)",
    "mask_term_dropped": "mask=i < n, other",
    "mask_and_to_or": "mask=(i < n) | (row < m)",
    "other_zero": "mask=(i < n) & (row < m), other=0.0)",
    "other_one": "mask=row < m, other=1.0)",
    "other_dropped": "+    w = tl.load(w_ptr + row, mask=row < m)",
    "identity_zero": "+    top = tl.full([BLOCK], 0.0, tl.float32)",
    "accumulator_start": "+    acc = tl.full([BLOCK], 1, tl.float32)",
    "accumulator_overwritten": "+        acc = 0.0",
    "rescale_dropped": "+        acc = acc + tl.exp(x - new_top)",
    "updated_too_early": "+        top = new_top",
    "reduction_swapped": "+        new_top = tl.minimum(top, x)",
    "axis_swapped": "+    mean = tl.sum(acc, 1) / n",
    "scan_exclusive": "+    s = tl.cumsum(p, 0) - p",
    "dot_accumulator_dropped": "+    p = tl.dot(y, w, input_precision='ieee')",
    "dot_operands_swapped": "+    p = tl.dot(w, y, acc, input_precision='ieee')",
    "dot_transposed": "+    p = tl.dot(tl.trans(y), w, acc, input_precision='ieee')",
    "product_precision": "input_precision='tf32')",
    "accumulator_fewer_bits": "+    acc = tl.zeros([BLOCK], tl.float16)",
    "operand_fewer_bits": ".to(tl.float16).to(tl.float32)",
    "maximum_not_subtracted": "tl.exp(x)",
    "function_dropped": "+        acc = acc * (top - new_top) + tl.exp(x - new_top)",
    "function_swapped": "tl.exp2(top - new_top)",
    "clamp_dropped": "+        new_top = x",
    "branches_swapped": "tl.where(mean > 0.5, w, -w)",
    "negation_dropped": "tl.where(mean > 0.5, w, w)",
    "constant_dropped": "* 1.0 /",
    "constant_nudged": "* 1.4441427 /",
    "epsilon_dropped": "tl.sqrt(mean + 0.0)",
    "epsilon_moved": "/ (tl.sqrt(mean) + eps)",
    "count_off_by_one": "+    mean = tl.sum(acc, 0) / (n - 1)",
    "count_is_block": "+    mean = tl.sum(acc, 0) / BLOCK",
    "count_of_other_size": "+    mean = tl.sum(acc, 0) / m",
    "loop_starts_late": "range(0 + BLOCK, n, BLOCK)",
    "loop_stops_early": "range(0, n - BLOCK, BLOCK)",
    "loop_rounds_down": "range(0, n // BLOCK * BLOCK, BLOCK)",
    "loop_step_doubled": "range(0, n, 2 * BLOCK)",
    "tile_count_floored": "row * (n // BLOCK)",
    "program_axis": "tl.program_id(1) // m",
    "program_ignored": "tl.program_id(0) * 0 // m",
    "quotient_remainder": "tl.program_id(0) % m",
    "size_swapped": "tl.program_id(0) // n",
    "stride_dropped": "x_ptr + row + i",
    "address_term_dropped": "x_ptr + row * n, mask",
    "store_shifted": "+ 1 + 1, s[:, None]",
    "broadcast_swapped": "s[None, :]",
    "grid_short": "[max(1, triton.cdiv(n, BLOCK) - 1), n]",
    "grid_swapped": "[n, triton.cdiv(n, BLOCK)]",
    "grid_floored": "[max(1, n // BLOCK), n]",
    "arguments_swapped": "(self.norm.weight, x, y,",
    "argument_off_by_one": "n - 1, x.shape[0]",
    "option_off_by_one": "KERNEL=n + 1",
    "weight_ignored": "torch.ones_like(self.norm.weight)",
    "setting_folded": "x.shape[0], 1.0, KERNEL",
    "input_overwritten": "+        y = x",
    "kernel_left_out": "+        pass",
    "output_dtype": "torch.empty_like(x, dtype=torch.float16)",
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_rule_writes_the_fault_it_names(name):
    changed = [difference(KERNEL, m.source) for m in mutants(KERNEL, [RULES[name]])]
    assert any(EXPECTED[name] in diff for diff in changed), changed


def test_there_are_many_rules_each_of_a_known_class():
    assert len(RULES) >= 40
    assert {rule.group for rule in RULES.values()} == set(GROUPS)
    assert set(RULES) == set(BOOK.rules)


@pytest.mark.parametrize("name", ["elu", "max_reduction"])
def test_mutants_of_a_kernel_differ_parse_and_keep_to_a_few_lines(name):
    source = (MUTANTS / "kernels" / f"{name}.py").read_text(encoding="utf-8")
    found = mutants(source, list(RULES.values()), per_rule=2)
    assert len({m.digest for m in found}) == len(found) > 20
    for mutant in found:
        ast.parse(mutant.source)
        assert 0 < difference(source, mutant.source).count("\n") + 1 <= 6


def test_rules_leave_constants_docstrings_and_decorators_alone():
    found = mutants(KERNEL, list(RULES.values()))
    for mutant in found:
        assert "\nBLOCK = 32\n" in mutant.source
        assert "@triton.jit" in mutant.source


def test_the_seed_chooses_the_places_and_nothing_else():
    rules = rules_of("addresses")
    first, again, other = (mutants(KERNEL, rules, per_rule=1, seed=s) for s in (0, 0, 5))
    assert first == again
    assert {m.rule for m in first} == {m.rule for m in other}
    assert first != other


def test_a_rule_that_changes_nothing_gives_no_mutant():
    assert mutants(canonical("import torch\n"), list(RULES.values())) == []


def test_an_unknown_rule_is_named():
    with pytest.raises(ValueError, match="nonsense"):
        rules_of("masks,nonsense")
    assert {r.group for r in rules_of("masks,loop_once")} == {"masks", "loops"}
