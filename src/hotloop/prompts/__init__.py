"""Prompts: what a model is told, and what is taken from its answer.

`render` makes the next prompt, `feedback` turns a verdict into what a model may see, `analysis`
reads a candidate for known weaknesses, `extract` gets the candidate out of a reply. Pure functions
on text and records: no network, no clock, no GPU, and nothing of a reply is ever run.
"""
