"""Tables and queries of PostGIS, streamed in one read-only transaction. Private side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

from psd._util.postgres import (
    connect,
    display_name,
    is_address,
    postgis_schema,
    quote_identifier,
    quote_table,
)
from psd.errors import InputDataError, ParameterError
from psd.ingest.sources._arrow import check_names, layout

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain

__all__ = ["PostGIS", "accepts", "batches"]

_GEOMETRIES = ("geometry", "geography")

_NO_IDS = ("float4", "float8", "bool", *_GEOMETRIES)
"""Types whose texts are no ids."""

_SRID = "psd_srid_of_row"


@dataclass(frozen=True, slots=True, repr=False)
class PostGIS:
    """Rows of a table or of a query in a PostgreSQL database with PostGIS.

    Parameters
    ----------
    url : str
        Address, ``postgresql://user@host:5432/database``. A password is better kept in
        ``PGPASSWORD`` or ``~/.pgpass``, which the client reads by itself.
    table : str, optional
        Name of a table or view, with its schema before a dot; letter by letter.
    query : str, optional
        One SELECT in its place.

    Raises
    ------
    ParameterError
        If not exactly one of table and query is given, or the address is of something else.

    Examples
    --------
    >>> PostGIS("postgresql://ann:secret@db.example.org/city", table="public.visits")
    <PostGIS: table public.visits of database city on db.example.org>
    """

    url: str
    _: KW_ONLY
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        """Check without a connection."""
        if not is_address(self.url):
            raise ParameterError("the address of a database begins with postgresql://")
        if (self.table is None) == (self.query is None):
            raise ParameterError(f"{display_name(self.url)} needs either table= or query=")
        if self.table is not None:
            quote_table(self.table)

    def __repr__(self) -> str:
        return f"<PostGIS: {self.what} of {display_name(self.url)}>"

    @property
    def what(self) -> str:
        """What messages call it."""
        return "the query" if self.table is None else f"table {self.table}"

    @property
    def rows(self) -> str:
        """What stands after FROM."""
        if self.table is not None:
            return f"{quote_table(self.table)} AS source"
        return f"(\n{(self.query or '').strip().removesuffix(';')}\n) AS source"


USES: tuple[str, ...] = ("geometry",)
"""Fields of `psd.ingest.sources.Columns` that a file or table of this kind has a use for."""


def accepts(item: Any) -> bool:
    """Whether the item is a table, a query, or the address of a database."""
    return isinstance(item, PostGIS) or is_address(item)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of tables and queries, each in one snapshot.

    Raises
    ------
    InputDataError
        If the database cannot be reached, or the rows cannot be read as asked.
    DomainError
        If the geometries have no SRID.
    MissingExtraError
        If the driver is not installed.
    """
    if len(set(items)) < len(items):
        raise InputDataError("a table is given twice; its rows would count double")
    for item in items:
        source = item if isinstance(item, PostGIS) else PostGIS(item)
        with connect(source.url, source.what, InputDataError) as cursor:
            # What others write meanwhile is not seen, and nothing can be written here.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield from _rows(cursor, source, columns, domain)


def _rows(cursor: Any, source: PostGIS, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Rows of one table or query."""
    what = f"{source.what} of {display_name(source.url)}"
    schema = _stream(cursor, f"SELECT * FROM {source.rows} LIMIT 0").schema
    found: dict[str, Any] = dict.fromkeys(_geometries(schema, columns))
    extra = []
    if len(found) == 1:  # of several the layout asks for one
        (name,) = found
        srid = _srid(cursor, source, name)
        postgis = postgis_schema(cursor)
        found[name] = domain.crs if srid is None else _crs(cursor, postgis, srid)
        extra = [f"{postgis}.st_srid({quote_identifier(name)}::{postgis}.geometry) AS {_SRID}"]
    wanted = _wanted(columns, [*found])
    check_names(what, schema.names, wanted)
    selected = [_expression(schema.field(name), columns) for name in wanted]
    stream = _stream(cursor, f"SELECT {', '.join(selected + extra)} FROM {source.rows}")
    chosen = layout(what, stream.schema, columns, domain, found)
    yield from chosen.batches(_records(stream, what))


def _stream(cursor: Any, query: str) -> Any:
    """Record batches of a query, as they come from the server."""
    cursor.execute(query)
    return cursor.fetch_record_batch()


def _geometries(schema: Any, columns: Columns) -> list[str]:
    """Columns of geometries; the one that is asked for alone, if it is one."""
    found = [field.name for field in schema if _type_name(field) in _GEOMETRIES]
    return [name for name in found if name == columns.geometry] or found


def _type_name(field: Any) -> str:
    """Type of a column in PostgreSQL."""
    return str((field.metadata or {}).get(b"POSTGRESQL:type", b"").decode())


def _srid(cursor: Any, source: PostGIS, name: str) -> int | None:
    """SRID of the first geometry; all others have to have the same. None if there is none."""
    import shapely

    column = quote_identifier(name)
    stream = _stream(
        cursor, f"SELECT {column} FROM {source.rows} WHERE {column} IS NOT NULL LIMIT 1"
    )
    first = [shape for record in stream for shape in record.column(0).storage.to_pylist()]
    return int(shapely.get_srid(shapely.from_wkb(first[0]))) if first else None


def _crs(cursor: Any, postgis: str | None, srid: int) -> str | None:
    """CRS that the database gives to an SRID; None if it gives none."""
    cursor.execute(
        f"SELECT auth_name || ':' || auth_srid, srtext FROM {postgis}.spatial_ref_sys "
        f"WHERE srid = {srid}"
    )
    row = cursor.fetchone()
    if row is None:
        return None
    named, text = row
    return str(named if named is not None and named.startswith(("EPSG:", "ESRI:")) else text)


def _wanted(columns: Columns, found: list[str]) -> list[str]:
    """Columns to select."""
    geometry = columns.geometry or (found[0] if found else None)
    places = [columns.x, columns.y] if geometry is None else [geometry]
    return [*places, *(name for name in (columns.user, columns.time) if name is not None)]


def _expression(field: Any, columns: Columns) -> str:
    """A column in SQL, of a type that Arrow has; texts of ids hold all digits."""
    column, kind = quote_identifier(field.name), _type_name(field)
    if field.name == columns.user and _has_exact_text(field):
        return f"{column}::text AS {column}"
    if field.name in (columns.x, columns.y) and kind == "numeric":
        return f"{column}::float8 AS {column}"
    return column


def _has_exact_text(field: Any) -> bool:
    """Whether values of a column have one text each; of numerics, those without decimals."""
    kind = _type_name(field)
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", b"-1"))
    is_whole = modifier >= 0 and (modifier - 4) & 0x7FF == 0
    return is_whole if kind == "numeric" else kind not in _NO_IDS


def _records(stream: Any, what: str) -> Iterator[Any]:
    """Record batches whose geometries are all in the CRS of the first."""
    import pyarrow as pa
    import pyarrow.compute as pc

    seen: set[int] = set()
    try:
        for record in stream:
            if _SRID in record.schema.names:
                seen |= set(pc.unique(record.column(_SRID)).drop_null().to_pylist())
            if len(seen) > 1:
                break
            yield record
    except (pa.ArrowException, OSError):
        fault = "ended in an error while it was read; does the query run to its end?"
    else:
        fault = "has geometries of several SRIDs; transform them to one" if len(seen) > 1 else ""
    if fault:
        raise InputDataError(f"{what} {fault}")
