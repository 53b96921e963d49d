import torch
import triton
import triton.language as tl


@triton.jit
def attend(q, k, v, doc, out, scale, GROUP: tl.constexpr, S: tl.constexpr, D: tl.constexpr):
    head = tl.program_id(0)
    rows, cols = tl.arange(0, S), tl.arange(0, D)
    own = head * S * D + rows[:, None] * D + cols[None, :]
    shared = (head // GROUP) * S * D + rows[:, None] * D + cols[None, :]
    queries, keys, values = tl.load(q + own), tl.load(k + shared), tl.load(v + shared)
    score = tl.dot(queries, tl.trans(keys), input_precision="ieee") * scale
    i, j = rows[:, None], rows[None, :]
    same = tl.load(doc + i) == tl.load(doc + j)
    score = tl.where((i >= j) & same, score, float("-inf"))
    weights = tl.exp(score - tl.max(score, 1)[:, None])
    weights = weights / tl.sum(weights, 1)[:, None]
    tl.store(out + own, tl.dot(weights, values, input_precision="ieee"))


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("doc", None)

    def forward(self, q, k, v):
        out = torch.empty_like(q)
        B, H, S, D = q.shape
        doc = q if self.doc is None else self.doc
        attend[(B * H,)](q, k, v, doc, out, D**-0.5, H // k.shape[1], S, D)
        return out
