"""Shared weights over public features, learnt from noisy sums over people. Public.

A person's own places are the regions of the person's records. The score of a region is a weighted
sum of six features: how near it is to own places on four scales, whether it is one of them, and its
density in a release. The weights are the same for all people.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.apps.suggest.grid import RegionGrid
from psd.privacy.noisy_sums import NoisySums, Statistic, deviation, fill_symmetric, triangle

__all__ = ["FEATURES", "differences", "features", "learn_weights", "person_part", "solve_weights"]

_SCALES_KM = (1.5, 3.0, 6.0, 12.0)

FEATURES = (*(f"nearness_{scale:g}_km" for scale in _SCALES_KM), "own_place", "log_density")
"""Names of the features, in their order."""

_SIZE = len(FEATURES)
_STATISTICS = (
    Statistic(name="gramian", rows=1, width=_SIZE * (_SIZE + 1) // 2),
    Statistic(name="right side", rows=1, width=_SIZE),
)

# Least eigenvalue in standard deviations of the noise, so that the noise of the right side moves
# the weights by at most a 16th in each direction. Noise alone gives the matrix eigenvalues up to
# about 2 sqrt(6) = 4.9.
_FLOOR = 16.0


def features(grid: RegionGrid, own_places: Integers, targets: Integers) -> Floats:
    """Features of regions (n,) for a person with own places (m,), shape (n, 6)."""
    places = np.unique(own_places)
    distances = grid.distances(places, targets)
    # Nearness on a scale l is log(1 + 4 sum over own places of exp(-d / l)), d in km.
    near = [np.log1p(4 * np.exp(distances / -scale).sum(1)) for scale in _SCALES_KM]
    return np.stack([*near, np.isin(targets, places), grid.log_density[targets]], axis=1)


def differences(grid: RegionGrid, regions: Integers) -> Floats:
    """Features of each seen region, (m,) int64, minus those of contrasts: (64 m, 6) float64."""
    contrasts = grid.contrasts
    rows = []
    # By the person's other records; a region may repeat.
    for index, region in enumerate(regions):
        described = features(grid, np.delete(regions, index), np.append(contrasts, region))
        rows.append(described[-1] - described[:-1])
    difference = np.concatenate(rows)
    # Of norm at most 1: longer ones are scaled.
    bounded: Floats = difference / np.maximum(np.linalg.norm(difference, axis=1), 1)[:, None]
    return bounded


def person_part(grid: RegionGrid, regions: Integers) -> list[tuple[Integers, Floats]]:
    """Gramian and right side of one person: least squares of 1 on the differences."""
    row = np.zeros(min(len(regions) // 2, 1), np.int64)  # nothing of a person with one record
    if not len(row):
        return [(row, np.empty((0, statistic.width))) for statistic in _STATISTICS]
    difference = differences(grid, regions)
    weight = 1 / len(grid.contrasts)
    gramian, right = difference.T @ difference * weight, difference.sum(0) * weight
    return [(row, triangle(gramian)[None]), (row, right[None])]


def solve_weights(gramian: Floats, right: Floats, noise: float) -> Floats:
    """Solve noisy least squares, (21,) and (6,); directions that noise may hide are damped."""
    values, vectors = np.linalg.eigh(fill_symmetric(gramian, _SIZE))
    values = np.maximum(values, max(_FLOOR * noise, 1e-6 * abs(values).max(), 1e-6))
    weights: Floats = vectors @ (vectors.T @ right / values)
    return weights


def learn_weights(people: NoisySums, grid: RegionGrid) -> Floats:
    """Learn the shared weights with all of rho.

    Guarantees
    ----------
    - It reads noisy sums and public numbers, so it costs what the sums cost.

    Parameters
    ----------
    people : NoisySums
        Answers one question, of two statistics with half of rho each.
    grid : RegionGrid
        Regions of a release.

    Returns
    -------
    ndarray, shape (6,), float64
        Weights in the order of `FEATURES`.

    Notes
    -----
    Each record is compared with regions drawn from the release. The weights are those with which
    the difference in score comes nearest to 1, by least squares over all people.
    Corrections of each person, in turn with the weights, are left out: they help by less than a
    point (`python lab/suggest.py`).
    """
    rho = people.rho
    gramian, right = people.sums(partial(person_part, grid), _STATISTICS, rho)
    return solve_weights(gramian[0], right[0], deviation(_STATISTICS, 0, rho))
