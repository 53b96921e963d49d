"""Attention kernels for Hopper GPUs in Gluon: warp-specialised, with TMA and wgmma."""
