"""Prompts: what a model is told, and what is taken from its answer.

`render` makes the next prompt, `feedback` turns a verdict into what a model may see, `analysis`
reads a candidate for known weaknesses, `recall` an earlier part of the run, `extract` gets the
candidate out of a reply: functions on text and records, without a network, a clock or a GPU.
`author` joins them to a model and a journal. Nothing of a reply is ever run.
"""
