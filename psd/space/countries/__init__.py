"""Borders and names of countries, as files of the package.

countries-110m.json and countries-50m.json are Natural Earth (public domain) as in world-atlas 2.0.2
(ISC), unchanged, from npm.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import Floats

__all__ = ["border_arcs", "country_shapes"]


@cache
def border_arcs(*, coarse: bool) -> tuple[Floats, ...]:
    """Arcs of borders and coasts, each of one or two countries, (n, 2) float64 in degrees.

    `coarse` is for maps of continents: 1:110 million in place of 1:50 million.
    """
    topology = _topology("countries-110m.json" if coarse else "countries-50m.json")
    return _arcs(topology)


@cache
def country_shapes() -> tuple[tuple[str, ...], NDArray[np.object_]]:
    """Names of the countries in English, and their polygons, (n,) in degrees, at 1:50 million.

    Some names are short forms, such as ``Dem. Rep. Congo``.
    """
    import shapely

    topology = _topology("countries-50m.json")
    arcs = _arcs(topology)

    def ring(numbers: list[int]) -> Floats:
        """Vertices of a ring; the number of an arc that is turned is its complement."""
        return np.concatenate([arcs[n] if n >= 0 else arcs[~n][::-1] for n in numbers])

    countries = topology["objects"]["countries"]["geometries"]
    shapes = []
    for country in countries:
        parts = country["arcs"] if country["type"] == "MultiPolygon" else [country["arcs"]]
        polygons = [shapely.Polygon(ring(outer), list(map(ring, holes))) for outer, *holes in parts]
        shapes.append(shapely.make_valid(shapely.MultiPolygon(polygons)))
    return tuple(country["properties"]["name"] for country in countries), np.array(shapes, object)


def _topology(name: str) -> dict[str, Any]:
    """Content of a file of the package."""
    topology: dict[str, Any] = json.loads(
        files(__name__).joinpath(name).read_text(encoding="utf-8")
    )
    return topology


def _arcs(topology: dict[str, Any]) -> tuple[Floats, ...]:
    """Vertices of each arc, which are stored as steps of a grid."""
    scale = np.array(topology["transform"]["scale"])
    origin = np.array(topology["transform"]["translate"])
    return tuple(np.cumsum(arc, axis=0) * scale + origin for arc in topology["arcs"])
