"""An Ibis expression with which an engine counts cells. Private side.

It computes in SQL what `psd.ingest.tally_builder`, `psd.space.domain`, `psd.ingest.row_hash` and
`psd.ingest.contribution_bounding` compute in NumPy, with the same counts: comparisons of doubles
with the published edges, 64-bit integers, and MD5. Coordinates that PROJ or the rule of outlines
decides about are brought to this process, each pair once; with a raster these are few.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from psd._util.arrays import ranges
from psd._util.wall_clock import WHITE_SPACE
from psd.apps.spark.parse import (
    as_integer,
    count_days,
    count_microseconds,
    is_bad,
    is_selected,
    is_true,
    is_valid_moment,
    literal_double,
    parse_id,
    parse_moment,
    parse_number,
    point_part,
    split_moment,
    strip_characters,
    with_point,
)
from psd.errors import InternalError
from psd.ingest.points import SPACES, srid_of
from psd.ingest.row_hash import PRIME, SALTS, TIME_OFFSET
from psd.ingest.sources import Columns
from psd.ingest.tally import HasCertainCells
from psd.ingest.user_ids import INVISIBLE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from psd._util.arrays import Floats
    from psd.ingest.points import Projection
    from psd.ingest.tally import Area, Strata
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain
    from psd.space.even_odd import CertainCells
    from psd.space.time_slices import TimeSlices


# Characters that sources strip from a field.
_STRIPPED = {"x": SPACES, "y": SPACES, "user": INVISIBLE, "time": WHITE_SPACE}

_SALT_DIGITS = 7


def parse_rows(table: Any, domain: Domain, columns: Columns | None = None) -> Any:
    """Parse records: point, user, time, whether in the bounds, and the reasons to refuse."""
    columns = Columns() if columns is None else columns
    # With points as text, x and y are both their column.
    if columns.wkt is not None:
        srid = srid_of(domain.crs, columns.input_crs)
        table = table.mutate(x=point_part(table.x, 1, srid), y=point_part(table.y, 2, srid))
    elif columns.decimal == ",":
        table = table.mutate(x=with_point(table.x), y=with_point(table.y))
    texts = {name: table[name] for name in table.columns if name in _STRIPPED}
    texts |= {name: texts[name].cast("string") for name in ("user", "time") if name in texts}
    rows = table.select(
        **{name: strip_characters(text, _STRIPPED[name]) for name, text in texts.items()},
        **({} if columns.where is None else {"match": is_selected(table, columns)}),
    )
    read: dict[str, Any] = {} if columns.where is None else {"match": rows.match}
    for name in ("x", "y"):
        read |= {name: parse_number(rows[name]), f"text_{name}": rows[name]}
    if "user" in table.columns:
        read["user"], read["strange_user"] = parse_id(rows.user)
    if "time" in table.columns:
        read["moment_text"], read["bad_time"], read["aware_time"] = parse_moment(rows.time.lower())
    rows = rows.select(**read)
    bad = {f"bad_{name}": is_bad(rows[f"text_{name}"], rows[name]) for name in ("x", "y")}
    rows = rows.mutate(inside=is_inside(rows, domain), **bad).drop("text_x", "text_y")
    if "time" not in table.columns:
        return rows
    # Times as microseconds and as days.
    rows = rows.mutate(**split_moment(rows.moment_text))
    good = is_true(is_valid_moment(rows, columns.time_zone)) | rows.moment_text.isnull()
    rows = rows.mutate(days=count_days(rows), bad_time=rows.bad_time | ~good)
    return rows.mutate(moment=count_microseconds(rows))


def is_inside(rows: Any, domain: Domain) -> Any:
    """Whether a record is selected, in the bounds, edges included, and in a slice if there are."""
    west, south, east, north = map(literal_double, domain.bounds)
    within = (rows.x >= west) & (rows.x <= east) & (rows.y >= south) & (rows.y <= north)
    if "match" in rows.columns:
        within &= rows.match
    return is_true(within & rows["slice"].notnull() if "slice" in rows.columns else within)


def add_slices(rows: Any, slices: TimeSlices, domain: Domain, share: Callable[..., Any]) -> Any:
    """Add the time slice of each record, NULL for none; records in none are not inside."""
    by_hour = slices.by == "hour"
    begin, end = (
        hours.astype(f"datetime64[{'h' if by_hour else 'D'}]").astype(np.int64)
        for hours in (slices.begins, slices.ends)
    )
    # A row for each hour or day of each slice, counted from 1970.
    numbers = np.repeat(np.arange(len(slices)), end - begin)
    table = share("slices", pa.table({"part": ranges(begin, end - begin), "slice": numbers}))
    rows = rows.mutate(part_of_time=rows.days * 24 + rows.hour % 24 if by_hour else rows.days)
    rows = rows.left_join(table, rows.part_of_time == table.part).drop("part", "part_of_time")
    return rows.mutate(inside=is_inside(rows, domain))


def count_faults(rows: Any) -> Any:
    """Aggregate to one row: counts of the private report, and a flag for each reason to refuse."""
    # Conditions may be NULL, which counts as false.
    missing = rows.x.isnull() | rows.y.isnull()
    counts = {"read": rows.count(), "inside": _count_if(rows.inside)}
    if "match" in rows.columns:
        missing &= rows.match
        counts["not_selected"] = _count_if(~rows.match)
    counts["missing"] = _count_if(missing)
    refused = {name: rows[name] for name in rows.columns if name.startswith(("bad_", "aware_"))}
    if "user" in rows.columns:
        refused["no_user"] = rows.user.isnull()
        refused["strange_user"] = rows.strange_user
    if "moment" in rows.columns:
        refused["no_time"] = rows.moment.isnull()
    counts |= {
        name: as_integer(condition).max().fill_null(0) for name, condition in refused.items()
    }
    return rows.aggregate(**counts)


def count_cells(
    rows: Any,
    domain: Domain,
    *,
    unit: PrivacyUnit,
    key: bytes,
    step: tuple[int, int] = (1, 1),
    strata: int = 1,
) -> Any:
    """Count occupied cells, with codes of `tally_of_codes`: number of records, and their weight."""
    rows = rows.filter(rows.inside)
    rows = _add_cells(rows, domain)
    width, by_slice = domain.lattice[0], "slice" in rows.columns
    if "stratum" in rows.columns:  # as in `psd.ingest.tally`
        rows = rows.mutate(column=rows.stratum * width + rows.column)
    if unit.has_user:
        rows = rows.filter(rows.user.notnull())
        if unit.weight:
            # Each record has its share of the weight of its user; those of weight 0 are dropped.
            rows = rows.mutate(of_user=rows.count().over(group_by="user"))
            rows = rows.mutate(weight=(unit.weight // rows.of_user).cast("int64"))
            rows = rows.filter(rows.weight > 0)
        else:
            rows = _keep_smallest(rows, unit, key)
    # The code of a block of cells: by slice, then by stratum, then row by row.
    columns, lines = (-(-size // part) for size, part in zip(domain.lattice, step, strict=True))
    code = rows.row // step[1] * columns + rows.column % width // step[0]
    code += rows.column // width * (columns * lines)
    if by_slice:
        code += rows["slice"] * (strata * columns * lines)
    rows = rows.mutate(code=code.cast("int64"))
    weight = rows.weight.sum() if unit.weight else rows.count()
    return rows.group_by("code").aggregate(number=rows.count(), weight=weight)


def to_sql(query: Any, dialect: str) -> str:
    """Write an expression as SQL, one query per step; merging would repeat each step many times."""
    import ibis

    getattr(ibis, dialect)  # loads the engine's own options, which compiling reads
    merged, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
    try:
        return str(ibis.to_sql(query, dialect=dialect))
    finally:
        ibis.options.sql.fuse_selects = merged


def _count_if(condition: Any) -> Any:
    return as_integer(condition).sum().fill_null(0)


def _add_cells(rows: Any, domain: Domain) -> Any:
    """Add cells of the full lattice: a guess, corrected by the edges on both sides."""
    axes = {"column": ("x", 0), "row": ("y", 1)}
    last = {cell: domain.lattice[axis] - 1 for cell, (_, axis) in axes.items()}
    # A division may be off by one cell.
    rows = rows.mutate(
        **{
            cell: domain.axes[axis]
            .guess_cell(rows[name], literal_double)
            .clip(literal_double(0), literal_double(last[cell]))
            .floor()
            .cast("int64")
            for cell, (name, axis) in axes.items()
        }
    )
    rows = rows.mutate(
        **{
            cell: rows[cell] - as_integer(rows[name] < _edge(rows[cell], domain, axis))
            for cell, (name, axis) in axes.items()
        }
    )
    rows = rows.mutate(
        **{
            cell: rows[cell] + as_integer(rows[name] >= _edge(rows[cell] + 1, domain, axis))
            for cell, (name, axis) in axes.items()
        }
    )
    return rows.mutate(**{cell: rows[cell].clip(0, limit) for cell, limit in last.items()})


def _edge(lines: Any, domain: Domain, axis: int) -> Any:
    """Coordinate of a lattice line."""
    import ibis

    lattice_axis = domain.axes[axis]
    inner = lattice_axis.inner_line(lines.cast("float64"), literal_double)
    return ibis.ifelse(lines == lattice_axis.cells, literal_double(lattice_axis.high), inner)


def _keep_smallest(rows: Any, unit: PrivacyUnit, key: bytes) -> Any:
    """Keep the k records of each unit with the smallest hashes, of the M of each of its slices."""
    import ibis

    none = ibis.literal(0, "int64")
    moments, days, slices = (
        rows[name] if name in rows.columns else none for name in ("moment", "days", "slice")
    )
    digest = (ibis.literal(f"{key.hex()}|") + rows.user).hexdigest("md5")
    of_time = {"moment": moments, "days": days, "slice": slices}
    rows = rows.select("user", "column", "row", digest=digest, **of_time)
    # Salts of a user: of the digest, seven hexadecimal digits of eight.
    salts = {}
    for n in range(SALTS):
        total = ibis.literal(0, "int64")
        for position in range(8 * n, 8 * n + _SALT_DIGITS):
            # Some engines have narrower codes, and would overflow.
            code = rows.digest.substr(position, 1).ascii_str().cast("int64")
            total = total * 16 + code - ibis.ifelse(code < ord("a"), ord("0"), ord("a") - 10)
        salts[f"salt{n}"] = total
    equal = ["user", "column", "row", "moment"]
    occurrence = ibis.row_number().over(group_by=equal, order_by="moment")
    rows = rows.mutate(occurrence=occurrence, **salts)
    # Hashes as in `psd.ingest.row_hash.row_hashes`: a polynomial of the record, and its 5th power.
    shifted = rows.moment + TIME_OFFSET
    polynomial = rows.salt0
    for value in (rows.column, rows.row, shifted >> 31, shifted & PRIME, rows.occurrence):
        polynomial = (polynomial * rows.salt1 + value) % PRIME
    rows = rows.mutate(once=polynomial)
    rows = rows.mutate(squared=rows.once * rows.once % PRIME)
    rows = rows.mutate(fourth=rows.squared * rows.squared % PRIME)
    rows = rows.mutate(row_hash=(rows.fourth * rows.once % PRIME + rows.salt2) % PRIME)
    order = ["row_hash", "column", "row", "moment", "occurrence"]
    by = {"user-day": ["user", "days"], "user-slice": ["user", "slice"]}.get(unit.kind, ["user"])
    limits = [(by, unit.max_contributions)]
    if unit.max_per_slice is not None:
        limits = [(["user", "slice"], unit.max_per_slice), *limits]
    for group, limit in limits:
        rows = rows.mutate(rank=ibis.row_number().over(group_by=group, order_by=order))
        rows = rows.filter(rows["rank"] < limit)
    return rows


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
    """Transform coordinates; keep and mark the records in the bounds, the area and a stratum.

    P1. Coordinates, and what is kept, are those of `psd.ingest.tally_builder` for the same records:
    cells that are joined are certain by public input, and all other coordinates are given to
    ``project``, ``area`` and ``strata``, as the same doubles.
    """
    import ibis

    # A record about which nothing was decided was not there before: the input changed.
    rows = rows.mutate(undecided=ibis.literal(False))
    if project is not None:
        rows = _transform(rows, project, run, share)
        rows = rows.mutate(inside=is_inside(rows, domain))
    rows = rows.filter(rows.inside | rows.undecided)
    if area is not None:
        # The area is as one stratum: 0 for points inside, -1 for others.
        def part_of(x: Floats, y: Floats) -> NDArray[Any]:
            return np.where(area.contains(x, y), 0, -1)

        rows = _assign(rows, "part", part_of, _certain_cells(area), run, share)
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
    # Each different pair of doubles is transformed once, in this process, and joined back.
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
    # A record joins by the cell of the raster that its point is in.
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
