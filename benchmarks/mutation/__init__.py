"""Mutation score of the verifier: which small faults in correct kernels does it let through?"""
