"""Every test draws the same numbers in whatever order, and beside whatever others, it runs."""

import sys
import zlib

import pytest


@pytest.fixture(autouse=True)
def drawn_alike(request):
    """Seeds the global generator of torch from the test's name, where torch is loaded."""
    if torch := sys.modules.get("torch"):
        torch.manual_seed(zlib.crc32(request.node.nodeid.encode()))
