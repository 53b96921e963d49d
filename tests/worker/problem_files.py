"""Problem files as text, loaded the way the judge loads them."""

from hotloop.core.problem import Problem, ProblemKind
from hotloop.worker.load import LoadedProblem, load_problem

SIZES = "import torch\nB, H, S, D = 2, 4, 32, 16\n"


def attention(body: str, **settings) -> LoadedProblem:
    """Load an attention file; its body begins on line 3."""
    problem = Problem(name="p", kind=ProblemKind.ATTENTION, source=SIZES + body)
    return load_problem(problem, device="cpu", settings=settings)


def score_mod(expression: str, before: str = "") -> LoadedProblem:
    """Load an attention file whose score_mod returns `expression`."""
    signature = "def score_mod(score, b, h, q_idx, kv_idx):"
    return attention(f"{before}\n{signature}\n    return {expression}\n")


def mask_mod(expression: str, before: str = "") -> LoadedProblem:
    """Load an attention file whose mask_mod returns `expression`."""
    return attention(f"{before}\ndef mask_mod(b, h, q_idx, kv_idx):\n    return {expression}\n")


def model(source: str, **settings) -> LoadedProblem:
    """Load a KernelBench file."""
    problem = Problem(name="m", kind=ProblemKind.KERNELBENCH, source="import torch\n" + source)
    return load_problem(problem, device="cpu", settings=settings)


def forward(body: str, *inputs: str, init: str = "pass") -> LoadedProblem:
    """Load a KernelBench file whose forward returns `body` of x, y, ..."""
    names = "xyz"[: len(inputs)]
    return model(
        "class Model(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        f"        {init}\n"
        f"    def forward(self, {', '.join(names)}):\n        return {body}\n"
        f"def get_inputs():\n    return [{', '.join(inputs)}]\n"
    )
