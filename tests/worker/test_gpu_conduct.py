"""On a GPU launches are left out below Triton's launcher: decoys fall, honest kernels pass."""

import pytest
from scaled_rows import triton, verdict

from hotloop.core.verdict import Status
from hotloop.verify import LocalVerifier

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(300)]
RETURN = "        return y\n"
LATER = "        y = torch.empty_like(x)\n"

CHEATS = {
    # Two guards see it, whichever looks first: the kernel adds nothing, and torch does the work.
    "unused kernel": (
        (RETURN, "        return x * self.scale + 1\n"),
        {"library_call", "no_kernel_work"},
    ),
    "one buffer": (
        (LATER, "        y = self.__dict__.setdefault('out', torch.empty_like(x))\n"),
        {"shared_output"},
    ),
}


@pytest.mark.parametrize("name", CHEATS)
def test_cheat_is_caught(gpu_judge: LocalVerifier, name: str) -> None:
    change, kinds = CHEATS[name]
    found = verdict(gpu_judge, triton(change, columns=1000))
    assert found.status in (Status.REWARD_HACK, Status.INCORRECT_NUMERICAL), found.message
    assert found.evidence is not None
    assert found.evidence.kind in kinds


def test_honest_kernel_passes(gpu_judge: LocalVerifier) -> None:
    found = verdict(gpu_judge, triton(columns=1000))
    assert found.status is Status.PASSED, found.message


def test_honest_kernel_with_two_launches_passes(gpu_judge: LocalVerifier) -> None:
    again = RETURN.replace("return y", "scale_kernel[grid](x, self.scale, y, x.numel(), "
                           "x.shape[1], 256)") + RETURN  # fmt: skip
    found = verdict(gpu_judge, triton((RETURN, again), columns=1000))
    assert found.status is Status.PASSED, found.message
