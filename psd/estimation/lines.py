"""Records along lines: how far they may all be on one side, and how they move together.

If coordinates are rounded, or lie on streets, records near a line lie on the same side all along
it, so errors of leaves that an edge cuts add up. Three sources tell how wrong: the step of the
coordinates, the columns of a chosen lattice, and products of deviations of cells that one line
divides. Cells divided at quantiles share no lines: there the overdispersion of leaves tells.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from psd._util.arrays import Floats, Integers, distinct_values, sum_by
from psd.estimation.constants import (
    APART_VARIANCE,
    CUT_SHARE_VARIANCE,
    ENOUGH_FAMILIES,
    EXPECTED_CLUSTER_SIZE,
    EXPECTED_OVERDISPERSION,
    LAGS,
    SEEN_ERRORS,
    SEEN_SHARES,
    STEP_COLUMN_ERRORS,
)
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import Divisions, children_of, divisions
from psd.space.box_tree import Tree
from psd.space.domain import DEFAULT_LATTICE, Domain

WIDTHS = 64
"""Widths of cells that are told apart, by halvings of the domain."""

# Variance of the share of one half where all points are in one of the halves.
_MAX_SHARE_VARIANCE = 1 / 4

# Variance of the share beside a line in the middle of a cell of many steps, in squared steps per
# cell: a mean of (1 + f^2 + (1 - f)^2) / 12 over f, 5 / 36, over that of 4 f (1 - f), 2 / 3.
_STEP_SHARE_VARIANCE = 5 / 24

# Deviation of a cut in a cell whose records are in its middle, over one in a cell whose records are
# all on either side: the mean of min(f, 1 - f)^2 over f is half of that of f (1 - f).
_MIDDLE_SHARE = 0.5**0.5

# Fewer divisions tell nothing.
_DIVISIONS = 500

# A line is in the middle if it is off by less than this part of half the width.
_MIDDLE = 32


def levels_halved(tree: Tree, node: Integers, axis: int, lattice: tuple[int, int]) -> Integers:
    """Number of times that the domain was halved for the width of each cell, shape (n,)."""
    width = (tree.boxes[node, axis + 2] - tree.boxes[node, axis]).astype(np.float64)
    halved: Integers = np.rint(np.log2(lattice[axis] / width)).astype(np.int64)
    return halved


def common_variance_by_width(
    tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]
) -> Floats:
    """Estimate the variance of a half's share that cells along a line have in common.

    Returns (`WIDTHS`,) float64, by halvings of the domain (`levels_halved`), in [0, 1/4]: 1/4 where
    a line has all records of a cell on one side.
    """
    halved = levels_halved(tree, divisions.node, axis, lattice)
    # The mean of d_i d_j over that of n_i n_j, d the deviations and n the counts of cells of one
    # width on one line, several cells apart: neighbours are alike for other reasons as well. Their
    # noise is independent.
    # Sums over pairs of cells on one line, by how often their width was halved; (WIDTHS,).
    product, counts, square, pairs = np.zeros((4, WIDTHS))
    for first, second in _pairs(tree, divisions, axis, lattice):
        value = divisions.deviation[first] * divisions.deviation[second]
        for total, values in (
            (product, value),
            (counts, divisions.count[first] * divisions.count[second]),
            (square, value**2),
            (pairs, np.ones(len(first))),
        ):
            total += np.bincount(halved[first], values, WIDTHS)[:WIDTHS]
    # Common variance by width: the pattern that fits the products best, if it is seen.
    error = np.sqrt(square)
    usable = np.flatnonzero((pairs >= ENOUGH_FAMILIES) & (counts > 0) & (error > 0))
    mean, deviation = product[usable] / counts[usable], error[usable] / counts[usable]
    # Records that move by a fixed distance are a share of 1/w^2 of this variance in cells of the
    # width w, and all of it in narrower cells. This pattern is fitted to the means of all widths,
    # and to narrow cells alone, since lines of wide ones may all pass between values.
    share, best, strength = 0.0, np.zeros(WIDTHS), SEEN_ERRORS
    # From one width more than the widest on, patterns are multiples of each other at all widths.
    for saturated in range(1, min(int(usable.max(initial=-1)) + 2, WIDTHS)):
        # All of the variance in cells of some width and narrower ones, a quarter of it for each
        # doubling.
        pattern = _MAX_SHARE_VARIANCE * 4.0 ** np.minimum(np.arange(WIDTHS) - saturated, 0)
        for fitted in (usable >= saturated, np.ones(len(usable), bool)):
            expected = np.where(fitted, pattern[usable], 0.0) / deviation
            length = float(np.sqrt((expected**2).sum()))
            # How many standard errors the means have along the pattern, of `length` for all
            # records.
            along = float((expected * mean / deviation).sum()) / length if length > 0 else 0.0
            # It counts where it is several standard errors above 0, and its share of the records is
            # not that of a density that changes gradually.
            if along > strength and along < SEEN_SHARES[1] * length:
                share, best, strength = along / length, pattern, along
    if share < SEEN_SHARES[0]:
        return np.zeros(WIDTHS)
    # A width whose own mean is far above its error keeps that mean if it is larger.
    result = min(share, 1.0) * best
    seen = mean > SEEN_ERRORS * deviation
    result[usable] = np.maximum(result[usable], np.where(seen, mean, 0.0))
    return np.minimum(result, _MAX_SHARE_VARIANCE)


def has_unshared_lines(tree: Tree, along: tuple[Divisions, Divisions]) -> bool:
    """Whether few cells share lines, as at quantiles: less than half of them cut in the middle."""
    number = sum(len(divided.node) for divided in along)
    middle = 0
    # A line counts as in the middle within a small part of the width, or half a lattice cell.
    for axis, divided in enumerate(along):
        low, high = (tree.boxes[divided.node, side].astype(np.int64) for side in (axis, axis + 2))
        off = np.abs(2 * divided.line - low - high)
        middle += int(np.count_nonzero(off <= np.maximum((high - low) // _MIDDLE, 1)))
    return number >= _DIVISIONS and 2 * middle < number


def _pairs(
    tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]
) -> Iterator[tuple[Integers, Integers]]:
    """Indices of divisions of one size on one line, some cells apart."""
    across, along = (levels_halved(tree, divisions.node, a, lattice) for a in (axis, 1 - axis))
    # Place of each cell along its line, in cells of its own size.
    low = tree.boxes[divisions.node, 1 - axis].astype(np.float64)
    rank = np.rint(low / lattice[1 - axis] * 2.0**along).astype(np.int64)
    if not len(rank):
        return
    # The same line, and cells of the same size: three numbers of 31, 6 and 6 bits.
    key = divisions.line << 12 | across << 6 | along
    apart = int(rank.max()) + max(LAGS) + 1
    if int(key.max()) < 2**62 // apart:
        code = key * apart + rank
        order = np.argsort(code)
        code = code[order]
        if (code[1:] > code[:-1]).all():
            # How many places after each code the one is that is larger by each lag; 0 without one.
            # Codes ascend and are different, so it is at most the lag.
            places = np.zeros((len(LAGS), len(code)), np.int8)
            for step in range(1, min(max(LAGS), len(code) - 1) + 1):
                larger = code[step:] - code[:-step]
                for row, lag in zip(places, LAGS, strict=True):
                    if step <= lag:
                        row[np.flatnonzero(larger == lag)] = step
            for later in places:
                hit = np.flatnonzero(later)
                yield order[hit], order[hit + later[hit]]
            return
    # Equal codes, or numbers that do not fit into one word: each lag by a search.
    code = distinct_values(key)[1] * apart + rank
    order = np.argsort(code)
    code = code[order]
    for lag in LAGS:
        match = np.minimum(np.searchsorted(code, code + lag), len(code) - 1)
        hit = np.flatnonzero(code[match] == code + lag)
        yield order[hit], order[match[hit]]


# --- where in cells lines are -------------------------------------------------------------------


def line_squares(
    tree: Tree, along: tuple[Divisions, Divisions], common: Floats, lattice: tuple[int, int]
) -> Floats:
    """Squared deviations of the children of cells that lines explain, by squared record, (nodes,).

    common: (2, `WIDTHS`) float64, by axis, of `common_variance_by_width`; 0 for cells not divided
    in two along x, along y, or along both.

    P1. They have a sum of squares of 2 Q times the variance of a half. A line leaves the share g of
    a cell on one side, with a variance of 4 g (1 - g) times that of a half. Records that it moves
    leave the children on one side, by their shares, for those on the other. Q is the sum of the
    squares of these shares: 1 with one child on each side, a half with two equal ones.
    """
    result, is_divided = np.zeros(len(tree)), np.zeros((2, len(tree)), bool)
    parts = np.ones((2, len(tree)))
    # Sum of the squared shares of both halves along each axis; 1 where it is not divided.
    for axis, divided in enumerate(along):
        is_divided[axis, divided.node] = True
        parts[axis, divided.node] = divided.share**2 + (1 - divided.share) ** 2
    # A move over the line changes both of its halves, each divided along the other axis.
    for axis, divided in enumerate(along):
        variance = common[axis][levels_halved(tree, divided.node, axis, lattice)]
        variance = 4 * divided.share * (1 - divided.share) * variance
        result[divided.node] += 2 * parts[1 - axis, divided.node] * variance
    # Only of cells with as many children as their divisions make.
    halved = tree.children == 2 ** is_divided.sum(axis=0)
    return np.where(halved, result, 0.0)


def side_factors(tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]) -> Floats:
    """Factors of the variance of a cut by where lines are in cells, (`WIDTHS`,), in [1/2, 2].

    P2. The factor is 1/2 + 3/2 (2 u - 1)^2 for lines at u of the width. A cut anywhere in a cell
    whose records are on a line at u is wrong by u^3 / 3 + (1 - u)^3 / 3 of the squared records, in
    the mean: 1/6 for lines at any u, 1/3 on a side, as those of a grid of 2^k columns, and 1/12 in
    the middle.
    """
    agreement = _agreement(tree, divisions, axis, lattice)
    seen, factor = np.flatnonzero(agreement), np.ones(WIDTHS)
    if not len(seen):
        return factor
    # The half in which the line is, the half of that half, and so on are the binary digits of u.
    # Each agrees with the one before it, or does not, as `_agreement` tells, and the mean square of
    # 2 u - 1 follows. The size of the agreement is the share of the records for which this holds;
    # the others are on lines at any u.
    # `square` is the mean of (2 u - 1)^2 at a width, and `first` that of 2 u - 1 times its first
    # digit, as 1 or -1. Narrower cells than those that tell are taken to go on as they do.
    agrees = np.sign(agreement)
    first = 1 / (2 - agrees[seen[-1]])
    square = (1 + 2 * agrees[seen[-1]] * first) / 3
    for width in range(seen[-1], -1, -1):
        square = (1 + square + 2 * agrees[width] * first) / 4
        first = (1 + agrees[width] * first) / 2
        factor[width] += abs(agreement[width]) * 1.5 * (square - 1 / 3)
    return factor


def _agreement(tree: Tree, divisions: Divisions, axis: int, lattice: tuple[int, int]) -> Floats:
    """How often the half of a cell with its records, and the half of that half, are on one side.

    (WIDTHS,), -1 (never) to 1 (always): products of deviations over those of counts.
    """
    # Divisions whose parent is divided along the same axis as well, and that of the parent.
    index = np.full(len(tree), -1)
    index[divisions.node] = np.arange(len(divisions.node))
    above = index[np.maximum(tree.parent[divisions.node], 0)]
    below = np.flatnonzero((above >= 0) & (divisions.node > 0))
    above = above[below]
    products = 4 * divisions.deviation[above] * divisions.deviation[below]
    counts = divisions.count[above] * divisions.count[below]
    width = levels_halved(tree, divisions.node[above], axis, lattice)
    total, of_counts, square = (
        np.bincount(width, values, WIDTHS)[:WIDTHS] for values in (products, counts, products**2)
    )
    # Less some errors, so that noise alone shows no agreement.
    least = np.maximum(np.abs(total) - SEEN_ERRORS * np.sqrt(square), 0.0)
    mean = np.where(of_counts > 0, least, 0.0) / np.where(of_counts > 0, of_counts, 1.0)
    return np.copysign(np.minimum(mean, 1.0), total)


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
    # Whether cells have no lines in common (`psd.estimation.lines.has_unshared_lines`).
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
    """Estimate what cuts along lines share; share: (nodes,), as taken, of the parent's records."""
    # Sides of boxes lie between the values of a resolution that is declared: no side errs by it.
    is_declared = domain.coordinate_resolution is not None
    step = CoordinateStep(step=0.0, share=0.0)
    step = step if is_declared else detect_step(tree, estimates, share, domain)
    along = divisions(tree, estimates, share)
    common, factor = np.zeros((2, WIDTHS)), np.ones((2, WIDTHS))
    for axis, divided in enumerate(along):
        common[axis] = common_variance_by_width(tree, divided, axis, domain.lattice)
        if common[axis].any():
            factor[axis] = side_factors(tree, divided, axis, domain.lattice)
    apart = has_unshared_lines(tree, along)
    return LinePattern(step=step, common=common, factor=factor, apart=apart)


def line_deviation(
    tree: Tree, count: Floats, overdispersion: Floats, pattern: LinePattern, domain: Domain
) -> Floats | None:
    """Records by which a cut along each axis may be off, per sqrt(f (1 - f)); (2, nodes) or None.

    count, overdispersion: (nodes,) float64, counts NaN where no deviation is needed; f: share of a
    leaf on one side of the line. All leaves along the line err alike.
    """
    if not pattern.is_seen and not _has_own_lattice(domain):
        return None
    # NaN stays where a node has no count; inner nodes stay 0.
    deviation = np.where(np.isnan(count), np.nan, np.zeros((2, 1)))
    leaves = np.flatnonzero(tree.is_leaf & ~np.isnan(count))
    for start in range(0, len(leaves), _LEAVES_PER_BATCH):
        leaf = leaves[start : start + _LEAVES_PER_BATCH]
        records = np.maximum(count[leaf], 0.0)
        for axis in (0, 1):
            halved = levels_halved(tree, leaf, axis, domain.lattice)
            # Variances are shares of the largest one, of cells with all records on one side of the
            # line.
            by_lines = pattern.common[axis][halved] / _MAX_SHARE_VARIANCE
            by_lines *= 1 + (CUT_SHARE_VARIANCE - 1) * (1 - by_lines)
            variance = by_lines * pattern.factor[axis][halved]
            # Columns of a lattice that was chosen are no part of it: see `column_records`.
            if _shows_step(pattern.step, axis, domain):
                by_step = _step_variance(*_steps_across(tree, leaf, pattern.step, axis, domain))
                variance = np.maximum(variance, by_step / _MAX_SHARE_VARIANCE)
            # What adjoining leaves have in common is not seen in cells that lie apart. It is taken
            # to be half of the eighth power of the overdispersion: large where records are on
            # lines, small where spread.
            if pattern.apart:
                variance = np.maximum(variance, APART_VARIANCE * overdispersion[leaf] ** 8)
            deviation[axis, leaf] = records * np.sqrt(variance)
    return deviation


def column_records(tree: Tree, count: Floats, domain: Domain) -> Floats | None:
    """Records in one column and row of each leaf, (2, nodes); None with the default lattice."""
    if not _has_own_lattice(domain):
        return None
    # Records are taken to lie in the middle of the cells of a chosen lattice: its lines cut none.
    width = (tree.boxes[:, 2:] - tree.boxes[:, :2]).T.astype(np.float64)
    return np.maximum(count, 0.0) / width


def step_overdispersion(tree: Tree, step: CoordinateStep, domain: Domain) -> Floats:
    """Overdispersion of leaves with rounded coordinates, (nodes,), in [0, 1]; 0 for other nodes."""
    result = np.zeros(len(tree))
    leaves = np.flatnonzero(tree.is_leaf)
    if not step.step and not _has_own_lattice(domain):
        return result
    # A slanting line crosses each of k rows of values at a place of its own: the mean has a k-th
    # part of the variance of a line along an axis. So what both axes show is multiplied.
    for start in range(0, len(leaves), _LEAVES_PER_BATCH):
        leaf = leaves[start : start + _LEAVES_PER_BATCH]
        product = np.ones(len(leaf))
        for axis in (0, 1):
            steps, part = _steps_across(tree, leaf, step, axis, domain)
            variance = _step_variance(steps, part) / _MAX_SHARE_VARIANCE
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
        return np.where(width == 1, 1.0, 0.0), _MIDDLE_SHARE
    return step.step / (width * _column_width(axis, domain)), step.share


def _shows_step(step: CoordinateStep, axis: int, domain: Domain) -> bool:
    """Whether the counts show a step; one that is wider than a column of a chosen lattice."""
    least = _column_width(axis, domain) if _has_own_lattice(domain) else 0.0
    return step.step > least


def _column_width(axis: int, domain: Domain) -> float:
    """Width of a lattice cell."""
    return (domain.bounds[axis + 2] - domain.bounds[axis]) / domain.lattice[axis]


def _step_variance(steps: Floats, share: float) -> Floats:
    """Variance of the share beside a line: off by half a step, all or none in narrower cells."""
    wide = _STEP_SHARE_VARIANCE * steps**2
    return share**2 * np.minimum(wide, _MAX_SHARE_VARIANCE * np.minimum(steps, 1.0))


# --- the step of coordinates --------------------------------------------------------------------


def detect_step(tree: Tree, estimates: Estimates, share: Floats, domain: Domain) -> CoordinateStep:
    """Estimate the step to which coordinates are rounded, or assume one.

    share: (nodes,) float64, of its parent's records that each node has if they lie as is taken.

    P1. It is a matched filter. If coordinates are multiples of s, a child of a cell of n records
    has n g r beyond its share g, where 1 + r is the density of multiples of s in the child over
    that in the cell: parts not much wider than s hold different numbers of them. The deviations are
    regressed on n g r with the inverse of their variance as weight, for each power of ten s. The
    slope is the share of the records that are rounded, its standard error by the spread of
    families.
    """
    # Children of cells of which all children are measured.
    parents = np.flatnonzero(~tree.is_leaf)
    parents = parents[:: max(1, -(-len(parents) // _MAX_FAMILIES))]
    child, owner = children_of(tree, parents)
    g, value, variance = share[child], estimates.upward[child], estimates.upward_variance[child]
    count, noise = (sum_by(owner, values, len(parents)) for values in (value, variance))
    # A child that has all of the area has all of the records: it tells nothing, without an error.
    used = (np.isfinite(noise) & (count > 0))[owner] & (g > 0) & (g < 1)
    child, owner = child[used], owner[used]
    g, value, variance = g[used], value[used], variance[used]
    # Variance of each deviation: its noise, and the unevenness expected in any family.
    n, above = count[owner], noise[owner]
    unevenness = g * (1 - g) * n * (EXPECTED_CLUSTER_SIZE + EXPECTED_OVERDISPERSION * n)
    spread = variance * (1 - 2 * g) + g**2 * above + unevenness
    # The column (or row) that each cell is in, together with all cells of the same two sides.
    edges = tree.boxes[parents].astype(np.int64)
    columns = [distinct_values(edges[:, axis] << 32 | edges[:, axis + 2])[1] for axis in (0, 1)]
    # Records beyond the share, records of the cell over the variance of these, and without the bias
    # of its noise in products with this weight.
    deviation, weight, unbiased = value - g * n, n / np.maximum(spread, 1e-300), n - above / n
    sides = [domain.from_lattice(tree.boxes[node]) for node in (child, parents[owner])]

    def regress(step: float) -> tuple[float, float, float]:
        """Slope on deviations of rounding, over errors of families, and of columns or rows."""
        terms, by_column, square, moved = [], [], 0.0, 0
        for axis in (0, 1):
            # Multiples of the step per unit of length, in the child and in the cell.
            ends = [(each[:, axis], each[:, axis + 2]) for each in sides]
            density, of_cell = (
                (np.ceil(high / step) - np.ceil(low / step)) / (high - low) for low, high in ends
            )
            # How much denser in multiples a child is than its cell; 0 for a cell without any.
            excess = np.where(of_cell > 0, density / np.where(of_cell > 0, of_cell, 1.0) - 1, 0.0)
            pattern = g * excess * weight
            # Sums of each family, and of those in one column or row, which may deviate together.
            terms.append(sum_by(owner, deviation * pattern, len(parents)))
            by_column.append(sum_by(columns[axis], terms[-1], len(parents)))
            square += float((g * excess * pattern * unbiased).sum())
            moved += int(np.count_nonzero(terms[-1]))
        every, together = np.concatenate(terms), np.concatenate(by_column)
        error, other = float(np.sqrt((every**2).sum())), float(np.sqrt((together**2).sum()))
        if moved < ENOUGH_FAMILIES or square <= 0 or error <= 0 or other <= 0:
            return 0.0, 0.0, 0.0
        total = float(every.sum())
        return total / square, total / error, total / other

    best, strength = CoordinateStep(step=0.0, share=0.0), SEEN_ERRORS
    # Powers of ten between the narrowest leaf and the domain.
    west, south, east, north = domain.bounds
    size = np.array([east - west, north - south])
    leaves = tree.boxes[tree.is_leaf]
    narrow = ((leaves[:, 2:] - leaves[:, :2]).min(axis=0) / np.array(domain.lattice) * size).min()
    first = math.ceil(math.log10(narrow / 2))
    last = math.floor(math.log10(size.min()))
    for step in [10.0**power for power in range(first, last + 1)]:
        slope, ratio, by_column = regress(step)
        # The ratio has to be large also where the families of a column, or of a row, are one term:
        # records on one line deviate together.
        # Of all steps that are seen, the clearest one.
        seen = ratio > strength and by_column > STEP_COLUMN_ERRORS
        if seen and SEEN_SHARES[0] < slope < SEEN_SHARES[1]:
            best, strength = CoordinateStep(step=step, share=min(slope, 1.0)), ratio
    # Cells that end at the smallest cell, and not for lack of records, hide finer steps.
    smallest = (leaves[:, 2:] - leaves[:, :2] <= domain.cell_step).all(axis=1)
    records = np.maximum(estimates.signed[tree.is_leaf], 0.0)
    hides = domain.min_cell is not None and 2 * records[smallest].sum() > records.sum()
    if hides and not best.step:
        return CoordinateStep(step=10.0 ** (first - 1), share=1.0)
    return best
