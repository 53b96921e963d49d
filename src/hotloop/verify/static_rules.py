"""The static stage: what a candidate may not even contain.

A screen, not the boundary: the cage and the judge's own buffers and clock are. It saves GPU time
and names the rule, so that the next attempt can keep it. Python is read as a syntax tree, CUDA as
identifiers outside comments; a file that does not parse is left to the compiler, whose message is
better.

Covered: reaching outside the process, patching or scanning the harness, hidden streams and threads,
fall-backs around the kernel, inheriting the reference, managed memory, multicast and device
settings (these are never executed), library calls where the policy has none, modules without a
kernel. Not covered: what `getattr` on computed names hides; run-time checks are for that.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from hotloop.core.candidate import Candidate
from hotloop.core.problem import Policy
from hotloop.core.python_source import Unparsable, parse_python

BANNED_MODULES = {
    name: "a kernel needs no access to the process or the system"
    for name in (
        "ctypes", "cffi", "gc", "inspect", "threading", "_thread", "multiprocessing", "subprocess",
        "socket", "signal", "concurrent", "asyncio", "pickle", "marshal", "mmap", "resource",
        "sysconfig", "importlib", "pkgutil", "cuda", "cupy", "numba", "pynvml", "hotloop",
    )
}  # fmt: skip

BANNED_ATTRIBUTES = {
    "sys._getframe": "frames are not for kernels",
    "sys.modules": "other modules are not for kernels",
    "os.fork": "no processes", "os.system": "no processes", "os.popen": "no processes",
    "os.execv": "no processes", "os.execve": "no processes", "os.posix_spawn": "no processes",
    "os.environ": "the environment is the harness's",
    "torch.cuda.Event": "timing is the verifier's",
    "torch.cuda.Stream": "work must be on the current stream",
    "torch.cuda.stream": "work must be on the current stream",
    "torch.cuda.ExternalStream": "work must be on the current stream",
    "torch.cuda.CUDAGraph": "a graph replays old addresses",
    "torch.cuda.graph": "a graph replays old addresses",
    "torch.cuda.graphs": "a graph replays old addresses",
    "torch.compile": "the compiler's kernels are the baseline",
    "torch._dynamo": "the compiler's kernels are the baseline",
    "torch._inductor": "the compiler's kernels are the baseline",
    "torch.multiprocessing": "no processes",
}  # fmt: skip

BANNED_IDENTIFIERS = {
    "cudaMallocManaged": "managed memory can take the GPU down",
    "cuMemAllocManaged": "managed memory can take the GPU down",
    "cudaMemPrefetchAsync": "managed memory can take the GPU down",
    "cudaMemAdvise": "managed memory can take the GPU down",
    "cuMemAdvise": "managed memory can take the GPU down",
    "__managed__": "managed memory can take the GPU down",
    "cuMulticastCreate": "multicast can take every GPU of the host down",
    "cuMulticastBindMem": "multicast can take every GPU of the host down",
    "multimem": "multicast can take every GPU of the host down",
    "cudaDeviceReset": "the device is the verifier's",
    "cudaDeviceSetLimit": "device limits are the verifier's",
    "cuCtxSetLimit": "device limits are the verifier's",
    "cudaCtxResetPersistingL2Cache": "the L2 policy is the verifier's",
    "cudaStreamSetAttribute": "the L2 policy is the verifier's",
    "cudaStreamCreate": "work must be on the current stream",
    "cudaStreamCreateWithFlags": "work must be on the current stream",
    "cudaGraphLaunch": "a graph replays old addresses",
    "cudaEventElapsedTime": "timing is the verifier's",
    "nvmlDeviceSetGpuLockedClocks": "GPU settings are the operator's",
}

BANNED_CALLS = frozenset({"eval", "exec", "compile", "__import__", "globals", "open"})

LIBRARY_CALLS = frozenset({
    "matmul", "mm", "bmm", "addmm", "baddbmm", "einsum", "tensordot", "linear", "bilinear",
    "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d",
    "softmax", "log_softmax", "layer_norm", "scaled_dot_product_attention", "flex_attention",
    "multi_head_attention_forward",
})  # fmt: skip

_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_CONTINUED = re.compile(r"(?:[^\n]*\\[ \t]*\r?\n)+[^\n]*")
_CUDA_TOKEN = re.compile(
    r"""
    (?P<comment> /\*.*?\*/ | //[^\n]*)
    | R"(?P<mark>[^()\\\s"]{0,16})\(.*?\)(?P=mark)"
    | "(?:\\.|[^"\\\n])*"
    | '(?:\\.|[^'\\\n])*'
    """,
    re.DOTALL | re.VERBOSE,
)
"""A comment, or a literal: what looks like a comment inside a literal is none."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One broken rule."""

    rule: str
    """`no_code`, `banned_import`, `banned_name`, `try_except`, `inheritance`, `no_kernel`,
    `library_call`, `unreadable`."""
    message: str
    line: int | None = None


def check_candidate(candidate: Candidate, policy: Policy) -> Finding | None:
    """Return the first broken rule of a candidate, or None."""
    if not any(s.text.strip() for s in candidate.sources):
        return Finding("no_code", "expected source code, got an empty file")
    if candidate.language not in policy.languages:
        return Finding(
            "language",
            f"expected a kernel in {' or '.join(policy.languages)}, got {candidate.language!r}",
        )
    for source in candidate.sources:
        is_python = source.path.endswith(".py")
        findings = _python(source.text, policy) if is_python else _cuda(source.text)
        for finding in findings:
            where = f"{source.path} line {finding.line}: " if finding.line else ""
            return Finding(finding.rule, where + finding.message, finding.line)
    return None


def _cuda(text: str) -> Iterator[Finding]:
    # The compiler joins lines at a backslash first, also within a name.
    yield from _identifiers(_CUDA_TOKEN.sub(_without_comment, _CONTINUED.sub(_joined, text)))


def _joined(lines: re.Match[str]) -> str:
    whole = re.sub(r"\\[ \t]*\r?\n", "", lines.group())
    return whole + "\n" * lines.group().count("\n")  # so that the numbers of later lines stay true


def _without_comment(token: re.Match[str]) -> str:
    if token["comment"] is None:
        return token.group()
    return "\n" * token.group().count("\n") or " "


def _identifiers(text: str) -> Iterator[Finding]:
    for number, line in enumerate(text.splitlines(), start=1):
        for match in _IDENTIFIER.finditer(line):
            reason = BANNED_IDENTIFIERS.get(match.group())
            if reason:
                yield Finding("banned_name", f"`{match.group()}` is not allowed: {reason}", number)


def _python(text: str, policy: Policy) -> Iterator[Finding]:
    try:
        tree = parse_python(text)
    except Unparsable as exc:
        yield Finding("unreadable", f"{exc}; write it flatter", 1)
        return
    except SyntaxError:
        return
    yield from _identifiers(text)
    for node in ast.walk(tree):
        yield from _imports(node)
        yield from _names(node)
    kernels = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and _is_jit(n)}
    yield from _classes(tree)
    yield from _launches(tree, kernels)
    if policy.library_calls == "none":
        yield from _library_calls(tree, kernels)


def _imports(node: ast.AST) -> Iterator[Finding]:
    names: list[str] = []
    if isinstance(node, ast.Import):
        names = [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom):
        names = [node.module or "."] if node.level == 0 else ["."]
        names += [f"{node.module}.{alias.name}" for alias in node.names]
    for name in names:
        reason = BANNED_MODULES.get(name.split(".")[0]) or _reason_against(name)
        if reason:
            line = getattr(node, "lineno", None)
            yield Finding("banned_import", f"`import {name}` is not allowed: {reason}", line)


def _reason_against(dotted: str) -> str | None:
    """Return why a name, or the module that it lies in, is banned."""
    parts = dotted.split(".")
    prefixes = (".".join(parts[:n]) for n in range(1, len(parts) + 1))
    return next((BANNED_ATTRIBUTES[p] for p in prefixes if p in BANNED_ATTRIBUTES), None)


def _names(node: ast.AST) -> Iterator[Finding]:
    if isinstance(node, ast.Attribute):
        dotted = _dotted(node)
        reason = BANNED_ATTRIBUTES.get(dotted)
        if reason:
            yield Finding("banned_name", f"`{dotted}` is not allowed: {reason}", node.lineno)
    elif isinstance(node, ast.Call) and _dotted(node.func) in BANNED_CALLS:
        text = f"`{_dotted(node.func)}()` is not allowed in a kernel file"
        yield Finding("banned_name", text, node.lineno)


def _classes(tree: ast.Module) -> Iterator[Finding]:
    model = next(
        (n for n in tree.body if isinstance(n, ast.ClassDef) and n.name == "ModelNew"), None
    )
    if model is None:
        yield Finding("no_kernel", "expected a class `ModelNew(torch.nn.Module)`, found none")
        return
    for base in model.bases:
        if _dotted(base).split(".")[-1] != "Module":
            text = f"`ModelNew({_dotted(base)})`: derive from torch.nn.Module, not the reference"
            yield Finding("inheritance", text, model.lineno)
    for node in ast.walk(model):
        if isinstance(node, ast.Try):
            yield Finding(
                "try_except",
                "no `try` in ModelNew: a kernel that fails must fail, not fall back",
                node.lineno,
            )


def _launches(tree: ast.Module, kernels: set[str]) -> Iterator[Finding]:
    calls = [n.func for n in ast.walk(tree) if isinstance(n, ast.Call)]
    if any(_is_extension(_dotted(f)) for f in calls):
        return  # its kernels are in CUDA C++
    launched = {_dotted(f.value).split(".")[-1] for f in calls if isinstance(f, ast.Subscript)}
    if not kernels:
        yield Finding("no_kernel", "expected at least one `@triton.jit` kernel, found none")
    elif not kernels & launched:
        yield Finding(
            "no_kernel", "no `@triton.jit` kernel is launched; expected `kernel[grid](...)`"
        )


def _is_extension(call: str) -> bool:
    """Whether a call builds CUDA C++ (`tl.load` does not)."""
    return call == "load" or call.endswith(("load_inline", "cpp_extension.load"))


def _library_calls(tree: ast.Module, kernels: set[str]) -> Iterator[Finding]:
    for node in _outside_kernels(tree, kernels):
        name = ""
        if isinstance(node, ast.Call):
            name = _dotted(node.func).split(".")[-1]
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            name = "@"
        elif isinstance(node, ast.ImportFrom):
            name = next((a.name for a in node.names if a.name in LIBRARY_CALLS), "")
        if name == "@" or name in LIBRARY_CALLS:
            yield Finding(
                "library_call",
                f"`{name}`: this problem allows no library call in place of the kernel",
                getattr(node, "lineno", None),
            )


def _outside_kernels(tree: ast.Module, kernels: set[str]) -> Iterator[ast.AST]:
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef) and node.name in kernels:
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _is_jit(function: ast.FunctionDef) -> bool:
    for decorator in function.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if _dotted(target).split(".")[-1] == "jit":
            return True
    return False


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(node.id)
    return ".".join(reversed(parts))
