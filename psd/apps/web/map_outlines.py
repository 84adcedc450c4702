"""ClippedPolygons of countries around a release, from Natural Earth, in the CRS of the release."""

from __future__ import annotations

from typing import Any

import numpy as np

from psd._util.arrays import Floats
from psd.space.countries import border_arcs
from psd.space.crs import metres_per_unit, offline, parse_crs
from psd.space.domain import Domain

__all__ = ["country_outlines"]

# Widths of the domain around it in which outlines are shown.
_AROUND = 0.6

# Sides longer than this, in metres or in degrees, come of the edge of a projection.
_LONGEST = (2e6, 30.0)

# Outlines are rounded to this part of the domain, and to the coarser file from this width on.
_STEPS = 4000
_COARSE = 60.0


def country_outlines(domain: Domain) -> list[list[list[float]]]:
    """Lines of the borders and coasts around a domain.

    Parameters
    ----------
    domain : Domain

    Returns
    -------
    list of lists of [x, y]
        In the CRS of the domain, clipped to its surroundings; empty where the CRS has no place on
        the earth.

    Examples
    --------
    >>> len(country_outlines(Domain(bounds=(126.4, 37, 127.6, 38)))) > 0
    True
    """
    import shapely

    if parse_crs(domain.crs).is_engineering:
        return []
    coarse = domain.geographic and domain.width >= _COARSE
    lines = _lines_in(border_arcs(coarse=coarse), domain)
    west, south, east, north = domain.bounds
    x, y = (max(domain.width, domain.height) * _AROUND,) * 2
    clipped = shapely.clip_by_rect(lines, west - x, south - y, east + x, north + y)
    step = max(domain.width, domain.height) / _STEPS
    parts = shapely.get_parts(shapely.simplify(clipped, step))
    return [
        _rounded(shapely.get_coordinates(part), step) for part in parts[shapely.length(parts) > 0]
    ]


def _rounded(vertices: Floats, step: float) -> list[list[float]]:
    """Vertices with as many decimals as a step has."""
    decimals = max(0, 1 - int(np.floor(np.log10(step))))
    return [[float(x), float(y)] for x, y in np.round(vertices, decimals)]


def _lines_in(arcs: tuple[Floats, ...], domain: Domain) -> Any:
    """Lines of arcs in the CRS of a domain; broken where it has no coordinates, or they jump."""
    import shapely

    owner = np.repeat(np.arange(len(arcs)), [len(arc) for arc in arcs])
    x, y = _transformed(np.concatenate(arcs), domain)
    longest = _LONGEST[1] if domain.geographic else _LONGEST[0] / (metres_per_unit(domain.crs) or 1)
    step = np.hypot(np.diff(x), np.diff(y))
    broken = (np.diff(owner) != 0) | ~np.isfinite(step) | (step > longest)
    line = np.concatenate([[0], np.cumsum(broken)])
    usable = np.isfinite(x) & np.isfinite(y) & (np.bincount(line)[line] > 1)
    _, line = np.unique(line[usable], return_inverse=True)
    return shapely.linestrings(np.column_stack([x[usable], y[usable]]), indices=line)


def _transformed(vertices: Floats, domain: Domain) -> tuple[Floats, Floats]:
    """Longitudes and latitudes in the CRS of a domain; not finite where it has no coordinates."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    with offline():
        try:
            transformer = Transformer.from_crs("EPSG:4326", parse_crs(domain.crs), always_xy=True)
        except ProjError:  # a CRS of another body than the earth
            return (np.full(len(vertices), np.nan),) * 2
        x, y = transformer.transform(vertices[:, 0], vertices[:, 1])
    return np.asarray(x, np.float64), np.asarray(y, np.float64)
