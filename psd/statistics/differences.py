"""Counts of the same regions in two releases: their differences and ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from psd._util.arrays import Floats
from psd.errors import DomainError, ParameterError
from psd.query.answer_table import two_sided_quantile
from psd.query.areas import Areas, NamedAreas
from psd.query.joint import fieller_interval
from psd.query.windows import answer_areas

if TYPE_CHECKING:
    import pandas

    from psd.query.index import QueryIndex


_ADDED = ("first", "second", "difference", "ratio")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CountPair:
    """Counts of regions in two releases."""

    table: pandas.DataFrame  # the columns of the caller, ``first`` and ``second``
    first: Floats  # (n,) float64; counts in the first release
    second: Floats
    noise: Floats  # (2, n) float64; variances by the noise, in each release
    nonuniformity: Floats  # (2, n) float64; variances by points that are spread unevenly in cells
    confidence: float  # of the intervals, in (0, 1)


def count_pair(
    first: QueryIndex, second: QueryIndex, areas: Areas, *, confidence: float
) -> CountPair:
    """Query both releases; the arguments are those of `Release.query`.

    P1. Only the two releases are read, and no noise is drawn.
    """
    _check_pair(first, second)
    # Regions have other numbers where the files of the releases have another order.
    other = areas
    if isinstance(areas, NamedAreas):
        other = areas.in_tree(second.record.tree, second.record.domain)
    answers = [
        answer_areas(index, asked, confidence=confidence, threshold=0.3)
        for index, asked in ((first, areas), (second, other))
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
        confidence=confidence,
    )


def differences(pair: CountPair) -> pandas.DataFrame:
    """Subtract the second counts from the first, with errors; see `Release.query`.

    P2. Variances of the two releases are added, because their noise is independent.
    """
    noise, nonuniformity = pair.noise.sum(axis=0), pair.nonuniformity.sum(axis=0)
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
    """Divide the first counts by the second, with errors; see `Release.query`.

    P3. Intervals are Fieller's; the upper end is infinite if the second count may be 0.
    """
    x, y = pair.first, pair.second
    positive = y > 0
    below = np.where(positive, y, 1.0)
    value = np.where(positive, x / below, np.nan)
    # Derivatives of the ratio by both counts, (2, n); where the second is 0 nothing is known.
    slope = np.stack([1 / below, np.where(positive, value, 0.0) / below])

    def deviation(variances: Floats) -> Floats:
        return np.where(positive, np.sqrt((slope**2 * variances).sum(axis=0)), np.inf)

    total = pair.noise + pair.nonuniformity
    lower, upper = fieller_interval(x, y, total[0], total[1], np.zeros(len(x)), pair.confidence)
    table: pandas.DataFrame = pair.table.assign(
        ratio=value,
        perturbation_error=deviation(pair.noise),
        nonuniformity_error=deviation(pair.nonuniformity),
        error=deviation(total),
        lower=lower,
        upper=upper,
    )
    return table


def _check_pair(first: QueryIndex, second: QueryIndex) -> None:
    """Refuse releases whose cells are not comparable, or whose noise is the same."""
    a, b = first.record.domain, second.record.domain
    for name in ("bounds", "crs", "coordinate_resolution", "lattice"):
        if getattr(a, name) != getattr(b, name):
            what = name.replace("_", " ")
            raise DomainError(
                f"the releases have different {what}, {getattr(a, name)} and {getattr(b, name)}; "
                "only releases of one domain can be compared"
            )
    if (first.record.unit.scale == 1) != (second.record.unit.scale == 1):
        raise ParameterError("both releases must count users or both records, got one of each")
    names = ("boxes", "parent", "count", "loss")
    trees = first.record.tree, second.record.tree
    if all(np.array_equal(getattr(trees[0], n), getattr(trees[1], n)) for n in names):
        raise ParameterError(
            "the releases must be different ones with independent noise, got the same release twice"
        )
