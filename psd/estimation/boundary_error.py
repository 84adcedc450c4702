"""How far records that lie along a line may all be on the other side of it.

A query takes a part of each leaf that its edge cuts. If coordinates are rounded, or lie on streets,
these parts are wrong in the same direction all along the edge, and their errors add up. Three
sources tell how wrong: the step of the coordinates, if the counts show one; the columns of a
lattice that was chosen; and what the divisions of cells along the lines of the lattice have in
common. Cells that are divided at quantiles have no lines in common, and tell nothing: there the
overdispersion of leaves tells how much may be wrong together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers, distinct_values, sum_by
from psd.estimation.constants import (
    APART_VARIANCE,
    CUT_SHARE_VARIANCE,
    MAX_SHARE_VARIANCE,
    MIDDLE_SHARE,
    STEP_CLUSTER_SIZE,
    STEP_COLUMN_ERRORS,
    STEP_ERRORS,
    STEP_FAMILIES,
    STEP_OVERDISPERSION,
    STEP_SHARE_VARIANCE,
    STEP_SHARES,
    STEPS_ACROSS,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.line_covariance import (
    WIDTHS,
    common_variance_by_width,
    has_unshared_lines,
    levels_halved,
    side_factors,
)
from psd.estimation.sibling_splits import children_of, divisions
from psd.space.box_tree import Tree
from psd.space.domain import DEFAULT_LATTICE, Domain

__all__ = [
    "PATTERN_SHAPE",
    "CoordinateStep",
    "LinePattern",
    "column_records",
    "detect_step",
    "fit_lines",
    "line_deviation",
    "step_overdispersion",
]

PATTERN_SHAPE = (3 + 4 * WIDTHS,)
"""Shape of the numbers of a pattern: step, share, whether cells lie apart, and the variances and
factors by width along each axis."""

# Leaves worked on together; bounds the memory, not the result.
_LEAVES_PER_BATCH = 2**16

# Families looked at; a stride over more of them bounds the time, not the memory.
_MAX_FAMILIES = 2**16


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinateStep:
    """Step between the values that coordinates have."""

    step: float  # in units of the CRS; 0 if no step is seen
    share: float  # of the records whose coordinates have this step, in [0, 1]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinePattern:
    """What cuts along lines of the lattice have in common."""

    step: CoordinateStep  # of the coordinates
    # (2, `WIDTHS`) float64; variance of a half's share that cells along a line have in common, for
    # lines of constant x and of constant y, by halvings of the domain.
    common: Floats
    # (2, `WIDTHS`) float64; factor of the variance of cuts by where in cells lines are, in the same
    # order.
    factor: Floats
    # Whether cells have no lines in common (`psd.estimation.line_covariance.has_unshared_lines`).
    apart: bool

    @property
    def is_seen(self) -> bool:
        """Whether any cut is off by more than chance."""
        return self.apart or bool(self.step.step) or bool(np.any(self.common))

    def to_array(self) -> Floats:
        """Numbers of the pattern, of shape `PATTERN_SHAPE`."""
        numbers = np.array([self.step.step, self.step.share, self.apart])
        return np.concatenate([numbers, self.common.ravel(), self.factor.ravel()])

    @classmethod
    def from_array(cls, values: Floats) -> LinePattern:
        """Pattern of some numbers."""
        step = CoordinateStep(step=float(values[0]), share=float(values[1]))
        common, factor = values[3:].reshape(2, 2, -1)
        return cls(step=step, common=common, factor=factor, apart=bool(values[2]))


def fit_lines(tree: Tree, estimates: Estimates, share: Floats, domain: Domain) -> LinePattern:
    """Estimate what cuts along lines have in common.

    share: (nodes,) float64, of its parent's records that each node has if they lie as they are
    taken to. The published counts are not read.
    """
    step = detect_step(tree, estimates, share, domain)
    along = divisions(tree, estimates, share)
    common, factor = np.zeros((2, WIDTHS)), np.ones((2, WIDTHS))
    for axis, divided in enumerate(along):
        common[axis] = common_variance_by_width(tree, divided, axis, domain.lattice)
        if common[axis].any():
            factor[axis] = side_factors(tree, divided, axis, domain.lattice)
    apart = has_unshared_lines(tree, along, domain.lattice)
    return LinePattern(step=step, common=common, factor=factor, apart=apart)


def line_deviation(
    tree: Tree, count: Floats, overdispersion: Floats, pattern: LinePattern, domain: Domain
) -> Floats | None:
    """Estimate by how many records a cut along each axis may be off, per unit of sqrt(f (1 - f)).

    count, overdispersion: (nodes,) float64, counts not a number where no deviation is needed;
    returns (2, nodes) float64, for lines of constant x, and of constant y; None where nothing is
    seen. A line that leaves the share f of a leaf on one side has there a standard deviation of
    sqrt(f (1 - f)) times this value, the same for all leaves along it.

    Of cells that lie apart, the part of the variance that leaves have in common is not seen. It is
    large where records are on lines, as at one place in each leaf, and small where they are spread:
    it is taken to be half of the eighth power of the overdispersion.

    Where the lines of leaves are on their sides, cuts err more, and where they are in the middle,
    less (`psd.estimation.line_covariance.side_factors`).

    The columns of a lattice that was chosen are no part of it: see `column_records`.
    """
    if not pattern.is_seen and not _has_own_lattice(domain):
        return None
    deviation = np.where(np.isnan(count), np.nan, np.zeros((2, 1)))
    leaves = np.flatnonzero(tree.is_leaf & ~np.isnan(count))
    for start in range(0, len(leaves), _LEAVES_PER_BATCH):
        leaf = leaves[start : start + _LEAVES_PER_BATCH]
        records = np.maximum(count[leaf], 0.0)
        for axis in (0, 1):
            halved = levels_halved(tree, leaf, axis, domain.lattice)
            # Variances are shares of the largest one, of cells with all records on one side of the
            # line.
            by_lines = pattern.common[axis][halved] / MAX_SHARE_VARIANCE
            by_lines *= 1 + (CUT_SHARE_VARIANCE - 1) * (1 - by_lines)
            variance = by_lines * pattern.factor[axis][halved]
            if _shows_step(pattern.step, axis, domain):
                by_step = _step_variance(*_steps_across(tree, leaf, pattern.step, axis, domain))
                variance = np.maximum(variance, by_step / MAX_SHARE_VARIANCE)
            if pattern.apart:
                variance = np.maximum(variance, APART_VARIANCE * overdispersion[leaf] ** 8)
            deviation[axis, leaf] = records * np.sqrt(variance)
    return deviation


def column_records(tree: Tree, count: Floats, domain: Domain) -> Floats | None:
    """Estimate the records in one column and one row of each leaf, where the lattice was chosen.

    count: (nodes,) float64, published; returns (2, nodes) float64, for columns and rows; None with
    the default lattice.

    Records of a lattice that was chosen, such as 256 x 256 cells, are taken to lie in the middle of
    its cells: all of a column are on one side of a line inside it. Lines of the lattice cut none.
    """
    if not _has_own_lattice(domain):
        return None
    width = (tree.boxes[:, 2:] - tree.boxes[:, :2]).T.astype(np.float64)
    records: Floats = np.maximum(count, 0.0) / width
    return records


def step_overdispersion(tree: Tree, step: CoordinateStep, domain: Domain) -> Floats:
    """Compute the overdispersion of leaves whose records are at the values of rounded coordinates.

    Returns (nodes,) float64, in [0, 1]; 0 for nodes that are not leaves.

    A line that slants across a leaf of k rows of values crosses each row at a place of its own, and
    is wrong there by up to half a step. The rows err independently: their mean has a k-th part of
    the variance of one row, which is that of a line along the other axis. In a leaf of less than a
    step all records are on one side.
    """
    result = np.zeros(len(tree))
    leaves = np.flatnonzero(tree.is_leaf)
    if not step.step and not _has_own_lattice(domain):
        return result
    for start in range(0, len(leaves), _LEAVES_PER_BATCH):
        leaf = leaves[start : start + _LEAVES_PER_BATCH]
        product = np.ones(len(leaf))
        for axis in (0, 1):
            steps, part = _steps_across(tree, leaf, step, axis, domain)
            variance = _step_variance(steps, part) / MAX_SHARE_VARIANCE
            product *= np.minimum(variance, 1.0) * np.minimum(steps, 1.0)
        result[leaf] = np.sqrt(product)
    return result


def _has_own_lattice(domain: Domain) -> bool:
    """Whether the lattice was chosen."""
    return domain.lattice != DEFAULT_LATTICE and domain.coordinate_resolution is None


def _steps_across(
    tree: Tree, leaf: Integers, step: CoordinateStep, axis: int, domain: Domain
) -> tuple[Floats, float]:
    """Steps of the coordinates, in widths of each cell, and the share of records that have them."""
    width = (tree.boxes[leaf, axis + 2] - tree.boxes[leaf, axis]).astype(np.float64)
    if not _shows_step(step, axis, domain) and _has_own_lattice(domain):
        return np.where(width == 1, 1.0, 0.0), MIDDLE_SHARE
    return step.step / (width * _column_width(axis, domain)), step.share


def _shows_step(step: CoordinateStep, axis: int, domain: Domain) -> bool:
    """Whether the counts show a step; one that is wider than a column of a chosen lattice."""
    least = _column_width(axis, domain) if _has_own_lattice(domain) else 0.0
    return step.step > least


def _column_width(axis: int, domain: Domain) -> float:
    """Width of a lattice cell."""
    return (domain.bounds[axis + 2] - domain.bounds[axis]) / domain.lattice[axis]


def _step_variance(steps: Floats, share: float) -> Floats:
    """Variance of the share of a cell beside a line in its middle, by the step of coordinates.

    A line lies anywhere between two values: the share is off by up to half a step. In a cell of
    less than a step all records have one value, or there are none.
    """
    wide = STEP_SHARE_VARIANCE * steps**2
    variance: Floats = share**2 * np.minimum(wide, MAX_SHARE_VARIANCE * np.minimum(steps, 1.0))
    return variance


# --- the step of coordinates --------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Families:
    """Children of measured cells: arrays by child."""

    number: int  # of families
    family: Integers  # number of the family of each child
    share: Floats  # of the records of the cell
    deviation: Floats  # records beyond the share
    weight: Floats  # records of the cell over the variance of the deviation
    count: Floats  # records of the cell, without the bias of its noise in products with the weight
    sides: Floats  # of the children, (n, 4)
    of_cell: Floats  # sides of the cells, (n, 4)
    columns: Sequence[Integers]  # by axis, column (or row) of each family


def detect_step(tree: Tree, estimates: Estimates, share: Floats, domain: Domain) -> CoordinateStep:
    """Estimate the step to which coordinates are rounded.

    share: (nodes,) float64, of its parent's records that each node has if they lie as they are
    taken to.

    Most coordinates are decimals with a few places. Where cells are not much wider than the last
    place, the parts of a cell hold different numbers of values that a coordinate can have; the
    counts of the parts follow these numbers if, and only if, the coordinates are rounded to it.

    P1. It is a matched filter. If coordinates are multiples of s, a child of a cell of n records
    has n g r beyond its share g, where 1 + r is the density of multiples of s in the child over
    that in the cell. The deviations are regressed on n g r with the inverse of their variance as
    weight, for each power of ten s. The slope is the share of the records that are rounded, and its
    standard error is from the spread of the families' terms.

    The step with the largest ratio of both is taken, if it is large. The ratio also has to be large
    where the families of a column, or of a row, are one term: where all records lie on one line,
    those along it deviate together and tell as much as one.
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
    # The column (or row) that each cell is in, together with all cells of the same two sides.
    edges = tree.boxes[parents].astype(np.int64)
    columns = [distinct_values(edges[:, axis] << 32 | edges[:, axis + 2])[1] for axis in (0, 1)]
    return _Families(
        number=len(parents),
        family=owner,
        share=g,
        deviation=value - g * n,
        weight=n / np.maximum(spread, 1e-300),
        count=n - above / n,
        sides=domain.from_lattice(tree.boxes[child]),
        of_cell=domain.from_lattice(tree.boxes[parents[owner]]),
        columns=columns,
    )


def _regress(families: _Families, step: float) -> tuple[float, float, float]:
    """Slope of the deviations on those of rounded coordinates, and its ratios to its errors.

    The first error takes families to be independent, the second one columns and rows of them.
    """
    terms, by_column, square, moved = [], [], 0.0, 0
    for axis in (0, 1):
        # Multiples of the step per unit of length, in the child and in the cell.
        ends = [(each[:, axis], each[:, axis + 2]) for each in (families.sides, families.of_cell)]
        density, above = (
            (np.ceil(high / step) - np.ceil(low / step)) / (high - low) for low, high in ends
        )
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
