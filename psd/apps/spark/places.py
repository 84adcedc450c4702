"""What coordinates decide about records in an engine, exactly as in this process. Private side.

SQL knows neither PROJ nor the rule of outlines. So coordinates that only this process can decide
about are brought to it, each pair once, and what it finds is joined to their records. With a raster
these are few: most of its cells decide for all of their points, and are joined by their code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from psd.apps.spark.expression import is_inside
from psd.apps.spark.parse import as_integer, is_true, literal_double
from psd.errors import InternalError
from psd.ingest.strata import HasCertainCells

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psd._util.arrays import Floats
    from psd.ingest.points import Projection
    from psd.ingest.strata import Area, Strata
    from psd.space.certain_cells import CertainCells
    from psd.space.domain import Domain

__all__ = ["Run", "Share", "count_placed", "place"]

Run = Callable[[Any], Any]
"""Runs an expression and gives an Arrow table."""

Share = Callable[[str, Any], Any]
"""Brings a table of Arrow to the engine under a name, and gives its expression of Ibis."""


def place(
    rows: Any,
    domain: Domain,
    run: Run,
    share: Share,
    *,
    project: Projection | None,
    area: Area | None,
    strata: Strata | None,
) -> Any:
    """Transform coordinates; keep the records in the bounds, the area and a stratum.

    Guarantees
    ----------
    - Coordinates, and what is kept, are those of `psd.ingest.tally_builder` for the same records:
      cells that are joined are certain by public input, and all other coordinates are given to
      ``project``, ``area`` and ``strata``, as the same doubles.

    Parameters
    ----------
    rows : ibis.Table
        From `psd.apps.spark.expression.parse_rows`.
    run, share : callable
        As in `psd.apps.spark.counts.tally_table`.
    project : callable, optional
        Transforms coordinates of the input to the CRS of the domain.
    domain, area, strata
        As in `psd.ingest.tally_builder.tally_batches`. Public.

    Returns
    -------
    ibis.Table
        Columns ``inside``, ``undecided``, and with strata ``stratum``. A record about which nothing
        was decided was not there before: the input changed.
    """
    import ibis

    rows = rows.mutate(undecided=ibis.literal(False))
    if project is not None:
        rows = _transform(rows, project, run, share)
        rows = rows.mutate(inside=is_inside(rows, domain))
    rows = rows.filter(rows.inside | rows.undecided)
    if area is not None:
        rows = _assign(rows, "part", _of_area(area), _certain_cells(area), run, share)
    if strata is not None:
        rows = _assign(rows, "stratum", strata.assign, _certain_cells(strata), run, share)
    return rows


def count_placed(rows: Any) -> Any:
    """Aggregate to one row: all records, those counted, and those that were not decided about."""
    return rows.aggregate(
        rows=rows.count(),
        inside=as_integer(rows.inside).sum().fill_null(0),
        undecided=as_integer(rows.undecided).sum().fill_null(0),
    )


def _transform(rows: Any, project: Projection, run: Run, share: Share) -> Any:
    """Replace the coordinates of all records by those in the CRS of the domain."""
    has_place = rows.x.notnull() & rows.y.notnull()
    x, y = _brought(run, rows.filter(has_place))
    to_x, to_y = project((x, y))
    table = pa.table({"from_x": x, "from_y": y, "to_x": to_x, "to_y": to_y})
    places = share("transformed", table)
    rows = rows.left_join(places, [rows.x == places.from_x, rows.y == places.from_y])
    lost = rows.x.notnull() & rows.y.notnull() & rows.to_x.isnull()
    rows = rows.mutate(undecided=rows.undecided | lost, x=rows.to_x, y=rows.to_y)
    return rows.drop("from_x", "from_y", "to_x", "to_y")


def _assign(
    rows: Any,
    name: str,
    assign: Callable[[Floats, Floats], NDArray[Any]],
    cells: CertainCells | None,
    run: Run,
    share: Share,
) -> Any:
    """Add a column of the part in which each record lies; records in none are not inside."""
    rows = _add_certain(rows, name, cells, share)
    x, y = _brought(run, rows.filter(rows.inside & rows.certain.isnull()))
    found = assign(x, y).astype(np.int64)
    edges = share(f"{name}_edges", pa.table({"edge_x": x, "edge_y": y, "edge_part": found}))
    rows = rows.left_join(edges, [rows.x == edges.edge_x, rows.y == edges.edge_y])
    rows = rows.mutate(**{name: rows.certain.coalesce(rows.edge_part)})
    rows = rows.drop("certain", "edge_x", "edge_y", "edge_part")
    lost = rows.inside & rows[name].isnull()
    return rows.mutate(
        inside=rows.inside & is_true(rows[name] >= 0), undecided=rows.undecided | lost
    )


def _add_certain(rows: Any, name: str, cells: CertainCells | None, share: Share) -> Any:
    """Add the part of each record in a certain cell: ``certain``, NULL for other records."""
    import ibis

    if cells is None:
        return rows.mutate(certain=ibis.null("int64"))
    columns = pa.array(cells.cell), pa.array(cells.part)
    table = share(f"{name}_cells", pa.table(columns, ["raster_cell", "certain"]))
    column, row = (
        ((rows[axis] - literal_double(cells.origin[n])) * literal_double(cells.scale[n]))
        .clip(literal_double(0), literal_double(cells.side - 1))
        .floor()
        .cast("int64")
        for n, axis in enumerate(("x", "y"))
    )
    rows = rows.mutate(spot=row * cells.side + column)
    return rows.left_join(table, rows.spot == table.raster_cell).drop("spot", "raster_cell")


def _brought(run: Run, rows: Any) -> tuple[Floats, Floats]:
    """Different pairs of coordinates of records."""
    pairs = run(rows.select("x", "y").distinct())
    x, y = (pairs[name].to_numpy().astype(np.float64) for name in ("x", "y"))
    # What is found about a pair is joined to its records: of two equal pairs each would count.
    if len(np.unique(np.column_stack([x, y]).view(np.complex128))) < len(x):
        raise InternalError(
            "the engine gave a pair of coordinates twice; it would join records twice"
        )
    return x, y


def _certain_cells(parts: Area | Strata) -> CertainCells | None:
    """Cells of a raster that decide, if there is one."""
    return parts.certain_cells() if isinstance(parts, HasCertainCells) else None


def _of_area(area: Area) -> Callable[[Floats, Floats], NDArray[Any]]:
    """An area as a stratum: 0 for points inside, -1 for others."""
    return lambda x, y: np.where(area.contains(x, y), 0, -1)
