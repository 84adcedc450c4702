"""Sides of polygons along the axes, and what records that lie along lines do there.

A side of a polygon along an axis errs as that of a box: the records beside it in all leaves that it
cuts may be on its other side together. A slanting side crosses many lines of records, whose errors
cancel, and has no such error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from psd._util.arrays import Floats, Integers
from psd.space.domain import Domain

if TYPE_CHECKING:
    from psd.estimation.model import CountModel

__all__ = ["Sides", "find_sides", "side_matrix", "side_variance"]

_SLANT = 1e-3
"""A side is along an axis if it leaves it by at most this part of its length."""

_PLACES = 6
"""Decimals, in lattice cells, to which positions of one line agree."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sides:
    """Sides of regions along the axes, in lattice units.

    Parameters
    ----------
    region : ndarray, shape (n,), int64
        Number of the region that each side belongs to.
    axis : ndarray, shape (n,), int64
        0 for a side of constant x, 1 for one of constant y.
    position, low, high : ndarray, shape (n,), float64
        Its place on that axis, and where it begins and ends on the other one.
    sign : ndarray, shape (n,), float64
        1 for a side on the east or north of its region, -1 for one on the west or south.
    """

    region: Integers
    axis: Integers
    position: Floats
    low: Floats
    high: Floats
    sign: Floats

    def __len__(self) -> int:
        return len(self.region)


def find_sides(shapes: NDArray[np.object_], domain: Domain) -> Sides:
    """Find the sides of polygons along the axes.

    Parameters
    ----------
    shapes : ndarray of geometries, shape (m,)
        Valid polygons and multi-polygons in the CRS of the domain.
    domain : Domain
        Of the release.

    Returns
    -------
    Sides
        Clipped to the domain. Neighbouring parts of one straight side are one side.

    Examples
    --------
    >>> import psd, shapely
    >>> domain = psd.Domain(bounds=(0, 0, 4, 4), crs="EPSG:3857", lattice=(4, 4))
    >>> triangle = shapely.Polygon([(0, 0), (3, 0), (0, 3)])
    >>> sides = find_sides(np.array([triangle]), domain)
    >>> sides.axis.tolist(), sides.sign.tolist()
    ([1, 0], [-1.0, -1.0])
    """
    region, ring, ends, left = _outlines(shapes, domain)
    change = ends[:, 2:] - ends[:, :2]
    axis = np.argmin(np.abs(change), axis=1)
    rows = np.arange(len(ends))
    along = change[rows, 1 - axis]
    straight = (along != 0) & (np.abs(change[rows, axis]) <= _SLANT * np.abs(along))
    # The region is on the left of its outline: on the west of a side that goes north.
    sign = np.sign(along) * np.where(axis == 0, 1.0, -1.0) * np.where(left, 1.0, -1.0)
    region, ring, axis, sign, along = (v[straight] for v in (region, ring, axis, sign, along))
    rows, ends = rows[straight], ends[straight]
    each = np.arange(len(ends))
    start, stop = ends[each, 1 - axis], ends[each, 3 - axis]
    middle = (ends[each, axis] + ends[each, 2 + axis]) / 2
    same = [np.diff(values) == 0 for values in (ring, axis, sign)] + [np.diff(rows) == 1]
    first = np.flatnonzero(np.append(True, ~np.all(same, axis=0))[: len(ends)])
    if not len(first):
        return Sides(region=region, axis=axis, position=middle, low=start, high=stop, sign=sign)
    length = np.abs(along)
    return Sides(
        region=region[first],
        axis=axis[first],
        position=np.add.reduceat(length * middle, first) / np.add.reduceat(length, first),
        low=np.minimum.reduceat(np.minimum(start, stop), first),
        high=np.maximum.reduceat(np.maximum(start, stop), first),
        sign=sign[first],
    )


def _outlines(
    shapes: NDArray[np.object_], domain: Domain
) -> tuple[Integers, Integers, Floats, NDArray[np.bool_]]:
    """Region, ring and both ends of each part of the outlines, and whether the region is left."""
    import shapely

    parts, of_shape = shapely.get_parts(shapes, return_index=True)
    rings, of_part = shapely.get_rings(parts, return_index=True)
    points, of_ring = shapely.get_coordinates(rings, return_index=True)
    within = np.flatnonzero(np.diff(of_ring) == 0)
    ends = domain.to_lattice(np.concatenate([points[within], points[within + 1]], axis=1))
    outer = np.append(True, np.diff(of_part) > 0)[: len(rings)]
    ring = of_ring[within]
    return of_shape[of_part[ring]], ring, ends, (shapely.is_ccw(rings) == outer)[ring]


def side_matrix(
    model: CountModel, region: Integers, node: Integers, sides: Sides, regions: int
) -> sparse.csr_array | None:
    """Deviations of regions along lines; see `psd.query.line_matrix.line_matrix`.

    Parameters
    ----------
    model : CountModel
        Model of the cells.
    region, node : ndarray, shape (n,), int64
        Pairs of a region and a leaf that it cuts.
    sides : Sides
        Of the regions.
    regions : int
        Number of regions, m.

    Returns
    -------
    csr_array, shape (m, lines), float64, or None
        Z, such that Z Z' is the covariance. None where no records lie along lines.
    """
    deviation = model.line_deviation
    if deviation is None:
        return None
    cells = model.tree.boxes[node].astype(np.float64)
    pair, side = _meetings(region, cells, sides, model.domain.lattice[0])
    cell, each, axis = cells[pair], np.arange(len(pair)), sides.axis[side]
    low, high = cell[each, axis], cell[each, 2 + axis]
    share = np.clip((sides.position[side] - low) / (high - low), 0.0, 1.0)
    low, high = cell[each, 1 - axis], cell[each, 3 - axis]
    covered = np.minimum(sides.high[side], high) - np.maximum(sides.low[side], low)
    along = np.maximum(covered, 0.0) / (high - low)
    value = sides.sign[side] * deviation[axis, node[pair]] * np.sqrt(share * (1 - share)) * along
    place = np.stack([sides.axis, np.round(sides.position, _PLACES)])
    lines, line = np.unique(place, axis=1, return_inverse=True)
    entries = (value, (sides.region[side], line.ravel()[side]))
    return sparse.csr_array(entries, shape=(regions, lines.shape[1]))


def side_variance(
    model: CountModel, region: Integers, node: Integers, sides: Sides, regions: int
) -> Floats:
    """Variance of the records of regions by records along their sides, shape (m,)."""
    matrix = side_matrix(model, region, node, sides, regions)
    if matrix is None:
        return np.zeros(regions)
    variance: Floats = np.asarray(matrix.power(2).sum(axis=1), np.float64)
    return variance


def _meetings(
    region: Integers, cells: Floats, sides: Sides, width: int
) -> tuple[Integers, Integers]:
    """Pairs of a cell of a region and a side of the same region that meets it."""
    import shapely

    # Regions lie beside each other here, so that a search finds sides of the same one alone.
    x, y = sides.position, sides.low
    upright = sides.axis == 0
    start = np.stack([np.where(upright, x, y), np.where(upright, y, x)], axis=1)
    stop = np.stack([np.where(upright, x, sides.high), np.where(upright, sides.high, x)], axis=1)
    start[:, 0] += 2.0 * width * sides.region
    stop[:, 0] += 2.0 * width * sides.region
    moved = cells + (2.0 * width * region)[:, None] * np.array([1, 0, 1, 0])
    tree = shapely.STRtree(shapely.linestrings(np.stack([start, stop], axis=1)))
    pair, side = tree.query(shapely.box(*moved.T))
    return pair, side
