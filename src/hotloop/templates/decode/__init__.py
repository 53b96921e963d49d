"""Attention of a few queries over many keys: the keys are split, the parts are combined."""
