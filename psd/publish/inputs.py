"""Inputs of records with the table or query that is read of an address, and their engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from psd._apps import load_member
from psd._util.postgres import is_address
from psd.errors import InputDataError, ParameterError
from psd.ingest.engine import Engine
from psd.ingest.engine import engine as find_engine
from psd.ingest.sources import files_of
from psd.publish.fields import public_files
from psd.regions.inputs import refuse_record_files

__all__ = ["check_public_files", "inputs_and_engine", "inputs_of", "points_of"]

_PUBLIC = ("bounds", "boundary", "covariate", "regions")


def check_public_files(values: Mapping[str, Any], data: Any) -> None:
    """Refuse public files, and tables, of these values that are inputs of records as well."""
    items = data if isinstance(data, list) else [data]
    for name in _PUBLIC:
        value = values.get(name)
        if not isinstance(value, str | None) and any(value is item for item in items):
            raise ParameterError(
                f"{name} must be public, never derived from the data, got the records themselves",
                name=name,
            )
    paths = public_files(values)
    if paths:
        refuse_record_files(paths, files_of(items))


def points_of(data: Any) -> Any:
    """Data as the sources take them: a list of inputs, each GeoSeries a table.

    A list of pairs is refused: without a point it could not be told from a list without an input.

    >>> points_of(["a.csv", "b.csv"])
    ['a.csv', 'b.csv']
    """
    items = data if isinstance(data, list | tuple) else [data]
    if any(isinstance(item, list | tuple) for item in items):
        raise InputDataError(
            "data must be a table, an array, a file or a list of these, got points one by one; "
            "np.array(points) is an array of them"
        )
    return [_table_of(item) for item in items]


def _table_of(item: Any) -> Any:
    """A GeoSeries as a GeoDataFrame; other items are unchanged."""
    is_series = hasattr(item, "to_crs") and not hasattr(item, "columns")
    return item.to_frame("geometry") if is_series else item


def inputs_of(inputs: Sequence[Any], table: str | None, query: str | None) -> list[Any]:
    """Inputs for the sources: addresses of databases with table or query, others unchanged."""
    addresses = [isinstance(item, str) and is_address(item) for item in inputs]
    if not any(addresses):
        for key, value in (("table", table), ("query", query)):
            if value is not None:
                raise ParameterError(
                    f"{key} must be given with an input postgresql://... alone", name=key
                )
        return list(inputs)
    from psd.ingest.sources.postgis import PostGIS

    return [
        PostGIS(item, table=table, query=query) if is_there else item
        for item, is_there in zip(inputs, addresses, strict=True)
    ]


def inputs_and_engine(
    inputs: Sequence[Any], table: str | None, query: str | None, engine: Engine | str | None
) -> tuple[list[Any], Engine | None]:
    """Inputs, and the engine that reads them; None for this process."""
    name, address = _parse_engine(engine) if isinstance(engine, str | None) else ("object", "")
    if name == "duckdb":
        return inputs_of(inputs, table, query), None
    if query is not None:
        raise ParameterError("query must be left out with engine spark:...; give table or paths")
    tables = [] if table is None else [load_member("spark.SparkTable")(table)]
    found = find_engine(name, address) if isinstance(engine, str) else engine
    return [*inputs, *tables], found


def _parse_engine(text: str | None) -> tuple[str, str]:
    """Name and address of an engine."""
    name, colon, address = (text or "duckdb").partition(":")
    if name == "duckdb" and not colon:
        return name, ""
    if not address:
        raise ParameterError(
            f"engine must have an address, such as spark://host:7077, got {name[:80]!r}",
            name="engine",
        )
    return name, f"{name}:{address}" if address.startswith("//") else address
