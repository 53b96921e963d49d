"""Row-wise and pointwise kernels from op graphs."""
