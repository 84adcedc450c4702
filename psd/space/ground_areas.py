"""Areas of boxes on the ground, in square kilometres if the length of the CRS unit is known."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats

if TYPE_CHECKING:
    from psd.space.domain import Domain

__all__ = ["area_unit", "ground_areas", "ground_constants", "shape_ground_areas"]


def area_unit(domain: Domain) -> str:
    """Name of the unit of `ground_areas`: ``km2``, or ``square unit`` if the scale is unknown."""
    return "km2" if domain.geographic or _metres(domain) else "square unit"


def ground_constants(domain: Domain) -> dict[str, float]:
    """Numbers that `ground_areas` uses, for programs in other languages.

    Returns
    -------
    dict of str to float
        ``scale``, the area of a square of one unit of the CRS; or for degrees ``a`` and ``b``, the
        half axes of the ellipsoid in metres.

    Examples
    --------
    >>> from psd.space.domain import Domain
    >>> ground_constants(Domain(bounds=(0, 0, 9, 9), crs="EPSG:3857"))
    {'scale': 1e-06}
    """
    if domain.geographic:
        a, b = _axes(domain)
        return {"a": a, "b": b}
    return {"scale": _metres(domain) ** 2 / 1e6 if _metres(domain) else 1.0}


def ground_areas(domain: Domain, boxes: Floats) -> Floats:
    """Areas of boxes in lattice units.

    Parameters
    ----------
    domain : Domain
        Of the lattice.
    boxes : ndarray, shape (n, 4), float64
        In lattice units.

    Returns
    -------
    ndarray, shape (n,), float64
        On the ellipsoid for degrees; else in the plane of the CRS, whose scale may differ from
        that of the ground.

    Examples
    --------
    >>> from psd.space.domain import Domain
    >>> earth = Domain(bounds=(-180, -90, 180, 90), lattice=(1, 1))
    >>> ground_areas(earth, np.array([[0.0, 0, 1, 1]])).round(-5).tolist()
    [510100000.0]
    """
    west, south, east, north = domain.from_lattice(boxes).T
    if not domain.geographic:
        flat: Floats = (east - west) * (north - south) * _metres(domain) ** 2 / 1e6
        return flat if _metres(domain) else (east - west) * (north - south)
    a, b = _axes(domain)
    band = _zone(north, a, b) - _zone(south, a, b)
    return np.asarray(np.radians(east - west) * band / 1e6)


def shape_ground_areas(domain: Domain, shapes: NDArray[np.object_]) -> Floats:
    """Areas of polygons in the CRS of a domain, in the unit of `ground_areas`.

    Parameters
    ----------
    domain : Domain
        Its CRS is that of the polygons.
    shapes : ndarray of geometries, shape (n,)
        Polygons inside its bounds.

    Returns
    -------
    ndarray, shape (n,), float64
        In degrees their sides are straight in longitude and latitude, as those of boxes.

    Examples
    --------
    >>> import shapely
    >>> from psd.space.domain import Domain
    >>> earth = Domain(bounds=(-180, -90, 180, 90), lattice=(1, 1))
    >>> shape_ground_areas(earth, np.array([shapely.box(-180, -90, 180, 90)])).round(-5).tolist()
    [510100000.0]
    """
    import shapely

    if not domain.geographic:
        scale = _metres(domain) ** 2 / 1e6 if _metres(domain) else 1.0
        return np.asarray(shapely.area(shapes) * scale)
    a, b = _axes(domain)

    def equal_area(vertices: Floats) -> Floats:
        return np.column_stack([np.radians(vertices[:, 0]), _zone(vertices[:, 1], a, b)])

    # Sides are curves in the plane of equal areas, so they are divided first.
    fine = shapely.segmentize(shapes, max(domain.width, domain.height) / 1000)
    return np.asarray(shapely.area(shapely.transform(fine, equal_area)) / 1e6)


def _axes(domain: Domain) -> tuple[float, float]:
    """Half axes of the ellipsoid of a CRS, those of WGS 84 if it does not state them."""
    from pyproj import CRS

    ellipsoid = CRS.from_user_input(domain.crs).get_geod()
    return (ellipsoid.a, ellipsoid.b) if ellipsoid else (6_378_137.0, 6_356_752.314)


def _zone(latitude: Floats, a: float, b: float) -> Floats:
    """Area from the equator to a latitude, per radian of longitude [1]_.

    References
    ----------
    .. [1] Snyder. "Map Projections: A Working Manual." USGS Professional Paper 1395, 1987,
       equation 3-12.
    """
    sine, e = np.sin(np.radians(latitude)), np.sqrt(1 - (b / a) ** 2)
    if e < 1e-9:
        return np.asarray(a**2 * sine)
    inner = sine / (1 - (e * sine) ** 2) + np.arctanh(e * sine) / e
    return np.asarray(b**2 / 2 * inner)


def _metres(domain: Domain) -> float:
    """Length in metres of the unit of a projected CRS; 0 if it is not stated."""
    from pyproj import CRS

    crs = CRS.from_user_input(domain.crs)
    axes = crs.axis_info
    return float(axes[0].unit_conversion_factor) if crs.is_projected and axes else 0.0
