"""Where bounds lie, in words, so that exchanged coordinates are seen before a build."""

from __future__ import annotations

import numpy as np

from psd._util.arrays import Floats
from psd.space.crs import offline, parse_crs
from psd.space.domain import Domain

__all__ = ["place_text"]

# Places along a side of the bounds that are looked up, and countries that are named.
_PLACES, _NAMED = 25, 3


def place_text(domain: Domain) -> str:
    """Where the bounds of a domain lie: countries and the middle; empty for no place on earth.

    Countries are in the order of how much of the bounds they fill, as a grid of places meets them.
    """
    if parse_crs(domain.crs).is_engineering:
        return ""
    west, south, east, north = domain.bounds
    # The middle of each of equal parts, so that a border along the rim names no neighbour.
    share = (np.arange(_PLACES) + 0.5) / _PLACES
    x, y = np.meshgrid(west + share * (east - west), south + share * (north - south))
    places = _in_degrees(x.ravel(), y.ravel(), domain.crs)
    middle = places[len(places) // 2]  # their number along a side is odd
    places = places[np.isfinite(places).all(axis=1)]
    if not len(places):
        return ""
    if not np.isfinite(middle).all():
        return _countries(places, places[0])
    longitude, latitude = middle
    sides = (
        f"{abs(latitude):.3g} {'S' if latitude < 0 else 'N'} "
        f"{abs(longitude):.4g} {'W' if longitude < 0 else 'E'}"
    )
    return f"{_countries(places, middle)}; middle {sides}"


def _countries(places: Floats, middle: Floats) -> str:
    """Countries of places, those of most places first; or how far the next one is."""
    import shapely
    from pyproj import Geod

    from psd.space.countries import country_shapes

    names, shapes = country_shapes()
    tree = shapely.STRtree(shapes)
    met = tree.query(shapely.points(places), predicate="intersects")[1]
    number, times = np.unique(met, return_counts=True)
    order = number[np.argsort(-times, kind="stable")]
    if not len(order):
        point = shapely.Point(middle)
        nearest = shapes[tree.nearest(point)]
        (_, there) = shapely.get_coordinates(shapely.shortest_line(point, nearest))
        _, _, metres = Geod(ellps="WGS84").inv(*middle, *there)
        return f"at sea, {float(f'{metres / 1000:.2g}'):,g} km from {names[tree.nearest(point)]}"
    shown = ", ".join(names[each] for each in order[:_NAMED])
    more = len(order) - _NAMED
    return shown if more <= 0 else f"{shown} and {more:,} more"


def _in_degrees(x: Floats, y: Floats, crs: str) -> Floats:
    """Longitudes and latitudes, shape (n, 2); not finite where a CRS has no place on the earth."""
    from pyproj import Transformer
    from pyproj.exceptions import ProjError

    with offline():
        try:
            transformer = Transformer.from_crs(parse_crs(crs), "EPSG:4326", always_xy=True)
        except ProjError:  # a CRS of another body than the earth
            return np.full((len(x), 2), np.nan)
        return np.column_stack(transformer.transform(x, y))
