"""Attacks by the compiler: whatever it can read, its log would carry into the next prompt."""

from __future__ import annotations

import os
import subprocess
from functools import partial

from hotloop.selftest.case import Case, Expect, Target, read, say, write


def _gcc(*arguments: str) -> str:
    """Run the compiler; return what it printed."""
    done = subprocess.run(["gcc", *arguments], capture_output=True, check=False, text=True)
    return done.stdout + done.stderr


def include_secret(target: Target) -> None:
    """Include a secret as source, as raw bytes, as options; print and keep what comes of it."""
    secret = f"{target.hidden}/secret"
    write("include.c", f'#include "{secret}"\n'.encode())
    write("assemble.c", f'__asm__(".incbin \\"{secret}\\"");\n'.encode())
    write("embed.c", f'char s[] = {{\n#embed "{secret}"\n}};\n'.encode())
    os.symlink(secret, "header.h")
    write("link.c", b'#include "header.h"\n')
    for name in ("include", "assemble", "embed", "link"):
        target.attempt(f"compile {name}", partial(_gcc, "-c", f"{name}.c", "-o", f"{name}.o"))
        target.attempt(f"preprocess {name}", partial(_gcc, "-E", f"{name}.c"))
        if os.path.exists(f"{name}.o"):
            say(read(f"{name}.o"))
    target.attempt("options from a file", lambda: _gcc(f"@{secret}"))
    target.attempt("prefix", lambda: _gcc("-E", "-include", secret, "-x", "c", "/dev/null"))


def include_itself(target: Target) -> None:
    """Include a file into itself."""
    write("self.c", b'#include "self.c"\n')
    target.attempt("self", lambda: _gcc("-E", "self.c")[-1000:])


def endless_text(_: Target) -> None:
    """Have macros expand into gigabytes of text."""
    lines = ["#define A0 x x x x x x x x x x x x x x x x"]
    lines += [f"#define A{i} " + f"A{i - 1} " * 16 for i in range(1, 9)]
    write("bomb.c", "\n".join([*lines, "A8", ""]).encode())
    subprocess.run(["gcc", "-E", "-P", "bomb.c"], check=False)


def endless_templates(_: Target) -> None:
    """Have templates make templates without end."""
    write(
        "bomb.cc",
        b"template<int N, int M> struct S { S<N-1, M> a; S<N-1, M+1> b; S<N-1, M+N> c; };\n"
        b"template<int M> struct S<0, M> { char c; };\nS<800, 0> bomb;\n",
    )
    subprocess.run(["g++", "-ftemplate-depth=9999", "-c", "bomb.cc"], check=False)


CASES = (
    Case(3, "secrets through the compiler", (include_secret,), stage="compile", needs="compiler"),
    Case(45, "source that includes itself", (include_itself,), stage="compile", needs="compiler"),
    Case(
        45, "text without end", (endless_text,), stage="compile", needs="compiler",
        expect=Expect.CAPPED, deadline_s=20.0, safe=False,
    ),
    Case(
        45, "templates without end", (endless_templates,), stage="compile", needs="compiler",
        expect=Expect.KILLED, deadline_s=1.0, safe=False,
    ),
)  # fmt: skip
