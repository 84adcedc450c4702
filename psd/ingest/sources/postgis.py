"""Tables and queries of PostGIS, streamed in one read-only transaction. Private side."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
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
from psd.ingest.columns import resolve_columns
from psd.ingest.sources._arrow import check_names, fault_class, find_columns

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


_GEOMETRIES = ("geometry", "geography")

_NO_IDS = ("float4", "float8", "bool", *_GEOMETRIES)
"""Types whose texts cannot be ids."""

_COMPARED = (
    "int2", "int4", "int8", "float4", "float8", "bool", "text", "varchar", "bpchar", "date",
    "timestamp", "timestamptz",
)  # fmt: skip
"""Types that a filter reads as they are; others are read as text."""

_SRID = "psd_srid_of_row"


@dataclass(frozen=True, slots=True, repr=False)
class PostGIS:
    """Rows of a table or of a query in a PostgreSQL database with PostGIS.

    Parameters
    ----------
    url : str
        Address, ``postgresql://user@host:5432/database``. Keep a password in ``PGPASSWORD`` or
        ``~/.pgpass``, which the client reads.
    table : str, optional
        Name of a table or view, with its schema before a dot; case-sensitive.
    query : str, optional
        One SELECT instead of a table.

    Raises
    ------
    ParameterError
        If both or neither of table and query are given, or the address is not of PostgreSQL.

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
            raise ParameterError("url must begin with postgresql://")
        if (self.table is None) == (self.query is None):
            raise ParameterError(f"{display_name(self.url)} needs either table=NAME or query=TEXT")
        if self.table is not None:
            quote_table(self.table)

    def __repr__(self) -> str:
        return f"<PostGIS: {self.what} of {display_name(self.url)}>"

    def with_schema(self) -> PostGIS:
        """The same table with the schema in which it is found now; as it is if there is none.

        A ledger recognises a table by its name, and a search path decides which table a name
        without a schema is.

        Raises
        ------
        InputDataError, MissingExtraError
            If the database cannot be reached, or the driver is not installed.
        """
        if self.table is None or "." in self.table:
            return self
        with connect(self.url, self.what, InputDataError) as cursor:
            cursor.execute(
                "SELECT n.nspname FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n "
                "ON n.oid = c.relnamespace WHERE c.oid = pg_catalog.to_regclass($1)",
                [quote_table(self.table)],
            )
            found = cursor.fetchone()
        return self if found is None else replace(self, table=f"{found[0]}.{self.table}")

    @property
    def what(self) -> str:
        """Name of the table or query in messages."""
        return "the query" if self.table is None else f"table {self.table}"

    @property
    def rows(self) -> str:
        """Text after FROM."""
        if self.table is not None:
            return f"{quote_table(self.table)} AS source"
        return f"(\n{(self.query or '').strip().removesuffix(';')}\n) AS source"


USES: tuple[str, ...] = ("geometry", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is a table, a query, or the address of a database."""
    return isinstance(item, PostGIS) or is_address(item)


def batches(items: list[Any], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read tables and queries, each in one snapshot."""
    if len(set(items)) < len(items):
        raise InputDataError("a table is repeated; its records would count twice")
    for item in items:
        source = item if isinstance(item, PostGIS) else PostGIS(item)
        with connect(source.url, source.what, InputDataError) as cursor:
            # Changes of others are not visible, and this transaction cannot write.
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield from _rows(cursor, source, columns, domain)


def _rows(cursor: Any, source: PostGIS, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read one table or query."""
    what = f"{source.what} of {display_name(source.url)}"
    schema = _stream(cursor, f"SELECT * FROM {source.rows} LIMIT 0").schema
    columns = replace(resolve_columns(columns, schema.names), wkt=None)
    crs_of: dict[str, Any] = dict.fromkeys(_geometries(schema, columns))
    extra = []
    if len(crs_of) == 1:  # with several, `find_columns` asks to choose one
        (name,) = crs_of
        # All other geometries must have the SRID of the first one.
        import shapely

        column = quote_identifier(name)
        stream = _stream(
            cursor, f"SELECT {column} FROM {source.rows} WHERE {column} IS NOT NULL LIMIT 1"
        )
        first = [shape for record in stream for shape in record.column(0).storage.to_pylist()]
        srid = int(shapely.get_srid(shapely.from_wkb(first[0]))) if first else None
        postgis = postgis_schema(cursor)
        crs_of[name] = domain.crs if srid is None else _crs(cursor, postgis, srid)
        extra = [f"{postgis}.st_srid({quote_identifier(name)}::{postgis}.geometry) AS {_SRID}"]
    # Columns to select.
    geometries = [*crs_of]
    geometry = columns.geometry or (geometries[0] if geometries else None)
    points = [columns.x, columns.y] if geometry is None else [geometry]
    names = list(dict.fromkeys([*points, *columns.others, *columns.filtered]))
    check_names(what, schema.names, names)
    selected = [_expression(schema.field(name), columns) for name in names]
    stream = _stream(cursor, f"SELECT {', '.join(selected + extra)} FROM {source.rows}")
    chosen = find_columns(what, stream.schema, columns, domain, crs_of)
    yield from chosen.batches(_records(stream, what))


def _stream(cursor: Any, query: str) -> Any:
    """Run a query; return its record batches as they arrive."""
    cursor.execute(query)
    return cursor.fetch_record_batch()


def _geometries(schema: Any, columns: Columns) -> list[str]:
    """Columns of geometries; only the named one if it is among them."""
    names = [field.name for field in schema if _type_name(field) in _GEOMETRIES]
    return [name for name in names if name == columns.geometry] or names


def _type_name(field: Any) -> str:
    """Type of a column in PostgreSQL."""
    return str((field.metadata or {}).get(b"POSTGRESQL:type", b"").decode())


def _crs(cursor: Any, postgis: str | None, srid: int) -> str | None:
    """CRS of an SRID in the database; None if the SRID is unknown."""
    cursor.execute(
        f"SELECT auth_name || ':' || auth_srid, srtext FROM {postgis}.spatial_ref_sys "
        f"WHERE srid = {srid}"
    )
    row = cursor.fetchone()
    if row is None:
        return None
    code, text = row
    return str(code if code is not None and code.startswith(("EPSG:", "ESRI:")) else text)


def _expression(field: Any, columns: Columns) -> str:
    """Column in SQL, of a type that Arrow has; ids become text with all digits."""
    column, kind = quote_identifier(field.name), _type_name(field)
    if field.name == columns.user and _has_exact_text(field):
        return f"{column}::text AS {column}"
    if field.name == columns.bid and kind in ("numeric", "money"):
        return f"{_bid(column)} AS {column}"
    if field.name in (columns.x, columns.y) and kind == "numeric":
        return f"{column}::float8 AS {column}"
    is_for_filter = field.name in columns.filtered and field.name not in [*columns]
    if is_for_filter and kind not in (*_COMPARED, *_GEOMETRIES):
        return f"{column}::text AS {column}"
    return column


def _bid(column: str) -> str:
    """SQL of a bid, NULL beyond float8: its cast would stop, and tell of such a record."""
    exact = f"abs({column}::numeric)"
    return (
        f"CASE WHEN {exact} < 1e-300 THEN 0 WHEN {exact} < 1e300 THEN {column}::numeric::float8 END"
    )


def _has_exact_text(field: Any) -> bool:
    """Whether each value has exactly one text; numerics only without decimals."""
    kind = _type_name(field)
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", b"-1"))
    is_integer = modifier >= 0 and (modifier - 4) & 0x7FF == 0
    return is_integer if kind == "numeric" else kind not in _NO_IDS


def _records(stream: Any, what: str) -> Iterator[Any]:
    """Yield record batches; refuse geometries of several SRIDs."""
    import pyarrow as pa
    import pyarrow.compute as pc

    seen: set[int] = set()
    kind = InputDataError
    try:
        for record in stream:
            if _SRID in record.schema.names:
                seen |= set(pc.unique(record.column(_SRID)).drop_null().to_pylist())
            if len(seen) > 1:
                break
            yield record
    except (pa.ArrowException, OSError) as error:
        kind = fault_class(error)
        fault = "failed while it was read; does the query run to its end?"
    else:
        fault = "must have geometries of one SRID; transform them" if len(seen) > 1 else ""
    if fault:
        raise kind(f"{what} {fault}")
