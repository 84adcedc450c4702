"""The step to which coordinates are rounded, as the noisy counts show it.

Most coordinates are decimals with a few places. Where cells are not much wider than the last place,
the parts of a cell hold different numbers of values that a coordinate can have; the counts of the
parts follow these numbers if, and only if, the coordinates are rounded to that place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers, distinct_values, sum_by
from psd.estimation.constants import (
    STEP_CLUSTER_SIZE,
    STEP_COLUMN_ERRORS,
    STEP_ERRORS,
    STEP_FAMILIES,
    STEP_OVERDISPERSION,
    STEP_SHARES,
    STEPS_ACROSS,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.sibling_splits import children_of
from psd.space.box_tree import Tree
from psd.space.domain import Domain

__all__ = ["CoordinateStep", "detect_step"]

# Families looked at; a stride over more of them bounds the time, not the memory.
_MAX_FAMILIES = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateStep:
    """Step between the values that coordinates have.

    Parameters
    ----------
    step : float
        In units of the CRS; 0 if no step is seen.
    share : float
        Share of the records whose coordinates have this step, in [0, 1].
    """

    step: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Families:
    """Children of measured cells.

    Their family, share, deviation and its weight; the count of the cell, without the bias of its
    noise in products with the weight; the sides of both; and by axis, the column (or row) of each
    family.
    """

    number: int
    family: Integers
    share: Floats
    deviation: Floats
    weight: Floats
    count: Floats
    sides: Floats
    parent_sides: Floats
    columns: tuple[Integers, ...]


def detect_step(tree: Tree, estimates: Estimates, share: Floats, domain: Domain) -> CoordinateStep:
    """Estimate the step to which coordinates are rounded.

    Parameters
    ----------
    tree : Tree
        Cells.
    estimates : Estimates
        Of that tree.
    share : ndarray, shape (nodes,), float64
        Of its parent's records that each node has if they lie as they are taken to.
    domain : Domain
        Of the cells.

    Notes
    -----
    A matched filter. If coordinates are multiples of s, a child of a cell of n records has
    n g r beyond its share g, where 1 + r is the density of multiples of s in the child over that in
    the cell. The deviations are regressed on n g r with the inverse of their variance as weight,
    for each power of ten s. The slope is the share of the records that are rounded, and its
    standard error is from the spread of the families' terms. The step with the largest ratio of
    both is taken, if it is large. The ratio also has to be large where the families of a column, or
    of a row, are one term: where all records lie on one line, those along it deviate together and
    tell as much as one.
    """
    families = _measured_families(tree, estimates, share, domain)
    best, strength = CoordinateStep(step=0.0, share=0.0), STEP_ERRORS
    for step in _candidates(tree, domain):
        slope, ratio, by_column = _regress(families, step)
        seen = ratio > strength and by_column > STEP_COLUMN_ERRORS
        if seen and STEP_SHARES[0] < slope < STEP_SHARES[1]:
            best, strength = CoordinateStep(step=step, share=min(slope, 1.0)), ratio
    return best


def _candidates(tree: Tree, domain: Domain) -> list[float]:
    """Powers of ten between the narrowest leaf and a part of the domain."""
    west, south, east, north = domain.bounds
    size = np.array([east - west, north - south])
    leaves = tree.boxes[tree.is_leaf]
    narrow = ((leaves[:, 2:] - leaves[:, :2]).min(axis=0) / np.array(domain.lattice) * size).min()
    first = math.ceil(math.log10(narrow / 2))
    last = math.floor(math.log10(size.min() / STEPS_ACROSS))
    return [10.0**power for power in range(first, last + 1)]


def _measured_families(
    tree: Tree, estimates: Estimates, share: Floats, domain: Domain
) -> _Families:
    """Children of cells of which all children are measured."""
    parents = np.flatnonzero(~tree.is_leaf)
    parents = parents[:: max(1, -(-len(parents) // _MAX_FAMILIES))]
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]
    count, noise = (sum_by(owner, values, len(parents)) for values in (value, variance))
    used = (np.isfinite(noise) & (count > 0))[owner]
    child, owner = child[used], owner[used]
    g, value, variance = g[used], value[used], variance[used]
    n, above = count[owner], noise[owner]
    unevenness = g * (1 - g) * n * (STEP_CLUSTER_SIZE + STEP_OVERDISPERSION * n)
    spread = variance * (1 - 2 * g) + g**2 * above + unevenness
    return _Families(
        number=len(parents),
        family=owner,
        share=g,
        deviation=value - g * n,
        weight=n / np.maximum(spread, 1e-300),
        count=n - above / n,
        sides=domain.from_lattice(tree.boxes[child]),
        parent_sides=domain.from_lattice(tree.boxes[parents[owner]]),
        columns=tuple(_columns_of(tree, parents, axis) for axis in (0, 1)),
    )


def _columns_of(tree: Tree, node: Integers, axis: int) -> Integers:
    """Column (or row) that each cell is in, together with all cells of the same two sides."""
    low, high = (tree.boxes[node, side].astype(np.int64) for side in (axis, axis + 2))
    return distinct_values(low << 32 | high)[1]


def _regress(families: _Families, step: float) -> tuple[float, float, float]:
    """Slope of the deviations on those of rounded coordinates, and its ratios to its errors.

    The first error takes families to be independent, the second one columns and rows of them.
    """
    terms, by_column, square, moved = [], [], 0.0, 0
    for axis in (0, 1):
        density = _density_of_steps(families.sides, axis, step)
        above = _density_of_steps(families.parent_sides, axis, step)
        excess = np.where(above > 0, density / np.where(above > 0, above, 1.0) - 1, 0.0)
        pattern = families.share * excess * families.weight
        terms.append(sum_by(families.family, families.deviation * pattern, families.number))
        by_column.append(sum_by(families.columns[axis], terms[-1], families.number))
        square += float((families.share * excess * pattern * families.count).sum())
        moved += int(np.count_nonzero(terms[-1]))
    every, columns = np.concatenate(terms), np.concatenate(by_column)
    error, other = float(np.sqrt((every**2).sum())), float(np.sqrt((columns**2).sum()))
    if moved < STEP_FAMILIES or square <= 0 or error <= 0 or other <= 0:
        return 0.0, 0.0, 0.0
    total = float(every.sum())
    return total / square, total / error, total / other


def _density_of_steps(sides: Floats, axis: int, step: float) -> Floats:
    """Multiples of a step per unit of length between the sides of boxes."""
    low, high = sides[:, axis], sides[:, axis + 2]
    density: Floats = (np.ceil(high / step) - np.ceil(low / step)) / (high - low)
    return density
