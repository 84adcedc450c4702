"""An Ibis expression with which an engine counts cells. Private side.

It computes in SQL what `psd.ingest.tally_builder`, `psd.space.domain`, `psd.ingest.row_hash` and
`psd.ingest.contribution_bounding` compute in NumPy, with the same counts, cell by cell: comparisons
of doubles with the published edges, 64-bit integers, and MD5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd.apps.spark.parse import (
    as_integer,
    count_days,
    count_microseconds,
    is_bad,
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
from psd.ingest.coordinate_text import srid_of
from psd.ingest.row_hash import PRIME, SALTS, TIME_OFFSET
from psd.ingest.user_ids import INVISIBLE

if TYPE_CHECKING:
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain

__all__ = ["count_cells", "count_faults", "parse_rows", "to_sql"]

# Characters that sources strip from a field.
_STRIPPED = {"x": " \t", "y": " \t", "user": INVISIBLE, "time": " \t\n\v\f\r"}

_SALT_DIGITS = 7


def parse_rows(table: Any, domain: Domain, *, decimal: str = ".", is_wkt: bool = False) -> Any:
    """Parse records: point, user, time, and the reasons to refuse a record.

    Parameters
    ----------
    table : ibis.Table
        Columns x and y, and user and time if they are used.
    domain : Domain
        Public.
    decimal : {".", ","}
        Decimal sign of coordinates in text. Public.
    is_wkt : bool
        Whether x and y are both the column of points in WKT. Public.
    """
    if is_wkt:
        srid = srid_of(domain.crs, None)
        table = table.mutate(x=point_part(table.x, 1, srid), y=point_part(table.y, 2, srid))
    elif decimal == ",":
        table = table.mutate(x=with_point(table.x), y=with_point(table.y))
    rows = table.select(
        **{name: strip_characters(_text(table, name), _STRIPPED[name]) for name in table.columns}
    )
    read: dict[str, Any] = {}
    for name in ("x", "y"):
        read |= {name: parse_number(rows[name]), f"text_{name}": rows[name]}
    if "user" in table.columns:
        read["user"], read["strange_user"] = parse_id(rows.user)
    if "time" in table.columns:
        read["moment_text"], read["bad_time"], read["aware_time"] = parse_moment(rows.time.lower())
    rows = rows.select(**read)
    bad = {f"bad_{name}": is_bad(rows[f"text_{name}"], rows[name]) for name in ("x", "y")}
    rows = rows.mutate(inside=_inside(rows, domain), **bad).drop("text_x", "text_y")
    return _add_times(rows) if "time" in table.columns else rows


def _text(table: Any, name: str) -> Any:
    """Column to parse: ids and times as text."""
    return table[name] if name in ("x", "y") else table[name].cast("string")


def count_faults(rows: Any) -> Any:
    """Aggregate to one row: counts of the private report, and a flag for each reason to refuse."""
    counts = {
        "read": rows.count(),
        "missing": _count_if(rows.x.isnull() | rows.y.isnull()),
        "inside": _count_if(rows.inside),
    }
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
    rows: Any, domain: Domain, *, unit: PrivacyUnit, key: bytes, step: tuple[int, int] = (1, 1)
) -> Any:
    """Count occupied cells: code, number of records, and their weight.

    With a column ``region``, records in none are left out, and the others are counted by cell and
    region; the code of a region's cells follow those of the region before.

    Parameters
    ----------
    rows : ibis.Table
        From `parse_rows`, and with regions from `psd.apps.spark.regions.add_regions`.
    domain, unit, key, step
        As in `psd.ingest.tally_builder.tally_batches`. Public, except the key.
    """
    rows = rows.filter(rows.inside)
    rows = _add_cells(rows, domain)
    width, by_region = domain.lattice[0], "region" in rows.columns
    if by_region:  # as in `psd.ingest.wide_columns`
        rows = rows.filter(rows.region >= 0)
        rows = rows.mutate(column=rows.region * width + rows.column)
    if unit.has_user:
        rows = rows.filter(rows.user.notnull())
        rows = _add_weights(rows, unit) if unit.weight else _keep_smallest(rows, unit, key)
    columns, lines = (-(-size // part) for size, part in zip(domain.lattice, step, strict=True))
    code = rows.row // step[1] * columns + rows.column % width // step[0]
    if by_region:
        code += rows.column // width * (columns * lines)
    rows = rows.mutate(code=code.cast("int64"))
    weight = rows.weight.sum() if unit.weight else rows.count()
    return rows.group_by("code").aggregate(number=rows.count(), weight=weight)


def to_sql(query: Any, dialect: str) -> str:
    """Write an expression as SQL, one query per step; merging would repeat each step many times.

    Parameters
    ----------
    query : ibis.Table
    dialect : str
        Name of the engine in Ibis.
    """
    import ibis

    getattr(ibis, dialect)  # loads the engine's own options, which compiling reads
    merged, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
    try:
        return str(ibis.to_sql(query, dialect=dialect))
    finally:
        ibis.options.sql.fuse_selects = merged


def _count_if(condition: Any) -> Any:
    """Count records that satisfy a condition."""
    return as_integer(condition).sum().fill_null(0)


def _inside(rows: Any, domain: Domain) -> Any:
    """Whether a record is in the bounds, edges included."""
    west, south, east, north = map(literal_double, domain.bounds)
    within = (rows.x >= west) & (rows.x <= east) & (rows.y >= south) & (rows.y <= north)
    return is_true(within)


def _add_times(rows: Any) -> Any:
    """Add times as microseconds and as days."""
    rows = rows.mutate(**split_moment(rows.moment_text))
    good = is_true(is_valid_moment(rows)) | rows.moment_text.isnull()
    rows = rows.mutate(days=count_days(rows), bad_time=rows.bad_time | ~good)
    return rows.mutate(moment=count_microseconds(rows))


def _add_cells(rows: Any, domain: Domain) -> Any:
    """Add cells of the full lattice: a guess, corrected by the edges on both sides."""
    axes = {"column": ("x", 0), "row": ("y", 1)}
    rows = rows.mutate(
        **{cell: _guess(rows[name], domain, axis) for cell, (name, axis) in axes.items()}
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
    last = {cell: domain.lattice[axis] - 1 for cell, (_, axis) in axes.items()}
    return rows.mutate(**{cell: rows[cell].clip(0, limit) for cell, limit in last.items()})


def _guess(values: Any, domain: Domain, axis: int) -> Any:
    """Cell by a division, which may be off by one."""
    last = literal_double(domain.lattice[axis] - 1)
    scaled = domain.axes[axis].guess_cell(values, literal_double)
    return scaled.clip(literal_double(0), last).floor().cast("int64")


def _edge(lines: Any, domain: Domain, axis: int) -> Any:
    """Coordinate of a lattice line."""
    import ibis

    lattice_axis = domain.axes[axis]
    inner = lattice_axis.inner_line(lines.cast("float64"), literal_double)
    return ibis.ifelse(lines == lattice_axis.cells, literal_double(lattice_axis.high), inner)


def _add_weights(rows: Any, unit: PrivacyUnit) -> Any:
    """Add to each record its share of the weight of its user; drop records of weight 0."""
    rows = rows.mutate(of_user=rows.count().over(group_by="user"))
    rows = rows.mutate(weight=(unit.weight // rows.of_user).cast("int64"))
    return rows.filter(rows.weight > 0)


def _keep_smallest(rows: Any, unit: PrivacyUnit, key: bytes) -> Any:
    """Keep the k records of each unit with the smallest hashes."""
    import ibis

    moments = rows.moment if "moment" in rows.columns else ibis.literal(0, "int64")
    days = rows.days if unit.kind == "user-day" else ibis.literal(0, "int64")
    digest = (ibis.literal(f"{key.hex()}|") + rows.user).hexdigest("md5")
    rows = rows.select("user", "column", "row", moment=moments, days=days, digest=digest)
    equal = ["user", "column", "row", "moment"]
    rows = rows.mutate(
        occurrence=ibis.row_number().over(group_by=equal, order_by="moment"),
        **{f"salt{n}": _salt(rows.digest, n) for n in range(SALTS)},
    )
    rows = _add_hashes(rows)
    order = ["row_hash", "column", "row", "moment", "occurrence"]
    rows = rows.mutate(rank=ibis.row_number().over(group_by=["user", "days"], order_by=order))
    return rows.filter(rows["rank"] < unit.max_contributions)


def _salt(digest: Any, parse_number: int) -> Any:
    """Salt of a user: seven hexadecimal digits of eight."""
    import ibis

    total = ibis.literal(0, "int64")
    for position in range(8 * parse_number, 8 * parse_number + _SALT_DIGITS):
        # Some engines have narrower codes, and would overflow.
        code = digest.substr(position, 1).ascii_str().cast("int64")
        total = total * 16 + code - ibis.ifelse(code < ord("a"), ord("0"), ord("a") - 10)
    return total


def _add_hashes(rows: Any) -> Any:
    """Add hashes as in `psd.ingest.row_hash.row_hashes`."""
    shifted = rows.moment + TIME_OFFSET
    polynomial = rows.salt0
    for value in (rows.column, rows.row, shifted >> 31, shifted & PRIME, rows.occurrence):
        polynomial = (polynomial * rows.salt1 + value) % PRIME
    rows = rows.mutate(once=polynomial)
    rows = rows.mutate(squared=rows.once * rows.once % PRIME)
    rows = rows.mutate(fourth=rows.squared * rows.squared % PRIME)
    return rows.mutate(row_hash=(rows.fourth * rows.once % PRIME + rows.salt2) % PRIME)
