"""Retrieval: verified kernels of other problems, as examples in a prompt."""
