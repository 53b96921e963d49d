"""A Triton file as a syntax tree with numbers: kernels, their launches, and values of names.

A name may have several values (autotuned or declared tunable), so values are sets; a name whose
values cannot be read has none. Nothing is run: only constants, arithmetic, shapes of `forward`'s
arguments, and what launches pass to kernels.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from hotloop.core.python_source import dotted
from hotloop.prompts.programs import is_kernel

Values = frozenset[int]
Names = Mapping[str, Values]
MAX_VALUES = 64
_KEEPS_SHAPE = ("contiguous", "to", "cuda", "float", "half", "bfloat16", "detach", "clone")

_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}
_NOTHING: Values = frozenset()


@dataclass(slots=True)
class Kernel:
    """One kernel: its function, the values of its names, and where names come from."""

    function: ast.FunctionDef
    names: dict[str, Values]
    defined_by: dict[str, list[ast.expr]] = field(default_factory=dict)
    """Local name -> every expression assigned to it."""
    stages: Values = frozenset({3})
    """`num_stages` of its launches; 3 is Triton's own default on NVIDIA GPUs."""
    sizes: dict[str, dict[str, Values]] = field(default_factory=dict)
    """Block as the kernel calls it -> sizes that launches divide by it, as text, with values."""

    def sources(self, expression: ast.AST) -> Iterator[ast.AST]:
        """Yield the nodes of an expression and of everything that its names were made from."""
        seen: set[str] = set()
        pending: list[ast.AST] = [expression]
        while pending:
            for node in ast.walk(pending.pop()):
                yield node
                if isinstance(node, ast.Name) and node.id not in seen:
                    seen.add(node.id)
                    pending += self.defined_by.get(node.id, [])

    def blocks(self, expression: ast.AST) -> dict[str, Values]:
        """Return the `tl.arange(0, X)` that an expression is made of: X as text, its values."""
        found = {}
        for node in self.sources(expression):
            if is_call(node, "arange") and isinstance(node, ast.Call) and len(node.args) == 2:
                found[ast.unparse(node.args[1])] = evaluate(node.args[1], self.names)
        return found

    def sizes_of(self, block: str) -> dict[str, Values]:
        """Return the sizes that are cut into blocks of this name, in the kernel or around it."""
        found = dict(self.sizes.get(block, {}))
        for size, name in associations(self.function):
            if name == block:
                found.setdefault(ast.unparse(size), evaluate(size, self.names))
        return found


def read_kernels(tree: ast.Module, shapes: Sequence[tuple[int, ...]]) -> list[Kernel]:
    """Return the kernels of a file.

    Args:
        tree: the file.
        shapes: of the tensor arguments of `ModelNew.forward`, in order; taken as contiguous.
    """
    outer = _module_values(tree)
    kernels = {
        node.name: Kernel(node, dict(outer), _definitions(node))
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef) and is_kernel(node)
    }
    for kernel in kernels.values():
        _add_configs(kernel)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in kernels:
            known = _host_values(function, outer, shapes)
            for call in _launches(function):
                name = dotted(call.func.value)  # type: ignore[attr-defined]
                if name in kernels:
                    passed = _bind(kernels[name], call, known)
                    _add_sizes(kernels[name], function, passed, known)
    return list(kernels.values())


def associations(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield (size, block as text) where a size is cut into blocks.

    That is `cdiv(size, block)`, `(size + block - 1) // block`, and `range(start, size, block)`.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and is_call(node, "cdiv") and len(node.args) == 2:
            yield node.args[0], _block_name(node.args[1])
        elif isinstance(node, ast.Call) and is_call(node, "range") and len(node.args) == 3:
            yield node.args[1], _block_name(node.args[2])
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.FloorDiv):
            block = ast.unparse(node.right)
            text = ast.unparse(node.left)
            if text.endswith(f" + {block} - 1") and isinstance(node.left, ast.BinOp):
                inner = node.left.left
                if isinstance(inner, ast.BinOp):
                    yield inner.left, _block_name(node.right)


def _block_name(node: ast.expr) -> str:
    """Return the name of a block size; `meta["BLOCK"]` is BLOCK."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return str(node.slice.value)
    return ast.unparse(node)


def calls(kernel: Kernel, *names: str) -> Iterator[ast.Call]:
    """Yield the kernel's calls of functions whose last name is one of `names`."""
    for node in ast.walk(kernel.function):
        if isinstance(node, ast.Call) and is_call(node, *names):
            yield node


def is_tl(call: ast.Call) -> bool:
    """Whether a call is one of Triton's or Gluon's own functions, not a method of a tensor."""
    return dotted(call.func).split(".")[0] in ("tl", "triton", "language", "gl", "ttgl", "gluon")


def evaluate(node: ast.expr, names: Names) -> Values:
    """Return the integers that an expression may be; none where it cannot be read."""
    if isinstance(node, ast.Constant):
        return frozenset({node.value}) if type(node.value) is int else _NOTHING
    if isinstance(node, ast.Name):
        return names.get(node.id, _NOTHING)
    if (
        isinstance(node, ast.Call)
        and dotted(node.func).endswith(("constexpr", "int"))
        and node.args
    ):
        return evaluate(node.args[0], names)
    if isinstance(node, (ast.Subscript, ast.Call, ast.Attribute)):
        return names.get(ast.unparse(node), _NOTHING)
    if isinstance(node, ast.BinOp):
        left, right = evaluate(node.left, names), evaluate(node.right, names)
        operation = _OPERATIONS.get(type(node.op))
        if operation is None or len(left) * len(right) > MAX_VALUES:
            return _NOTHING
        if isinstance(node.op, (ast.FloorDiv, ast.Mod)) and 0 in right:
            return _NOTHING
        made = frozenset(operation(a, b) for a in left for b in right)
        return made if all(abs(value) < 1 << 62 for value in made) else _NOTHING
    return _NOTHING


def is_call(node: ast.AST, *names: str) -> bool:
    """Whether a node calls a function whose last name is one of `names`."""
    return isinstance(node, ast.Call) and dotted(node.func).split(".")[-1] in names


def keyword(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """Return an argument of a call by its name or position."""
    for item in call.keywords:
        if item.arg == name:
            return item.value
    if position is not None and position < len(call.args):
        return call.args[position]
    return None


def _module_values(tree: ast.Module) -> dict[str, Values]:
    values: dict[str, Values] = {}
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name, expression in _pairs(target, node.value):
                    values[name] = evaluate(expression, values)
    for node in tree.body:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]) == "TUNABLES":
            for name, choices in _literal_choices(node.value):
                values[name] = values.get(name, _NOTHING) | choices
    return values


def _literal_choices(node: ast.expr) -> Iterator[tuple[str, Values]]:
    """Yield the integers in `{"NAME": [1, 2]}` and `{"NAME": 1}`."""
    if not isinstance(node, ast.Dict):
        return
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            items = value.elts if isinstance(value, (ast.List, ast.Tuple)) else [value]
            yield key.value, frozenset().union(*(evaluate(item, {}) for item in items))


def _host_values(
    function: ast.FunctionDef, outer: Names, shapes: Sequence[tuple[int, ...]]
) -> dict[str, Values]:
    """Return the values of names and shapes inside a function that launches kernels."""
    names = dict(outer)
    arguments = [a.arg for a in function.args.args if a.arg != "self"]
    if function.name == "forward":
        for argument, shape in zip(arguments, shapes, strict=False):
            _add_shape(names, argument, shape)
    assigned = [n for n in ast.walk(function) if isinstance(n, ast.Assign)]
    for node in sorted(assigned, key=lambda n: n.lineno):
        for target in node.targets:
            text = ast.unparse(node.value)
            if isinstance(target, ast.Tuple) and text.endswith(".shape"):
                for i, element in enumerate(target.elts):
                    names[dotted(element)] = names.get(f"{text}[{i}]", _NOTHING)
            else:
                for name, expression in _pairs(target, node.value):
                    values = evaluate(expression, names)
                    if name in arguments and not is_call(expression, *_KEEPS_SHAPE):
                        names = {k: v for k, v in names.items() if not k.startswith(f"{name}.")}
                    names[name] = values
    return names


def _add_shape(names: dict[str, Values], argument: str, shape: tuple[int, ...]) -> None:
    for i, size in enumerate(shape):
        for index in (i, i - len(shape)):
            for text in (f"{argument}.shape[{index}]", f"{argument}.size({index})"):
                names[text] = frozenset({size})
            names[f"{argument}.stride({index})"] = frozenset({math.prod(shape[i + 1 :])})
    names[f"{argument}.numel()"] = frozenset({math.prod(shape)})


def _launches(function: ast.FunctionDef) -> Iterator[ast.Call]:
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
            yield node


def _bind(kernel: Kernel, call: ast.Call, known: Names) -> dict[str, ast.expr]:
    """Give the kernel's parameters the values that one launch passes; return what it passes."""
    arguments = [a.arg for a in (*kernel.function.args.args, *kernel.function.args.kwonlyargs)]
    passed = dict(zip(arguments, call.args, strict=False))
    passed.update({item.arg: item.value for item in call.keywords if item.arg})
    for name, expression in passed.items():
        values = evaluate(expression, known)
        if name == "num_stages" and values:
            kernel.stages = values
        elif name in arguments:
            kernel.names[name] = kernel.names.get(name, _NOTHING) | values
    return passed


def _add_sizes(
    kernel: Kernel, function: ast.FunctionDef, passed: Mapping[str, ast.expr], known: Names
) -> None:
    """Note which sizes the launching function cuts into blocks, by the kernel's names of them."""
    for size, block in associations(function):
        called = [name for name, node in passed.items() if ast.unparse(node) == block] or [block]
        for name in called:
            kernel.sizes.setdefault(name, {})[ast.unparse(size)] = evaluate(size, known)


def _add_configs(kernel: Kernel) -> None:
    for decorator in kernel.function.decorator_list:
        for node in ast.walk(decorator):
            if isinstance(node, ast.Call) and is_call(node, "Config") and node.args:
                for name, values in _literal_choices(node.args[0]):
                    kernel.names[name] = kernel.names.get(name, _NOTHING) | values
                stages = keyword(node, "num_stages")
                if stages is not None and (values := evaluate(stages, {})):
                    kernel.stages |= values


def _definitions(function: ast.FunctionDef) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for name, expression in _pairs(target, node.value):
                    found.setdefault(name, []).append(expression)
    return found


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        if isinstance(value, ast.Tuple) and len(value.elts) == len(target.elts):
            for one, expression in zip(target.elts, value.elts, strict=True):
                yield from _pairs(one, expression)
        else:  # each name depends on the whole
            for one in target.elts:
                yield from _pairs(one, value)
