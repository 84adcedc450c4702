"""Noise of counts, in the few words that tests need."""

from dataclasses import replace

import numpy as np

from psd.privacy.count_noise import CountNoise


def noise_variance(epsilon, contributions=1):
    """Variance of discrete Laplace noise in records squared."""
    return CountNoise.laplace(contributions).variance(np.asarray(epsilon))


def for_users(tree, contributions):
    """Tree whose noise is that of users with at most this number of records."""
    return replace(tree, noise=CountNoise.laplace(contributions))
