"""Regions with factors of their own, by alternating least squares with noisy sums. Public.

The general model beside `psd.apps.suggest.shared`: it knows no distance and no density. The factors
of a person are solved from the person's regions and the factors of all regions, inside the question
for the sums, or on the device; they are never published.

References
----------
.. [1] Chien, Jain, Krichene, Rendle, Song, Thakurta, Zhang. "Private Alternating Least Squares:
   Practical Private Matrix Completion with Tighter Rates." ICML 2021. arXiv:2107.09802.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from psd._util.arrays import Floats, Integers
from psd.privacy.noisy_sums import NoisySums, Statistic, deviation, fill_symmetric, triangle

__all__ = ["FactorModel", "learn_factors"]

_UNSEEN = 0.1  # weight of a region that the person has no record in
_RIDGE = 0.1  # of the factors of a person
_NOISE_RIDGE = 4.0  # of those of a region, in standard deviations of the noise, beside 1


@dataclass(frozen=True, kw_only=True, eq=False)
class FactorModel:
    """Factors of regions.

    Parameters
    ----------
    factors : ndarray, shape (n, d), float64
        Of each region. Public.
    """

    factors: Floats

    def person_factors(self, regions: Integers) -> Floats:
        """Factors of a person, of norm 1, shape (d,). Private to the person."""
        seen = self.factors[np.unique(regions)]
        matrix = self._gramian + seen.T @ seen
        # Least squares of 1 on regions with a record, and of 0 on all regions at a small weight.
        solved = np.linalg.solve(matrix + _RIDGE * np.eye(seen.shape[1]), seen.sum(0))
        unit: Floats = solved / max(float(np.linalg.norm(solved)), 1e-9)
        return unit

    @cached_property
    def _gramian(self) -> Floats:
        """Gramian of all regions, at the weight of those without a record."""
        gramian: Floats = _UNSEEN * self.factors.T @ self.factors
        return gramian

    def scores(self, regions: Integers) -> Floats:
        """Score of every region for a person, from the regions of the person's records.

        Examples
        --------
        >>> FactorModel(factors=np.eye(3)).scores(np.array([1])).round(6).tolist()
        [0.0, 1.0, 0.0]
        """
        return self.factors @ self.person_factors(regions)

    def person_part(self, regions: Integers) -> list[tuple[Integers, Floats]]:
        """What one person adds to the sums: to all regions, and to those of the person."""
        places, factors = np.unique(regions), self.person_factors(regions)
        outer = triangle(np.outer(factors, factors))[None]
        return [
            (np.zeros(1, np.int64), outer),
            (places, np.repeat(outer, len(places), 0)),
            (places, np.repeat(factors[None], len(places), 0)),
        ]


def learn_factors(
    people: NoisySums, regions: int, *, size: int = 12, steps: int = 4, seed: int = 0
) -> FactorModel:
    """Learn the factors of regions; each step asks for noisy sums with an equal part of rho.

    P1. It reads noisy sums and public numbers, so it costs what the sums cost.
    """
    start = np.random.default_rng(seed).normal(size=(regions, size)) / np.sqrt(size)
    model, rho = FactorModel(factors=start), people.rho // steps
    statistics = _statistics(regions, size)
    noise = deviation(statistics, 1, rho)
    for _ in range(steps):
        total, gramians, right = people.sums(model.person_part, statistics, rho)
        model = _solve_regions(total, gramians, right, noise)
    return model


def _statistics(regions: int, size: int) -> list[Statistic]:
    """Gramian of all people, and Gramian and right side of each region."""
    wide = size * (size + 1) // 2
    return [
        Statistic(name="gramian", rows=1, width=wide, share=2),
        Statistic(name="region gramians", rows=regions, width=wide, share=8),
        Statistic(name="right sides", rows=regions, width=size, share=90),
    ]


def _solve_regions(total: Floats, gramians: Floats, right: Floats, noise: float) -> FactorModel:
    """Factors of the regions from noisy sums; negative eigenvalues are noise."""
    matrices = fill_symmetric(_UNSEEN * total + gramians, right.shape[1])
    # In the axes of each matrix, what noise may hide is damped by its standard deviation.
    values, vectors = np.linalg.eigh(matrices)
    values = np.maximum(values, 0) + 1 + _NOISE_RIDGE * noise
    turned = np.einsum("rij,ri->rj", vectors, right) / values
    return FactorModel(factors=np.einsum("rij,rj->ri", vectors, turned))
