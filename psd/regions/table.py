"""Tables of regions in a release: a row for each region of each level."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from psd._util.arrays import from_arrow
from psd.errors import ReleaseFormatError
from psd.regions.hierarchy import MAX_NODES, RegionLevel
from psd.regions.ids import check_ids
from psd.space.domain import Domain
from psd.space.region_checks import check_kinds, check_sizes

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["read_levels", "write_levels"]

# Limits of what a file may fill memory with: 2^24 vertices of 16 bytes.
_MAX_GEOMETRY = 2**28


def write_levels(levels: tuple[RegionLevel, ...], polygons: NDArray[np.object_]) -> pa.Table:
    """Write levels, top first, and polygons of the lowest one, (n,)."""
    import pyarrow as pa
    import shapely

    level = np.repeat(np.arange(len(levels)), [len(each) for each in levels]).astype(np.int16)
    wkb = [None] * (len(level) - len(polygons))
    wkb += shapely.to_wkb(shapely.force_2d(polygons), byte_order=1).tolist()
    return pa.table(
        {
            "level": level,
            "id": pa.array([text for each in levels for text in each.ids], pa.string()),
            "parent": np.concatenate([each.parent for each in levels]).astype(np.int32),
            "geometry": pa.array(wkb, pa.binary()),
        }
    )


def read_levels(
    names: tuple[str, ...], table: pa.Table, domain: Domain
) -> tuple[tuple[RegionLevel, ...], NDArray[np.object_]]:
    """Read levels and polygons, which are untrusted."""
    import pyarrow as pa

    types = {"level": pa.int16(), "id": pa.string(), "parent": pa.int32(), "geometry": pa.binary()}
    if dict(zip(table.schema.names, table.schema.types, strict=True)) != types:
        raise ReleaseFormatError("regions must have columns level, id, parent and geometry")
    if not 0 < table.num_rows <= MAX_NODES or table.column("geometry").nbytes > _MAX_GEOMETRY:
        raise ReleaseFormatError("regions are too many, or none")
    if any(table.column(name).null_count for name in ("level", "id", "parent")):
        raise ReleaseFormatError("regions must have levels, ids and parents")
    level, parent = (from_arrow(table.column(name)) for name in ("level", "parent"))
    if not np.isin(np.diff(level, prepend=0, append=len(names) - 1), (0, 1)).all():
        raise ReleaseFormatError("levels of regions must be in their order")
    ids, sizes = table.column("id").to_pylist(), np.bincount(level, minlength=len(names))
    ends = np.cumsum(sizes)
    levels = []
    for number, name in enumerate(names):
        rows = slice(int(ends[number] - sizes[number]), int(ends[number]))
        check_ids(ids[rows], name)
        levels.append(RegionLevel(name=name, ids=tuple(ids[rows]), parent=parent[rows].copy()))
    lowest = table.column("geometry").slice(len(ids) - sizes[-1])
    return tuple(levels), _read_polygons(lowest.to_pylist(), domain)


def _read_polygons(wkb: list[bytes | None], domain: Domain) -> NDArray[np.object_]:
    """Read polygons, after their sizes are checked."""
    import shapely

    try:
        with np.errstate(all="ignore"):  # vertices that are not finite are refused below
            polygons = np.asarray(shapely.from_wkb(np.array(wkb, dtype=object)), dtype=object)
    except (shapely.errors.ShapelyError, TypeError, ValueError):
        raise ReleaseFormatError("a region has no readable geometry") from None
    check_kinds(polygons)
    check_sizes(polygons)
    if not shapely.is_valid(polygons).all():
        raise ReleaseFormatError("a region is not a valid polygon")
    if not shapely.intersects(polygons, shapely.box(*domain.bounds)).all():
        raise ReleaseFormatError("a region lies outside the bounds")
    return polygons
