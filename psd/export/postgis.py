"""PostGIS: a table of cells in a database, for GIS programs and other queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from psd._util.postgres import (
    connect,
    is_address,
    postgis_schema,
    quote_identifier,
    quote_table,
)
from psd.errors import ParameterError, WriteError

if TYPE_CHECKING:
    import geopandas


_STAGED = "psd_staged_cells"


def accepts(target: object) -> bool:
    """Whether the target is the address of a database."""
    return is_address(target)


def write_database(
    cells: geopandas.GeoDataFrame,
    url: str,
    *,
    table: str | None,
    tags: dict[str, str],
    overwrite: bool = False,
) -> None:
    """Write cells to a table with a primary key, a geometry column ``geom`` and its index."""
    if table is None:
        raise ParameterError(
            "table must name a table of the database, such as public.seoul, got None"
        )
    name = quote_table(table)
    # One transaction: no reader sees the table before its end, and after a failure the older one is
    # as it was.
    with connect(url, f"table {table}", WriteError) as cursor:
        postgis = postgis_schema(cursor)
        if postgis is None:
            raise WriteError("the database has no PostGIS; install it (CREATE EXTENSION postgis)")
        # The database has its own numbers of CRSs.
        authority = cells.crs.to_authority(min_confidence=100) or ("", "0")
        cursor.execute(
            f"SELECT srid FROM {postgis}.spatial_ref_sys "
            "WHERE auth_name = $1 AND auth_srid::text = $2",
            authority,
        )
        row = cursor.fetchone()
        if row is None:
            raise WriteError(
                f"the database does not know the CRS {cells.crs.name!r} of the release; add it to "
                "spatial_ref_sys first"
            )
        srid = int(row[0])
        if overwrite:
            cursor.execute(f"DROP TABLE IF EXISTS {name}")
        columns = ", ".join(
            f"{quote_identifier(column)} {kind}" for column, kind in _columns(cells).items()
        )
        geometry, kind = f"{postgis}.st_geomfromwkb(geom, {srid})", "Polygon"
        if (cells.geom_type == "MultiPolygon").any():  # cells that longitude 180 cuts
            geometry, kind = f"{postgis}.st_multi({geometry})", "MultiPolygon"
        cursor.execute(
            f"CREATE TABLE {name} ({columns}, geom {postgis}.geometry({kind}, {srid}) NOT NULL)"
        )
        _fill(cursor, name, cells, geometry)
        cursor.execute(f"CREATE INDEX ON {name} USING gist (geom)")
        note = "; ".join(f"{key} {value}" for key, value in tags.items()).replace("'", "''")
        cursor.execute(f"COMMENT ON TABLE {name} IS '{note}'")
        cursor.connection.commit()


def _columns(cells: geopandas.GeoDataFrame) -> dict[str, str]:
    """Type of each column of the table but its geometry; its comment states the source."""
    types = {"b": "boolean", "i": "bigint", "f": "float8"}
    plain = cells.drop(columns=["geometry", "release_source"], errors="ignore")
    return {
        str(name): types.get(kind.kind, "text") + " NOT NULL" + " PRIMARY KEY" * (name == "cell")
        for name, kind in plain.dtypes.items()
    }


def _fill(cursor: Any, name: str, cells: geopandas.GeoDataFrame, geometry: str) -> None:
    """Send the rows in bulk, as bytes, and make geometries of them in the database."""
    import pyarrow as pa
    import shapely

    plain = cells[list(_columns(cells))]
    rows = pa.table(
        {
            **{column: pa.array(plain[column].to_numpy()) for column in plain.columns},
            "geom": pa.array(shapely.to_wkb(cells.geometry.to_numpy()), pa.binary()),
        }
    )
    # Rows go to a temporary table as bytes; the database makes geometries of them.
    cursor.adbc_ingest(_STAGED, rows, mode="create", temporary=True)
    columns = ", ".join(map(quote_identifier, plain.columns))
    cursor.execute(
        f"INSERT INTO {name} ({columns}, geom) SELECT {columns}, {geometry} FROM {_STAGED}"
    )
    cursor.execute(f"DROP TABLE {_STAGED}")
