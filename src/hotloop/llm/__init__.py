"""Models: OpenAI-compatible endpoints, folders that somebody answers, recordings.

`hotloop.llm.spec` turns what the user wrote into a model; nothing else here needs to be known.
"""

from hotloop.llm.spec import ModelOptions, ModelSpec, open_model, parse_spec

__all__ = ["ModelOptions", "ModelSpec", "open_model", "parse_spec"]
