"""Names in Gluon that differ between releases of Triton, so that a prompt has those of the judge.

Triton 3.8 renamed the copies by TMA (triton-lang/triton pull request 10083); 3.9 raises where it is
called by an old name (11112).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

RENAMED_IN = (3, 8)


def gluon_names(triton_version: object) -> Mapping[str, str]:
    """Return what `tma_load` and `tma_store` are called in a release of Triton.

    Args:
        triton_version: such as `3.6.0`; what is no version counts as one before the change, as the
            releases that PyTorch 2.11 comes with are.
    """
    found = re.match(r"(\d+)\.(\d+)", str(triton_version or ""))
    is_new = found is not None and (int(found[1]), int(found[2])) >= RENAMED_IN
    return {
        "tma_load": "tma.async_load" if is_new else "tma.async_copy_global_to_shared",
        "tma_store": "tma.async_store" if is_new else "tma.async_copy_shared_to_global",
    }
