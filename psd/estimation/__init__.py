"""Compute estimates and their errors from noisy counts. Public, post-processing."""
