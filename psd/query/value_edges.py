"""Errors of means along the edge of an area: how far they agree, learnt from the release.

Shares of small cells are moved towards those of their families (`psd.estimation.value_shares`), so
where values rise towards a centre, errors inside the edge add up. c times the squares of
`psd.query.traversal.edge_squares` is added to the variance of A - p N, one c for each value.

.. [1] Hausman. "Specification Tests in Econometrics." Econometrica 46(6), 1978: the difference of
   two estimates has the difference of their variances, if the more precise one has no bias. Where
   most cells are empty, that may be least squares.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from psd._util.arrays import Floats
from psd.estimation.fit import Fit
from psd.estimation.least_squares import Estimates
from psd.query.box_parts import box_fraction
from psd.query.traversal import edge_squares, perturbation_variance, traverse, weighted_total
from psd.space.box_tree import Tree

__all__ = ["learn_edge_factor"]

# Squares that are looked at; more of them overlap, and say the same.
_SQUARES = 256

_LEAST_RECORDS = 1e-9


def learn_edge_factor(fits: Sequence[Fit], plain: Sequence[Estimates]) -> float:
    """Learn c of a value from fits of its weights to both bounds, and least squares of both."""
    tree, count = fits[0].tree, [each.estimates.count for each in fits]
    boxes = _squares_around(tree, count[0] + count[1])
    traversal = traverse(tree, len(boxes), box_fraction(fits[0], boxes))
    # Shares p of the squares by the estimates, and their excess T by least squares.
    upper, lower = (np.maximum(weighted_total(traversal, each), 0.0) for each in count)
    p = upper / np.maximum(upper + lower, _LEAST_RECORDS)
    of_upper, of_lower = (weighted_total(traversal, each.signed) for each in plain)
    excess = (1 - p) * of_upper - p * of_lower
    # Least squares of the weights, which nothing was moved in, say how far squares around the
    # records are off: T has the expected square |V - U| + c X [1]_.
    # The variance V of T by the noise, U of the estimates, and the squares X of the edge.
    own = ((1 - p) ** 2 + p**2) * perturbation_variance(traversal, plain[0])
    left = perturbation_variance(traversal, fits[0].estimates)
    squares = edge_squares(traversal, fits[0].estimates)
    known = (own > 0) & (upper + lower > _LEAST_RECORDS)
    of_edge, beyond = (
        each[known] / own[known] for each in (squares, excess**2 - np.abs(own - left))
    )
    # Least squares of c through the origin, each square in units of its own noise V.
    total = float(of_edge @ of_edge)
    return max(float(of_edge @ beyond) / total, 0.0) if total > 0 else 0.0


def _squares_around(tree: Tree, count: Floats) -> Floats:
    """Squares around the records, in lattice units, (n, 4) float64; all sizes of cells equally."""
    leaves = np.flatnonzero(tree.is_leaf)
    records = np.maximum(count[leaves], 0.0).cumsum()
    step = np.arange(_SQUARES)
    # Leaves at even steps of the running sum of records: squares stand where people are.
    place = np.searchsorted(records, (step + 0.5) / _SQUARES * records[-1])
    sides = tree.boxes[leaves[np.minimum(place, len(leaves) - 1)]].astype(np.float64)
    centre = (sides[:, :2] + sides[:, 2:]) / 2

    # Bits in reverse order are spread evenly, and neighbours have sizes far from each other.
    bits = (step[:, None] >> np.arange(_SQUARES.bit_length() - 1)) & 1
    size = (bits / 2.0 ** np.arange(1, bits.shape[1] + 1)).sum(axis=1)
    low, high = np.split(tree.boxes[0].astype(np.float64), 2)
    # Sides from the whole domain down to about one leaf, evenly in their logarithm.
    half = (high - low) / 2 / np.sqrt(len(leaves)) ** size[:, None]
    return np.hstack([np.maximum(centre - half, low), np.minimum(centre + half, high)])
