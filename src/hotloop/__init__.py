"""hotloop turns a PyTorch reference into a verified, faster GPU kernel."""
