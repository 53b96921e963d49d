"""Plain attention: every query sees every key, and scores are not modified.

Run: hotloop optimize examples/attention/full.py
"""

B, H, S, D = 4, 16, 4096, 128
dtype = "bfloat16"
