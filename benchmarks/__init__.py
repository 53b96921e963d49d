"""Scripts that measure hotloop; `results/` holds what they found, `kernels/` what they verify."""
