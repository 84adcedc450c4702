"""How wrong a covariate is inside the leaves, from the noisy counts.

A covariate that is only roughly right is wrong in the same direction in all leaves of a query: too
few records where it is dense, or too many. The divisions of the cells above tell how wrong.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers, sum_by
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import overdispersion_of_leaves
from psd.estimation.sibling_splits import children_of, family_batches, join_parts
from psd.space.box_tree import Tree

__all__ = ["covariate_error"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Products:
    """By family: deviations times what the covariate moved, and squares of the latter."""

    level: Integers
    along: Floats
    square: Floats


def covariate_error(tree: Tree, estimates: Estimates, share: Floats, even: Floats) -> float:
    """Estimate the relative error of what a covariate moves inside the leaves.

    share, even: (nodes,) float64, of its parent's records that each node has by the covariate, and
    without it; returns a number in [0, 1]: 0 for a covariate that is right, 1 if it should move
    twice as much, or nothing.

    The deviations z - g Z of children from their shares g of a family of Z records are regressed on
    (g - a) Z, where a is the share without the covariate. What the noise adds to both products is
    subtracted. For the leaves of a level, both are summed over the families on the levels just
    above it, as in `psd.estimation.nonuniformity.overdispersion_of_leaves`; the result is the mean
    over the records of the leaves.
    """
    products = join_parts(
        _Products,
        [_products_of(tree, estimates, share, even, parents) for parents in family_batches(tree)],
    )
    levels = len(tree.levels)
    along = sum_by(products.level, products.along, levels)
    square = sum_by(products.level, products.square, levels)
    families = np.bincount(products.level, minlength=levels).astype(np.float64)
    error = np.maximum(
        overdispersion_of_leaves(along, square, families),
        overdispersion_of_leaves(-along, square, families),
    )
    count = np.maximum(estimates.count, 0.0) * tree.is_leaf
    total = float(count.sum())
    return float((count * error[tree.level]).sum()) / total if total > 0 else 0.0


def _products_of(
    tree: Tree, estimates: Estimates, share: Floats, even: Floats, parents: Integers
) -> _Products:
    """Products of the families whose children are all measured."""
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]
    noise, count = (sum_by(owner, values, len(parents)) for values in (variance, value))
    measured = np.isfinite(noise)
    noise = np.where(measured, noise, 0.0)
    variance = np.where(measured[owner], variance, 0.0)
    moved, total = g - even[child], count[owner]
    along = moved * ((value - g * total) * total - (variance - g * noise[owner]))
    square = moved**2 * (total**2 - noise[owner])
    along, square = (sum_by(owner, values, len(parents)) for values in (along, square))
    return _Products(
        level=tree.level[parents[measured]].astype(np.int64),
        along=along[measured],
        square=square[measured],
    )
