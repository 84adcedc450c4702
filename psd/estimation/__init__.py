"""From noisy counts to estimates and their errors. Public, post-processing."""
