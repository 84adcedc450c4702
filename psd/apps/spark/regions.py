"""Regions of records in an engine: a table of raster cells, joined by code. Private side.

Most cells of a raster have no outline in them, so their records are in one region, by a join. The
coordinates of the others, each once, are brought to this process, which decides about them as it
does about records that it reads itself. So an engine has the regions of the local path, exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from psd.apps.spark.parse import as_integer, literal_double

if TYPE_CHECKING:
    from psd.regions.hierarchy import RegionHierarchy

__all__ = ["Share", "add_regions", "count_in_regions"]

Share = Callable[[str, Any], Any]
"""Brings a table of Arrow to the engine under a name, and gives its expression of Ibis."""


def add_regions(
    rows: Any, regions: RegionHierarchy, run: Callable[[Any], Any], share: Share
) -> Any:
    """Add the lowest region of each record in the bounds: ``region``, -1 for none.

    Guarantees
    ----------
    - The region is that of `RegionHierarchy.assign` for the coordinates of the record. Cells that
      are joined are certain by public input; all other coordinates are given to `assign`.

    Parameters
    ----------
    rows : ibis.Table
        From `psd.apps.spark.expression.parse_rows`; the records in the bounds.
    regions : RegionHierarchy
        Public.
    run, share : callable
        As in `psd.apps.spark.counts.tally_table`.
    """
    rows = _add_certain(rows, regions, share)
    edge = run(rows.filter(rows.certain.isnull()).select("x", "y").distinct())
    x, y = (edge[name].to_numpy().astype(np.float64) for name in ("x", "y"))
    assigned = regions.assign(x, y).astype(np.int64)
    edges = share("edges", pa.table({"edge_x": x, "edge_y": y, "edge_region": assigned}))
    rows = rows.left_join(edges, [rows.x == edges.edge_x, rows.y == edges.edge_y])
    region = rows.certain.coalesce(rows.edge_region)
    return rows.mutate(region=region).drop("certain", "edge_x", "edge_y", "edge_region")


def count_in_regions(rows: Any) -> Any:
    """Aggregate to one row: records in a region, and those that were not decided about."""
    return rows.aggregate(
        inside=as_integer(rows.region >= 0).sum().fill_null(0),
        undecided=as_integer(rows.region.isnull()).sum().fill_null(0),
    )


def _add_certain(rows: Any, regions: RegionHierarchy, share: Share) -> Any:
    """Add the region of each record in a certain cell: ``certain``, NULL for other records."""
    import ibis

    cells = regions.certain_cells()
    if cells is None:
        return rows.mutate(certain=ibis.null("int64"))
    columns = pa.array(cells.cell), pa.array(cells.region)
    table = share("cells", pa.table(columns, ["raster_cell", "certain"]))
    column, row = (
        ((rows[name] - literal_double(cells.origin[axis])) * literal_double(cells.scale[axis]))
        .floor()
        .cast("int64")
        .clip(0, cells.side - 1)
        for axis, name in enumerate(("x", "y"))
    )
    rows = rows.mutate(spot=row * cells.side + column)
    return rows.left_join(table, rows.spot == table.raster_cell).drop("spot", "raster_cell")
