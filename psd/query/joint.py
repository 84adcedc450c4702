"""Joint answers of one call: covariance, totals, differences, ratios and joint intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, sparse

from psd._util.arrays import Floats, Integers, ranges, sum_by
from psd.errors import ParameterError
from psd.estimation.least_squares import Estimates
from psd.estimation.nonuniformity import nonuniformity_variance
from psd.query.answer_table import (
    Threshold,
    answer_columns,
    check_levels,
    two_sided_quantile,
)
from psd.query.areas import answers_table, windows_by_slice
from psd.query.index import fitted, in_sums, peers_in
from psd.query.lines import divides_records
from psd.query.region_overlaps import Regions, check_size, cut_leaves
from psd.query.totals import QueryTotals, SliceSum, concatenate
from psd.query.traversal import Traversal, innovations

if TYPE_CHECKING:
    import pandas

    from psd.estimation.fit import Fit
    from psd.query.areas import Areas
    from psd.query.index import QueryIndex
    from psd.release.record import ReleaseRecord

# Rows of a matrix, and pairs of regions in one leaf, worked on together.
_ROWS = 256
_PAIRS = 1 << 20

# Relative to the diagonal; what is less negative than this is rounding.
_ROUNDING = 1e-9


def perturbation_covariance(fit: Fit, regions: Regions) -> Floats:
    """Compute the covariance of the answers by the noise, (m, m) float64, records squared.

    Exact for signed least squares; for others see
    `psd.estimation.least_squares.published_covariance`.

    P1. It is Z Z' for a sparse Z, a row for each answer and a column for each cell. Errors of the
    estimates are sums of independent innovations, one for each cell [1]_: the root's own error, and
    for each child what its parent's estimate does not explain. An answer that takes a_c of each
    child of an opened cell, a of it on average, takes s_c (a_c - a) of the innovation of child c,
    where s_c^2 is its upward variance; nothing else. These coefficients are the rows of Z.

    .. [1] Chou, Willsky, Benveniste. "Multiscale Recursive Estimation, Data Fusion, and
       Regularization." IEEE Transactions on Automatic Control 39(3), 1994.
    """
    coefficients = _coefficients(fit.noise_covariance, regions)
    return row_products(coefficients, coefficients)


def _coefficients(estimates: Estimates, regions: Regions) -> sparse.csr_array:
    """The matrix Z of `perturbation_covariance`, shape (m, nodes)."""
    rows = [innovation_coefficients(each, estimates) for _, each in regions.traversals()]
    stacked: sparse.csr_array = sparse.vstack(
        rows or [sparse.csr_array((0, len(estimates.slope)))], format="csr"
    )
    return stacked


def row_products(first: sparse.csr_array, second: sparse.csr_array) -> Floats:
    """Products of the rows of two matrices of m rows, shape (m, m)."""
    across = second.T.tocsr()
    found = np.empty((first.shape[0], second.shape[0]))
    # In batches of rows: of the sparse products, only one batch is held beside the result.
    for start in range(0, len(found), _ROWS):
        batch = slice(start, start + _ROWS)
        found[batch] = (first[batch] @ across).toarray()
    return found


def innovation_coefficients(traversal: Traversal, estimates: Estimates) -> sparse.csr_array:
    """Coefficients of the cells' innovations in each answer, shape (queries, nodes)."""
    taken = [(of.query, of.node, part) for of, part in innovations(traversal, estimates)]
    return _sparse(taken, traversal.queries, len(estimates.slope))


def _sparse(
    triples: Sequence[tuple[Integers, Integers, Floats]], queries: int, nodes: int
) -> sparse.csr_array:
    """Matrix of the queries, cells and values of all levels, without zeros."""
    none = np.zeros(0, np.int64)
    query, node, value = map(np.concatenate, zip((none, none, np.zeros(0)), *triples, strict=True))
    matrix = sparse.csr_array((value, (query, node)), shape=(queries, nodes))
    matrix.eliminate_zeros()
    return matrix


def edge_covariance(fit: Fit, regions: Regions) -> Floats:
    """Compute the covariance of answers of a value by cells along edges, (m, m), records squared.

    P3. Y Y' for a sparse Y, a row for each answer and a column for each cell: what the answer takes
    of the cells along its edge, by level with the length of its deviation, see
    `psd.query.traversal.edge_squares`. So the diagonal is that of single answers, answers with one
    edge are off together, and answers with other edges independently.
    """
    rows = [_edge_coefficients(each, fit.estimates) for _, each in regions.traversals()]
    stacked = sparse.vstack(rows or [sparse.csr_array((0, len(fit.tree)))], format="csr")
    return fit.edge_factor * row_products(stacked, stacked)


def _edge_coefficients(traversal: Traversal, estimates: Estimates) -> sparse.csr_array:
    """Coefficients Y of the cells in each answer, shape (queries, nodes)."""
    taken, queries = [], traversal.queries
    for level, part in innovations(traversal, estimates):
        # What a query takes of a cell beyond its family's mean; where it takes less, 0.
        inward = np.maximum(part, 0.0)
        total, squares = (sum_by(level.query, each, queries) for each in (inward, inward**2))
        # The parts of a query get one factor, after which their squares sum to `gained`.
        gained = np.maximum(total**2 - squares, 0.0)
        length = np.sqrt(gained / np.where(squares > 0, squares, 1.0))
        taken.append((level.query, level.node, length[level.query] * inward))
    return _sparse(taken, queries, len(estimates.slope))


def part_variance(fit: Fit, node: Integers, part: Floats) -> Floats:
    """Variance of the points in parts of leaves, (n,); part: (2, n), shares of points and area."""
    count, uneven = fit.estimates.count[node], fit.dispersion
    return nonuniformity_variance(
        count, part[0], part[1], uneven.overdispersion[node], uneven.cluster_size
    )


def nonuniformity_covariance(fit: Fit, regions: Regions) -> Floats:
    """Compute the covariance of answers by leaves that two regions both cut, (m, m) float64.

    P2. By polarisation of the one model of the variance V of a part of a leaf: cov(A, B) = (V(A or
    B) + V(A and B) - V(A less B) - V(B less A)) / 2. Where V is n (1 + phi n) f (1 - f) this is n
    (1 + phi n) (f_AB - f_A f_B), and parts that make up a leaf cancel. A V that is no variance of a
    measure is made positive semi-definite.
    """
    # Entries (n,) of a region and a leaf that it cuts, leaf by leaf; shares of points and area.
    query, node, part = cut_leaves(regions.traversals())
    covariance = np.zeros((len(regions), len(regions)))
    # The diagonal: what each region has of its own leaves. Pairs of regions in a leaf follow.
    np.add.at(np.einsum("ii->i", covariance), query, part_variance(fit, node, part))
    for first, second in _pairs_in_leaves(node):
        leaf, a, b = node[first], query[first], query[second]
        parts = part[:, first], part[:, second]
        # By geometry two parts have no more in common than the smaller one; rounding may differ.
        both = np.clip(regions.common_parts(leaf, a, b), 0.0, np.minimum(*parts))
        shared = _part_covariance(fit, leaf, *parts, both)
        np.add.at(covariance, (a, b), shared)
        np.add.at(covariance, (b, a), shared)
    # What a density moves is off in one direction in all leaves, so it adds up in full.
    moved = np.bincount(query, records_moved(fit, node, part), len(regions))
    result = nearest_covariance(covariance) + np.outer(moved, moved)
    divided = divides_records(*part)
    lines = regions.lines(query[divided], node[divided])
    if lines is not None:
        result += (lines @ lines.T).toarray()
    return result


def records_moved(fit: Fit, node: Integers, part: Floats) -> Floats:
    """Records that the density adds to parts of leaves, (n,), times its relative error."""
    if not fit.shift_share:
        return np.zeros(len(node))
    count = np.maximum(fit.estimates.count[node], 0.0)
    moved: Floats = fit.shift_share * count * (part[0] - part[1])
    return moved


def _part_covariance(
    fit: Fit, node: Integers, first: Floats, second: Floats, both: Floats
) -> Floats:
    """Covariance of the points in two parts of each leaf, from variances of parts."""
    union = np.minimum(first + second - both, 1.0)
    together = part_variance(fit, node, union) + part_variance(fit, node, both)
    apart = part_variance(fit, node, first - both)
    apart = apart + part_variance(fit, node, second - both)
    covariance: Floats = (together - apart) / 2
    return covariance


def _pairs_in_leaves(node: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Indices of all pairs of entries of one leaf, the earlier first, a batch at a time."""
    index = np.arange(len(node))
    # Entries of one leaf stand in a row: how many come after each of them.
    later = np.searchsorted(node, node, side="right") - index - 1
    # Leaves that many regions cut have very many pairs: a batch has a number of them in all.
    turn = np.cumsum(later) // _PAIRS
    for batch in np.split(index, np.flatnonzero(np.diff(turn)) + 1):
        first = np.repeat(batch, later[batch])
        if len(first):
            yield first, ranges(batch + 1, later[batch])


def nearest_covariance(covariance: Floats) -> Floats:
    """The same matrix if it is positive semi-definite; else the nearest, its diagonal kept."""
    diagonal = np.diagonal(covariance).copy()
    slack = _ROUNDING * diagonal.max(initial=0.0)
    if slack == 0:
        return covariance
    try:
        # It succeeds of positive definite matrices alone, up to rounding.
        linalg.cholesky(covariance + slack * np.eye(len(covariance)), check_finite=False)
    except linalg.LinAlgError:
        # Negative eigenvalues become 0, which adds to the diagonal; it is scaled back.
        values, vectors = np.linalg.eigh(covariance)
        covariance = (vectors * np.maximum(values, 0.0)) @ vectors.T
        fixed = np.diagonal(covariance)
        scale = np.sqrt(diagonal / np.where(fixed > 0, fixed, 1.0))
        covariance = covariance * scale * scale[:, None]
    return covariance


@dataclass(frozen=True, slots=True, kw_only=True)
class Derived:
    """A number derived from answers; its errors are predicted standard deviations."""

    estimate: float  # in records, or a ratio
    perturbation_error: float
    nonuniformity_error: float
    error: float
    lower: float
    upper: float  # end of the interval at the requested confidence


def combine_answers(
    estimates: Floats,
    parts: Sequence[Floats],
    weights: Floats,
    confidence: float,
    windows: Integers | None = None,
    least: float = 0.0,
) -> Derived:
    """Compute a weighted sum of answers.

    estimates, weights: (m,) float64; parts: two of (m, m) float64, covariance by noise and by
    uneven cells; windows: (m,) int64, ascending number of the window of each answer. Without a
    negative weight the interval is not below `least`, and unevenness is alike in all windows, as in
    slices of one (`psd.query.totals.SliceSum`).
    """
    estimate = float(weights @ estimates)
    noise, spread = (math.sqrt(max(float(weights @ part @ weights), 0.0)) for part in parts)
    is_sum = (weights >= 0).all()
    if is_sum and windows is not None:
        rows = np.split(np.arange(len(weights)), np.flatnonzero(np.diff(windows)) + 1)
        # Alike in all windows, errors add up by themselves, and not by their squares.
        of_windows = [weights[each] @ parts[1][np.ix_(each, each)] @ weights[each] for each in rows]
        spread = float(np.sqrt(np.maximum(of_windows, 0.0)).sum())
    error = math.hypot(noise, spread)
    return Derived(
        estimate=estimate,
        perturbation_error=noise,
        nonuniformity_error=spread,
        error=error,
        lower=max(
            estimate - two_sided_quantile(confidence) * error, least if is_sum else -math.inf
        ),
        upper=estimate + two_sided_quantile(confidence) * error,
    )


def divide_answers(estimates: Floats, parts: Sequence[Floats], confidence: float) -> Derived:
    """Divide the first of two answers by the second; parts: (2, 2) each; errors over 0 infinite."""
    x, y = (float(value) for value in estimates)
    ratio = x / y if y > 0 else math.nan
    # Derivatives of x / y by x and by y.
    slope = np.array([1.0, -ratio]) / y if y > 0 else np.full(2, np.inf)
    noise, spread = (_deviation(slope, part) for part in parts)
    both = parts[0] + parts[1]
    var_x, cov, var_y = (np.atleast_1d(both[cell]) for cell in ((0, 0), (0, 1), (1, 1)))
    low, high = fieller_interval(np.atleast_1d(x), np.atleast_1d(y), var_x, var_y, cov, confidence)
    return Derived(
        estimate=ratio,
        perturbation_error=noise,
        nonuniformity_error=spread,
        error=math.hypot(noise, spread),
        lower=float(low[0]),
        upper=float(high[0]),
    )


def _deviation(slope: Floats, covariance: Floats) -> float:
    """Standard deviation of a linear function; infinite slopes have infinite ones."""
    if not np.isfinite(slope).all():
        return math.inf
    return math.sqrt(max(float(slope @ covariance @ slope), 0.0))


def fieller_interval(
    x: Floats, y: Floats, var_x: Floats, var_y: Floats, cov: Floats, confidence: float
) -> tuple[Floats, Floats]:
    """Compute intervals of ratios x / y of non-negative counts, (n,) float64 each.

    P1. Exact for normal errors: all ratios r for which x - r y is within its own normal interval
    [1]_. These are between the roots of a r^2 - 2 b r + q where a > 0, and beyond them where a < 0.

    .. [1] Fieller. "Some Problems in Interval Estimation." Journal of the Royal Statistical Society
       B 16(2), 1954.
    """
    square = two_sided_quantile(confidence) ** 2
    # Coefficients of the quadratic of P1, (n,) each.
    a, b, q = y**2 - square * var_y, x * y - square * cov, x**2 - square * var_x
    root = np.sqrt(np.maximum(b**2 - a * q, 0.0))
    # Where a is 0 or less, the denominator may be 0 and the interval has no upper end.
    safe = np.where(a == 0, 1.0, a)
    low, high = np.sort([(b - root) / safe, (b + root) / safe], axis=0)
    # Beyond the roots, all ratios up to the lower one are negative if it is.
    beyond = (a < 0) & (b**2 > a * q) & (low < 0)
    lower = np.where(a > 0, low, np.where(beyond, high, 0.0))
    return np.maximum(lower, 0.0), np.where(a > 0, np.maximum(high, 0.0), np.inf)


# Number of directions, limited so that they have at most _COORDINATES coordinates in all.
_DIRECTIONS = 1 << 14
_COORDINATES = 1 << 24

# Keeps the factor of a correlation that is singular; far below what directions resolve.
_JITTER = 1e-10

_SEED = 20_240_229


def simultaneous_level(correlation: Floats, confidence: float) -> float:
    """Level 2 Phi(c) - 1 at which all intervals hold together; correlation: (m, m), jointly normal.

    P1. Not below the confidence asked for, and not above what independent answers would need (Sidak
    [1]_), which is below Bonferroni's and enough whatever the correlation.

    P2. The same for the same correlation: the directions are fixed.

    .. [1] Sidak. "Rectangular Confidence Regions for the Means of Multivariate Normal
       Distributions." Journal of the American Statistical Association 62(318), 1967.
    """
    from scipy import optimize, stats

    size = len(correlation)
    if size <= 1:
        return confidence
    longest = _largest_components(correlation)

    # A normal vector is a length times a direction, here of a scrambled Sobol sequence: the
    # probability is the mean over directions of a chi distribution, smooth in c and exact for one
    # answer.
    # All |z_i| are below c if the length of z is below c over the largest one in its direction.
    def beyond(c: float) -> float:
        return float(stats.chi.cdf(c / longest, size).mean()) - confidence

    # The c of one estimate alone, and of independent ones, between which that of all lies.
    levels = confidence, confidence ** (1 / size)
    single, apart = map(two_sided_quantile, levels)
    if beyond(single) >= 0 or single >= apart:
        return confidence
    if beyond(apart) <= 0:
        return float(levels[1])
    critical = optimize.brentq(beyond, single, apart, xtol=1e-6)
    level = 1 - 2 * NormalDist().cdf(-critical)
    return float(np.clip(level, *levels))


def _largest_components(correlation: Floats) -> Floats:
    """Largest |z_i| in each of some directions of length 1, shape (directions,)."""
    from scipy import special
    from scipy.stats import qmc

    size = len(correlation)
    # Directions are spread evenly by a sequence with a fixed seed, so that answers repeat.
    factor = np.linalg.cholesky((correlation + _JITTER * np.eye(size)) / (1 + _JITTER))
    sequence = qmc.Sobol(size, scramble=True, seed=_SEED)
    directions = min(_DIRECTIONS, max(1 << 10, _COORDINATES // size))
    reached = []
    # 1,024 at a time: parts of a Sobol sequence are balanced at powers of 2.
    for _ in range(max(1, directions >> 10)):
        # 0 and 1 have infinite quantiles.
        inside = np.clip(sequence.random(1 << 10), 1e-12, 1 - 1e-12)
        normal = special.ndtri(inside)
        length = np.linalg.norm(normal, axis=1)
        reached.append(np.abs(normal @ factor.T).max(axis=1) / length)
    return np.concatenate(reached)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Joint:
    """Answers with their covariance.

    Guarantees
    ----------
    - The diagonals are the squares of the answers' errors, and both matrices are positive
      semi-definite, to rounding.
    - The perturbation error of a `total` of disjoint regions is that of their union.

    Parameters
    ----------
    answers : DataFrame or GeoDataFrame, m rows
        As in `Answers.table`, and ``joint_lower, joint_upper``: all m of these intervals hold
        together with probability ``confidence``.
    perturbation_covariance : ndarray, shape (m, m), float64
        Of the errors from the noise, in records squared; exact for signed estimates. Windows share
        the noise of the slices that are in both, and no other; those of a cube share that of cells
        that reach into both, and that of the plane.
    nonuniformity_covariance : ndarray, shape (m, m), float64
        Of the errors from cells that are covered in part; between windows, as if these errors were
        independent from slice to slice. Windows of a cube also have in common what is wrong in the
        plane.
    confidence : float
        Of single intervals, and of all joint ones together.
    level : float
        Confidence at which each joint interval is made.
    overlap : tuple of int, optional
        Two answers that overlap, in space and in time, if any do; `total` then raises an error.
    windows : ndarray of int, shape (m,)
        Number of the window of time of each answer, from 0, ascending.
    column : str
        The column of ``answers`` that all of this is about: ``estimate``, or a sum or mean of a
        value, such as ``mean_fare``; covariances are in its unit, squared.
    least : float
        What the column cannot be below: 0, or minus infinity for values with negative bounds.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.decompositions.grid_tree(domain, 2)
    >>> release = psd.Release.from_counts(tree, [50, 10, 0, 20], 1.0, domain=domain)
    >>> joint = release.query([(0, 0, 1, 1), (1, 0, 2, 1)]).joint()
    >>> np.diagonal(joint.covariance).round(2).tolist()
    [2.01, 2.01]
    >>> total = joint.total()
    >>> round(total.estimate, 1), round(total.error, 2)
    (60.0, 2.09)
    >>> round(joint.ratio(0, 1).estimate, 1)
    5.0
    """

    answers: pandas.DataFrame
    perturbation_covariance: Floats
    nonuniformity_covariance: Floats
    confidence: float
    level: float
    overlap: tuple[int, int] | None
    windows: Integers
    column: str = "estimate"
    least: float = 0.0

    def __len__(self) -> int:
        return len(self.answers)

    @property
    def covariance(self) -> Floats:
        """Of the answers' errors, both kinds together, shape (m, m)."""
        return self.perturbation_covariance + self.nonuniformity_covariance

    @property
    def correlation(self) -> Floats:
        """Of the answers' errors, shape (m, m); 0 for answers without error."""
        return correlation(self.covariance)

    def combine(self, weights: ArrayLike) -> Derived:
        """Sum of weights times answers, with its error.

        What is uneven in cells may be alike in all windows. Where no weight is negative, the errors
        of windows are added, which is the most that they can be together.

        Parameters
        ----------
        weights : array_like of float, shape (m,)
            One for each answer.
        """
        values = np.asarray(weights, dtype=np.float64)
        if values.shape != (len(self),) or not np.isfinite(values).all():
            raise ParameterError(
                f"weights must be {len(self)} finite numbers, one for each answer, got shape "
                f"{values.shape}"
            )
        return combine_answers(
            self._estimates, self._parts, values, self.confidence, self.windows, self.least
        )

    def total(self) -> Derived:
        """All answers together, with the error of their union."""
        if not self.adds_up:
            raise ParameterError(
                f"column must be estimate or a sum for a total, got {self.column}; means do not "
                "add up: ask for the union of the areas, or weigh them with combine(weights)"
            )
        if self.overlap is not None:
            a, b = self.overlap
            raise ParameterError(
                f"regions must be disjoint for a total, but regions {a + 1} and {b + 1} overlap; "
                "joint().combine(weights) sums overlapping regions"
            )
        return self.combine(np.ones(len(self)))

    def difference(self, first: int, second: int) -> Derived:
        """First answer minus second, with its error; answers are numbered from 0."""
        weights = np.zeros(len(self))
        weights[self._number(first)] += 1
        weights[self._number(second)] -= 1
        return self.combine(weights)

    def ratio(self, first: int, second: int) -> Derived:
        """First answer over second; answers are numbered from 0.

        The error is by the delta method. The interval is Fieller's: it has its stated coverage
        for small denominators too, where its upper end may be infinite.
        """
        if self.least < 0:
            raise ParameterError(
                f"column must be one that is never below 0 for a ratio, got {self.column}, whose "
                "value has a negative bound; difference(first, second) has a meaning"
            )
        both = [self._number(first), self._number(second)]
        parts = [part[np.ix_(both, both)] for part in self._parts]
        return divide_answers(self._estimates[both], parts, self.confidence)

    @property
    def adds_up(self) -> bool:
        """Whether the answers of areas without overlap have a total, as counts and sums do."""
        return not self.column.startswith("mean_")

    @property
    def _estimates(self) -> Floats:
        return self.answers[self.column].to_numpy(np.float64)

    @property
    def _parts(self) -> list[Floats]:
        return [self.perturbation_covariance, self.nonuniformity_covariance]

    def _number(self, number: int) -> int:
        """Check the number of a region."""
        if not 0 <= number < len(self):
            raise ParameterError(f"region must be from 0 to {len(self) - 1}, got {number}")
        return number


def answer_jointly(
    index: QueryIndex, areas: Areas, *, confidence: float, threshold: Threshold
) -> Joint:
    """Answer areas with the covariance of the answers."""
    one = np.zeros(1, np.int64)
    return answer_windows_jointly(
        [index], [one], [{}], areas, confidence=confidence, threshold=threshold
    )


def answer_windows_jointly(
    slices: Sequence[QueryIndex],
    windows: Sequence[Integers],
    labels: Sequence[Mapping[str, str]],
    areas: Areas,
    *,
    confidence: float,
    threshold: Threshold,
    series: Sequence[ReleaseRecord] = (),
) -> Joint:
    """Answer areas in windows with the covariance of the answers, window by window.

    windows, series: as in `psd.query.windows.answer_windows`; labels: columns of each window.

    P1. The noise of slices is independent, so the covariance of two windows is the sum of those of
    the slices in both: of published counts for a slice alone, of signed ones, which are added, for
    several; both are products of the same innovations.

    P2. What is uneven has the covariance that it would have if slices were independent, scaled to
    the stated deviation of each answer. So it is positive semi-definite, and a difference of
    windows without a common slice adds their variances. So have edges, see `psd.query.value_edges`.
    """
    check_levels(confidence, threshold)
    size, areas_each = len(areas) * len(windows), len(areas)
    check_size(size)
    record, pairs = slices[0].record, np.empty((0, 2), np.int64)
    counts = WindowSums.of_size(len(windows), areas_each)
    peers = peers_in(series)
    for number, (in_windows, index) in enumerate(
        zip(windows_by_slice(windows), fitted(slices), strict=True)
    ):
        # A window of one slice has its published answers, one of several the sum of signed ones.
        are_sums = {window: len(windows[window]) > 1 for window, _ in in_windows}
        regions = areas.overlaps(index.fit)
        # Which areas overlap is public geometry, and the same in all slices.
        if not number:
            pairs = regions.overlapping_pairs()
        asked = in_sums(index, are_sums.values(), peers)
        counts.add(
            are_sums, {k: (each.fit, areas.totals(each)) for k, each in asked.items()}, regions
        )
    return joint_answers(
        [each.totals for each in counts.sums],
        (counts.noise, counts.uneven.covariance),
        areas,
        windows,
        labels,
        record=record,
        pairs=pairs,
        confidence=confidence,
        threshold=threshold,
    )


def joint_answers(
    totals: Sequence[QueryTotals],
    parts: tuple[Floats, Floats],
    areas: Areas,
    windows: Sequence[Integers],
    labels: Sequence[Mapping[str, str]],
    *,
    record: ReleaseRecord,
    pairs: Integers,
    confidence: float,
    threshold: Threshold,
    columns_at: Callable[[float], dict[str, Any]] | None = None,
    column: str = "estimate",
    least: float = 0.0,
) -> Joint:
    """Answers from the totals of each window and both covariances of all of them, (m, m) each.

    pairs: (n, 2) int64, areas that overlap; columns_at: columns of all answers by confidence, by
    default those of counts; column, least: as in `Joint`.
    """
    if columns_at is None:
        together = concatenate(totals)

        def columns_at(confidence: float) -> dict[str, Any]:
            return answer_columns(together, record, confidence=confidence, threshold=threshold)

    level = simultaneous_level(correlation(parts[0] + parts[1]), confidence)
    columns, jointly = columns_at(confidence), columns_at(level)
    ends = "" if column == "estimate" else f"{column}_"
    # Joint intervals are those of single answers at the higher level.
    columns |= {f"joint_{end}": jointly[f"{ends}{end}"] for end in ("lower", "upper")}
    # Back from all answers in a row to one block of columns for each window.
    each = len(areas)
    of_windows = [slice(n * each, (n + 1) * each) for n in range(len(windows))]
    blocks = [{name: of_all[one] for name, of_all in columns.items()} for one in of_windows]
    return Joint(
        answers=answers_table(areas, blocks, labels),
        perturbation_covariance=parts[0],
        nonuniformity_covariance=parts[1],
        confidence=confidence,
        level=level,
        overlap=_overlap(windows, len(areas), pairs),
        windows=np.repeat(np.arange(len(windows)), len(areas)),
        column=column,
        least=least,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Alike:
    """Covariance of what is alike in all slices, added slice by slice; windows by areas, twice."""

    added: Floats  # as if slices were independent
    deviation: Floats  # of the answers, those of slices added

    def add(self, windows: Iterable[int], covariance: Floats) -> None:
        """Add one more slice, which is in some windows."""
        for window in windows:
            self.deviation[window] += np.sqrt(np.diagonal(covariance))
            for other in windows:
                self.added[window, :, other] += covariance

    @property
    def covariance(self) -> Floats:
        """With the deviations of the answers."""
        size = self.deviation.size
        return with_deviation(self.added.reshape(size, size), self.deviation.ravel())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WindowSums:
    """Totals in windows and their covariances, added slice by slice; windows by areas, twice."""

    sums: list[SliceSum]
    of_noise: Floats
    uneven: Alike
    edges: Alike  # 0 for records

    @classmethod
    def of_size(cls, windows: int, areas: int) -> WindowSums:
        """Sums of no slice."""
        noise, *alike = (np.zeros((windows, areas, windows, areas)) for _ in range(3))
        uneven, edges = (Alike(added=each, deviation=np.zeros((windows, areas))) for each in alike)
        sums = [SliceSum() for _ in range(windows)]
        return cls(sums=sums, of_noise=noise, uneven=uneven, edges=edges)

    def add(
        self,
        are_sums: Mapping[int, bool],
        asked: Mapping[bool, tuple[Fit, QueryTotals]],
        regions: Regions,
    ) -> None:
        """Add one more slice; are_sums: the windows that it is in, and if others are in it too.

        asked: fit and totals of the slice alone (False), and as it is added to others (True).
        """
        fit, _ = next(iter(asked.values()))  # what is uneven is the same in both
        self.uneven.add(are_sums, nonuniformity_covariance(fit, regions))
        if fit.edge_factor:
            self.edges.add(are_sums, edge_covariance(fit, regions))
        # See P1 of `answer_windows_jointly`: sums are of signed counts (True), others published.
        of_noise = {
            kind: _coefficients(each.estimates if kind else each.noise_covariance, regions)
            for kind, (each, _) in asked.items()
        }
        # Windows that have this slice share its noise, also a sum with a window of it alone.
        products = {
            (a, b): row_products(of_noise[a], of_noise[b]) for a in of_noise for b in of_noise
        }
        for window, kind in are_sums.items():
            self.sums[window].add(asked[kind][1])
            for other, other_kind in are_sums.items():
                self.of_noise[window, :, other] += products[kind, other_kind]

    @property
    def totals(self) -> QueryTotals:
        """Totals of all windows, one after another."""
        return sum_windows(self.sums)

    @property
    def noise(self) -> Floats:
        """Covariance by the noise, shape (m, m)."""
        size = self.uneven.deviation.size
        return self.of_noise.reshape(size, size)


def sum_windows(sums: Sequence[SliceSum]) -> QueryTotals:
    """Totals of all windows, one after another."""
    return concatenate([each.totals for each in sums])


def with_deviation(covariance: Floats, deviation: Floats) -> Floats:
    """The same correlation with other deviations, (m,) float64; 0 where there was no error."""
    alone = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = np.divide(deviation, alone, out=np.zeros_like(deviation), where=alone > 0)
    matrix: Floats = covariance * scale * scale[:, None]
    # What had no error has no correlation either: only its own deviation is set.
    np.einsum("ii->i", matrix)[alone == 0] = deviation[alone == 0] ** 2
    return matrix


def _overlap(windows: Sequence[Integers], areas: int, pairs: Integers) -> tuple[int, int] | None:
    """Two answers that overlap in space and time, if any do; pairs: (n, 2), overlaps in space."""
    if len(pairs):
        return int(pairs[0, 0]), int(pairs[0, 1])
    seen: dict[int, int] = {}
    for window, numbers in enumerate(windows):
        for number in numbers.tolist():
            if number in seen and areas:
                return seen[number] * areas, window * areas
            seen[number] = window
    return None


def correlation(covariance: Floats) -> Floats:
    """Correlation of a covariance; 0 for constants, 1 on the diagonal."""
    deviation = np.sqrt(np.diagonal(covariance))
    scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1.0), 0.0)
    matrix: Floats = np.clip(covariance * scale * scale[:, None], -1.0, 1.0)
    np.fill_diagonal(matrix, 1.0)
    return matrix
