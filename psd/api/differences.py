"""Difference and ratio of two releases of one domain. Public, post-processing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd._util.instances import check_instance
from psd.api.release import Release
from psd.query.areas import read_areas
from psd.statistics.differences import CountPair, count_pair, differences, ratios

if TYPE_CHECKING:
    import pandas

__all__ = ["difference", "ratio"]


def difference(
    first: Release,
    second: Release,
    areas: Any,
    *,
    crs: Any = None,
    confidence: float = 0.95,
) -> pandas.DataFrame:
    """Counts in a first release minus those in a second one.

    Parameters
    ----------
    first, second : Release
        Releases of the same domain, with independent noise.
    areas : boxes, polygons, names of regions, a table, or a file
        As in `Release.query`.
    crs : any CRS that pyproj understands, optional
        As in `Release.query`.
    confidence : float
        Confidence level of the intervals ``lower`` to ``upper``, in (0, 1).

    Returns
    -------
    DataFrame or GeoDataFrame
        The caller's columns or ``id``, and ``first, second, difference, perturbation_error,
        nonuniformity_error, error, lower, upper``, in records.

    Raises
    ------
    DomainError
        If bounds, CRS, coordinate resolution or lattice differ.
    ParameterError
        If an argument is not a release, a region is malformed or outside, one release counts
        users and the other records, or both are the same release.

    Notes
    -----
    The noise of two releases is independent, so variances add. So do those of uneven cells, which
    overstates the error where points lie unevenly in the same way in both. A person who is counted
    in both releases has spent the epsilons of both, and their deltas; rhos add up too.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> a, b = (psd.Release.from_counts(tree, n, 1.0, domain=domain) for n in ([9] * 4, [5] * 4))
    >>> psd.difference(a, b, [(0, 0, 2, 1)])[["difference", "error"]].round(1).values.tolist()
    [[8.0, 2.7]]
    """
    return differences(_pair(first, second, areas, crs, confidence))


def ratio(
    first: Release,
    second: Release,
    areas: Any,
    *,
    crs: Any = None,
    confidence: float = 0.95,
) -> pandas.DataFrame:
    """Counts in a first release divided by those in a second one.

    Parameters
    ----------
    first, second : Release
        Releases of the same domain, with independent noise.
    areas : boxes, polygons, names of regions, a table, or a file
        As in `Release.query`.
    crs : any CRS that pyproj understands, optional
        As in `Release.query`.
    confidence : float
        Confidence level of the intervals ``lower`` to ``upper``, in (0, 1).

    Returns
    -------
    DataFrame or GeoDataFrame
        As from `difference`, with ``ratio`` in its place. The errors are those of the delta method;
        the intervals are Fieller's, and have no upper end if the second count may be 0.

    Raises
    ------
    DomainError
        If bounds, CRS, coordinate resolution or lattice differ.
    ParameterError
        If an argument is not a release, a region is malformed or outside, one release counts
        users and the other records, or both are the same release.

    Examples
    --------
    >>> import psd
    >>> domain = psd.Domain(bounds=(0, 0, 2, 2), crs="EPSG:3857", lattice=(2, 2))
    >>> tree = psd.grid_tree(domain, 2)
    >>> a, b = (psd.Release.from_counts(tree, n, 1.0, domain=domain) for n in ([90] * 4, [50] * 4))
    >>> psd.ratio(a, b, [(0, 0, 2, 1)])[["ratio", "lower", "upper"]].round(2).values.tolist()
    [[1.8, 1.73, 1.88]]
    """
    return ratios(_pair(first, second, areas, crs, confidence))


def _pair(first: Release, second: Release, areas: Any, crs: Any, confidence: float) -> CountPair:
    """Counts of the areas in both releases."""
    for name, release in (("first", first), ("second", second)):
        check_instance(name, release, Release, 'psd.load("r.psd.parquet")')
    asked = read_areas(areas, first.domain, first.tree, crs=crs)
    return count_pair(first.index, second.index, asked, confidence=confidence)
