"""Bounds of a text, of the polygons in a public file, or in another CRS than that of a release.

Nothing here reads a record.
"""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import numpy as np

from psd._util.file_endings import file_of
from psd.errors import DomainError, ParameterError
from psd.regions.files import read_polygons
from psd.space.boundary import bounds_of
from psd.space.bounds import check_bounds, check_degrees, snap_outward
from psd.space.crs import (
    check_plane_crs,
    explain_proj_errors,
    half_turn,
    offline,
    parse_crs,
    prime_meridian,
)
from psd.space.shape_transforms import seam_longitude

__all__ = ["bounds_from_file", "bounds_from_polygons", "bounds_from_text", "transform_bounds"]

_NUMBER = r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_COMMA = re.compile(r"[+-]?[0-9]+,[0-9]+", re.ASCII)
_BOX = re.compile(rf"\[?\s*({_NUMBER}(?:(?:\s*,\s*|\s+){_NUMBER}){{3}})\s*\]?")

# Steps to which transformed sides are moved outward, in degrees and in units of other CRS. Versions
# of PROJ differ by less, so that a text has the same bounds everywhere.
_DEGREES, _UNITS = "0.000001", "1"

# Places along each side at which the inside of bounds is looked at, and the share of the sides by
# which it may lie beyond their transformed outline: that of longitudes at the seam is rounded.
_PROBES, _SLACK = 33, 1e-3

Bounds = tuple[float, float, float, float]


def bounds_from_text(text: str) -> Bounds | None:
    """Return the four numbers of a text; None if it has others.

    >>> bounds_from_text("126.4,37,127.6,38"), bounds_from_text("districts.gpkg")
    ((126.4, 37.0, 127.6, 38.0), None)
    """
    match = _BOX.fullmatch(text.strip())
    if match is None:
        return None
    west, south, east, north = map(float, re.split(r"\s*,\s*|\s+", match[1]))
    return west, south, east, north


def bounds_from_file(path: str, crs: str) -> Bounds:
    """Bounds of the polygons in a public file, in the CRS of a release."""
    file = Path(file_of(path))
    if not (file.exists() or re.fullmatch(r"\.[A-Za-z]\w*", file.suffix)):
        comma = "; write a decimal point, as in 126.4" if _COMMA.fullmatch(path) else ""
        raise ParameterError(
            "bounds must be west, south, east and north, a file of polygons, area-of-use or "
            f"private, got {path[:80]!r}{comma}",
            name="bounds",
        )
    return bounds_from_polygons(read_polygons(Path(path), "bounds"), crs)


def bounds_from_polygons(polygons: Any, crs: str, name: str = "bounds") -> Bounds:
    """Bounds of public polygons of a table, or a series, in the CRS of a release."""
    bounds = bounds_of(polygons, crs, name)
    is_same = parse_crs(polygons.crs).equals(parse_crs(crs), ignore_axis_order=True)
    return bounds if is_same else _move_outward(bounds, crs)


def transform_bounds(bounds: Bounds, source: str, target: str) -> Bounds:
    """Transform bounds to another CRS: the box around their outline, a little wider.

    Bounds are west, south, east, north. The sides are moved outward to whole units, or to
    millionths of a degree. A CRS that is cut inside the bounds is refused.
    """
    from pyproj import Transformer

    source, is_degrees = check_plane_crs(source, "bounds_crs")
    is_same = parse_crs(source).equals(parse_crs(target), ignore_axis_order=True)
    if is_degrees and not is_same:
        bounds = _name_once(bounds, half_turn(source))
    # Of degrees, west above east crosses longitude 180, if the way across it is the shorter one.
    is_across = is_degrees and not is_same and bounds[0] - bounds[2] > half_turn(source)
    half = half_turn(source) if is_degrees else math.inf
    turn = 2 * half if is_across else 0.0
    west, south, east, north = check_bounds((bounds[0], bounds[1], bounds[2] + turn, bounds[3]))
    bounds = (west, south, east - turn, north)
    if is_degrees:
        check_degrees(bounds, source)
        _check_uncut((west, east), source, target)
    elif not is_same and (base := parse_crs(source).geodetic_crs) is not None:
        with explain_proj_errors("the bounds", source), offline():
            degrees = Transformer.from_crs(parse_crs(source), base, always_xy=True)
            low, _, high, _ = degrees.transform_bounds(*bounds, densify_pts=999)
        # A pole inside has all longitudes.
        if math.isfinite(high - low):
            whole = 2 * half_turn(base)
            _check_uncut((low, high if low < high else high + whole), base, target)
    if is_same:
        return bounds
    with explain_proj_errors("the bounds", target), offline():
        transformer = Transformer.from_crs(parse_crs(source), parse_crs(target), always_xy=True)
        # Both sides of longitude 180 by themselves: of grads, PROJ takes them for the world.
        sides = [(west, min(east, half)), (-half, east - turn)][: 1 + is_across]
        parts = [
            transformer.transform_bounds(low, south, high, north, densify_pts=9_999)
            for low, high in sides
            if low < high
        ]
        lows, highs = np.min(parts, axis=0).tolist(), np.max(parts, axis=0).tolist()
        moved: Bounds = (lows[0], lows[1], highs[2], highs[3])
        seam = seam_longitude(target)
        if is_degrees and seam is not None and east - west >= 2 * half:
            # The world: its outline passes the seam between two of the points.
            ends = np.array([seam - 360 + 1e-9, seam - 1e-9]) + _between_meridians(source, target)
            ends *= half / 180
            x, _ = transformer.transform(ends, np.full(2, np.clip(0, south, north)))
            if parse_crs(target).is_geographic:
                x = np.array([-1, 1]) * half_turn(target)
            moved = (min(moved[0], *x), moved[1], max(moved[2], *x), moved[3])
    # The sides of the result are those of the outline: not if a pole is inside that has no place.
    x, y = np.meshgrid(np.linspace(west, east, _PROBES), np.linspace(south, north, _PROBES))
    inside = np.column_stack(transformer.transform(x.ravel(), y.ravel()))
    slack = _SLACK * (np.array(moved[2:]) - moved[:2])
    beyond = (inside < moved[:2] - slack) | (inside > moved[2:] + slack)
    if not all(map(math.isfinite, moved)) or beyond[np.isfinite(inside)].any():
        raise DomainError(
            f"bounds {bounds} in {source} cannot be transformed to {target}; do they hold a pole, "
            "or lie where it is not used?",
            name="bounds",
            value=bounds,
        )
    return _move_outward(moved, target)


def _name_once(bounds: Bounds, half: float) -> Bounds:
    """Longitudes 170 to 190, or -190 to -170, as 170 to -170."""
    west, south, east, north = bounds
    if west < half < east < west + 2 * half:
        return west, south, east - 2 * half, north
    if west < -half < east < west + 2 * half:
        return west + 2 * half, south, east, north
    return bounds


def _between_meridians(source: Any, target: Any) -> float:
    """Degrees from the meridian at which longitudes of a CRS begin to that of another one."""
    return prime_meridian(target) - prime_meridian(source)


def _check_uncut(sides: tuple[float, float], source: Any, target: str) -> None:
    """Refuse longitudes on both sides of the meridian at which a CRS is cut; the world is whole."""
    seam = seam_longitude(target)
    west, east = (side * 180 / half_turn(source) for side in sides)
    if seam is None or east - west >= 360:
        return
    seam += _between_meridians(source, target)
    within = (seam - west) % 360
    if 1e-9 < within < east - west - 1e-9:
        raise DomainError(
            f"bounds must not cross longitude {180 - (180 - seam) % 360:g} in {target[:80]}, which "
            "is cut there; take another CRS, or split the domain in two",
            name="bounds",
        )


def _move_outward(bounds: Bounds, crs: str) -> Bounds:
    """Move sides outward to round numbers."""
    is_degrees = check_plane_crs(crs)[1]
    half = half_turn(crs) if is_degrees else math.inf
    step, limits = _DEGREES if is_degrees else _UNITS, (-half, -half / 2, half, half / 2)
    west, south, east, north = bounds
    return check_bounds(snap_outward((west, south, east, north), step, limits))
