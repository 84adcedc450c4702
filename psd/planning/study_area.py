"""Study areas of plans: a square of a given area, and the area of a domain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from psd.errors import ParameterError
from psd.space.domain import Domain
from psd.space.smallest_cell import DEFAULT_MIN_CELL

if TYPE_CHECKING:
    from pyproj import CRS

__all__ = ["MAX_KM2", "domain_area_km2", "square_domain"]

MAX_KM2 = 5.2e8
"""Limit of a study area, a little more than the surface of the Earth."""

# In this CRS parallels and meridians are straight lines.
_EQUAL_AREA = "EPSG:6933"

# Edges of projected bounds are curves on the globe; each is approximated by this many points.
_EDGE_POINTS = 101


def square_domain(area_km2: float) -> Domain:
    """Return a square of an area, in metres, for plans that do not depend on a location.

    Raises
    ------
    ParameterError
        If the area is not above 0 or is larger than the Earth.
    """
    if not 0 < area_km2 <= MAX_KM2:
        raise ParameterError(
            f"area_km2 must be above 0 and at most {MAX_KM2:,.0f}, the surface of the Earth, "
            f"got {area_km2:g}"
        )
    side = 1_000 * float(np.sqrt(area_km2))
    local = Domain(bounds=(0, 0, side, side), crs='LOCAL_CS["study area",UNIT["metre",1]]')
    return local.with_min_cell(DEFAULT_MIN_CELL)


def domain_area_km2(domain: Domain) -> float:
    """Square kilometres inside the bounds, on the ellipsoid if the CRS has one."""
    from pyproj import CRS, Transformer

    west, south, east, north = domain.bounds
    crs = CRS.from_user_input(domain.crs)
    if crs.geodetic_crs is None:
        unit = crs.axis_info[0].unit_conversion_factor or 1.0
        return float((east - west) * (north - south) * unit**2) / 1e6
    if crs.is_geographic:
        to_equal_area = Transformer.from_crs(crs, _EQUAL_AREA, always_xy=True)
        x, y = to_equal_area.transform([west, east], [south, north])
        return float((x[1] - x[0]) * (y[1] - y[0])) / 1e6
    return _projected_area_km2(domain, crs)


def _projected_area_km2(domain: Domain, crs: CRS) -> float:
    """Area of projected bounds on the ellipsoid."""
    from pyproj import Transformer

    west, south, east, north = domain.bounds
    x, y = np.linspace(west, east, _EDGE_POINTS), np.linspace(south, north, _EDGE_POINTS)
    ring = (
        np.concatenate([x, np.full_like(y, east), x[::-1], np.full_like(y, west)]),
        np.concatenate([np.full_like(x, south), y, np.full_like(x, north), y[::-1]]),
    )
    to_degrees = Transformer.from_crs(crs, crs.geodetic_crs, always_xy=True)
    geod = crs.get_geod()
    assert geod is not None
    return abs(float(geod.polygon_area_perimeter(*to_degrees.transform(*ring))[0])) / 1e6
