"""Catchments of public candidates: circles on the ground around points, or polygons."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import DomainError, ParameterError
from psd.space.crs import (
    check_plane_crs,
    half_turn,
    metres_per_unit,
    parse_crs,
    radians_per_unit,
)

MAX_RADIUS = 100_000.0
"""Largest radius in metres where coordinates are degrees."""

# Candidates beyond it have no circle in degrees that is close to one on the ground.
_MAX_LATITUDE = 85.0

# Widens what is tested point by point, so that no point is decided by a rounding.
_MARGIN = 1e-9

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Spans:
    """Where strips of constant y meet catchments, as intervals of x."""

    # (n,) float64; all points of the strip in the catchment have an x between left and right; left
    # > right if it has none.
    left: Floats
    right: Floats
    # (n,) float64; all points of the strip between inner_left and inner_right are in the catchment;
    # inner_left > inner_right if none is known to be.
    inner_left: Floats
    inner_right: Floats


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CandidateAreas:
    """Public candidates with the area that each of them serves.

    Guarantees
    ----------
    - Whether a point is in a catchment is a function of this point and of public values.
    - No warning of a calculation tells of a point: they are silent.

    Parameters
    ----------
    ids : tuple of str
        Names of the candidates, each once. Public.
    crs : str
        CRS of all coordinates. Public.
    centres : ndarray, shape (n, 2), float64, optional
        Centres of circles on the ground, x before y. Public.
    radii : ndarray, shape (n, 2), float64, optional
        Half-widths of the circles in x and y, in units of the CRS. Public.
    polygons : ndarray of shapely geometries, shape (n,), optional
        Polygons instead of circles. Public.

    Raises
    ------
    ParameterError
        If there are fewer than two candidates, an id is empty or stands twice, or a polygon is not
        one.

    Examples
    --------
    >>> sites = CandidateAreas.around(["a", "b"], [[0, 0], [3, 0]], 2, "EPSG:3857")
    >>> sites.contains(np.array([0, 1]), np.array([1.0, 0.5]), np.array([1.0, 0.0])).tolist()
    [True, False]
    """

    ids: tuple[str, ...]
    crs: str
    centres: Floats | None = None
    radii: Floats | None = None
    polygons: NDArray[Any] | None = None

    def __post_init__(self) -> None:
        if len(self.ids) < 2:
            raise ParameterError(
                f"candidates must be at least 2, got {len(self.ids)}; there is nothing to choose "
                "from fewer"
            )
        seen: set[str] = set()
        for name in self.ids:
            if not name.strip():
                raise ParameterError("candidates must have an id each, got an empty one")
            if name in seen:
                raise ParameterError(f"ids of candidates must differ, got {name[:80]!r} twice")
            seen.add(name)
        if self.polygons is not None:
            import shapely

            kinds = (shapely.GeometryType.POLYGON, shapely.GeometryType.MULTIPOLYGON)
            is_polygon = np.isin(shapely.get_type_id(self.polygons), kinds)
            if is_polygon.all() and not shapely.is_valid(self.polygons).all():
                raise ParameterError(
                    "candidates must be valid polygons; repair them in a GIS program"
                )
            if not (is_polygon & (shapely.area(self.polygons) > 0)).all():
                raise ParameterError(
                    "candidates must be points with a radius, or polygons with an area, got "
                    "another geometry; is one of them a line, or empty?"
                )
            shapely.prepare(self.polygons)

    @classmethod
    def around(
        cls, ids: Sequence[str], points: Any, radius: float, crs: str = "EPSG:4326"
    ) -> CandidateAreas:
        """Circles on the ground around points.

        Parameters
        ----------
        ids : sequence of str
            Names of the candidates.
        points : array_like, shape (n, 2)
            Coordinates, x before y.
        radius : float
            In metres. In degrees, a circle is an ellipse whose half-widths follow from the
            curvature of the ellipsoid at its centre.
        crs : str
            CRS of the points.

        Raises
        ------
        ParameterError
            If the radius is not above 0, or a coordinate is not finite.
        DomainError
            If the CRS is unknown or has no unit of length, or a candidate lies too far north or
            south for a circle in degrees.
        """
        crs, is_geographic = check_plane_crs(crs)
        centres = np.array(points, np.float64).reshape(-1, 2)
        if not np.isfinite(centres).all():
            raise ParameterError("candidates must have two finite coordinates each")
        if not (math.isfinite(radius) and radius > 0):
            raise ParameterError(f"radius must be a number of metres above 0, got {radius}")
        if is_geographic:
            radii = _degrees(centres, radius, crs)
        else:
            unit = metres_per_unit(crs)
            if unit is None:
                raise DomainError(
                    f"radius must be left out in {crs[:80]}, which has no unit of length; give "
                    "polygons",
                    name="crs",
                )
            radii = np.full(centres.shape, radius / unit)
        return cls(ids=tuple(ids), crs=crs, centres=centres, radii=radii)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def boxes(self) -> Floats:
        """West, south, east, north of each catchment, shape (n, 4)."""
        if self.centres is None or self.radii is None:
            import shapely

            boxes: Floats = shapely.bounds(self.polygons)
            return boxes
        return np.hstack([self.centres - self.radii, self.centres + self.radii])

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Box around all catchments; in degrees from -180 to 180 if one crosses longitude 180."""
        boxes = self.boxes
        west, south = boxes[:, :2].min(axis=0).tolist()
        east, north = boxes[:, 2:].max(axis=0).tolist()
        if self._half_turn is None:
            return west, south, east, north
        half = self._half_turn
        if west < -half or east > half:
            west, east = -half, half
        return west, max(south, -half / 2), east, min(north, half / 2)

    @property
    def _half_turn(self) -> float | None:
        """Largest longitude, where coordinates are degrees."""
        return half_turn(self.crs) if check_plane_crs(self.crs)[1] else None

    def unrolled(self) -> tuple[CandidateAreas, NDArray[np.int64]]:
        """Catchments with a second one, a turn away, for each circle across longitude 180.

        Returns
        -------
        CandidateAreas, ndarray of int64
            And the candidate that each of them is of.

        Notes
        -----
        Proof that no point is in both circles of a candidate: their centres are a turn apart in x,
        and each is at most 11 degrees wide on each side, by `MAX_RADIUS` and `_MAX_LATITUDE`.
        """
        own = np.arange(len(self))
        if self.centres is None or self.radii is None or self._half_turn is None:
            return self, own
        boxes, half = self.boxes, self._half_turn
        # Circles that pass half a turn stand again, a turn away.
        again = np.flatnonzero((boxes[:, 0] < -half) | (boxes[:, 2] > half))
        turned = self.centres[again]
        turned[:, 0] -= np.sign(turned[:, 0]) * 2 * half
        every = replace(
            self,
            ids=tuple(map(str, range(len(self) + len(again)))),
            centres=np.vstack([self.centres, turned]),
            radii=np.vstack([self.radii, self.radii[again]]),
        )
        return every, np.concatenate([own, again])

    def contains(self, which: NDArray[np.int64], x: Floats, y: Floats) -> NDArray[np.bool_]:
        """Whether points lie in catchments, pair by pair; edges belong to a catchment.

        Of a circle across longitude 180 it is the part on the side of its centre; see `unrolled`.

        Parameters
        ----------
        which : ndarray, shape (n,), int64
            Numbers of the candidates.
        x, y : ndarray, shape (n,), float64
            Coordinates.
        """
        if self.polygons is not None:
            import shapely

            inside: NDArray[np.bool_] = shapely.intersects_xy(self.polygons[which], x, y)
            return inside
        assert self.centres is not None  # there are circles or polygons
        assert self.radii is not None
        with np.errstate(all="ignore"):
            across, along = (
                (value - self.centres[which, axis]) / self.radii[which, axis]
                for axis, value in enumerate((x, y))
            )
            within: NDArray[np.bool_] = across * across + along * along <= 1
        return within

    def spans(self, which: NDArray[np.int64], south: Floats, north: Floats) -> Spans:
        """Intervals of x in strips of constant y, pair by pair.

        Parameters
        ----------
        which : ndarray, shape (n,), int64
            Numbers of the candidates.
        south, north : ndarray, shape (n,), float64
            Least and largest y in each strip.
        """
        if self.polygons is not None:
            boxes = self.boxes[which]
            none = np.full(len(which), np.inf)
            return Spans(left=boxes[:, 0], right=boxes[:, 2], inner_left=none, inner_right=-none)
        assert self.centres is not None  # there are circles or polygons
        assert self.radii is not None
        with np.errstate(all="ignore"):
            (x, y), (across, along) = self.centres[which].T, self.radii[which].T
            # In a strip, a circle is widest at the y nearest to its centre, and narrowest at the
            # farthest. Margins are far above rounding, so points at the edge are tested one by one.
            nearest = np.maximum(np.maximum(south - y, y - north), 0) / along * (1 - _MARGIN)
            farthest = np.maximum(np.abs(south - y), np.abs(north - y)) / along * (1 + _MARGIN)
            outer, inner = (
                np.where(t <= 1, np.sqrt(np.maximum(1 - t * t, 0)) * across, -np.inf)
                for t in (nearest, farthest)
            )
            outer, inner = outer * (1 + _MARGIN) + across * _MARGIN, inner * (1 - _MARGIN)
            return Spans(
                left=x - outer, right=x + outer, inner_left=x - inner, inner_right=x + inner
            )


def _degrees(centres: Floats, radius: float, crs: str) -> Floats:
    """Half-widths of circles in degrees or grads, by the radii of curvature at their centres."""
    if radius > MAX_RADIUS:
        raise ParameterError(
            f"radius must be at most {MAX_RADIUS:g} m where coordinates are degrees, got "
            f"{radius:g}; give candidates in a projected CRS"
        )
    unit = radians_per_unit(crs)
    longitude, latitude = np.degrees(centres.T * unit)
    if (np.abs(latitude) > _MAX_LATITUDE).any() or (np.abs(longitude) > 180).any():
        raise DomainError(
            f"candidates must lie within 180 degrees of longitude and {_MAX_LATITUDE:g} of "
            "latitude; are x and y swapped, or is the CRS wrong?"
        )
    ellipsoid = parse_crs(crs).ellipsoid
    major, flattening = (6_378_137.0, 1 / 298.257223563)
    if ellipsoid is not None:
        major, flattening = ellipsoid.semi_major_metre, 1 / (ellipsoid.inverse_flattening or np.inf)
    # Radii of curvature of the ellipsoid: along the parallel and along the meridian.
    eccentricity = flattening * (2 - flattening)  # squared
    phi = np.radians(latitude)
    bend = 1 - eccentricity * np.sin(phi) ** 2
    across, along = major / np.sqrt(bend) * np.cos(phi), major * (1 - eccentricity) / bend**1.5
    return radius / np.stack([across, along], axis=1) / unit
