"""GeoPackage, Shapefile, FlatGeobuf, GeoJSON and lines of it, streamed by GDAL. Private side."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from psd._util.parquet_bytes import footer_keys
from psd.errors import InputDataError
from psd.ingest.columns import resolve_columns
from psd.ingest.input_paths import file_kind, refuse_changes
from psd.ingest.sources._arrow import check_names, fault_class, find_columns
from psd.ingest.sources._csv_file import START, refuse_xml
from psd.ingest.tally_marks import refuse_private_footer
from psd.regions.files import refuse_pointers

if TYPE_CHECKING:
    from psd.ingest.sources import Columns
    from psd.ingest.tally import Batch
    from psd.space.domain import Domain


_ROWS = 100_000

# Options of GDAL. Its native stream of FlatGeobuf overwrites points after a missing geometry. It
# takes text of GeoJSON for times by a rule of its own, which drops UTC and GMT, and a property for
# a list in all features if it is one in any. And it takes all features for those of GeoCouch if one
# looks like it, so that the others lose their points.
_OPTIONS = {
    "OGR_FLATGEOBUF_STREAM_BASE_IMPL": "YES",
    "OGR_GEOJSON_DATE_AS_STRING": "YES",
    "OGR_GEOJSON_ARRAY_AS_STRING": "YES",
    "GEOJSON_FLATTEN_GEOCOUCH": "NO",
}

# GDAL finds the format of JSON by members of its first features, and formats beside GeoJSON give
# all features the CRS that one states.
_DRIVERS = ("GPKG", "ESRI Shapefile", "FlatGeobuf", "GeoJSON", "GeoJSONSeq")

_SEPARATOR = b"\x1e"
"""Stands before each feature of a sequence of GeoJSON, unless lines separate them."""

_PROPERTIES = b'"properties"'

_JSON_ENDINGS = (
    ".geojson", ".json", ".geojsonl", ".geojsons", ".geojsonseq", ".ndjson", ".jsonl",
)  # fmt: skip

_POINTS = ("Point", "2.5D Point", "Unknown")
"""Prefixes of geometry types of layers that may hold points."""


USES: tuple[str, ...] = ("geometry", "layer", "where")
"""Fields of `psd.ingest.sources.Columns` that this source uses in addition to column names."""


def accepts(item: Any) -> bool:
    """Whether the item is the path of a vector file."""
    return file_kind(item) == "vector"


def batches(items: list[Path], columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read one layer of each file."""
    layers = [_layer(path, columns.layer) for path in items]  # all before a record is read
    for path in items:
        _check_length(path)
    for path, layer in zip(items, layers, strict=True):
        with refuse_changes([path]):
            yield from _rows(path, layer, columns, domain)


def _layer(path: Path, requested: str | None) -> str:
    """Layer to read: named, or the only one with geometries; only the holder sees the message."""
    import pyogrio

    refuse_private_footer(path, footer_keys(path))  # some builds of GDAL read Parquet
    refuse_pointers(path, "input")
    with path.open("rb") as file:
        refuse_xml(path, file.read(START))
    try:
        with warnings.catch_warnings(action="ignore"):
            types = {str(name): geometry for name, geometry in pyogrio.list_layers(path)}
    except (RuntimeError, OSError):
        raise InputDataError(_unsound(path)) from None
    names = ", ".join(types) or "none"
    if requested is not None and requested not in types:
        raise InputDataError(f"{path} has no layer {requested!r}; its layers are {names}")
    spatial = [name for name, geometry in types.items() if geometry] or list(types)
    candidates = [requested] if requested else spatial
    if len(candidates) != 1:
        raise InputDataError(f"{path} has several layers: {names}; choose one with layer=NAME")
    (name,) = candidates
    if types[name] and not types[name].startswith(_POINTS):
        raise InputDataError(
            f"layer {name!r} of {path} must hold points, since a release counts points; use for "
            "instance centroids"
        )
    return name


def _check_length(path: Path) -> None:
    """Refuse a shapefile that is too short; GDAL would read the rest as missing points."""
    if path.suffix.lower() != ".shp":
        return
    with path.open("rb") as file:
        start = file.read(28)
    complete = len(start) == 28 and path.stat().st_size >= 2 * int.from_bytes(start[24:28], "big")
    for table in (path.with_suffix(end) for end in (".dbf", ".DBF")):
        if table.exists():
            complete &= _is_complete_table(table)
    if not complete:
        raise InputDataError(_unsound(path))


def _check_lines(path: Path, info: dict[str, Any]) -> None:
    """Refuse lines of GeoJSON that are no feature; GDAL would pass over them."""
    if path.suffix.lower() not in _JSON_ENDINGS:
        return
    with path.open("rb") as file:
        first = next((line for line in file if line.strip()), b"")
        file.seek(0)
        if first.startswith(_SEPARATOR):
            number = sum(line.count(_SEPARATOR) for line in file)
        else:
            number = sum(bool(line.strip()) for line in file)
    # GDAL reads lines after a byte order mark as one value.
    has_lines = info["driver"] == "GeoJSONSeq" or (number > 1 and _is_json(first))
    if has_lines and info["features"] != number:
        raise InputDataError(
            f"{path} must hold one feature of GeoJSON on each line, without a byte order mark; "
            "write the file again"
        )


def _check_properties(path: Path, info: dict[str, Any], columns: Columns, names: list[str]) -> None:
    """Refuse columns of GeoJSON whose values of one feature may depend on others."""
    types = dict(zip(map(str, info["fields"]), map(str, info["dtypes"]), strict=True))
    # By what other features have, GDAL takes the id of a feature, which is no property, for a
    # missing property ``id``, or for none, and converts it. Text keeps all ids of users, a missing
    # one is refused.
    has_numbers = columns.user == "id" and types.get("id", "").startswith(("int", "bool"))
    if has_numbers or "id" in (*columns.filtered, columns.bid):
        raise InputDataError(
            f"column 'id' of {path} must have another name, or hold ids of users as text, since "
            "features of GeoJSON have ids beside their properties; write it as another property"
        )
    # It takes the members of a feature without properties for these, and converts them too.
    found, rest = 0, b""
    with path.open("rb") as file:
        while names and (block := file.read(2**20)):
            rest += block.lower()
            found += rest.count(_PROPERTIES)
            rest = rest[max(rest.rfind(b'"'), len(rest) - len(_PROPERTIES) + 1) :]
    if names and found < info["features"]:
        raise InputDataError(
            f"{path} must have properties in each feature, as GeoJSON needs; write the file again"
        )


def _is_json(line: bytes) -> bool:
    """Whether a line is a value of its own, and not the first line of a longer one."""
    try:
        json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return False
    return True


def _is_complete_table(path: Path) -> bool:
    """Whether the table of a shapefile has all records that its header states."""
    with path.open("rb") as file:
        start = file.read(12)
    rows, head, width = (
        int.from_bytes(start[a:b], "little") for a, b in ((4, 8), (8, 10), (10, 12))
    )
    return len(start) == 12 and path.stat().st_size >= head + rows * width


def _unsound(path: Path) -> str:
    """Message about a file that GDAL cannot read; its own message may quote the content."""
    return (
        f"{path} cannot be read as GeoPackage, Shapefile, FlatGeobuf, GeoJSON or lines of GeoJSON; "
        "is it truncated, or is a part of it missing?"
    )


def _rows(path: Path, layer: str, columns: Columns, domain: Domain) -> Iterator[Batch]:
    """Read one layer."""
    import pyarrow as pa
    import pyogrio

    fault: type[InputDataError] | None = None
    try:
        with warnings.catch_warnings(action="ignore"), _options():
            info = pyogrio.read_info(path, layer=layer, force_feature_count=True)
        if info["driver"] not in _DRIVERS:
            raise InputDataError(_unsound(path))
        _check_lines(path, info)
        is_json = info["driver"].startswith("GeoJSON")
        fields = [str(name) for name in info["fields"]]
        # Names of properties are those of all features together. With the exact ones, another
        # spelling in one feature does not decide which column is read of the others.
        columns = columns if is_json else resolve_columns(columns, fields)
        columns = replace(columns, wkt=None)
        # Columns to read beside the geometry, each once in the layer.
        places = [] if info["geometry_type"] else [columns.x, columns.y]
        names = list(dict.fromkeys([*places, *columns.others, *columns.filtered]))
        check_names(str(path), [str(name) for name in info["fields"]], names)
        if is_json:
            _check_properties(path, info, columns, names)
        opened = pyogrio.open_arrow(
            path,
            layer=layer,
            columns=names,
            batch_size=_ROWS,
            use_pyarrow=True,
            datetime_as_string=True,  # times of GDAL lose their offset in some formats
        )
        with _options(), opened as (meta, reader):
            geometry = (meta["geometry_name"] or "wkb_geometry") if meta["geometry_type"] else None
            crs_of = {} if geometry is None else {geometry: meta["crs"]}
            if is_json:  # of two spellings, GDAL may leave out the other one than it was told
                check_names(str(path), reader.schema.names, names)
            chosen = find_columns(str(path), reader.schema, columns, domain, crs_of)
            chosen = replace(chosen, is_json=is_json)
            left = info["features"]
            for batch in chosen.batches(_records(reader)):
                left -= len(batch.x)
                yield batch
    except (RuntimeError, OSError, pa.ArrowException) as error:
        fault = fault_class(error)  # raised below, so no context carries a message with values
    else:
        if left:  # GDAL treats some kinds of damage as the end of the file
            fault = InputDataError
    if fault is not None:
        raise fault(_unsound(path))


def _records(reader: Any) -> Iterator[Any]:
    """Yield record batches without the warnings of GDAL, which quote values."""
    while True:
        with warnings.catch_warnings(action="ignore"):
            record = next(reader, None)
        if record is None:
            return
        yield record


@contextmanager
def _options() -> Iterator[None]:
    """Make GDAL read every format feature by feature, and text as it is."""
    import pyogrio

    before = {name: pyogrio.get_gdal_config_option(name) for name in _OPTIONS}
    pyogrio.set_gdal_config_options(_OPTIONS)
    try:
        yield
    finally:
        pyogrio.set_gdal_config_options(before)
