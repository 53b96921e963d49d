"""The coordinator's side of verification: static rules, and the judge behind a pipe."""

from hotloop.verify.devices import find_device
from hotloop.verify.local import LocalVerifier

__all__ = ["LocalVerifier", "find_device"]
