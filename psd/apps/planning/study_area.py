"""Study areas of plans: a square of a given area, and the area of a domain."""

from __future__ import annotations

import os
from numbers import Real
from pathlib import Path
from typing import Any

import numpy as np

from psd._util.instances import type_text
from psd.errors import DomainError, ParameterError
from psd.regions.files import read_polygons
from psd.space.boundary import bounds_of
from psd.space.crs import check_plane_crs, metres_per_unit
from psd.space.domain import DEFAULT_MIN_CELL, Domain
from psd.space.ground_areas import area_unit, ground_areas, shape_ground_areas

__all__ = ["MAX_KM2", "domain_area_km2", "km2_of", "square_domain"]

MAX_KM2 = 5.2e8
"""Limit of a study area, a little more than the surface of the Earth."""


def square_domain(area_km2: float) -> Domain:
    """Return a square of an area, in metres, for plans that do not depend on a location.

    Raises
    ------
    ParameterError
        If the area is not above 0 or is larger than the Earth.
    """
    if not 0 < area_km2 <= MAX_KM2:
        raise ParameterError(
            f"area must be above 0 and at most {MAX_KM2:,.0f}, the surface of the Earth, "
            f"got {area_km2:g}"
        )
    side = 1_000 * float(np.sqrt(area_km2))
    local = Domain(bounds=(0, 0, side, side), crs='LOCAL_CS["study area",UNIT["metre",1]]')
    return local.with_min_cell(DEFAULT_MIN_CELL)


def km2_of(area: Any, crs: str | None = None) -> float | None:
    """Square kilometres as given, or those of public polygons on the ellipsoid.

    Parameters
    ----------
    area : float, path-like, GeoDataFrame, GeoSeries or geometry, optional
        Public; parts that overlap count once.
    crs : str, optional
        Of a geometry, which states none.

    Raises
    ------
    ParameterError
        If a geometry is not a polygon, or the value has another type.
    DomainError
        If polygons have no CRS.
    """
    if area is None or isinstance(area, Real):
        return None if area is None else float(area)
    if isinstance(area, str | os.PathLike):
        area = read_polygons(Path(area), "area")
    elif hasattr(area, "geom_type") and not hasattr(area, "geometry"):
        import geopandas

        area = geopandas.GeoSeries([area], crs=crs or "EPSG:4326")
    if not hasattr(area, "geometry"):
        raise ParameterError(
            f"area must be square kilometres or public polygons, got {type_text(area)}; bounds= "
            "takes west, south, east and north",
            name="area",
        )
    if area.crs is None:
        raise DomainError("area must have a CRS; set it with set_crs", name="area")
    crs, _ = check_plane_crs(area.crs)
    domain = Domain(bounds=bounds_of(area, crs, "area"), crs=crs, lattice=(1, 1))
    union = np.array([area.geometry.union_all()], object)
    return _in_km2(domain, float(shape_ground_areas(domain, union)[0]))


def domain_area_km2(domain: Domain) -> float:
    """Square kilometres inside the bounds: on the ground, or in the plane of a local CRS."""
    return _in_km2(domain, float(ground_areas(domain, np.array([[0.0, 0, *domain.lattice]]))[0]))


def _in_km2(domain: Domain, area: float) -> float:
    """Square kilometres of an area on the ground, or in the plane of a local CRS."""
    if area_unit(domain) == "km2":
        return area
    return area * (metres_per_unit(domain.crs) or 1.0) ** 2 / 1e6
