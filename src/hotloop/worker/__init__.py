"""The processes that touch torch: judge, zygote, compile lane, candidate.

Spawned with `python -m hotloop.worker.judge`, never imported by the other layers. Standard library,
torch, triton and NVIDIA's bindings only.
"""
