"""Types: accumulators and operands of fewer bits, wrong casts, lower precision of products."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from benchmarks.mutation.rule import BOOK
from benchmarks.mutation.scope import HOST, VALUE, Site, language_call
from benchmarks.mutation.writing import argument, replaced, text, without

AT_VALUES = frozenset({VALUE})
AT_HOST = frozenset({HOST})


@BOOK.add("accumulator_fewer_bits", "types", ast.Call)
def accumulator_fewer_bits(node: ast.AST, site: Site) -> Iterator[str]:
    """Accumulate in 16 bits."""
    call = language_call(node)
    if isinstance(node, ast.Call) and call in ("zeros", "full"):
        position = 1 if call == "zeros" else 2
        dtype = argument(node, position, "dtype")
        if dtype is not None and ast.unparse(dtype) == "tl.float32":
            for fewer in ("tl.float16", "tl.bfloat16"):
                yield replaced(node, position, "dtype", fewer)


@BOOK.add("operand_fewer_bits", "types", ast.Call, roles=AT_VALUES)
def operand_fewer_bits(node: ast.AST, site: Site) -> Iterator[str]:
    """Round what was read to 16 bits."""
    if language_call(node) == "load":
        for fewer in ("tl.float16", "tl.bfloat16"):
            yield f"{text(node)}.to({fewer}).to(tl.float32)"


@BOOK.add("sum_fewer_bits", "types", ast.Call, roles=AT_VALUES)
def sum_fewer_bits(node: ast.AST, site: Site) -> Iterator[str]:
    """Round a reduced value to 16 bits."""
    if language_call(node) in ("sum", "max", "min"):
        for fewer in ("tl.float16", "tl.bfloat16"):
            yield f"{text(node)}.to({fewer}).to(tl.float32)"


@BOOK.add("result_fewer_bits", "types", ast.Call)
def result_fewer_bits(node: ast.AST, site: Site) -> Iterator[str]:
    """Round a result to 16 bits."""
    if isinstance(node, ast.Call) and language_call(node) == "store" and len(node.args) > 1:
        for fewer in ("tl.float16", "tl.bfloat16"):
            value = f"({text(node.args[1])} + 0.0).to({fewer}).to(tl.float32)"
            yield replaced(node, 1, "value", value)


@BOOK.add("value_truncated", "types", ast.Call)
def value_truncated(node: ast.AST, site: Site) -> Iterator[str]:
    """Cast a result to whole numbers on the way."""
    if isinstance(node, ast.Call) and language_call(node) == "store" and len(node.args) > 1:
        value = f"({text(node.args[1])} + 0.0).to(tl.int32).to(tl.float32)"
        yield replaced(node, 1, "value", value)


@BOOK.add("product_precision", "types", ast.Call)
def product_precision(node: ast.AST, site: Site) -> Iterator[str]:
    """Multiply in TF32: by name, and by leaving the precision to the default."""
    if isinstance(node, ast.Call) and language_call(node) == "dot":
        stated = argument(node, 9, "input_precision")
        if stated is not None:
            yield replaced(node, 9, "input_precision", "'tf32'")
            yield without(node, {"input_precision": 9})


@BOOK.add("product_operands_fewer_bits", "types", ast.Call)
def product_operands_fewer_bits(node: ast.AST, site: Site) -> Iterator[str]:
    """Round an operand of a product to 16 bits."""
    if isinstance(node, ast.Call) and language_call(node) == "dot":
        for position in (0, 1):
            rounded = f"{text(node.args[position])}.to(tl.float16).to(tl.float32)"
            yield replaced(node, position, "", rounded)


@BOOK.add("output_dtype", "types", ast.Call, roles=AT_HOST)
def output_dtype(node: ast.AST, site: Site) -> Iterator[str]:
    """Return another dtype."""
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.empty_like":
        yield f"torch.empty_like({text(node.args[0])}, dtype=torch.float16)"
    elif isinstance(node, ast.Call) and ast.unparse(node.func) == "torch.empty":
        yield replaced(node, 9, "dtype", "torch.float16")
