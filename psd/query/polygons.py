"""Polygons: covered fractions by exact intersection of areas, in the CRS of the release."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, ParameterError
from psd.query.cover import Fraction, cover
from psd.query.report import COLUMNS, report
from psd.query.sums import cover_sums, joined

if TYPE_CHECKING:
    import geopandas
    import pandas
    import shapely

    from psd.domain import Domain
    from psd.release import Release

__all__ = ["answer_polygons", "in_crs", "is_geometry"]

# A straight line in one CRS is a curve in another; this many segments per domain follow it.
_SEGMENTS = 1000

# Fractions this close to nothing or all are rounding.
_ROUNDING = 1e-12


def is_geometry(regions: Any) -> bool:
    """Whether regions are geometries rather than boxes."""
    if hasattr(regions, "geom_type"):
        return True
    if isinstance(regions, list | tuple) or type(regions) is np.ndarray:
        return len(regions) > 0 and hasattr(regions[0], "geom_type")
    return False


def answer_polygons(
    release: Release,
    regions: Any,
    *,
    confidence: float,
    threshold: float,
) -> pandas.DataFrame | geopandas.GeoDataFrame:
    """Answer table for polygons; a part outside the domain is not answered for.

    Parameters
    ----------
    release : Release
        What is asked.
    regions : GeoDataFrame, GeoSeries, geometry or sequence of geometries
        Polygons and multi-polygons. With a CRS they are brought to that of the release by
        their vertices, after lines are divided at 1/1000 of the domain; bare geometries are
        taken to be in the CRS of the release.
    confidence, threshold : float
        As in `Release.query`.

    Returns
    -------
    DataFrame or GeoDataFrame
        For a GeoDataFrame the caller's columns and index, then
        `psd.query.report.COLUMNS`; else ``id`` and these columns.
    """
    import pandas as pd

    shapes = in_crs(regions, release.domain)
    for number, shape in enumerate(shapes, start=1):
        _check(number, shape, release.domain)
    sums = joined(
        [
            cover_sums(release, cover(release.tree, 1, _polygon_fraction(release, shape)))
            for shape in shapes
        ]
    )
    columns = report(release, sums, confidence=confidence, threshold=threshold)
    if not hasattr(regions, "columns"):
        return pd.DataFrame({"id": np.arange(1, len(shapes) + 1), **columns})
    clash = [name for name in COLUMNS if name in regions.columns]
    if clash:
        raise ParameterError(f"regions have a column {clash[0]} already; rename it first")
    return regions.assign(**columns)


def in_crs(regions: Any, domain: Domain) -> NDArray[np.object_]:
    """Shapes of the regions in the CRS of the domain."""
    import geopandas as gpd
    import shapely

    if not isinstance(regions, gpd.GeoDataFrame | gpd.GeoSeries):
        return np.atleast_1d(np.asarray(regions, dtype=object))
    shapes = regions.geometry
    if shapes.crs is None:
        raise DomainError(
            "regions have no CRS; assign it (set_crs, or in your GIS), it is never guessed"
        )
    if shapes.crs == domain.crs:
        return np.asarray(shapes.array, dtype=object)
    step = _segment_length(shapes, domain)
    divided = shapes.set_axis(range(len(shapes)))
    divided = gpd.GeoSeries(shapely.segmentize(divided.array, step), crs=shapes.crs)
    return np.asarray(divided.to_crs(domain.crs).array, dtype=object)


def _segment_length(shapes: geopandas.GeoSeries, domain: Domain) -> float:
    """1/1000 of the domain, in units of the shapes' CRS."""
    from pyproj import Transformer

    there = Transformer.from_crs(domain.crs, shapes.crs, always_xy=True)
    west, south, east, north = there.transform_bounds(*domain.bounds)
    length = max(abs(east - west), abs(north - south)) / _SEGMENTS
    if not np.isfinite(length) or length <= 0:
        raise DomainError("the bounds of the release cannot be expressed in the CRS of the regions")
    return float(length)


def _check(number: int, shape: Any, domain: Domain) -> None:
    """Refuse what has no area, is invalid or lies outside the domain."""
    import shapely

    kind = getattr(shape, "geom_type", None)
    if kind not in ("Polygon", "MultiPolygon"):
        raise ParameterError(f"region {number} is {kind or 'missing'}; queries take polygons")
    if shape.is_empty:
        raise ParameterError(f"region {number} is an empty polygon")
    if not shapely.is_valid(shape):
        reason = shapely.is_valid_reason(shape)
        raise ParameterError(f"region {number} is not valid ({reason}); repair it first")
    if not shapely.relate_pattern(shape, shapely.box(*domain.bounds), "T********"):
        raise ParameterError(
            f"region {number} lies outside the bounds {domain.bounds} of the release, where "
            "nothing was counted"
        )


class _Region:
    """One polygon in the CRS of a domain, against boxes of its lattice."""

    def __init__(self, shape: shapely.Geometry, domain: Domain) -> None:
        import shapely

        shapely.prepare(shape)
        self.shape, self._domain = shape, domain

    def relation(self, boxes: NDArray[Any]) -> NDArray[np.float64]:
        """1 for boxes inside, 0 for boxes outside, 0.5 for those that are cut."""
        import shapely

        cells = shapely.box(*self._domain.from_lattice(boxes).T)
        inside = shapely.covers(self.shape, cells)
        return np.where(inside, 1.0, 0.5 * shapely.intersects(self.shape, cells))

    def covered(self, boxes: NDArray[Any]) -> NDArray[np.float64]:
        """Covered fractions of the areas of boxes."""
        import shapely

        fraction = self.relation(boxes)
        cut = (fraction > 0) & (fraction < 1)
        cells = shapely.box(*self._domain.from_lattice(boxes[cut]).T)
        fraction[cut] = shapely.area(shapely.intersection(self.shape, cells))
        fraction[cut] /= shapely.area(cells)
        return fraction


def _polygon_fraction(release: Release, shape: shapely.Geometry) -> Fraction:
    """Covered fractions of cells by one polygon: areas only where its boundary passes."""
    tree, density = release.tree, release.density
    region = _Region(shape, release.domain)

    def fraction(
        query: NDArray[np.int64], node: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        area = region.relation(tree.boxes[node])
        cut = np.flatnonzero((area > 0) & (area < 1) & tree.is_leaf[node])
        area[cut] = _rounded(region.covered(tree.boxes[node[cut]]))
        share = area.copy()
        if density is not None:
            share[cut] = _rounded(density.polygon(tree, node[cut], region))
        return share, area

    return fraction


def _rounded(share: NDArray[np.float64]) -> NDArray[np.float64]:
    """Shares, with those that are all but nothing or all but everything made so."""
    return np.where(share < _ROUNDING, 0.0, np.where(share > 1 - _ROUNDING, 1.0, share))
