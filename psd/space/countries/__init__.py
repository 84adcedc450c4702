"""Borders of countries, as files of the package.

countries-110m.json and countries-50m.json are Natural Earth (public domain) as in world-atlas 2.0.2
(ISC), unchanged, from npm.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files

import numpy as np

from psd._util.arrays import Floats

__all__ = ["border_arcs"]


@cache
def border_arcs(*, coarse: bool) -> tuple[Floats, ...]:
    """Arcs of borders and coasts, each of one or two countries.

    Parameters
    ----------
    coarse : bool
        For maps of continents, at 1:110 million, in place of 1:50 million.

    Returns
    -------
    tuple of ndarray, shape (n, 2), float64
        Longitudes and latitudes in degrees.

    Examples
    --------
    >>> len(border_arcs(coarse=True)) > 100
    True
    """
    name = "countries-110m.json" if coarse else "countries-50m.json"
    topology = json.loads(files(__name__).joinpath(name).read_text(encoding="utf-8"))
    scale = np.array(topology["transform"]["scale"])
    origin = np.array(topology["transform"]["translate"])
    return tuple(np.cumsum(arc, axis=0) * scale + origin for arc in topology["arcs"])
