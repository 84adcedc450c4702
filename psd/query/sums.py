"""What the cells that make up a query add up to: the one thing that boxes and polygons share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd.query.cover import Cover, cut_leaf_total, perturbation_variance, total
from psd.query.uniformity import nonuniformity_variance

if TYPE_CHECKING:
    from psd.release import Release

__all__ = ["Sums", "cover_sums", "joined"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sums:
    """Sums over the cells of each query, however they were found.

    Parameters
    ----------
    estimate : ndarray, shape (queries,), float64
        Records; a view with negative cells may make it negative.
    perturbation_variance : ndarray, shape (queries,), float64
        Variance that the noise causes, in records squared.
    nonuniformity_variance : ndarray, shape (queries,), float64
        Variance of the points in leaves that are cut, in records squared.
    """

    estimate: NDArray[np.float64]
    perturbation_variance: NDArray[np.float64]
    nonuniformity_variance: NDArray[np.float64]


def cover_sums(release: Release, covered: Cover) -> Sums:
    """Sums of queries whose cells were listed.

    Parameters
    ----------
    release : Release
        What is asked.
    covered : Cover
        Cells of the queries.
    """
    count, spread = release.estimates.count, release.spread

    def uneven(
        node: NDArray[np.int64], fraction: NDArray[np.float64], area: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        return nonuniformity_variance(count[node], fraction, area, spread[node])

    return Sums(
        estimate=total(covered, count),
        perturbation_variance=perturbation_variance(covered, release.estimates),
        nonuniformity_variance=cut_leaf_total(covered, uneven),
    )


def joined(parts: Sequence[Sums]) -> Sums:
    """Sums of some queries after those of others."""
    return Sums(
        **{
            field.name: np.concatenate([np.empty(0), *(getattr(p, field.name) for p in parts)])
            for field in fields(Sums)
        }
    )
