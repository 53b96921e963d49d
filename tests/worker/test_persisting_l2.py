"""Persisting L2: a driver that refuses is found out once, and does not end every timing."""

from __future__ import annotations

from typing import Any

import pytest

from hotloop.worker.cudriver import CudaDriverError
from hotloop.worker.persisting_l2 import PersistingL2, probe


def refusing(*names: str) -> Any:
    def call(name: str, *_: Any) -> None:
        if name in names:
            raise CudaDriverError(name, 215, "CUDA_ERROR_UNSUPPORTED_LIMIT")

    return call


def test_a_driver_that_allows_it() -> None:
    assert probe(lambda _: 1 << 20, refusing()) is PersistingL2.CONTROLLED


@pytest.mark.parametrize("name", ["cuCtxGetLimit", "cuCtxSetLimit", "cuCtxResetPersistingL2Cache"])
def test_a_driver_that_refuses(name: str) -> None:
    assert probe(lambda _: 1 << 20, refusing(name)) is PersistingL2.REFUSED


def test_a_gpu_without_persisting_lines_is_not_asked() -> None:
    def call(name: str, *_: Any) -> None:
        raise AssertionError(name)

    assert probe(lambda _: 0, call) is PersistingL2.ABSENT


def test_a_driver_that_does_not_know_the_attribute() -> None:
    def attribute(_: int) -> int:
        raise CudaDriverError("cuDeviceGetAttribute", 1, "CUDA_ERROR_INVALID_VALUE")

    assert probe(attribute, refusing()) is PersistingL2.ABSENT
