"""The same regions in two releases: how much more, and how many times as much."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from psd._util.arrays import Floats
from psd.errors import DomainError, ParameterError
from psd.query.derived import fieller, reach
from psd.space.regions import with_crs

if TYPE_CHECKING:
    import pandas

    from psd.release.record import Release

__all__ = ["difference", "ratio"]


_ANSWERS = (
    "estimate", "perturbation_error", "nonuniformity_error", "error", "lower", "upper",
    "relative_perturbation_error", "relative_nonuniformity_error", "relative_error", "reliable",
)  # fmt: skip


def difference(
    first: Release,
    second: Release,
    regions: Any,
    *,
    crs: Any = None,
    confidence: float = 0.95,
) -> pandas.DataFrame:
    """Counts in a first release minus those in a second one.

    Parameters
    ----------
    first, second : Release
        Of the same domain, with noise drawn for each.
    regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
        As in `Release.query`.
    crs : any CRS that pyproj understands, optional
        As in `Release.query`.
    confidence : float
        Probability that ``lower`` to ``upper`` is meant to cover, in (0, 1).

    Returns
    -------
    DataFrame or GeoDataFrame
        The caller's columns or ``id``, and ``first, second, difference, perturbation_error,
        nonuniformity_error, error, lower, upper``, in records.

    Raises
    ------
    DomainError
        If bounds, CRS or lattice differ.
    ParameterError
        If a region is malformed or outside, one release counts users and the other rows, or
        both are the same release.

    Notes
    -----
    The noise of two releases is independent, so variances add. So do those of uneven cells,
    which overstates the error where points lie unevenly in the same way in both. Who is counted
    in both releases has spent the epsilons of both.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> a, b = (psd.Release.from_counts(tree, n, 1.0, domain=domain) for n in ([9] * 4, [5] * 4))
    >>> psd.difference(a, b, [(0, 0, 2, 1)])[["difference", "error"]].round(1).values.tolist()
    [[8.0, 2.7]]
    """
    table, x, y, noise, spread = _pair(
        first, second, with_crs(regions, crs, first.domain), confidence
    )
    error = np.sqrt(noise.sum(axis=0) + spread.sum(axis=0))
    found: pandas.DataFrame = table.assign(
        difference=x - y,
        perturbation_error=np.sqrt(noise.sum(axis=0)),
        nonuniformity_error=np.sqrt(spread.sum(axis=0)),
        error=error,
        lower=x - y - reach(confidence) * error,
        upper=x - y + reach(confidence) * error,
    )
    return found


def ratio(
    first: Release,
    second: Release,
    regions: Any,
    *,
    crs: Any = None,
    confidence: float = 0.95,
) -> pandas.DataFrame:
    """Counts in a first release over those in a second one.

    Parameters
    ----------
    first, second : Release
        Of the same domain, with noise drawn for each.
    regions : GeoDataFrame, GeoSeries, geometries, boxes or DataFrame of boxes
        As in `Release.query`.
    crs : any CRS that pyproj understands, optional
        As in `Release.query`.
    confidence : float
        Probability that ``lower`` to ``upper`` is meant to cover, in (0, 1).

    Returns
    -------
    DataFrame or GeoDataFrame
        As of `difference`, with ``ratio`` instead. The errors are those of the delta method;
        the intervals are Fieller's, and have no upper end where the second count may be 0.

    Raises
    ------
    DomainError
        If bounds, CRS or lattice differ.
    ParameterError
        If a region is malformed or outside, one release counts users and the other rows, or
        both are the same release.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> a, b = (psd.Release.from_counts(tree, n, 1.0, domain=domain) for n in ([90] * 4, [50] * 4))
    >>> psd.ratio(a, b, [(0, 0, 2, 1)])[["ratio", "lower", "upper"]].round(2).values.tolist()
    [[1.8, 1.73, 1.88]]
    """
    table, x, y, noise, spread = _pair(
        first, second, with_crs(regions, crs, first.domain), confidence
    )
    positive = y > 0
    below = np.where(positive, y, 1.0)
    value = np.where(positive, x / below, np.nan)
    slope = np.stack([1 / below, np.where(positive, value, 0.0) / below])

    def deviation(variances: Floats) -> Floats:
        return np.where(positive, np.sqrt((slope**2 * variances).sum(axis=0)), np.inf)

    total = noise + spread
    lower, upper = fieller(x, y, total[0], total[1], np.zeros(len(x)), confidence)
    found: pandas.DataFrame = table.assign(
        ratio=value,
        perturbation_error=deviation(noise),
        nonuniformity_error=deviation(spread),
        error=deviation(total),
        lower=lower,
        upper=upper,
    )
    return found


def _pair(
    first: Release, second: Release, regions: Any, confidence: float
) -> tuple[Any, Floats, Floats, Floats, Floats]:
    """Table of both counts, the counts, and their variances by kind, shape (2, n) each."""
    _check_pair(first, second)
    answers = [release.query(regions, confidence=confidence) for release in (first, second)]
    x, y = (answer["estimate"].to_numpy(np.float64) for answer in answers)
    noise, spread = (
        np.stack([answer[name].to_numpy(np.float64) ** 2 for answer in answers])
        for name in ("perturbation_error", "nonuniformity_error")
    )
    table = answers[0].drop(columns=list(_ANSWERS))
    clash = [name for name in ("first", "second", "difference", "ratio") if name in table.columns]
    if clash:
        raise ParameterError(f"regions have a column {clash[0]} already; rename it first")
    return table.assign(first=x, second=y), x, y, noise, spread


def _check_pair(first: Release, second: Release) -> None:
    """Refuse releases whose cells are not comparable, or whose noise is the same."""
    a, b = first.domain, second.domain
    for name in ("bounds", "crs", "lattice"):
        if getattr(a, name) != getattr(b, name):
            raise DomainError(
                f"the releases have different {name}, {getattr(a, name)} and {getattr(b, name)}; "
                "only releases of one domain can be compared"
            )
    if (first.unit_of_privacy.scale == 1) != (second.unit_of_privacy.scale == 1):
        raise ParameterError(
            "one of the releases counts users and the other rows; compare what counts the same"
        )
    names = ("boxes", "parent", "count", "epsilon")
    if all(np.array_equal(getattr(first.tree, n), getattr(second.tree, n)) for n in names):
        raise ParameterError("both releases are one and the same, whose noise is not independent")
