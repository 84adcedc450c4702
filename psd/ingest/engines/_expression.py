"""One expression in Ibis that an engine counts cells with, where the rows lie. Private side.

It says in SQL what `psd.ingest.tally_builder`, `psd.space.domain`, `psd.ingest.row_hash` and
`psd.ingest.contribution_bounding` say in NumPy, and its counts are the same, cell by cell:
comparisons of doubles against the published edges, integers of 64 bits, and MD5.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd.ingest.engines._parse import (
    bare,
    days_of,
    double,
    flag,
    identifier,
    is_bad,
    is_moment,
    micros_of,
    moment,
    number,
    parts,
    truth,
)
from psd.ingest.row_hash import PRIME, SALTS, TIME_OFFSET
from psd.ingest.user_ids import INVISIBLE

if TYPE_CHECKING:
    from psd.privacy.unit import PrivacyUnit
    from psd.space.domain import Domain

__all__ = ["counted", "flags", "parsed", "sql_of"]

# What sources leave out around a field.
_AROUND = {"x": " \t", "y": " \t", "user": INVISIBLE, "time": " \t\n\v\f\r"}

_SALT_DIGITS = 7


def parsed(table: Any, domain: Domain) -> Any:
    """Rows with what is asked of them: place, user, moment, and what speaks against them.

    Parameters
    ----------
    table : ibis.Table
        Columns x, y, and user and time where they are used.
    domain : Domain
        Public.
    """
    rows = table.select(**{name: bare(_text(table, name), _AROUND[name]) for name in table.columns})
    read: dict[str, Any] = {}
    for name in ("x", "y"):
        read |= {name: number(rows[name]), f"text_{name}": rows[name]}
    if "user" in table.columns:
        read["user"], read["strange_user"] = identifier(rows.user)
    if "time" in table.columns:
        read["whole"], read["bad_time"], read["aware_time"] = moment(rows.time.lower())
    rows = rows.select(**read)
    bad = {f"bad_{name}": is_bad(rows[f"text_{name}"], rows[name]) for name in ("x", "y")}
    rows = rows.mutate(inside=_inside(rows, domain), **bad).drop("text_x", "text_y")
    return _timed(rows) if "time" in table.columns else rows


def _text(table: Any, name: str) -> Any:
    """Column as it is compared: ids and moments as text."""
    return table[name] if name in ("x", "y") else table[name].cast("string")


def flags(rows: Any, domain: Domain) -> Any:
    """One row about all: counts for the private report, and 0 or more of what is refused."""
    far = {"x": 180.0, "y": 90.0} if domain.geographic else {}
    found = {
        "read": rows.count(),
        "missing": _number_of(rows.x.isnull() | rows.y.isnull()),
        "inside": _number_of(rows.inside),
    }
    refused = {name: rows[name] for name in rows.columns if name.startswith(("bad_", "aware_"))}
    refused |= {f"far_{name}": rows[name].abs() > limit for name, limit in far.items()}
    if "user" in rows.columns:
        refused["no_user"] = rows.inside & rows.user.isnull()
        refused["strange_user"] = rows.inside & rows.strange_user
    if "moment" in rows.columns:
        refused["no_time"] = rows.inside & rows.moment.isnull()
    found |= {name: flag(condition).max().fill_null(0) for name, condition in refused.items()}
    return rows.aggregate(**found)


def counted(
    rows: Any, domain: Domain, *, unit: PrivacyUnit, key: bytes, step: tuple[int, int] = (1, 1)
) -> Any:
    """Occupied cells: code, number of rows, and their weight.

    Parameters
    ----------
    rows : ibis.Table
        As `parsed` makes them.
    domain, unit, key, step
        As `psd.ingest.tally_builder.tally_batches` takes them. Public but for the key.
    """
    rows = rows.filter(rows.inside)
    rows = _placed(rows, domain)
    if unit.has_user:
        rows = rows.filter(rows.user.notnull())
        rows = _weighed(rows, unit) if unit.weight else _bounded(rows, unit, key)
    columns = -(-domain.lattice[0] // step[0])
    code = rows.row // step[1] * columns + rows.column // step[0]
    rows = rows.mutate(code=code.cast("int64"))
    weight = rows.weight.sum() if unit.weight else rows.count()
    return rows.group_by("code").aggregate(number=rows.count(), weight=weight)


def sql_of(query: Any, dialect: str) -> str:
    """SQL of an expression, step by step: merged, steps would stand in it many times over.

    Parameters
    ----------
    query : ibis.Table
    dialect : str
        Engine, as Ibis names it.
    """
    import ibis

    getattr(ibis, dialect)  # loads the engine's own options, which compiling reads
    merged, ibis.options.sql.fuse_selects = ibis.options.sql.fuse_selects, False
    try:
        return str(ibis.to_sql(query, dialect=dialect))
    finally:
        ibis.options.sql.fuse_selects = merged


def _number_of(condition: Any) -> Any:
    """Rows that a condition holds for."""
    return flag(condition).sum().fill_null(0)


def _inside(rows: Any, domain: Domain) -> Any:
    """Whether a row is in the bounds, edges included."""
    west, south, east, north = map(double, domain.bounds)
    within = (rows.x >= west) & (rows.x <= east) & (rows.y >= south) & (rows.y <= north)
    return truth(within)


def _timed(rows: Any) -> Any:
    """Moments as microseconds and as days."""
    rows = rows.mutate(**parts(rows.whole))
    good = truth(is_moment(rows)) | rows.whole.isnull()
    rows = rows.mutate(days=days_of(rows), bad_time=rows.bad_time | ~good)
    return rows.mutate(moment=micros_of(rows))


def _placed(rows: Any, domain: Domain) -> Any:
    """Cells of the full lattice: a guess, put right against the edges on both sides."""
    axes = {"column": ("x", 0), "row": ("y", 1)}
    rows = rows.mutate(
        **{cell: _guess(rows[name], domain, axis) for cell, (name, axis) in axes.items()}
    )
    rows = rows.mutate(
        **{
            cell: rows[cell] - flag(rows[name] < _edge(rows[cell], domain, axis))
            for cell, (name, axis) in axes.items()
        }
    )
    rows = rows.mutate(
        **{
            cell: rows[cell] + flag(rows[name] >= _edge(rows[cell] + 1, domain, axis))
            for cell, (name, axis) in axes.items()
        }
    )
    last = {cell: domain.lattice[axis] - 1 for cell, (_, axis) in axes.items()}
    return rows.mutate(**{cell: rows[cell].clip(upper=most) for cell, most in last.items()})


def _guess(values: Any, domain: Domain, axis: int) -> Any:
    """Cell by one division, which may be off by one."""
    low, high, cells = domain.bounds[axis], domain.bounds[axis + 2], domain.lattice[axis]
    scaled = (values - double(low)) * double(cells / (high - low))
    return scaled.clip(double(0), double(cells - 1)).floor().cast("int64")


def _edge(lines: Any, domain: Domain, axis: int) -> Any:
    """Coordinate of a lattice line."""
    import ibis

    low, high, cells = domain.bounds[axis], domain.bounds[axis + 2], domain.lattice[axis]
    between = double(low) + lines.cast("float64") * double((high - low) / cells)
    return ibis.ifelse(lines == cells, double(high), between)


def _weighed(rows: Any, unit: PrivacyUnit) -> Any:
    """Rows with their share of their user's weight; a share of nothing is no row."""
    rows = rows.mutate(of_user=rows.count().over(group_by="user"))
    rows = rows.mutate(weight=(unit.weight // rows.of_user).cast("int64"))
    return rows.filter(rows.weight > 0)


def _bounded(rows: Any, unit: PrivacyUnit, key: bytes) -> Any:
    """The k rows of each unit with the smallest marks."""
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
    rows = _marked(rows)
    order = ["mark", "column", "row", "moment", "occurrence"]
    rows = rows.mutate(rank=ibis.row_number().over(group_by=["user", "days"], order_by=order))
    return rows.filter(rows["rank"] < unit.max_contributions)


def _salt(digest: Any, number: int) -> Any:
    """Number of a user's own: seven hexadecimal digits, the last of eight left out."""
    import ibis

    total = ibis.literal(0, "int64")
    for place in range(8 * number, 8 * number + _SALT_DIGITS):
        # Some engines have narrower codes, and would multiply narrowly.
        code = digest.substr(place, 1).ascii_str().cast("int64")
        total = total * 16 + code - ibis.ifelse(code < ord("a"), ord("0"), ord("a") - 10)
    return total


def _marked(rows: Any) -> Any:
    """Marks of rows as in `psd.ingest.row_hash.row_hashes`."""
    shifted = rows.moment + TIME_OFFSET
    mark = rows.salt0
    for value in (rows.column, rows.row, shifted >> 31, shifted & PRIME, rows.occurrence):
        mark = (mark * rows.salt1 + value) % PRIME
    rows = rows.mutate(once=mark)
    rows = rows.mutate(squared=rows.once * rows.once % PRIME)
    rows = rows.mutate(fourth=rows.squared * rows.squared % PRIME)
    return rows.mutate(mark=(rows.fourth * rows.once % PRIME + rows.salt2) % PRIME)
