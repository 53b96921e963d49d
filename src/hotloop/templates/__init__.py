"""The built-in generator: kernel families that lower frozen graphs to Triton source."""

from hotloop.templates.builtin import BuiltinGenerator

__all__ = ["BuiltinGenerator"]
