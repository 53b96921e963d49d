"""Matrix products with a fused epilogue from op graphs."""
