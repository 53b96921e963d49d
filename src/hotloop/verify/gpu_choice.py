"""Which GPU the next judge gets: the one that was chosen, until it is given up.

Asked of files only, never of the driver: it is needed when the driver may hang.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from hotloop.errors import DeviceLost

DRIVER = Path("/proc/driver/nvidia/gpus")
"""One folder a GPU, named by its bus address."""
MAX_CHANGES = 1
"""Where a second GPU is given up, kernels or driver do that: the others are not tried."""


class GpuChoice:
    """The GPUs of one verifier."""

    def __init__(self, pinned: str | None, *, driver: Path = DRIVER) -> None:
        """Take `pinned` (an index or UUID) and no other; None: the first that is visible."""
        self.wanted = pinned
        """What a judge is to see, as `CUDA_VISIBLE_DEVICES` takes it; None: what we see."""
        self.lost: DeviceLost | None = None
        """Why no GPU is left; nothing may be judged any more."""
        self._changes_left = MAX_CHANGES if pinned is None else 0
        self._driver = driver
        self.uuid: str | None = None
        """The GPU of the last judge, or of the next one after `leave`; None until one said it."""

    def took(self, uuid: str | None) -> None:
        """A judge says which GPU it uses; None: no GPU."""
        self.uuid = uuid

    def leave(self, why: DeviceLost) -> DeviceLost:
        """Give the GPU up: the next judge gets another one of the same model, or none.

        Returns:
            What to say of it.
        """
        if self.uuid is not None and self._changes_left:
            others = other_gpus(self.uuid, os.environ.get("CUDA_VISIBLE_DEVICES"), self._driver)
            if others:
                self._changes_left -= 1
                self.wanted = self.uuid = others[0]
                return DeviceLost(f"{why}. Meanwhile the run goes on with {others[0]}")
        self.lost = why
        return why


def other_gpus(uuid: str, visible: str | None, driver: Path = DRIVER) -> tuple[str, ...]:
    """Return the UUIDs of further GPUs of the same model that may be used.

    Args:
        uuid: the one that is not wanted any more.
        visible: the value of CUDA_VISIBLE_DEVICES, None where it is not set. Numbers are only
            understood where all GPUs are alike: CUDA may count others by their speed.
        driver: the folder in which the driver describes its GPUs.
    """
    models = _models(driver)
    allowed = list(models)
    if visible is not None:
        names = [name.strip() for name in visible.split(",") if name.strip()]
        allowed = [gpu for gpu in models if any(gpu.startswith(name) for name in names)]
        if len(set(models.values())) == 1:
            numbers = [int(name) for name in names if name.isdecimal()]
            allowed += [gpu for i, gpu in enumerate(models) if i in numbers]
    model = models.get(uuid)
    return tuple(gpu for gpu in allowed if gpu != uuid and models[gpu] == model)


def _models(driver: Path) -> Mapping[str, str]:
    """Return the model of each GPU by its UUID, in the order of the bus."""
    models = {}
    for information in sorted(driver.glob("*/information")):
        fields: dict[str, str] = {}
        for line in information.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
        models[fields.get("GPU UUID", "")] = fields.get("Model", "")
    return models
