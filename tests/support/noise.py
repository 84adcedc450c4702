"""Noise of counts, in the few words that tests need."""

from dataclasses import replace
from fractions import Fraction

import numpy as np

import psd
from psd.privacy.count_noise import CountNoise
from psd.privacy.loss import NANO, Loss
from psd.release.record import ReleaseRecord


def noise_variance(epsilon, contributions=1):
    """Variance of discrete Laplace noise in records squared."""
    return CountNoise.laplace(contributions).variance(np.asarray(epsilon))


def for_users(tree, contributions):
    """Tree whose noise is that of users with at most this number of records."""
    return replace(tree, noise=CountNoise.laplace(contributions))


LOSS = Loss.gaussian(NANO, Fraction(1, 10**6))
"""Epsilon 1 and delta 1e-6."""


def gaussian_record(squared_sensitivity=12, **fields):
    """Record of four cells whose counts were charged in rho; S^2 is that of 12 slices."""
    domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    cells = psd.decompositions.grid_tree(domain, 2)
    counts = np.where(cells.is_leaf, 1_000 + np.arange(len(cells)), 0)
    tree = replace(
        cells,
        count=counts,
        loss=np.where(cells.is_leaf, LOSS.rho, 0),
        noise=CountNoise.gaussian(squared_sensitivity),
    )
    loss = {"epsilon": LOSS.epsilon, "rho": LOSS.rho, "delta": LOSS.delta}
    return ReleaseRecord(**{"tree": tree, "domain": domain, "method": "grid", **loss, **fields})
