"""Name invalid polygons of public files, and repair them where the caller chooses that.

An outline that crosses itself can be repaired in several ways, which differ in area. So nothing is
repaired unless it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from psd.errors import ParameterError
from psd.space.region_checks import check_kinds, check_sizes

if TYPE_CHECKING:
    pass

__all__ = ["describe_polygon", "repair_polygons"]

# Columns that name a row of a public file, the first that it has.
_NAMES = ("id", "code", "name")

_LONGEST = 80


def describe_polygon(table: Any, index: int, what: str) -> str:
    """Text that names a polygon of a public file: its number, and its id where it has one."""
    columns = {str(label).lower(): label for label in getattr(table, "columns", ())}
    label = next((columns[name] for name in _NAMES if name in columns), None)
    text = f"polygon {index + 1} of the {what}"
    if label is None:
        return text
    return f"{text} ({label} {str(table[label].iloc[index])[:_LONGEST]!r})"


def repair_polygons(table: Any, what: str) -> Any:
    """Make invalid polygons valid; the others stay as they are.

    ``shapely.make_valid(method="structure")`` [1]_: rings are made valid, shells are joined and
    holes are taken out. So parts that overlap count once, and both sides of an outline that crosses
    itself are inside. Lines and points that are left over are dropped.

    References
    ----------
    .. [1] GEOS, ``GeometryFixer``; https://libgeos.org
    """
    import shapely

    shapes = np.array(table.geometry.array, dtype=object)
    check_kinds(shapes)
    check_sizes(shapes)
    invalid = np.flatnonzero(~shapely.is_valid(shapes))
    if not len(invalid):
        return table
    shapes[invalid] = _make_valid(shapes[invalid])
    lost = invalid[shapely.area(shapes[invalid]) == 0]
    if len(lost):
        raise ParameterError(
            f"{describe_polygon(table, int(lost[0]), what)} has no area when it is repaired; "
            "remove it"
        )
    if hasattr(table, "set_geometry"):
        return table.set_geometry(shapes, crs=table.crs)
    return type(table)(shapes, index=table.index, crs=table.crs)


def _make_valid(shapes: NDArray[np.object_]) -> NDArray[np.object_]:
    """Valid polygons with the area of invalid ones."""
    import shapely

    valid: NDArray[np.object_] = shapely.make_valid(
        shapes, method="structure", keep_collapsed=False
    )
    return valid
