"""Products whose operands are taken in several ways, and cases to judge them on."""

import torch

from hotloop.problems.precision import with_precision
from hotloop.worker.cases import CaseBook
from hotloop.worker.compare import gate
from hotloop.worker.known_case import Known
from hotloop.worker.load import load_problem
from hotloop.worker.reference import build_reference


def cut(x):
    return (x.contiguous().view(torch.int32) & ~0x1FFF).view(torch.float32)


def bf16(x):
    return x.bfloat16().float()


def bf16_cut(x):
    return (x.contiguous().view(torch.int32) & ~0xFFFF).view(torch.float32)


def as_is(x):
    return x


def one(a, b):
    return a @ b


def split(a, b):
    parts = zip(a.split(a.shape[-1] // 4, -1), b.split(b.shape[-2] // 4, -2), strict=True)
    return sum((x @ y for x, y in parts), torch.zeros(()))


def interleaved(a, b):
    return sum((a[..., i::4] @ b[..., i::4, :] for i in range(4)), torch.zeros(()))


def in_steps(a, b):
    out = torch.zeros(*a.shape[:-1], b.shape[-1])
    for k in range(0, a.shape[-1], 8):
        out += a[..., k : k + 8] @ b[..., k : k + 8, :]
    return out


FORMS = (one, split, interleaved, in_steps)


def build(loaded, policy="tf32"):
    """Return the reference of a problem under another policy for float32 products."""
    return build_reference(load_problem(with_precision(loaded.problem, policy), device="cpu"))


def known(reference, profile, seed=3):
    """Return one case with its inputs and goldens."""
    book = CaseBook(reference, "nominal")
    book.add(profile, seed, cache_bytes=1 << 30)
    return Known(reference, book.cases[0], *book.materialise(book.cases[0]))


def fails_plainly(case, output):
    return not gate(output, case.goldens[0], case.case.bounds[0]).passed
