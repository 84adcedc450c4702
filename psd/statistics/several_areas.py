"""Differences and ratios of two releases or windows; nested regions and the rings between them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from psd._util.arrays import Floats, Integers, sum_by
from psd.errors import DomainError, ParameterError
from psd.estimation.least_squares import LEAST_SLOPE, project_families
from psd.query.answer_table import Threshold, answer_columns, two_sided_quantile
from psd.query.areas import Areas, NamedAreas
from psd.query.cube_covariance import answer_once_jointly, cube_covariance
from psd.query.cubes import Windows, answer_cube
from psd.query.index import CubeWindow, QueryIndex
from psd.query.joint import fieller_interval
from psd.query.region_overlaps import check_size
from psd.query.windows import answer_areas

if TYPE_CHECKING:
    import pandas

    from psd.query.areas import Areas
    from psd.query.joint import Joint
    from psd.release.record import ReleaseRecord


Asked = QueryIndex | CubeWindow
"""A release without time, or one window of a cube."""

_ADDED = ("first", "second", "difference", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountPair:
    """Counts of regions in two releases, or in two windows."""

    table: pandas.DataFrame  # the columns of the caller, ``first`` and ``second``
    first: Floats  # (n,) float64; counts in the first release
    second: Floats
    noise: Floats  # (2, n) float64; variances by the noise, in each release
    nonuniformity: Floats  # (2, n) float64; variances by points that are spread unevenly in cells
    shared: Floats  # (2, n) float64; covariances by both, 0 where nothing is shared
    confidence: float  # of the intervals, in (0, 1)


def count_pair(first: Asked, second: Asked, areas: Areas, *, confidence: float) -> CountPair:
    """Query both releases, as `Release.query`. P1. Only these are read, and no noise is drawn."""
    records = _record(first), _record(second)
    _check_domains(*records)
    shared = np.zeros((2, len(areas)))
    if (
        isinstance(first, CubeWindow)
        and isinstance(second, CubeWindow)
        and _have_same_noise(first, second)
    ):
        answers, shared = _cube_pair(first, second, areas, confidence)
    else:
        if _have_same_noise(first, second):
            raise ParameterError(
                "the releases must be different ones with independent noise, got the same release "
                "twice"
            )
        # Regions have other numbers where the files of the releases have another order.
        other = areas
        if isinstance(areas, NamedAreas):
            other = areas.in_tree(records[1].tree, records[1].domain)
        answers = [
            _columns(asked, where, confidence) for asked, where in ((first, areas), (second, other))
        ]
    x, y = (columns["estimate"] for columns in answers)
    noise, nonuniformity = (
        np.stack([columns[name] ** 2 for columns in answers])
        for name in ("perturbation_error", "nonuniformity_error")
    )
    clash = [name for name in _ADDED if name in getattr(areas.given, "columns", ())]
    if clash:
        raise ParameterError(
            f"areas must not have a column {clash[0]}, which the answers add; rename it"
        )
    return CountPair(
        table=areas.table({"first": x, "second": y}),
        first=x,
        second=y,
        noise=noise,
        nonuniformity=nonuniformity,
        shared=shared,
        confidence=confidence,
    )


def _columns(asked: Asked, areas: Areas, confidence: float) -> dict[str, Any]:
    """Columns of the answers of one release, or of one window."""
    certainty: dict[str, Any] = {"confidence": confidence, "threshold": 0.3}
    if isinstance(asked, CubeWindow):
        return answer_cube(asked.index, [asked.window], areas, **certainty)[0]
    return answer_areas(asked, areas, **certainty)


def _cube_pair(
    first: CubeWindow, second: CubeWindow, areas: Areas, confidence: float
) -> tuple[list[dict[str, Any]], Floats]:
    """Answers in two windows of one cube, and their covariances."""
    if np.array_equal(first.window, second.window):
        raise ParameterError(
            "the windows of one cube must be different ones for a difference, got the same window "
            "twice; --other-slice, or release[window], is the other one"
        )
    check_size(2 * len(areas))
    fit, record = first.index.fit, first.index.record
    windows = Windows.of_cells([first.window, second.window], record.sizes)
    found = cube_covariance(fit, areas, windows)
    answers = [
        answer_columns(totals, record.plane, confidence=confidence, threshold=0.3)
        for totals in found.totals
    ]
    # Answers are window by window, so those of one area stand len(areas) apart.
    shared = np.stack([np.diagonal(each, len(areas)) for each in (found.noise, found.uneven)])
    return answers, shared


def differences(pair: CountPair) -> pandas.DataFrame:
    """Subtract the second counts from the first, with errors; see `Release.query`.

    P2. Variances of the two releases are added, because their noise is independent; twice the
    covariance of two windows of a cube is subtracted.
    """
    # var(a - b) = var(a) + var(b) - 2 cov(a, b); below 0 by rounding alone.
    noise = np.maximum(pair.noise.sum(axis=0) - 2 * pair.shared[0], 0.0)
    nonuniformity = np.maximum(pair.nonuniformity.sum(axis=0) - 2 * pair.shared[1], 0.0)
    value, error = pair.first - pair.second, np.sqrt(noise + nonuniformity)
    table: pandas.DataFrame = pair.table.assign(
        difference=value,
        perturbation_error=np.sqrt(noise),
        nonuniformity_error=np.sqrt(nonuniformity),
        error=error,
        lower=value - two_sided_quantile(pair.confidence) * error,
        upper=value + two_sided_quantile(pair.confidence) * error,
    )
    return table


def ratios(pair: CountPair) -> pandas.DataFrame:
    """Divide the counts. P3. Intervals are Fieller's; no upper end if the second may be 0."""
    x, y = pair.first, pair.second
    positive = y > 0
    below = np.where(positive, y, 1.0)
    value = np.where(positive, x / below, np.nan)
    # Derivatives of the ratio by both counts, (2, n); where the second is 0 nothing is known.
    slope = np.stack([1 / below, np.where(positive, value, 0.0) / below])

    def deviation(variances: Floats, shared: Floats) -> Floats:
        square = (slope**2 * variances).sum(axis=0) - 2 * slope.prod(axis=0) * shared
        return np.where(positive, np.sqrt(np.maximum(square, 0.0)), np.inf)

    total, shared = pair.noise + pair.nonuniformity, pair.shared.sum(axis=0)
    lower, upper = fieller_interval(x, y, total[0], total[1], shared, pair.confidence)
    table: pandas.DataFrame = pair.table.assign(
        ratio=value,
        perturbation_error=deviation(pair.noise, pair.shared[0]),
        nonuniformity_error=deviation(pair.nonuniformity, pair.shared[1]),
        error=deviation(total, shared),
        lower=lower,
        upper=upper,
    )
    return table


def _record(asked: Asked) -> ReleaseRecord:
    """Published fields; of a cube, those of its plane."""
    return asked.index.record.plane if isinstance(asked, CubeWindow) else asked.record


def _check_domains(first: ReleaseRecord, second: ReleaseRecord) -> None:
    """Refuse releases whose cells are not comparable."""
    a, b = first.domain, second.domain
    for name in ("bounds", "crs", "coordinate_resolution", "lattice"):
        if getattr(a, name) != getattr(b, name):
            what = name.replace("_", " ")
            raise DomainError(
                f"the releases have different {what}, {getattr(a, name)} and {getattr(b, name)}; "
                "only releases of one domain can be compared"
            )
    if (first.unit.scale == 1) != (second.unit.scale == 1):
        raise ParameterError("both releases must count users or both records, got one of each")


def _have_same_noise(first: Asked, second: Asked) -> bool:
    """Whether the counts of two releases are the same draws; of two cubes, those of all layers."""
    # Cubes of few records have a plane of one count, which two of them may have by chance.
    names = ("boxes", "parent", "count", "loss")
    trees = [(_record(first).tree, _record(second).tree)]
    if isinstance(first, CubeWindow) and isinstance(second, CubeWindow):
        trees.append((first.index.record.joint.tree, second.index.record.joint.tree))
    return all(
        np.array_equal(getattr(one, n), getattr(other, n)) for one, other in trees for n in names
    )


def answer_nested(
    asked: QueryIndex | CubeWindow,
    areas: Areas,
    *,
    parents: ArrayLike | None,
    confidence: float,
    threshold: Threshold,
) -> pandas.DataFrame:
    """Answer nested regions and the rings between them; see `Answers.nested`.

    P1. The count of a region is the sum of its ring and of the regions directly inside it.
    P2. No count and no ring is negative.
    """
    for name in ("ring", "ring_error", "ring_lower", "ring_upper"):
        if name in getattr(areas.given, "columns", ()):
            raise ParameterError(
                f"areas must not have a column {name}, which the answers add; rename it"
            )
    together = answer_once_jointly(asked, areas, confidence=confidence, threshold=threshold)
    parent = _parent_numbers(areas.given, parents, len(areas))
    fit = asked.index.fit.plane if isinstance(asked, CubeWindow) else asked.fit
    _check_nesting(parent, areas.overlaps(fit))
    # Weights of the regions in each ring, (n, n): the region less those directly inside it.
    rings, inner = np.eye(len(parent)), np.flatnonzero(parent >= 0)
    rings[parent[inner], inner] = -1.0
    estimate, ring = _project_regions(together, parent, rings)
    variance = np.einsum("ij,ij->i", rings @ together.covariance, rings)
    error = np.sqrt(np.maximum(variance, 0.0))
    width = two_sided_quantile(confidence) * error
    return together.answers.drop(columns=["joint_lower", "joint_upper"]).assign(
        estimate=estimate,
        ring=ring,
        ring_error=error,
        ring_lower=np.maximum(ring - width, 0.0),
        ring_upper=ring + width,
    )


def _parent_numbers(regions: Any, parents: ArrayLike | None, size: int) -> Integers:
    """Index of the parent of each region; -1 without a parent."""
    if parents is None and "parent" in getattr(regions, "columns", ()):
        import pandas as pd

        if "id" not in regions.columns or regions["id"].duplicated().any():
            raise ParameterError(
                "regions with a column parent must have a column id without duplicates"
            )
        number = {str(name): row for row, name in enumerate(regions["id"])}
        rows = []
        for name in regions["parent"]:
            is_missing = pd.isna(name) or str(name) == ""
            if not is_missing and str(name) not in number:
                raise ParameterError(f"parent must be the id of a region, got {name}")
            rows.append(-1 if is_missing else number[str(name)])
        return np.array(rows, np.int64)
    # By default each region lies in the next one, from the inside out.
    if parents is None:
        return np.append(np.arange(1, size), -1)[:size]
    parent = np.asarray(parents)
    fits = parent.shape == (size,) and parent.dtype.kind in "iu"
    if not fits or (parent < -1).any() or (parent >= size).any():
        raise ParameterError(
            f"parents must be {size} integers from -1 to {size - 1}, one for each region, got "
            f"{str(parents)[:80]}"
        )
    return parent.astype(np.int64)


def _check_nesting(parent: Integers, prepared: Any) -> None:
    """Refuse circles of parents, regions outside their parent, and siblings that overlap."""
    above = parent
    # Up a generation at a time: only in a circle, or below one, is there still a parent.
    for _ in range(len(parent)):
        if (above < 0).all():
            break
        above = np.where(above >= 0, parent[above], -1)
    if (above >= 0).any():
        # So many generations above a region below a circle stands one of the circle.
        number = int(above[(above >= 0).argmax()]) + 1
        raise ParameterError(f"parents must not form a circle; region {number} is in one")
    inner = np.flatnonzero(parent >= 0)
    inside = prepared.lie_within(inner, parent[inner])
    if not inside.all():
        child = int(inner[~inside][0])
        raise ParameterError(
            f"region {child + 1} does not lie inside region {int(parent[child]) + 1}; order nested "
            "regions from the inside out, or name their parents"
        )
    for a, b in prepared.overlapping_pairs().tolist():
        if parent[a] == parent[b]:
            raise ParameterError(
                f"regions of one parent must be disjoint, but {a + 1} and {b + 1} overlap"
            )


def _project_regions(joint: Joint, parent: Integers, rings: Floats) -> tuple[Floats, Floats]:
    """Project counts so that no region or ring is negative and a region is the sum of its parts."""
    estimate = joint.answers["estimate"].to_numpy(np.float64).copy()
    ring = rings @ estimate
    size = len(parent)
    variance = np.concatenate(
        [np.diagonal(joint.covariance), np.einsum("ij,ij->i", rings @ joint.covariance, rings)]
    )
    # Number of regions around each one.
    depth, above = np.zeros(size, np.int64), parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, parent[above], -1)

    # Answers add up as they are, unless cells may be negative: then each region's ring and inner
    # regions are projected onto numbers that are not negative and sum to it, the outermost first.
    for level in range(int(depth.max(initial=0)) + 1):
        outer = np.flatnonzero(depth == level)
        inner = np.flatnonzero(np.isin(parent, outer))
        number = np.zeros(size, np.int64)
        number[outer] = np.arange(len(outer))
        # Inner regions, numbered by their outer one, then the ring of each outer region.
        owner = np.concatenate([number[parent[inner]], np.arange(len(outer))])
        values = np.concatenate([estimate[inner], ring[outer]])
        which = np.concatenate([inner, outer + size])
        share = (
            variance[which] / np.maximum(sum_by(owner, variance[which], len(outer)), 1e-300)[owner]
        )
        fixed = project_families(values, np.maximum(share, LEAST_SLOPE), owner, estimate[outer])
        estimate[inner], ring[outer] = fixed[: len(inner)], fixed[len(inner) :]
    return estimate, ring
