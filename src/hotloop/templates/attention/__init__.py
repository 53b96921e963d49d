"""Attention kernels from score_mod and mask_mod graphs."""
