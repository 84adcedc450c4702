"""Study areas of plans: a square of a given area, and the area of a domain."""

from __future__ import annotations

import numpy as np

from psd.errors import ParameterError
from psd.space.crs import metres_per_unit
from psd.space.domain import DEFAULT_MIN_CELL, Domain
from psd.space.ground_areas import area_unit, ground_areas

__all__ = ["MAX_KM2", "domain_area_km2", "square_domain"]

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


def domain_area_km2(domain: Domain) -> float:
    """Square kilometres inside the bounds: on the ground, or in the plane of a local CRS."""
    area = float(ground_areas(domain, np.array([[0.0, 0, *domain.lattice]]))[0])
    if area_unit(domain) == "km2":
        return area
    return area * (metres_per_unit(domain.crs) or 1.0) ** 2 / 1e6
